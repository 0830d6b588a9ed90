"""Look at what is remembered."""

from __future__ import annotations

from typing import Annotated

from tinyclaw.errors import ToolError
from tinyclaw.tools._base import ToolContext, tool
from tinyclaw.tools._memory import found, shown
from tinyclaw.types import ToolOutput

_MOST = 10


@tool(effect="read")
def recall(
    ctx: ToolContext,
    name: Annotated[str, "a record, as the index names it"] = "",
    search: Annotated[str, "words to look for in all records"] = "",
) -> ToolOutput:
    """Read a record of the memory, or find some."""
    if bool(name.strip()) == bool(search.strip()):
        raise ToolError("give either a name or words to search for.")
    if name.strip():
        return shown(ctx, found(ctx, name))
    heads, count = ctx.memory.search(search, _MOST)
    lines = [
        f"{ctx.mask(str(ctx.memory.line(each)))} (updated {each.updated or 'at an unknown time'})" for each in heads
    ]
    more = f"\n{count - _MOST:,} more; give more words." if count > _MOST else ""
    return ToolOutput("\n".join(lines) + more if lines else "no record has any of these words.")
