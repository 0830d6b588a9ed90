"""AGENTS.md: user level first, then from the repository's root down to where we work; nearer is later.

Where a folder has no AGENTS.md its CLAUDE.md is read. All files share one budget, in which the
nearest one is served first, so that it is cut last.
"""

from __future__ import annotations

from collections.abc import Iterator

from tinyclaw.context.cut import cut_file
from tinyclaw.context.source import Piece, SourceContext, source

_PATTERNS = ("user:AGENTS.md", "chain:AGENTS.md|CLAUDE.md")
_LEAST_BYTES = 400
"""What every file gets: a line or two, and the notice that the rest was cut."""


@source(placement="prefix", priority=80, watches=_PATTERNS, order=20)
def instructions(context: SourceContext) -> Iterator[Piece]:
    """The person's standing instructions."""
    pieces: list[Piece] = []
    left = context.limits.instructions_bytes
    for file in reversed(list(context.snapshot.files(*_PATTERNS))):
        shown = cut_file(file, max(left, _LEAST_BYTES), setting="instructions_bytes")
        left -= len(shown.text.encode())
        text = f"# Instructions from {file.path}\n\n{shown.text}"
        pieces.append(
            Piece(f"instructions:{file.path}", text, file.path, file.revision, shown.lines, shown.note, file.private)
        )
    yield from reversed(pieces)
