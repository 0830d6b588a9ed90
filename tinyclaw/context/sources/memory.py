"""The index of what is remembered; a record's body is read when it is needed."""

from __future__ import annotations

from collections.abc import Iterator

from tinyclaw.context.source import Piece, SourceContext, source
from tinyclaw.context.sources._document import document
from tinyclaw.state.workspace import MEMORY_INDEX

_HEADING = f"""# Memory ({MEMORY_INDEX})

Notes from earlier sessions; they may be old. What you see in the files now holds.

"""


@source(placement="prefix", priority=40, watches=(MEMORY_INDEX,), order=40)
def memory(context: SourceContext) -> Iterator[Piece]:
    """The index of memory records."""
    limits = context.limits
    yield from document(context, MEMORY_INDEX, heading=_HEADING, lines=limits.index_lines, size=limits.index_bytes)
