"""What an example records: what the person says, saves and allows, and what the model answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Save = Callable[[Path], None]


@dataclass(frozen=True)
class Turn:
    """One text of the person and the model's replies to it.

    ``is_paused``: nobody was there to ask, and the person ticks ``allow`` in the transcript later.
    """

    text: str
    replies: tuple[Any, ...]
    permission_mode: str = "auto"
    is_paused: bool = False


@dataclass(frozen=True)
class Scenario:
    """``saves`` are the person's changes of the workspace, by the number of the request that is answered meanwhile.

    ``proof`` is a command that prints ``proved`` once the work is done, and something else before.
    """

    name: str
    turns: tuple[Turn, ...]
    proof: str
    proved: str
    saves: Mapping[int, Save] = field(default_factory=dict)


def replacing(name: str, old: str, new: str) -> Save:
    """Save a change as most editors do: a new file that takes the old one's place."""

    def save(root: Path) -> None:
        path = root / name
        text = path.read_text()
        assert old in text, (name, old)
        beside = path.with_name(f".{name}.new")
        beside.write_text(text.replace(old, new))
        beside.replace(path)

    return save


def edit(path: str, old: str, new: str, call: str) -> tuple[str, dict[str, Any], str]:
    """A call of the edit tool."""
    return ("edit", {"path": path, "old_text": old, "new_text": new}, call)


def bash(command: str, call: str) -> tuple[str, dict[str, Any], str]:
    """A call of the bash tool."""
    return ("bash", {"command": command}, call)
