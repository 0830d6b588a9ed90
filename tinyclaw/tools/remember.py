"""Keep something for later sessions."""

from __future__ import annotations

from typing import Annotated, Literal

from tinyclaw.errors import StateError, ToolError
from tinyclaw.state.memory.record import Note, Record
from tinyclaw.tools._base import ToolContext, tool
from tinyclaw.tools._memory import is_index_true, with_index
from tinyclaw.tools._writing import refuse_masks
from tinyclaw.types import ToolOutput

_SHORT_CHARS = 1_500
_DONE = {"new": "remembered", "changed": "corrected", "same": "was remembered already"}


@tool(effect="state")
def remember(
    ctx: ToolContext,
    name: Annotated[str, "short and telling; the same name is the same record"],
    text: str,
    type: Literal["user", "feedback", "project", "reference"],
    description: Annotated[str, "one line for the index"] = "",
) -> ToolOutput:
    """Keep a note for later sessions, or correct one that you have recalled."""
    refuse_masks("\n".join((name, text, description)))
    note = Note(name, type, text, description, source=f"session {ctx.session}")
    was_true = is_index_true(ctx)
    try:
        saved = ctx.memory.save(note, ctx.ledger.seen)
    except StateError as error:
        raise ToolError(f"{error}.") from error
    record = ctx.memory.find(saved.slug)
    if saved.how == "kept" and record is not None:
        raise ToolError(_kept(ctx, record))
    ctx.ledger.restore(saved.path, saved.revision)
    line = ctx.mask(record.index_line) if record is not None else ""
    done = _DONE[saved.how]
    revisions = {saved.path: saved.revision}
    told = f"{saved.path}: {done}. In the index: {line}"
    return with_index(ctx, told, f"{done}: {saved.path}", revisions, was_true=was_true)


def _kept(ctx: ToolContext, record: Record) -> str:
    """Says what the record says, if that is short enough to be seen whole in any case."""
    facts = f"{record.path} says something else, which you have not seen. Nothing was changed."
    text = ctx.mask(record.text)
    if len(text) > _SHORT_CHARS:
        return f"{facts} Recall it, then call remember again with a text that keeps what still holds."
    ctx.ledger.restore(record.path, record.revision)
    return f"{facts} It says:\n\n{text}\n\nCall remember again with a text that keeps what still holds."
