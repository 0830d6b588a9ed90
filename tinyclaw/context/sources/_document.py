"""The piece that states one live document of the workspace's root as it stands."""

from __future__ import annotations

from collections.abc import Iterator

from tinyclaw.context.cut import cut_file
from tinyclaw.context.source import Piece, SourceContext


def document(context: SourceContext, name: str, path: str) -> Iterator[Piece]:
    """One piece for the file ``path``, or none when it is absent; what cannot be read is said."""
    file = context.snapshot.file(path)
    if file is not None:
        shown = cut_file(file, context.limits.document_bytes)
        yield Piece(name, shown.text, path, file.revision, shown.lines, shown.note)
