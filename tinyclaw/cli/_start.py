"""``tinyclaw`` without a command: the prompt in a terminal, otherwise one turn with what is piped in."""

from __future__ import annotations

import os
import sys

from tinyclaw.errors import UsageError
from tinyclaw.model.base import start_import


def start(resume: str | None, model: str | None, directory: str | None) -> int:
    """Returns the exit code.

    Raises: UsageError when there is neither a terminal nor text; TinyclawError as the turn does.
    """
    if not (model or "").startswith("replay:"):
        start_import()
    from tinyclaw.cli._once import run_once
    from tinyclaw.cli._opening import Choices

    choices = Choices(directory, model, resume=resume)
    if not os.isatty(0):
        from tinyclaw.cli._piped import read_piped

        text = read_piped()
        if not text.strip() and resume is None:
            raise UsageError(
                "no terminal and no text on standard input; "
                'give a prompt: tinyclaw run "…", or pipe one in: echo "…" | tinyclaw'
            )
        return run_once(choices, text if text.strip() else None, "text")
    if not (sys.stderr.isatty() or sys.stdout.isatty()):
        raise UsageError('the prompt needs a terminal to be shown on; for scripts there is: tinyclaw run "…"')
    from tinyclaw.cli._prompt import interact

    return interact(choices)
