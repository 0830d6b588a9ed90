"""TODO.md, stated at the session's start and at each change."""

from __future__ import annotations

from collections.abc import Iterator

from tinyclaw.context.source import Piece, SourceContext, source
from tinyclaw.context.sources._document import document
from tinyclaw.state.workspace import TODO


@source(placement="event", priority=94, watches=(TODO,), order=51)
def todo(context: SourceContext) -> Iterator[Piece]:
    """The task list that the person and the model share."""
    yield from document(context, "todo", TODO)
