"""What the tools of the memory share: the records, and the index as it stands after a change."""

from __future__ import annotations

from tinyclaw.errors import StateError, ToolError
from tinyclaw.state.memory.evidence import doubt
from tinyclaw.state.memory.record import Record
from tinyclaw.state.workspace import MEMORY_INDEX
from tinyclaw.tools._base import ToolContext
from tinyclaw.types import ToolOutput

_CHOICES = 5


def found(ctx: ToolContext, name: str) -> Record:
    """The record of that name. Raises: ToolError that names those which come near."""
    record = ctx.memory.find(name)
    if record is None:
        near = [each.name for each in ctx.memory.search(name, _CHOICES).heads]
        raise ToolError(f"no record is called {name!r}" + (f"; there are: {', '.join(near)}." if near else "."))
    return record


def shown(ctx: ToolContext, record: Record) -> ToolOutput:
    """A record as it stands; where that is not cut, the model has seen it."""
    facts = f"{record.type}, updated {record.updated or 'at an unknown time'}"
    said = doubt(*ctx.memory.doubts(record))
    doubts = [f"Verify before use: {said}."] if said else []
    text = "\n\n".join([f"{record.name} ({record.path}; {facts})", *doubts, ctx.mask(record.text)])
    return ToolOutput(text, shown={record.path: record.revision}, summary=record.path)


def with_index(ctx: ToolContext, text: str, summary: str, revisions: dict[str, str]) -> ToolOutput:
    """The result of a change, which states the index: it is made anew. Raises: ToolError."""
    try:
        revisions = {**revisions, MEMORY_INDEX: ctx.memory.index.write().revision}
    except StateError as error:
        text = f"{text} The index could not be written: {error}."
    return ToolOutput(text, revisions=revisions, summary=summary)
