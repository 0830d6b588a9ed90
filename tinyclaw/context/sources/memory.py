"""How to use the memory, and the index of what is remembered; a record's body is read when it is needed."""

from __future__ import annotations

from collections.abc import Iterator

from tinyclaw.context.cut import cut_file
from tinyclaw.context.source import Piece, SourceContext, source
from tinyclaw.state.workspace import MEMORY_INDEX


@source(placement="prefix", priority=40, watches=(MEMORY_INDEX,), order=40)
def memory(context: SourceContext) -> Iterator[Piece]:
    """The prompt template ``memory.md`` and the index of memory records."""
    yield Piece("memory", context.prompts("memory").strip())
    file = context.snapshot.file(MEMORY_INDEX)
    if file is not None:
        limits = context.limits
        shown = cut_file(file, limits.index_bytes, limit_lines=limits.index_lines, setting="memory_index_lines")
        text = f"# {MEMORY_INDEX}\n\n{shown.text}"
        yield Piece("memory:index", text, file.path, file.revision, shown.lines, shown.note)
