"""Which folders below the root may bring instructions of their own: those on the way to what the agent has touched.

None of git's, tinyclaw's or a package manager's own, none that a ``.gitignore`` leaves out, and none of the chain,
which is read anyway. Each folder costs one stat, for its ``.gitignore``. What a touch or an import would bring in is
asked after by itself, too: a file may be ignored in a folder that is not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tinyclaw.state._reading import Signature, signature
from tinyclaw.state.ignore import IGNORE_FILE, Rules, is_ignored, read_rules
from tinyclaw.state.live import is_racy
from tinyclaw.state.workspace import MEMORY_INDEX, OUTPUTS, OWN_FOLDER, TRANSCRIPTS, Workspace

MOST_FOLDERS = 200
"""So many folders are looked into; each costs three stats before every request."""
INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md")
CLOSED = frozenset({".git", "node_modules", TRANSCRIPTS, OUTPUTS, OWN_FOLDER, MEMORY_INDEX.split("/", 1)[0]})
"""Names of folders in and below which nobody's instructions stand."""


class Ways(NamedTuple):
    """Folders from the root, those above a folder before it, and how many touched ones are not looked into."""

    folders: tuple[str, ...]
    more: int


@lru_cache(maxsize=8)
def ways_to(touched: tuple[str, ...]) -> Ways:
    """The folders on the way from the root to each of ``touched``, first touched first; what is no path is left out."""
    found: dict[str, None] = {}
    more = 0
    for folder in touched:
        steps = list(_steps(folder))
        if len(found | dict.fromkeys(steps)) <= MOST_FOLDERS:
            found.update(dict.fromkeys(steps))
        else:
            more += 1
    return Ways(tuple(found), more)


def _steps(folder: str) -> Iterator[str]:
    """``a``, ``a/b``, ``a/b/c``; nothing for what is no folder that may bring instructions."""
    parts = folder.split("/")
    is_path = folder.isprintable() and not {"", ".", ".."} & set(parts)
    if is_path and not CLOSED & set(parts):
        yield from _steps_to(folder)


def _steps_to(folder: str) -> Iterator[str]:
    """The folders on the way from the root, the root left out, the folder itself included."""
    parts = folder.split("/") if folder else []
    yield from ("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))


def folders_of(paths: Iterable[str]) -> Iterator[str]:
    """The folders of those of ``paths`` that are instructions of a folder below the root."""
    for folder, _, name in (path.rpartition("/") for path in paths):
        if folder and name in INSTRUCTIONS and not folder.startswith("~"):
            yield folder


class IgnoreFiles:
    """The ``.gitignore`` files of one workspace; keeps their rules for as long as they stand."""

    def __init__(self, root: Path, now: Callable[[], float]) -> None:
        self._root = str(root)
        self._now = now
        self._known: dict[str, tuple[Signature | None, float, Rules]] = {}

    def look(self) -> Ignored:
        """What they leave out now."""
        return Ignored(self._rules)

    def _rules(self, folder: str, file: str) -> Rules:
        try:
            seen = signature(os.lstat(f"{self._root}/{file}"))
        except (OSError, ValueError):
            seen = None
        known = self._known.get(file)
        if known and known[0] == seen and not (seen and is_racy(seen, known[1])):
            return known[2]
        rules = Rules(folder, "") if seen is None else read_rules(self._root, folder, file)
        self._known[file] = (seen, self._now(), rules)
        return rules


class Ignored:
    """What git ignores, as of one moment: each ``.gitignore`` is looked at once. Paths are from the root."""

    def __init__(self, rules: Callable[[str, str], Rules]) -> None:
        self._rules = rules
        self._chains: dict[str, tuple[Rules, ...] | None] = {}

    def has_folder(self, folder: str) -> bool:
        """Whether the folder is ignored, or lies in one that is."""
        return self._chain(folder) is None

    def has(self, path: str) -> bool:
        """Whether the file is ignored, or lies in a folder that is."""
        folder, _, name = path.rpartition("/")
        chain = self._chain(folder)
        return chain is None or is_ignored(chain, path, name, is_folder=False)

    def _chain(self, folder: str) -> tuple[Rules, ...] | None:
        """The rules that hold in a folder, the nearer first; None where those above ignore it."""
        if folder in self._chains:
            return self._chains[folder]
        chain: tuple[Rules, ...] | None = self._top()
        for step in _steps_to(folder):
            if step not in self._chains:
                self._chains[step] = self._below(chain, step)
            chain = self._chains[step]
        return chain

    def _top(self) -> tuple[Rules, ...] | None:
        if "" not in self._chains:
            self._chains[""] = (self._rules("", IGNORE_FILE), self._rules("", ".git/info/exclude"))
        return self._chains[""]

    def _below(self, above: tuple[Rules, ...] | None, folder: str) -> tuple[Rules, ...] | None:
        if above is None or is_ignored(above, folder, folder.rpartition("/")[2], is_folder=True):
            return None
        return (self._rules(folder, f"{folder}/{IGNORE_FILE}"), *above)


class NestedFolders:
    """Knows the folders of one workspace into which to look."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._paths: dict[str, Path] = {}

    def of(self, touched: tuple[str, ...], ignored: Ignored) -> list[Path]:
        """The folders to look into, those above a folder before it."""
        if not touched:
            return []
        chain = self._workspace.chain()
        folders = ["", *(folder for folder in ways_to(touched).folders if not ignored.has_folder(folder))]
        return [path for folder in folders if (path := self._path(folder)) not in chain]

    def _path(self, folder: str) -> Path:
        if folder not in self._paths:
            self._paths[folder] = self._workspace.root / folder
        return self._paths[folder]
