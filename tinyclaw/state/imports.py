"""What a file of instructions imports: an ``@`` and a path, in prose.

A path begins with ``./``, ``../`` or ``~/``, or its last part has an ending (``@docs/style.md``). Code spans, fenced
and indented code and HTML comments are no prose (https://spec.commonmark.org); what follows a letter, as in a mail
address, or a backslash is no import. The work grows with the text's length, whatever it holds.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

MOST_NAMES = 1_000
MOST_CHARS = 1_000
"""A longer name is text."""
LOOKED_THROUGH = 1 << 18
"""So many characters of a text are looked through: what stands behind them is far beyond what enters a prompt."""

_IMPORT = re.compile(r"""(?<![^\s(\["'*_|>])@((?:\\ |[^\s\\`"'()\[\]{}<>|*,;:!?#@])++)(?!@)""")
_PATH = re.compile(r"(?:\.{1,2}|~)/|.*[^/.]\.[A-Za-z][A-Za-z0-9]{0,9}$")
_SURE = re.compile(r"(?:\.{1,2}|~)/|.*\.(?:md|mdc|mdx|markdown|txt|rst|adoc)$", re.IGNORECASE)
_QUOTE = re.compile(r"(?: {0,3}> ?)+")
_MARKER = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_MARKERS_CHARS = 40
_TICKS = re.compile(r"`+")


class Import(NamedTuple):
    """``name`` as it is written, on the file's ``line``. One that is not ``is_sure`` is text where no such file is."""

    line: int
    name: str
    is_sure: bool


def find_imports(text: str) -> tuple[Import, ...]:
    """Each name that ``text`` imports, once, in order."""
    found: dict[str, Import] = {}
    for start, paragraph in _paragraphs(text[:LOOKED_THROUGH]) if "@" in text else ():
        for line, name in _names(start, paragraph):
            found.setdefault(name, Import(line, name, _SURE.match(name) is not None))
    return tuple(found.values())[:MOST_NAMES]


def _names(start: int, paragraph: str) -> Iterator[tuple[int, str]]:
    """The names in a paragraph, and the lines on which they stand."""
    if "@" not in paragraph:
        return
    spans = _code_spans(paragraph)
    line, counted = start, 0
    for match in _IMPORT.finditer(paragraph):
        name = match[1].replace("\\ ", " ").rstrip("._")
        line += paragraph.count("\n", counted, match.start())
        counted = match.start()
        if len(name) <= MOST_CHARS and _PATH.match(name) and not _is_within(spans, match.start()):
            yield line, name


# Prose


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """The paragraphs of prose and the lines where they begin; comments in them are blanks."""
    prose = _Prose()
    for number, line in enumerate(text.split("\n"), 1):
        prose.take(number, line)
        yield from prose.finished()
    prose.end()
    yield from prose.finished()


class _Prose:
    """Takes a text line by line, and keeps what is prose of it: ``finished`` gives each paragraph once.

    ``_margin`` is where the text of the innermost list item begins: code is indented by four columns more.
    """

    def __init__(self) -> None:
        self._done: list[tuple[int, str]] = []
        self._lines: list[str] = []
        self._first = 1
        self._margin = 0
        self._fence = ""
        self._is_fence_quoted = False
        self._in_comment = False

    def finished(self) -> Iterator[tuple[int, str]]:
        yield from self._done
        self._done.clear()

    def end(self) -> None:
        """The paragraph, if there is one, goes no further."""
        if self._lines:
            self._done.append((self._first, "\n".join(self._lines)))
            self._lines.clear()

    def take(self, number: int, raw: str) -> None:
        if self._in_comment:
            before, end, raw = raw.partition("-->")
            if not end:
                return
            self._in_comment, raw = False, " " * len(before) + raw
        quote = _QUOTE.match(raw)
        line = raw[quote.end() :] if quote else raw
        if not self._is_fenced(line, is_quoted=quote is not None):
            self._take_text(number, line, is_quoted=quote is not None)

    def _is_fenced(self, line: str, *, is_quoted: bool) -> bool:
        """Whether the line belongs to a fence that was opened before; one in a quotation ends with it."""
        if self._fence and self._is_fence_quoted and not is_quoted:
            self._fence = ""
        if not self._fence:
            return False
        content = line.strip()
        if len(content) >= len(self._fence) and not content.strip(self._fence[0]):
            self._fence = ""
        return True

    def _take_text(self, number: int, line: str, *, is_quoted: bool) -> None:
        content = line.strip()
        if not content or content.startswith("#") or _MARKER.match(content):
            self.end()
        if not content:
            return
        indent = len(line[: len(line) - len(line.lstrip())].expandtabs(4))
        if not self._lines:
            self._margin = min(self._margin, indent)
            if indent >= self._margin + 4:
                return
        for marker in _markers(content):
            indent += len(marker)
            self._margin, content = indent, content.removeprefix(marker)
        if opened := _FENCE.match(content):
            self.end()
            self._fence, self._is_fence_quoted = opened[1] or opened[2], is_quoted
            return
        self._add(number, content)

    def _add(self, number: int, content: str) -> None:
        if not self._lines:
            self._first = number
        content, self._in_comment = _without_comments(content)
        self._lines.append(content)
        if self._in_comment:
            self.end()


def _markers(content: str) -> Iterator[str]:
    """The markers of the list items that a line begins."""
    position = 0
    while position < _MARKERS_CHARS and (marker := _MARKER.match(content, position)):
        yield marker[0]
        position = marker.end()


def _without_comments(line: str) -> tuple[str, bool]:
    """A line with blanks in the place of its comments, and whether one goes on behind it."""
    if "<!--" not in line:
        return line, False
    spans = _code_spans(line)
    kept: list[str] = []
    position = 0
    while (start := line.find("<!--", position)) >= 0:
        if _is_within(spans, start):
            kept.append(line[position : start + 4])
            position = start + 4
            continue
        kept += [line[position:start], " "]
        end = line.find("-->", start + 4)
        if end < 0:
            return "".join(kept), True
        position = end + 3
    return "".join([*kept, line[position:]]), False


# Code spans

_Spans = list[tuple[int, int]]


def _code_spans(text: str) -> _Spans:
    """Where code spans begin and end: at a run of backticks, and at the next one that is as long."""
    runs = [match.span() for match in _TICKS.finditer(text)]
    by_length: dict[int, list[int]] = {}
    for index, (start, end) in enumerate(runs):
        by_length.setdefault(end - start, []).append(index)
    spans: _Spans = []
    index = 0
    while index < len(runs):
        start, end = runs[index]
        start += _is_escaped(text, start)
        same = by_length.get(end - start, [])
        closing = bisect_right(same, index)
        if start < end and closing < len(same):
            index = same[closing]
            spans.append((start, runs[index][1]))
        index += 1
    return spans


def _is_escaped(text: str, at: int) -> bool:
    before = text[:at] if at < 64 else text[at - 64 : at]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _is_within(spans: _Spans, at: int) -> bool:
    index = bisect_left(spans, (at, at)) - 1
    return index >= 0 and spans[index][0] <= at < spans[index][1]
