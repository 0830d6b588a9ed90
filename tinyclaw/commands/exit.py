"""``/exit``."""

from __future__ import annotations

from tinyclaw.commands._base import CommandContext, LeavePrompt, command


@command
def exit(context: CommandContext, arguments: str) -> str:
    """Leave; the session can be resumed."""
    raise LeavePrompt
