"""``/context``."""

from __future__ import annotations

from tinyclaw.agent.preview import preview
from tinyclaw.commands._base import CommandContext, command
from tinyclaw.commands._manifest import manifest_text


@command
def context(context: CommandContext, arguments: str) -> str:
    """Show what the next request holds: files, lines, revisions, tokens, and what is left out."""
    working = context.session.compile() if context.session else preview(context.options).working
    return manifest_text(working.manifest, working.request, context.columns)
