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


def is_index_true(ctx: ToolContext) -> bool:
    """Whether the index said all of the records before a change; where it did not, it does now, and is to be told."""
    try:
        return ctx.memory.index.refresh() is None
    except StateError:
        return False


def with_index(ctx: ToolContext, text: str, summary: str, revisions: dict[str, str], *, was_true: bool) -> ToolOutput:
    """The result of a change, with the index made anew. It states the index if that changed by nothing else."""
    try:
        written = ctx.memory.index.write()
    except StateError as error:
        text = f"{text} The index could not be written: {error}."
    else:
        revisions |= {MEMORY_INDEX: written.revision} if was_true else {}
    return ToolOutput(text, revisions=revisions, summary=summary)
