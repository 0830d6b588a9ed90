"""Cut a text to a budget so that the loss is visible and what is left still reads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from tinyclaw.state.snapshot import StateFile

_FENCE = re.compile(r"^\s*(```+|~~~+)")
_NOTICE_BYTES = 160
"""Room that is kept for the notice, beside the path's own length."""


@dataclass(frozen=True)
class Cut:
    """``text`` as it goes into the prompt, notice included.

    ``lines`` says which lines of the original are in it, ``note`` tells the person what is not; it is
    empty when all is there.
    """

    text: str
    lines: str = ""
    note: str = ""


def cut_file(file: StateFile, limit_bytes: int, *, limit_lines: int | None = None, setting: str = "") -> Cut:
    """The file's text within the limits. What is wrong with the file is said in the text and in the note.

    ``setting`` is what the person can change to have more of it.
    """
    shown = cut(file.text, limit_bytes, file.path, limit_lines=limit_lines, setting=setting)
    if file.problem is None:
        return shown if shown.text.strip() else Cut("(the file is empty)", shown.lines)
    fault = file.problem.message if file.problem.line is None else f"line {file.problem.line} {file.problem.message}"
    note = f"{fault}; {file.problem.mend}" if file.problem.mend else fault
    if not file.text:
        return Cut(f"({file.path} could not be read: {note})", note=f"could not be read: {note}")
    return Cut(f"({file.path}: {fault})\n\n{shown.text}", shown.lines, "; ".join(filter(None, (note, shown.note))))


def least_bytes(file: StateFile) -> int:
    """Room in which ``cut_file`` can say at least that the file was cut, and what is wrong with it."""
    said = f"{file.path}{file.problem.message}{file.problem.mend}" if file.problem else ""
    return _NOTICE_BYTES + len(f"{file.path}{said}".encode())


@lru_cache(maxsize=64)
def cut(text: str, limit_bytes: int, path: str, *, limit_lines: int | None = None, setting: str = "") -> Cut:
    """The first lines of ``text`` that fit; a notice names the size, what is shown and where the rest is.

    The limit holds for the notice too. An open code fence is closed before it. A line that takes
    more than half of the room is cut between characters; other lines stay whole.
    """
    lines = text.rstrip("\n").split("\n")
    size = len(text.encode())
    if size <= limit_bytes and (limit_lines is None or len(lines) <= limit_lines):
        return Cut(text.strip("\n"), f"1-{len(lines)}")
    kept, part = _fitting(lines[:limit_lines], max(0, limit_bytes - len(path.encode()) - _NOTICE_BYTES))
    shown = [*lines[:kept], *([part] if part else [])]
    total = f"{size:,} bytes in {len(lines):,} line{'s' if len(lines) > 1 else ''}"
    share = _share(kept, part)
    rest = "" if path.startswith("~/") else f" Read the rest from line {kept + 1}."
    notice = f"[{path} is {total}; only {share} are shown.{rest}]"
    return Cut(
        text="\n".join([*shown, *_closing_fence(shown), notice]),
        lines=f"1-{len(shown)} of {len(lines)}" if shown else f"none of {len(lines)}",
        note=f"cut: it is {total}, and only {share} are in the prompt"
        + (f"; {setting} in SETTINGS.md sets the limit" if setting else ""),
    )


def _share(kept: int, part: str) -> str:
    """What is shown, in words: whole lines, and the bytes of a cut one."""
    cut_line = f"the first {len(part.encode()):,} bytes of line {kept + 1}"
    if kept and part:
        return f"lines 1-{kept} and {cut_line}"
    return f"lines 1-{kept}" if kept else cut_line


def _fitting(lines: list[str], room_bytes: int) -> tuple[int, str]:
    """How many whole lines fit, and the beginning of the next one where they leave half of the room."""
    sizes = accumulate(len(line.encode()) + 1 for line in lines)
    ends = [end for end in sizes if end <= room_bytes]
    left = room_bytes - (ends[-1] if ends else 0)
    if len(ends) == len(lines) or left < room_bytes / 2:
        return len(ends), ""
    return len(ends), lines[len(ends)].encode()[:left].decode(errors="ignore")


def _closing_fence(lines: list[str]) -> list[str]:
    """The fence that the lines leave open, if there is one."""
    fence = ""
    for line in lines:
        found = _FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence) and line.strip() == found[1]:
            fence = ""
    return [fence] if fence else []
