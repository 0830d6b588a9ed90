"""``/context``."""

from __future__ import annotations

from tinyclaw.agent.preview import preview
from tinyclaw.agent.view import next_view
from tinyclaw.commands._base import CommandContext, command
from tinyclaw.commands._manifest import manifest_text


@command
def context(context: CommandContext, arguments: str) -> str:
    """Show what the next request holds: files, lines, revisions, tokens, and what is left out."""
    if context.session is None:
        return manifest_text(preview(context.options).view, context.columns)
    return manifest_text(next_view(context.session, context.session.compile()), context.columns)
