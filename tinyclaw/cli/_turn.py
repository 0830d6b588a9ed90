"""One turn from the command line: its events to an output, its end to an exit code."""

from __future__ import annotations

from tinyclaw.agent.events import EndReason, SessionStarted, TurnEnded
from tinyclaw.agent.loop import run_turn
from tinyclaw.agent.session import Session
from tinyclaw.cli._output import Output

EXIT_CODES: dict[EndReason, int] = {
    "done": 0,
    "error": 1,
    "refused": 1,
    "paused": 3,
    "limit": 4,
    "interrupted": 130,
}


def show_turn(session: Session, text: str | None, output: Output) -> int:
    """Run one turn and show it; returns the exit code. A reader that leaves interrupts the turn.

    Raises: as ``run_turn``.
    """
    code, is_read = 1, True
    try:
        for event in run_turn(session, text):
            if isinstance(event, TurnEnded):
                code = EXIT_CODES[event.reason]
            try:
                if is_read:
                    output.show(event)
            except BrokenPipeError:
                is_read = False
                session.interrupt.set()
    finally:
        if is_read:
            output.end()
    return code


def started(session: Session, *, resumed: bool) -> SessionStarted:
    """The event that opens a session's stream."""
    path = session.workspace.relative(session.transcript.path)
    return SessionStarted(session.transcript.session, path, session.model.name, resumed)
