"""Where a quoted text stands in a file, and what the file says once it is replaced.

The quote is tried word for word, then with more and more tolerance (``LADDER``). Each rung finds
all that the rung before it finds, so the first rung with a hit is the strictest, and the hit has
to be the only one there. A tolerant hit keeps the file's own form of every quoted line that the
new text repeats: only lines that really change are written. All is pure; nothing reads a file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tinyclaw.state.merge import Edit, edits_between
from tinyclaw.tools._indent import Reindent, find_reindent, unchanged

BREAK = re.compile("\r\n|\n")
"""Line breaks as a model writes them. A lone CR in its text is a character like any other."""

_ANY_BREAK = "\r\n|(?<!\r)\n|\r(?!\n)"
_FORMS = {"'": "‘’‚‛′`´", '"': "“”„‟″«»", "-": "‐‑‒–—―−", " ": "\u00a0\u2002\u2003\u2009\u202f\u3000"}
_PLAIN = str.maketrans({form: plain for plain, forms in _FORMS.items() for form in forms})
"""Quotes, dashes and spaces to their plain form, one character for one, so that offsets stay."""

_ACCENTED = re.compile(".[\u0300-\u036f]+|[^\0-\x7f]", re.DOTALL)


class Rung(NamedTuple):
    """One degree of tolerance, with the words that tell the model how its quote differed."""

    differs_in: str
    breaks: bool = False
    trailing: bool = False
    characters: bool = False
    indent: bool = False


LADDER = (
    Rung(""),
    Rung("line endings", breaks=True),
    Rung("spaces at line ends", breaks=True, trailing=True),
    Rung("quotes, dashes or spaces", breaks=True, trailing=True, characters=True),
    Rung("indentation", breaks=True, trailing=True, characters=True, indent=True),
)


@dataclass(frozen=True)
class Span:
    """One place: offsets into the text, the file's own lines and line breaks there, how it indents quoted lines."""

    start: int
    end: int
    lines: tuple[str, ...]
    breaks: tuple[str, ...]
    reindent: Reindent = unchanged


@dataclass(frozen=True)
class Found:
    """All places of the strictest rung that has any; empty when no rung has."""

    rung: Rung
    spans: tuple[Span, ...]


def find(text: str, old: str) -> Found:
    """Every place in ``text`` where ``old`` stands, overlapping ones included, by the strictest rung with a hit."""
    rungs = LADDER if old.strip() else LADDER[:2]
    for rung in rungs:
        spans = tuple(_spans(text, old, rung))
        if spans:
            return Found(rung, spans)
    return Found(rungs[-1], ())


