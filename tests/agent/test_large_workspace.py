"""What a turn costs does not grow with the workspace."""

from __future__ import annotations

import builtins
import io
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.messages_api import reply

LOOKS = [(os, name) for name in ("stat", "lstat", "open", "scandir", "listdir", "readlink")] + [
    (io, "open"),
    (builtins, "open"),
]


@pytest.fixture
def looks(monkeypatch, root: Path) -> Counter[str]:
    """How often this process looked at each path of the workspace, tinyclaw's own folders left out."""
    counted: Counter[str] = Counter()

    def counting(look: Callable) -> Callable:
        def counted_look(path=".", *arguments, **keywords):
            name = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
            below = name.removeprefix(f"{root}/")
            if below != name and not below.startswith((".transcripts", ".task_outputs", ".tinyclaw")):
                counted[below] += 1
            return look(path, *arguments, **keywords)

        return counted_look

    for module, name in LOOKS:
        monkeypatch.setattr(module, name, counting(getattr(module, name)))
    return counted


def fill(root: Path, packages: int) -> None:
    """As many packages as there are files in each; their folders were made a while ago, so nobody waits for them."""
    for package in range(packages):
        folder = root / f"packages/p{package}/src"
        if not folder.exists():
            folder.mkdir(parents=True)
            (folder.parent / "AGENTS.md").write_text(f"rules of {package}\n")
        for number in range(packages):
            (folder / f"f{number}.txt").write_text("x\n")
    with (root / "packages/huge.bin").open("wb") as file:
        file.truncate(1 << 30)
    for place in (root, *(each for each in root.rglob("*") if each.is_dir())):
        os.utime(place, (1_700_000_000, 1_700_000_000))


def test_a_turn_looks_at_the_same_files_in_a_large_workspace_as_in_a_small_one(
    api, start, turn, root: Path, looks: Counter[str]
):
    call = ("read", {"path": "packages/p0/src/f0.txt"})
    seen = []
    for size in (1, 20):
        fill(root, size)
        session = start(api([reply(tools=[call]), reply("one"), reply("two"), reply("three")]))
        turns = []
        for text in ("a", "b", "c"):
            looks.clear()
            turn(session, text)
            turns.append(Counter(looks))
        session.close()
        seen.append(turns)
    small, large = seen
    for before, after in zip(small, large, strict=True):
        known = {path for path in after if not path.startswith("packages/") or path.startswith("packages/p0")}
        assert sorted(set(after) - known - {"packages/.gitignore", "packages/AGENTS.md", "packages/CLAUDE.md"}) == []
        assert after.total() <= before.total() + 10 < 150  # a file that is seconds old is read, not proven unchanged
    assert large[2]["packages/p0/AGENTS.md"] in (1, 2, 3)
