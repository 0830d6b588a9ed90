"""Which files of the mind somebody saved while nothing was running."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tinyclaw.errors import StateError
from tinyclaw.state.files import ABSENT, read
from tinyclaw.state.watcher import Watcher
from tinyclaw.state.workspace import INSTRUCTIONS, MEMORY_INDEX, PLAN, TODO, Workspace

_WATCHED = (INSTRUCTIONS, PLAN, TODO, MEMORY_INDEX)


class Saves:
    """Tells of saves between ``begin`` and the next turn. The watcher is a hint, the revision the truth."""

    def __init__(self, workspace: Workspace, *, is_on: bool) -> None:
        self._paths = {workspace.root / name: name for name in _WATCHED}
        self._watcher = Watcher({path.parent for path in self._paths}, self._paths.__contains__)
        self._known: Mapping[Path, str] = {}
        if is_on:
            self._watcher.start()

    def begin(self) -> None:
        """From now on saves are somebody else's."""
        self._watcher.take()
        self._known = {path: _revision(path) for path in self._paths}

    def news(self) -> str:
        """A line for each file that was saved since the last call, or nothing."""
        lines = []
        for path in sorted(self._watcher.take() & self._paths.keys()):
            revision = _revision(path)
            if revision != self._known.get(path):
                self._known = {**self._known, path: revision}
                what = "was deleted" if revision == ABSENT else "was saved"
                lines.append(f"• {self._paths[path]} {what}; the next request carries it")
        return "\n".join(lines)

    def stop(self) -> None:
        self._watcher.stop()


def _revision(path: Path) -> str:
    try:
        return read(path).revision
    except StateError:
        return "unreadable"
