"""What git says: as of the session's start and after our own git commands, only inside a repository."""

from __future__ import annotations

from collections.abc import Iterator

from tinyclaw.context.source import Piece, SourceContext, source
from tinyclaw.errors import StateError
from tinyclaw.state.files import revision_of


@source(placement="event", priority=20, order=10)
def git(context: SourceContext) -> Iterator[Piece]:
    """Branch, changes and last commits."""
    if late := context.snapshot.facts.get("git late"):
        raise StateError(late)
    facts = context.snapshot.facts.get("git", "")
    if facts:
        yield Piece("git", facts, path="(git)", revision=revision_of(facts.encode()))
