"""Take a record out of the memory."""

from __future__ import annotations

from tinyclaw.errors import StateError, ToolError
from tinyclaw.tools._base import ToolContext, tool
from tinyclaw.tools._memory import found, with_index
from tinyclaw.types import ToolOutput


@tool(effect="state")
def forget(ctx: ToolContext, name: str) -> ToolOutput:
    """Take a record out of the memory, when the person asks for that or it is wrong. Its file is archived, not lost."""
    if (place := ctx.memory.files.forgotten(name)) and ctx.memory.find(name) is None:
        return ToolOutput(f"{name} is forgotten already; its file is {place}.")
    record = found(ctx, name)
    try:
        place = ctx.memory.forget(record)
    except StateError as error:
        raise ToolError(f"{error}.") from error
    return with_index(ctx, f"{record.path} is forgotten; its file is {place}.", f"forgotten: {record.path}", {})
