"""Look up what is no longer in the conversation."""

from __future__ import annotations

from typing import Annotated

from tinyclaw.errors import ToolError
from tinyclaw.tools._base import ToolContext, tool
from tinyclaw.tools._search import count
from tinyclaw.tools._sessions import search_sessions as find
from tinyclaw.types import ToolOutput

_MOST = 50


@tool(effect="read")
def search_sessions(
    ctx: ToolContext, text: Annotated[str, "part of a line, as it was; case does not matter"]
) -> ToolOutput:
    """Find what was said, called or answered in this session and earlier ones, also what was cleared or summarized.

    Gives `path:line: text`; read on there.
    """
    if not text.strip() or "\n" in text:
        raise ToolError("text is part of one line, and not blank.")
    found = find(ctx.workspace.root, text, _MOST, ctx.interrupt)
    more = ", there are more: give more of the line" if found.more else ""
    verdict = f"{count(len(found.lines), 'line')}{more}" if found.lines else "no line has it"
    return ToolOutput("\n".join([*found.lines, "", verdict]), summary=verdict)
