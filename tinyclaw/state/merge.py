"""Three-way merge and diff of texts, by whole lines.

Lines end in ``\\n`` alone, so CRLF, lone CR and U+2028 stay inside their lines untouched. The merge
keeps every edit of both sides whole or answers None; it never picks a winner and never writes
conflict marks.
"""

from __future__ import annotations

from difflib import SequenceMatcher, unified_diff
from itertools import pairwise
from typing import NamedTuple

MATCHING_LIMIT = 25_000_000
"""Pairs of lines beyond which the middle of two texts is taken as one edit: coarser, never wrong."""


class Edit(NamedTuple):
    """Lines ``start`` up to ``end`` of the base become ``lines``; an insertion has start == end."""

    start: int
    end: int
    lines: tuple[str, ...]


def merge3(base: str, ours: str, theirs: str) -> str | None:
    """Both edits of ``base`` together, or None where they overlap.

    Edits overlap when they change the same line differently, or insert different lines at the same
    place. Edits of neighbouring lines do not overlap: two ticks in a task list are two edits.
    """
    old = split_lines(base)
    edits = sorted({*edits_between(old, split_lines(ours)), *edits_between(old, split_lines(theirs))})
    if any(_overlap(first, second) for first, second in pairwise(edits)):
        return None
    merged = _apply(old, edits)
    if any(not line.endswith("\n") for line in merged[:-1]):
        return None  # one side dropped the last newline, the other added lines behind it
    return "".join(merged)


def unified(old: str, new: str, name: str) -> str:
    """The unified diff from ``old`` to ``new``; empty when they are equal."""
    chunks = unified_diff(split_lines(old), split_lines(new), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in chunks)


def split_lines(text: str) -> list[str]:
    """The lines of ``text`` with their ends; joined they are ``text`` again."""
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def edits_between(old: list[str], new: list[str]) -> list[Edit]:
    """The edits that turn ``old`` into ``new``, in order, separated by at least one kept line."""
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    if not middle_old and not middle_new:
        return []
    if len(middle_old) * len(middle_new) > MATCHING_LIMIT:
        return [Edit(head, head + len(middle_old), tuple(middle_new))]
    matcher = SequenceMatcher(None, middle_old, middle_new, autojunk=False)
    return [
        Edit(head + start, head + end, tuple(middle_new[new_start:new_end]))
        for tag, start, end, new_start, new_end in matcher.get_opcodes()
        if tag != "equal"
    ]


def distance(old: str, new: str) -> int:
    """How many lines were taken out and put in between two texts."""
    edits = edits_between(split_lines(old), split_lines(new))
    return sum(edit.end - edit.start + len(edit.lines) for edit in edits)


def _common(one: list[str], other: list[str]) -> int:
    """How many lines both begin with."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))


def _overlap(first: Edit, second: Edit) -> bool:
    """Whether two sorted, different edits touch the same lines or insert at the same place."""
    return second.start < first.end or (first.start == first.end == second.start == second.end)


def _apply(old: list[str], edits: list[Edit]) -> list[str]:
    merged: list[str] = []
    position = 0
    for edit in edits:
        merged += old[position : edit.start]
        merged += edit.lines
        position = edit.end
    return merged + old[position:]
