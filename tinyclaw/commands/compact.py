"""``/compact``."""

from __future__ import annotations

from tinyclaw.agent.compaction import summarize_now
from tinyclaw.agent.events import ConversationSummarized, Notice
from tinyclaw.commands._base import CommandContext, command


@command
def compact(context: CommandContext, arguments: str) -> str:
    """Let a summary stand for all but the last messages; it can be read, edited and deleted in the transcript."""
    if context.session is None:
        return "there is nothing to summarize yet"
    said = []
    for event in summarize_now(context.session):
        if isinstance(event, Notice):
            said.append(event.text)
        elif isinstance(event, ConversationSummarized):
            said.append(str(event))
    return "\n".join(said)
