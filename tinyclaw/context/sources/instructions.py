"""AGENTS.md: user level first, then from the repository's root down to where we work; nearer is later.

Where a folder has no AGENTS.md its CLAUDE.md is read. All files share one budget, in which the
nearest one is served first, so that it is cut last.
"""

from __future__ import annotations

from collections.abc import Iterator

from tinyclaw.context.cut import cut
from tinyclaw.context.source import Piece, SourceContext, source
from tinyclaw.state.snapshot import StateFile

_PATTERNS = ("user:AGENTS.md", "chain:AGENTS.md|CLAUDE.md")
_LEAST_BYTES = 200


@source(placement="prefix", priority=80, watches=_PATTERNS, order=20)
def instructions(context: SourceContext) -> Iterator[Piece]:
    """The person's standing instructions."""
    pieces: list[Piece] = []
    left = context.limits.instructions_bytes
    for file in reversed(list(context.snapshot.files(*_PATTERNS))):
        piece, used = _instruction(file, left)
        pieces.append(piece)
        left = max(0, left - used)
    yield from reversed(pieces)


def _instruction(file: StateFile, left: int) -> tuple[Piece, int]:
    heading = f"# Instructions from {file.path}\n\n"
    if file.problem is not None and not file.text:
        text, lines, note = f"(could not be read: {file.problem})", "", str(file.problem)
    else:
        shown = cut(file.text, max(left, _LEAST_BYTES), file.path)
        text, lines, note = shown.text, shown.lines, shown.note
    piece = Piece(f"instructions:{file.path}", heading + text, file.path, file.revision, lines, note, file.private)
    return piece, len(text.encode())
