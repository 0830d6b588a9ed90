"""The work of grep and glob, as a process of its own: ``python -m tinyclaw.tools._searcher``.

A regular expression can take for ever and holds the interpreter meanwhile; a process can be killed.
It is started for each search, so it imports next to nothing. On stdin it takes one JSON array, the
name of a query and its fields; on stdout it gives a result's fields, or a string that says what is
wrong with the pattern.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tinyclaw.state.wildcards import expand_braces, to_regex
from tinyclaw.tools._walk import File, Walk, open_regular

LINE_CHARS = 500
TOTAL_CHARS = 14_000

_FIRST_BLOCK_BYTES = 65_536
_BLOCK_BYTES = 4_000_000
_SNIFF_BYTES = 8_000
_CONTROLS = dict.fromkeys((*range(9), *range(10, 32), *range(127, 160)), "\ufffd")
# No part of such a pattern can match a line break, so it can look through a whole text for a line that it fits.
_WITHIN_LINE = re.compile(r"(?:[^\x00-\x1f\\\[(]|\\[wdbS.^$*+?{}\[\]|()/\-\"' ]|\[(?!\^)|\((?!\?)|\(\?:|\(\?P<)*")


class Glob(NamedTuple):
    """Which files below ``start`` fit one of the patterns, which are relative to ``start``."""

    root: str
    start: str
    left_out: list[str]
    patterns: list[str]
    limit: int
    seconds: float


class Files(NamedTuple):
    """The first ``limit`` paths of ``total``, sorted."""

    paths: list[str]
    total: int
    ignored: int
    unreadable: int


class Grep(NamedTuple):
    """Which lines of ``start``, a file or a folder, match ``pattern``; ``filter`` narrows the files unless blank."""

    root: str
    start: str
    left_out: list[str]
    pattern: str
    filter: str
    ignore_case: bool
    context: int
    limit: int
    seconds: float


class Matches(NamedTuple):
    """Lines to show, and the counts that tell a miss from a search that saw nothing."""

    lines: list[str]
    matches: int
    files: int
    searched: int
    ignored: int
    binary: int
    unreadable: int
    more: bool


def find_files(query: Glob) -> Files:
    """Raises: re.error for a pattern with an impossible class."""
    below = len(query.start) + 1 if query.start else 0
    fitting = _any_of(query.patterns)
    walk = Walk(query.root, query.start, query.left_out)
    found = [
        file.path
        for file in walk.files(lambda path: fitting(path[below:]))
        if not file.is_link or _leads_to_file_inside(query.root, file.path)
    ]
    paths = [printable(path) for path in sorted(found)[: query.limit]]
    return Files(paths, len(found), walk.ignored, walk.unreadable)


def find_lines(query: Grep) -> Matches:
    """Raises: re.error, RecursionError or OverflowError for a pattern that is none."""
    return _LineSearch(query).run()


class _LineSearch:
    """One grep: what is to be shown, and how much of it there is already."""

    def __init__(self, query: Grep) -> None:
        flags = re.IGNORECASE if query.ignore_case else 0
        self._query = query
        self._pattern = re.compile(query.pattern, flags)
        self._sieve = None
        if _WITHIN_LINE.fullmatch(query.pattern):
            self._sieve = re.compile(query.pattern, flags | re.MULTILINE)
        self._lines: list[str] = []
        self._chars = self._matches = self._files = self._searched = self._binary = self._unreadable = 0
        self._more = False

    def run(self) -> Matches:
        walk = Walk(self._query.root, self._query.start, self._query.left_out)
        for file in self._candidates(walk):
            if self._more:
                break
            self._search_file(file.path)
        unreadable = self._unreadable + walk.unreadable
        return Matches(
            self._lines, self._matches, self._files, self._searched, walk.ignored, self._binary, unreadable, self._more
        )

    def _candidates(self, walk: Walk) -> Iterator[File]:
        start = self._query.start
        if start and not os.path.isdir(f"{self._query.root}/{start}"):  # noqa: PTH112 pathlib would double the start-up
            return iter([File(start, is_link=False)])
        files = walk.files(_file_filter(self._query.filter, start))
        return (file for file in files if not file.is_link)  # the content of a link is found where it lies

    def _search_file(self, path: str) -> None:
        before = self._matches
        try:
            descriptor = open_regular(f"{self._query.root}/{path}")
        except OSError:
            self._unreadable += 1
            return
        try:
            self._search_open(descriptor, path)
        finally:
            os.close(descriptor)
        self._files += self._matches > before

    def _search_open(self, descriptor: int, path: str) -> None:
        number = 1
        for data in _blocks(descriptor):
            if number == 1 and b"\0" in data[:_SNIFF_BYTES]:
                self._binary += 1
                return
            if self._more:
                break
            self._search_block(path, number, data)
            number += data.count(b"\n")
        self._searched += 1

    def _search_block(self, path: str, number: int, data: bytes) -> None:
        """Look through whole lines, the first of which has ``number``. Context does not reach into other blocks."""
        text = data.decode("utf-8", "replace").replace("\r\n", "\n").removesuffix("\n").removeprefix("\ufeff")
        if self._sieve is not None and not self._sieve.search(text):
            return
        lines = text.split("\n")
        hits: dict[int, re.Match[str]] = {}
        for index, line in enumerate(lines):
            if match := self._pattern.search(line):
                if self._matches + len(hits) == self._query.limit:
                    self._more = True
                    break
                hits[index] = match
        if hits:
            self._show(printable(path), number, lines, hits)

    def _show(self, path: str, number: int, lines: list[str], hits: dict[int, re.Match[str]]) -> None:
        context = self._query.context
        shown = -1
        for hit in hits:
            block = range(max(shown + 1, hit - context), min(len(lines), hit + context + 1))
            if context and self._lines and (shown < 0 or block.start > shown + 1):
                self._lines.append("--")
            for index in block:
                mark, match = (":", hits[index]) if index in hits else ("-", None)
                self._lines.append(cut_line(f"{path}{mark}{number + index}{mark} ", lines[index], match))
                self._chars += len(self._lines[-1]) + 1
                self._matches += match is not None
                shown = index
                if self._chars > TOTAL_CHARS:
                    self._more = True
                    return


def cut_line(prefix: str, line: str, match: re.Match[str] | None) -> str:
    """``prefix`` and the line, or the part of it around the match that keeps all within ``LINE_CHARS``."""
    room = max(LINE_CHARS - len(prefix), LINE_CHARS // 2)
    if len(line) <= room:
        return prefix + line.translate(_CONTROLS)
    note = f" [cut, the line has {len(line):,} characters]"
    width = room - len(note) - 2
    start = max(0, min((match.start() if match else 0) - width // 4, len(line) - width))
    end = start + width
    before, after = "…" if start else "", "…" if end < len(line) else ""
    return f"{prefix}{before}{line[start:end].translate(_CONTROLS)}{after}{note}"


def printable(path: str) -> str:
    """A path as text: what no terminal and no JSON can carry is replaced."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace").translate(_CONTROLS)


