"""AGENTS.md: user level first, then from the repository's root down to where we work, then where the agent went.

Nearer is later. Where a folder has no AGENTS.md its CLAUDE.md is read. What a file imports stands before it. All files
share one budget, in which the nearest one is served first, so that it is cut last.
"""

from __future__ import annotations

from collections.abc import Iterator

from tinyclaw.context.cut import cut_file
from tinyclaw.context.source import Piece, SourceContext, source
from tinyclaw.state.nested import MOST_FOLDERS
from tinyclaw.state.snapshot import Snapshot

_NESTED = "@nested:AGENTS.md|CLAUDE.md"
_PATTERNS = ("@user:AGENTS.md", "@chain:AGENTS.md|CLAUDE.md", _NESTED)
_LEAST_BYTES = 400
"""What every file gets while they are few: a line or two, and the notice that the rest was cut."""
_FAULTS = 5
"""So many imports that were left out are named to the person."""


@source(placement="prefix", priority=80, watches=_PATTERNS, order=20)
def instructions(context: SourceContext) -> Iterator[Piece]:
    """The person's standing instructions."""
    snapshot = context.snapshot
    files = list(snapshot.files(*_PATTERNS))
    nested = {file.path for file in snapshot.files(_NESTED)}
    left = context.limits.instructions_bytes
    least = min(_LEAST_BYTES, left // max(1, len(files)))
    pieces: list[Piece] = []
    for file in reversed(files):
        shown = cut_file(file, max(left, least), setting="instructions_bytes")
        left -= len(shown.text.encode())
        importer = snapshot.importers.get(file.path, "")
        name, text = f"instructions:{file.path}", f"{_heading(file.path, importer, nested)}\n\n{shown.text}"
        arrives = bool(importer) or file.path in nested
        pieces.append(
            Piece(name, text, file.path, file.revision, shown.lines, shown.note, file.private, arrives=arrives)
        )
    yield from reversed(pieces)
    yield from _left_out(snapshot)


def _heading(path: str, importer: str, nested: set[str]) -> str:
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
