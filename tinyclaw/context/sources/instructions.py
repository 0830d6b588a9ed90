"""AGENTS.md: user level first, then from the repository's root down to where we work, then where the agent went.

Nearer is later. Where a folder has no AGENTS.md its CLAUDE.md is read. What a file imports stands before it. All files
share one budget, headings and notices included. Each has a little of it for certain; the rest goes to the nearest one
first, so that it is cut last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from itertools import accumulate, takewhile
from typing import NamedTuple

from tinyclaw.context.cut import cut_file, least_bytes
from tinyclaw.context.source import Piece, SourceContext, source
from tinyclaw.state.nested import MOST_FOLDERS
from tinyclaw.state.snapshot import Snapshot, StateFile

_NESTED = "@nested:AGENTS.md|CLAUDE.md"
_PATTERNS = ("@user:AGENTS.md", "@chain:AGENTS.md|CLAUDE.md", _NESTED)
_LEAST_BYTES = 400
"""What every file gets while they are few: a line or two, and the notice that the rest was cut. Of many each gets less,
so that the nearest one gets more than they."""
_MORE_BYTES = 200
"""Room for saying that there are more files."""
_FAULTS = 5
"""So many imports that were left out are named to the person."""


@source(placement="prefix", priority=80, watches=_PATTERNS, order=20)
def instructions(context: SourceContext) -> Iterator[Piece]:
    """The person's standing instructions."""
    snapshot = context.snapshot
    nested = {file.path for file in snapshot.files(_NESTED)}
    files = [_Told.of(file, snapshot, nested) for file in snapshot.files(*_PATTERNS)][::-1]
    limit = context.limits.instructions_bytes
    reserved = _reserved(files, limit)
    if len(reserved) < len(files):
        limit -= _MORE_BYTES
        yield _more([told.file.path for told in files[len(reserved) :]])
    left = limit - sum(reserved)
    pieces: list[Piece] = []
    for told, room in zip(files, reserved, strict=False):
        piece = told.piece(room + left)
        left += room - len(piece.text.encode())
        pieces.append(piece)
    yield from reversed(pieces)
    yield from _left_out(snapshot)


class _Told(NamedTuple):
    """A file and what stands above it. One that ``arrives`` comes into sight by a touch or an import."""

    file: StateFile
    heading: str
    arrives: bool

    @classmethod
    def of(cls, file: StateFile, snapshot: Snapshot, nested: Set[str]) -> _Told:
        importer = snapshot.importers.get(file.path, "")
        heading = f"{_heading(file.path, importer, nested)}\n\n"
        return cls(file, heading, arrives=bool(importer) or file.path in nested)

    def least(self, share: int) -> int:
        """What it needs: all of itself, or ``share`` where that is less; a notice has room in any case."""
        needed = len(self.heading.encode()) + least_bytes(self.file)
        return min(needed + len(self.file.text.encode()), max(share, needed))

    def piece(self, limit_bytes: int) -> Piece:
        file, room = self.file, limit_bytes - len(self.heading.encode())
        shown = cut_file(file, room, setting="instructions_bytes")
        if (over := len(shown.text.encode()) - room) > 0:  # by what is said of a fault
            shown = cut_file(file, max(0, room - over), setting="instructions_bytes")
        return Piece(
            id=f"instructions:{file.path}",
            text=self.heading + shown.text,
            path=file.path,
            revision=file.revision,
            lines=shown.lines,
            note=shown.note,
            private=file.private,
            arrives=self.arrives,
        )


def _reserved(files: Sequence[_Told], limit: int) -> list[int]:
    """What each file has for certain, as many of the first ones as there is room for."""
    share = min(_LEAST_BYTES, limit // max(1, 2 * len(files)))
    least = [told.least(share) for told in files]
    if sum(least) <= limit:
        return least
    ends = takewhile(lambda end: end <= limit - _MORE_BYTES, accumulate(least))
    return least[: max(1, len(list(ends)))]


def _more(paths: Sequence[str]) -> Piece:
    count = f"{len(paths)} more file{'s' if len(paths) > 1 else ''}"
    text = f"[{count} of instructions, farthest from where you work, had no room here.]"
    note = f"{count} had no room and are left out, {paths[0]} the nearest of them; instructions_bytes in SETTINGS.md"
    return Piece("instructions:more", text, note=f"{note} sets the limit", unsaid=tuple(paths))


def _heading(path: str, importer: str, nested: Set[str]) -> str:
    if importer:
        return f"# Instructions from {path} (imported by {importer})"
    below = f" (for what is in {path.rpartition('/')[0]}/)" if path in nested else ""
    return f"# Instructions from {path}{below}"


def _left_out(snapshot: Snapshot) -> Iterator[Piece]:
    """What was not read, for the person; the model sees the import as the file has it."""
    faults = snapshot.import_faults
    for number, fault in enumerate(faults[:_FAULTS], 1):
        note = f"{fault.message}; {fault.mend}" if fault.mend else fault.message
        yield Piece(f"instructions:{fault.path}:{fault.line}:{number}", "", f"{fault.path}:{fault.line}", note=note)
    if len(faults) > _FAULTS:
        note = f"{len(faults) - _FAULTS} more imports are left out; tinyclaw doctor lists them"
        yield Piece("instructions:imports", "", note=note)
    if more := snapshot.unread.get(_NESTED, 0):
        note = f"no more than {MOST_FOLDERS} folders are searched for them, and {more} more were touched"
        yield Piece("instructions:folders", "", note=note)
