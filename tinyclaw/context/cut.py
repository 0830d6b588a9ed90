"""Cut a text to a budget so that the loss is visible and what is left still reads."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCE = re.compile(r"^\s*(```+|~~~+)")


@dataclass(frozen=True)
class Cut:
    """``text`` as it goes into the prompt, notice included, and which lines of the original are in it."""

    text: str
    first: int
    last: int
    total: int

    @property
    def lines(self) -> str:
        return f"{self.first}-{self.last}" + ("" if self.last == self.total else f" of {self.total}")

    @property
    def note(self) -> str:
        return "" if self.last == self.total else f"cut after line {self.last} of {self.total}"


def cut(text: str, limit_bytes: int, path: str, *, limit_lines: int | None = None) -> Cut:
    """The first lines of ``text`` that fit; a notice names the size, the limit and where the rest is.

    An open code fence is closed before the notice. A single line over the limit is cut between
    characters.
    """
    lines = text.rstrip("\n").split("\n")
    size = len(text.encode())
    if size <= limit_bytes and (limit_lines is None or len(lines) <= limit_lines):
        return Cut(text.strip("\n"), 1, len(lines), len(lines))
    kept = _fitting(lines[:limit_lines], limit_bytes)
    shown = kept or [lines[0].encode()[:limit_bytes].decode(errors="ignore")]
    fence = _open_fence(shown)
    rest = f"Read the rest from line {len(kept) + 1}."
    notice = f"[{path} is {size:,} bytes in {len(lines):,} lines; only lines 1-{len(kept)} are shown. {rest}]"
    return Cut("\n".join([*shown, *([fence] if fence else []), notice]), 1, len(kept), len(lines))


def _fitting(lines: list[str], limit_bytes: int) -> list[str]:
    used = 0
    for index, line in enumerate(lines):
        used += len(line.encode()) + 1
        if used > limit_bytes:
            return lines[:index]
    return lines


def _open_fence(lines: list[str]) -> str:
    fence = ""
    for line in lines:
        found = _FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence) and line.strip() == found[1]:
            fence = ""
    return fence
