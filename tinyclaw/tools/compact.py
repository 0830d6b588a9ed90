"""Ask for a summary of the conversation at a good moment, rather than when it has grown too large."""

from __future__ import annotations

from tinyclaw.tools._base import ToolContext, tool


@tool(effect="read")
def compact(ctx: ToolContext) -> str:
    """Have the conversation summarized before your next message, at the end of a part of long work.

    You are asked for the handoff then. The person's words, PLAN.md, TODO.md and AGENTS.md stay; results that you still
    need are better read again afterwards.
    """
    ctx.ask_summary()
    return "The conversation is summarized before your next message."
