"""One turn without a prompt of our own: the text comes from arguments and standard input."""

from __future__ import annotations

import os

from tinyclaw.agent.start import open_session
from tinyclaw.cli._ask import TerminalQuestions
from tinyclaw.cli._opening import Choices
from tinyclaw.cli._output import output_for
from tinyclaw.cli._piped import joined, read_piped, read_waiting
from tinyclaw.cli._signals import EXIT_INTERRUPTED, Signals
from tinyclaw.cli._terminal import standard_terminals
from tinyclaw.cli._turn import show_turn, started
from tinyclaw.errors import UsageError


def run_once(choices: Choices, prompt: str | None, output_format: str) -> int:
    """Run one turn and show it in that format; returns the exit code.

    Raises: TinyclawError when there is no text to run, or the session cannot be opened or go on.
    """
    signals = Signals()
    out, err = standard_terminals()
    text = _text(prompt, resumes=choices.resume is not None)
    questions = TerminalQuestions(err, signals.interrupt) if err.is_terminal and os.isatty(0) else None
    options = choices.options(interrupt=signals.interrupt, ask=questions, title=text or "")
    with signals.turn():  # from here on Ctrl-C is a wish, so that opening and closing are never cut short
        session = open_session(options)
        try:
            output = output_for(output_format, out, err)
            output.show(started(session, resumed=choices.resume is not None))
            code = show_turn(session, text, output)
        finally:
            session.close()
    return EXIT_INTERRUPTED if signals.must_end else code


def _text(prompt: str | None, *, resumes: bool) -> str | None:
    """What the person says, or None to go on with what is pending."""
    if prompt == "-":
        text = read_piped()
        if not text.strip():
            raise UsageError("standard input holds no text; pipe a prompt into: tinyclaw run -")
        return text
    if prompt is not None and prompt.strip():
        return joined(prompt, read_waiting())
    if prompt is not None:
        raise UsageError('the prompt is empty; say what you want done: tinyclaw run "…"')
    piped = read_waiting() if resumes else read_piped()
    if piped.strip():
        return piped
    if resumes:
        return None
    raise UsageError('there is no prompt; give one: tinyclaw run "…", or go on: tinyclaw run --resume last')
