"""What to tell the model when its quote is not in the file: the nearest lines as they really are."""

from __future__ import annotations

import difflib
import re

CLOSE = 0.6
SCANNED_LINES = 20_000
SHOWN_LINES = 12
SHOWN_CHARACTERS = 300


def numbered(lines: list[str], first: int) -> str:
    """``lines`` as a window on the file, the first one being line ``first`` (counted from 1)."""
    width = len(str(first + len(lines) - 1))
    return "\n".join(f"{number:>{width}} | {_short(line)}" for number, line in enumerate(lines, first))


def nearest(text: str, old: str) -> str:
    """The stretch of ``text`` that is most like ``old``, numbered; empty when no line is like it."""
    lines = [line.removesuffix("\r") for line in text.split("\n")[:SCANNED_LINES]]
    quoted = re.split("\r?\n", old.strip("\n"))
    start = _best_start(lines, quoted)
    if start is None:
        return ""
    return numbered(lines[start : start + min(len(quoted), SHOWN_LINES)], start + 1)


def _best_start(lines: list[str], quoted: list[str]) -> int | None:
    """Where a window of ``quoted``'s height is most alike, tried at the places of lines like its longest lines."""
    anchors = sorted((i for i, line in enumerate(quoted) if line.strip()), key=lambda i: -len(quoted[i].strip()))
    places: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        places.setdefault(line.strip(), []).append(number)
    starts: set[int] = set()
    for anchor in anchors[:3]:
        for close in difflib.get_close_matches(quoted[anchor].strip(), list(places), n=3, cutoff=CLOSE):
            starts.update(max(0, place - anchor) for place in places[close][:10])
    return max(sorted(starts), key=lambda start: _likeness(lines[start:], quoted), default=None)


def _likeness(window: list[str], quoted: list[str]) -> float:
    pairs = zip(window[:SHOWN_LINES], quoted[:SHOWN_LINES], strict=False)
    return sum(difflib.SequenceMatcher(None, real.strip(), quote.strip()).ratio() for real, quote in pairs)


def _short(line: str) -> str:
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[:SHOWN_CHARACTERS]}… [{len(line):,} characters]"