def apart(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """The spans that do not overlap an earlier one: what "replace all" replaces."""
    kept: list[Span] = []
    for span in spans:
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return tuple(kept)


def replacement(text: str, span: Span, old: str, new: str) -> str | None:
    """What stands in the file instead of ``span``: ``new`` word for word, in the file's line endings and indentation.

    Lines that ``new`` repeats from ``old`` stay as the file has them. None: the indentation of a new line has no
    counterpart in the file's.
    """
    old_lines, new_lines = BREAK.split(old), BREAK.split(new)
    nearby = break_near(text, span)
    pieces: list[tuple[str, str]] = []
    at = 0
    for edit in (*edits_between(old_lines, new_lines), Edit(len(old_lines), len(old_lines), ())):
        pieces += [(span.lines[i], _break_at(span, i, nearby)) for i in range(at, edit.start)]
        for offset, line in enumerate(edit.lines):
            replaced = min(edit.start + offset, edit.end - 1)
            changed = span.reindent(line)
            if changed is None:
                return None
            pieces.append((changed, _break_at(span, replaced, nearby)))
        at = edit.end
    return _joined(pieces, open_end=bool(span.breaks) and not span.breaks[-1])


def rewritten(text: str, new: str) -> str:
    """``new`` instead of all of ``text``, in the line endings of ``text``; lines that stay keep their own."""
    lines, breaks = tuple(BREAK.split(text)), tuple(BREAK.findall(text))
    if len(set(breaks)) > 1:
        return replacement(text, Span(0, len(text), lines, breaks), "\n".join(lines), new) or ""
    return BREAK.sub(lambda _: breaks[0], new) if breaks else new


def break_near(text: str, span: Span) -> str:
    """The line break that new lines at ``span`` take when they replace none: the nearest one, LF in a single line."""
    after = re.compile(_ANY_BREAK).search(text, span.end)
    if after:
        return after[0]
    before = text.rfind("\n", 0, span.start)
    if before >= 0:
        return "\r\n" if text[max(0, before - 1)] == "\r" else "\n"
    return "\r" if "\r" in text[: span.start] else "\n"


def _spans(text: str, old: str, rung: Rung) -> Iterator[Span]:
    old_lines = BREAK.split(old)
    searched = text.translate(_PLAIN) if rung.characters else text
    pattern = re.compile(_pattern(old_lines, BREAK.findall(old), rung))
    at = 0
    while match := pattern.search(searched, at):
        at = match.start() + 1
        if _splits_a_break(text, match.start()) or _splits_a_break(text, match.end()):
            continue
        groups = tuple(text[slice(*match.span(number))] for number in range(1, len(match.groups()) + 1))
        reindent = find_reindent(old_lines, groups[::2]) if rung.indent else unchanged
        if reindent is not None:
            yield Span(match.start(), match.end(), groups[::2], groups[1::2], reindent)


def _pattern(old_lines: list[str], old_breaks: list[str], rung: Rung) -> str:
    """One group a line and one a line break, so that a match tells the file's own form of each."""
    last = len(old_lines) - 1
    parts = ["(?:(?<=[\r\n])|\\A)"] if rung.indent else []
    for number, line in enumerate(old_lines):
        parts.append(f"({_line_pattern(line, rung, ends=number < last)})")
        if number < last:
            at_end = "|\\Z" if rung.trailing and number == last - 1 and not old_lines[last] else ""
            parts.append(f"({_ANY_BREAK}{at_end})" if rung.breaks else f"({old_breaks[number]})")
    return "".join(parts)


def _line_pattern(line: str, rung: Rung, *, ends: bool) -> str:
    """``ends``: the quote goes on behind this line, so blanks at its end are between lines and may differ."""
    blank = "[ \t]*"
    body = line.rstrip(" \t") if rung.trailing else line
    tail = blank if rung.trailing and (ends or body != line) else ""
    head = ""
    if rung.indent and body:
        body, head = body.lstrip(" \t"), blank
    return head + (_alike(body) if rung.characters else re.escape(body)) + tail


def _alike(body: str) -> str:
    """A pattern for ``body`` in plain quotes, dashes and spaces, and with accents in either Unicode form."""
    parts: list[str] = []
    at = 0
    plain = body.translate(_PLAIN)
    for match in _ACCENTED.finditer(plain):
        forms = {match[0], *(unicodedata.normalize(form, match[0]) for form in ("NFC", "NFD"))}
        parts += [re.escape(plain[at : match.start()]), f"(?:{'|'.join(map(re.escape, sorted(forms)))})"]
        at = match.end()
    return "".join(parts) + re.escape(plain[at:])


def _joined(pieces: list[tuple[str, str]], *, open_end: bool) -> str:
    """Lines with their breaks; the last line has none, nor has the one before it where the file ends without one."""
    last = len(pieces) - 1
    return "".join(
        line if number == last or (open_end and number == last - 1 and not pieces[last][0]) else line + line_break
        for number, (line, line_break) in enumerate(pieces)
    )


def _splits_a_break(text: str, position: int) -> bool:
    return text[max(0, position - 1) : position + 1] == "\r\n"


def _break_at(span: Span, number: int, nearby: str) -> str:
    """The line break behind line ``number`` of the span, or behind the nearest line that has one."""
    if not span.breaks:
        return nearby
    return span.breaks[max(0, min(number, len(span.breaks) - 1))] or nearby
