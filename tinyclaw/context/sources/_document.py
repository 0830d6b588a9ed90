"""The piece that states one live document of the workspace's root as it stands."""

from __future__ import annotations

from collections.abc import Iterator

from tinyclaw.context.cut import cut
from tinyclaw.context.source import Piece, SourceContext


def document(
    context: SourceContext, path: str, *, heading: str = "", lines: int | None = None, size: int = 0
) -> Iterator[Piece]:
    """One piece for the file ``path``, or none when it is absent; what cannot be read is said."""
    file = context.snapshot.file(path)
    if file is None:
        return
    name = path.partition(".md")[0].rpartition("/")[2].lower()
    if file.problem is not None and not file.text:
        yield Piece(
            name, f"{heading}({path} could not be read: {file.problem})", path, file.revision, note=str(file.problem)
        )
        return
    shown = cut(file.text, size or context.limits.document_bytes, path, limit_lines=lines)
    text = shown.text if shown.text.strip() else "(the file is empty)"
    yield Piece(name, heading + text, path, file.revision, shown.lines, shown.note)
