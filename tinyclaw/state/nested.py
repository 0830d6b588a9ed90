"""Which folders below the root may bring instructions of their own: those on the way to what the agent has touched.

None of git's, tinyclaw's or a package manager's own, none that a ``.gitignore`` leaves out, and none of the chain,
which is read anyway. Each folder costs one stat, for its ``.gitignore``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tinyclaw.state._reading import Signature, signature
from tinyclaw.state.ignore import IGNORE_FILE, Rules, is_ignored, read_rules
from tinyclaw.state.live import is_racy
from tinyclaw.state.workspace import MEMORY_INDEX, OUTPUTS, OWN_FOLDER, TRANSCRIPTS, Workspace

MOST_FOLDERS = 200
"""So many folders are looked into; each costs three stats before every request."""
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
        yield from ("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))


class NestedFolders:
    """Asks the ``.gitignore`` files of one workspace; keeps their rules for as long as they stand."""

    def __init__(self, workspace: Workspace, now: Callable[[], float]) -> None:
        self._workspace = workspace
        self._now = now
        self._known: dict[str, tuple[Signature | None, float, Rules]] = {}
        self._paths: dict[str, Path] = {}

    def of(self, touched: tuple[str, ...]) -> list[Path]:
        """The folders to look into, those above a folder before it."""
        if not touched:
            return []
        chain = self._workspace.chain()
        rules = (self._rules("", IGNORE_FILE), self._rules("", ".git/info/exclude"))
        open_folders: dict[str, tuple[Rules, ...]] = {"": rules}
        for folder in ways_to(touched).folders:
            above, _, name = folder.rpartition("/")
            rules_above = open_folders.get(above)
            if rules_above is not None and not is_ignored(rules_above, folder, name, is_folder=True):
                open_folders[folder] = (self._rules(folder, f"{folder}/{IGNORE_FILE}"), *rules_above)
        return [path for folder in open_folders if (path := self._path(folder)) not in chain]

    def _path(self, folder: str) -> Path:
        if folder not in self._paths:
            self._paths[folder] = self._workspace.root / folder
        return self._paths[folder]

    def _rules(self, folder: str, file: str) -> Rules:
        root = str(self._workspace.root)
        try:
            seen = signature(os.lstat(f"{root}/{file}"))
        except (OSError, ValueError):
            seen = None
        known = self._known.get(file)
        if known and known[0] == seen and not (seen and is_racy(seen, known[1])):
            return known[2]
        rules = Rules(folder, "") if seen is None else read_rules(root, folder, file)
        self._known[file] = (seen, self._now(), rules)
        return rules
