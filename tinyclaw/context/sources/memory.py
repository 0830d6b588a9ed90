"""The index of what is remembered; a record's body is read when it is needed."""

from __future__ import annotations

from collections.abc import Iterator

from tinyclaw.context.cut import cut_file
from tinyclaw.context.source import Piece, SourceContext, source
from tinyclaw.state.workspace import MEMORY_INDEX

_HEADING = f"""# Memory ({MEMORY_INDEX})

Notes from earlier sessions; `recall` gives one whole. They may be old: what you see in the files now holds.

"""


@source(placement="prefix", priority=40, watches=(MEMORY_INDEX,), order=40)
def memory(context: SourceContext) -> Iterator[Piece]:
    """The index of memory records."""
    file = context.snapshot.file(MEMORY_INDEX)
    if file is not None:
        limits = context.limits
        shown = cut_file(file, limits.index_bytes, limit_lines=limits.index_lines, setting="memory_index_lines")
        yield Piece("memory", _HEADING + shown.text, file.path, file.revision, shown.lines, shown.note)
