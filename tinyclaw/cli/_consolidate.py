"""``tinyclaw memory consolidate``: ask the small model what to merge or drop, in a session of its own."""

from __future__ import annotations

from collections.abc import Generator

import click

from tinyclaw.agent.consolidation import look_through
from tinyclaw.agent.events import Event, Notice
from tinyclaw.agent.session import Session
from tinyclaw.agent.start import open_session
from tinyclaw.cli._opening import Choices
from tinyclaw.cli._signals import Signals
from tinyclaw.errors import UsageError
from tinyclaw.state.memory import proposal
from tinyclaw.state.memory.proposal import Change
from tinyclaw.state.transcript.grammar import Block
from tinyclaw.width import harmless


def propose(directory: str | None) -> int:
    """Returns the exit code: 0 with a proposal or nothing to change, 1 without an answer.

    Raises: TinyclawError when a proposal waits, there are no records, or no model can be asked.
    """
    signals = Signals()
    options = Choices(directory).options(interrupt=signals.interrupt, ask=None, title="Consolidate the memory")
    with signals.turn():
        session = open_session(options)
        try:
            return _propose(session)
        finally:
            session.close()


def _propose(session: Session) -> int:
    memory = session.memory
    if proposal.is_waiting(memory):
        raise UsageError(f"{proposal.PATH} waits; accept or reject it first")
    if not memory.heads(1):
        raise UsageError("there are no records in .memory/")
    changes = _answer(look_through(session))
    session.record(Block("turn_end", {"reason": "done", "at": session.now}))
    if changes is None:
        click.echo("the small model gave no answer that can be used; nothing was changed", err=True)
        return 1
    if not changes:
        click.echo("there is nothing to merge or drop", err=True)
        return 0
    proposal.save(memory, changes, session.now)
    for change in changes:
        click.echo(harmless(session.masker.mask(f"{change}\n")))
    click.echo(f"{proposal.PATH}: edit it as you like, then: tinyclaw memory accept (or reject)", err=True)
    return 0


def _answer(events: Generator[Event, None, list[Change] | None]) -> list[Change] | None:
    """What the events end with; what they tell the person is shown."""
    while True:
        try:
            event = next(events)
        except StopIteration as end:
            changes: list[Change] | None = end.value
            return changes
        if isinstance(event, Notice):
            click.echo(harmless(event.text), err=True)
