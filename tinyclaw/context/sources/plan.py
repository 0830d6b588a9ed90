"""PLAN.md, stated at the session's start and at each change."""

from __future__ import annotations

from collections.abc import Iterator

from tinyclaw.context.source import Piece, SourceContext, source
from tinyclaw.context.sources._document import document
from tinyclaw.state.workspace import PLAN


@source(placement="event", priority=95, watches=(PLAN,), order=50)
def plan(context: SourceContext) -> Iterator[Piece]:
    """The plan that the person and the model share."""
    yield from document(context, "plan", PLAN)
