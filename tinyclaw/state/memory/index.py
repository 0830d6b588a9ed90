"""The generated part of MEMORY.md: a line for each record, between two lines of its own; all else is the person's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tinyclaw.state.memory.evidence import Standing, doubt
from tinyclaw.state.memory.record import FOLDER, Head

INDEX_BEGIN = "<!-- memory: made of the records beside this file; write your own words above or below -->"
INDEX_END = "<!-- /memory -->"
MAX_LINES = 150
"""Of the index. The prompt takes 200 of the file, and the person's own words need room, too."""

MAX_INDEX_BYTES = 20_000


class Line(NamedTuple):
    """A record, whether what it rests on still holds, and where that changed or is gone."""

    head: Head
    standing: Standing = "holds"
    place: str = ""

    def __str__(self) -> str:
        said = doubt(self.standing, self.place)
        dash = "" if self.head.description or not said else " —"
        return self.head.index_line + (f"{dash} (verify before use: {said})" if said else "")


def with_index(text: str, lines: Iterable[Line], count: int, mask: Callable[[str], str]) -> str:
    """``text`` of MEMORY.md with its generated part made new, or added at its end; all else stays as it is.

    ``count`` is that of all records there are; of ``lines``, the dearest first, no more are taken than have room.
    """
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    old = text.split("\n")
    part = newline.join((INDEX_BEGIN, *(mask(line) for line in _fitting(lines, count)), INDEX_END))
    if (place := _part(old)) is not None:
        ending = "\r" if old[place[1]].endswith("\r") else ""
        return "\n".join((*old[: place[0]], part + ending, *old[place[1] + 1 :]))
    if not count:
        return text
    before = text if not text or text.endswith("\n") else text + newline
    gap = newline if before.strip() else ""
    return f"{before}{gap}{part}{newline}"


def _fitting(lines: Iterable[Line], count: int) -> list[str]:
    shown: list[str] = []
    doubted, room = 0, MAX_INDEX_BYTES
    for line in lines:
        if line.standing == "missing":
            doubted += 1
            continue
        text = str(line)
        room -= len(text.encode("utf-8", "replace")) + 1
        if room < 0 or len(shown) == MAX_LINES:
            break
        shown.append(text)
    if (hidden := count - len(shown) - doubted) > 0:
        shown.append(f"- … and {hidden:,} more records in {FOLDER}/; search there")
    if doubted:
        shown.append(f"- … and {doubted:,} whose evidence is missing, left out; `tinyclaw memory check` lists them")
    return shown


def _part(lines: Sequence[str]) -> tuple[int, int] | None:
    """Where the generated part stands: its first and last line, each of which is a marker and nothing else."""
    plain = [line.rstrip("\r") for line in lines]
    end = max((at for at, line in enumerate(plain) if line == INDEX_END), default=0)
    begin = max((at for at, line in enumerate(plain[:end]) if line == INDEX_BEGIN), default=-1)
    return (begin, end) if begin >= 0 else None
