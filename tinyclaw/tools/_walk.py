"""The files below a folder: hidden ones too, ignored ones counted only, links never followed, ``.git`` never entered.

Paths are relative to the root, with slashes. Bytes of names that are no UTF-8 are lone surrogates.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tinyclaw.state.ignore import IGNORE_FILE, Rules, is_ignored, read_rules

COUNT_LIMIT = 10_000
"""Ignored files are counted up to this number."""

_GIT = ".git"

Chain = tuple[Rules, ...]


class File(NamedTuple):
    """A regular file, or a link to something that is there."""

    path: str
    is_link: bool


class Walk:
    """One walk from ``start``, a folder below ``root`` ("" for the root).

    The folders named in ``left_out`` are not entered. What the rules above ``start`` ignore is walked
    all the same when ``start`` lies in it.

    Attributes:
        ignored: how many files that fit the rules left out, up to ``COUNT_LIMIT``.
        unreadable: how many folders could not be opened.
    """

    def __init__(self, root: str, start: str, left_out: list[str]) -> None:
        self.ignored = self.unreadable = 0
        self._root = root
        self._start = start
        self._left_out = set(left_out)

    def files(self, fits: Callable[[str], bool]) -> Iterator[File]:
        """The files whose path ``fits``, those of a folder before those of its subfolders, each in order of names."""
        stack = [(self._start, self._chain_above())]
        while stack:
            folder, chain = stack.pop()
            entries = self._entries(folder)
            if any(entry.name == IGNORE_FILE for entry in entries):
                chain = (read_rules(self._root, folder, _join(folder, IGNORE_FILE)), *chain)
            subfolders = []
            for entry in entries:
                path = _join(folder, entry.name)
                is_folder = entry.is_dir(follow_symlinks=False)
                if entry.name == _GIT or path in self._left_out:
                    continue
                if is_ignored(chain, path, entry.name, is_folder):
                    self._count_ignored(path, is_folder, fits)
                elif is_folder:
                    subfolders.append((path, chain))
                elif fits(path) and (entry.is_symlink() or entry.is_file(follow_symlinks=False)):
                    yield File(path, entry.is_symlink())
            stack += reversed(subfolders)

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(f"{self._root}/{folder}") as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except OSError:
            self.unreadable += 1
            return []

    def _chain_above(self) -> Chain:
        """The rules that hold for ``start`` from above; none when they would ignore it."""
        chain: Chain = (read_rules(self._root, "", f"{_GIT}/info/exclude"),)
        folder = ""
        for name in self._start.split("/") if self._start else ():
            chain = (read_rules(self._root, folder, _join(folder, IGNORE_FILE)), *chain)
            folder = _join(folder, name)
            if is_ignored(chain, folder, name, is_folder=True):
                return ()
        return chain

    def _count_ignored(self, path: str, is_folder: bool, fits: Callable[[str], bool]) -> None:
        stack = [path] if is_folder else []
        self.ignored += not is_folder and fits(path)
        while stack and self.ignored < COUNT_LIMIT:
            folder = stack.pop()
            for entry in self._entries(folder):
                below = _join(folder, entry.name)
                if not entry.is_dir(follow_symlinks=False):
                    self.ignored += fits(below)
                elif entry.name != _GIT:
                    stack.append(below)


def open_regular(path: str) -> int:
    """A descriptor of the regular file at ``path``; never waits for a pipe and follows no link at the end.

    Raises: OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError("not a regular file")


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