def _blocks(descriptor: int) -> Iterator[bytes]:
    """A file in pieces that end with a line, unless a single line is longer than several blocks."""
    pending, size = b"", _FIRST_BLOCK_BYTES
    while data := os.read(descriptor, size):
        pending, size = pending + data, _BLOCK_BYTES
        end = pending.rfind(b"\n") + 1 or (len(pending) if len(pending) > 4 * _BLOCK_BYTES else 0)
        if end:
            yield pending[:end]
            pending = pending[end:]
    if pending:
        yield pending


def _file_filter(pattern: str, start: str) -> Callable[[str], bool]:
    """Without a slash it is about names, otherwise about the path from the root or from ``start``."""
    if not pattern:
        return lambda path: True
    fitting = _any_of(expand_braces(pattern.removeprefix("./")))
    if "/" not in pattern:
        return lambda path: fitting(path.rpartition("/")[2])
    below = len(start) + 1 if start else 0
    return lambda path: fitting(path) or fitting(path[below:])


def _any_of(patterns: list[str]) -> Callable[[str], bool]:
    regex = re.compile("|".join(f"(?:{to_regex(pattern)})" for pattern in patterns), re.DOTALL)
    return lambda path: regex.fullmatch(path) is not None


def _leads_to_file_inside(root: str, path: str) -> bool:
    target = os.path.realpath(f"{root}/{path}")
    return target.startswith(root.rstrip("/") + "/") and os.path.isfile(target)  # noqa: PTH113


def main() -> None:
    kind, fields = json.load(sys.stdin)
    query: Glob | Grep = Glob(*fields) if kind == "Glob" else Grep(*fields)
    signal.setitimer(signal.ITIMER_REAL, query.seconds)  # its default action ends this process, even within a match
    result: Files | Matches | str
    try:
        result = find_files(query) if isinstance(query, Glob) else find_lines(query)
    except re.error as error:
        result = str(error)
    except (RecursionError, OverflowError):
        result = "it is too large or too deeply nested"
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
