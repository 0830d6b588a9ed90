"""Take a record out of the memory."""

from __future__ import annotations

from tinyclaw.errors import StateError, ToolError
from tinyclaw.tools._base import ToolContext, tool
from tinyclaw.tools._memory import found, is_index_true, with_index
from tinyclaw.types import ToolOutput


@tool(effect="state")
def forget(ctx: ToolContext, name: str) -> ToolOutput:
    """Take a record out of the memory, when the person asks for that or it is wrong. Its file is archived, not lost."""
    if (place := ctx.memory.files.forgotten(name)) and ctx.memory.find(name) is None:
        return ToolOutput(f"{name} is forgotten already; its file is {place}.")
    record = found(ctx, name)
    was_true = is_index_true(ctx)
    try:
        place = ctx.memory.forget(record)
    except StateError as error:
        raise ToolError(f"{error}.") from error
    told = f"{record.path} is forgotten; its file is {place}."
    return with_index(ctx, told, f"forgotten: {record.path}", {}, was_true=was_true)
