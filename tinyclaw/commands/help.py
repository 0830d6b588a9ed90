"""``/help``."""

from __future__ import annotations

from tinyclaw.commands._base import CommandContext, command
from tinyclaw.width import table

_KEYS = """\
Enter sends; a paste of several lines is one message. Ctrl-C clears the line or interrupts the turn,
twice within a second it ends tinyclaw. Ctrl-D leaves. Edit PLAN.md, TODO.md or AGENTS.md at any
time: the next request carries what they say."""


@command
def help(context: CommandContext, arguments: str) -> str:
    """Show the commands and keys."""
    rows = [(f"/{name}", context.commands[name].summary) for name in sorted(context.commands)]
    return "\n".join([*(line.rstrip() for line in table(rows, context.columns)), "", _KEYS])
