"""Small questions beside the conversation, put to a small model.

Nothing depends on an answer: where none comes, the turn goes on without it.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass

from tinyclaw.agent.events import Event, Notice
from tinyclaw.agent.session import Session
from tinyclaw.errors import Interrupted, LimitReached, ModelError, ReplayError
from tinyclaw.types import Reply, Request, Retrying, SidePurpose

_ANSWER_TOKENS = {"selection": 400, "extraction": 1_500, "consolidation": 8_000}
_CHARS_PER_TOKEN = 2.7


@dataclass(frozen=True)
class SideQuestion:
    """``text`` under the prompt template that is called as the purpose is.

    ``leaves``: so many requests of the turn's limit must be left after it.
    """

    purpose: SidePurpose
    text: str
    leaves: int = 0


def ask_small(session: Session, question: SideQuestion) -> Generator[Event, None, str | None]:
    """What the small model answers, "" where that is not whole; None when it cannot be asked, or gives no answer.

    A server that fails is not asked again in this session, and that is said.

    Raises: StateError, Interrupted.
    """
    small = session.small
    if small is None:
        return None
    system = session.prompts(question.purpose).strip()
    tokens = round(len(system + question.text) / _CHARS_PER_TOKEN)
    longest = _affordable(session, question, tokens)
    if longest is None:
        return None
    request = Request(
        model=small.model.name,
        max_tokens=longest,
        tools=(),
        system=({"type": "text", "text": system},),
        messages=({"role": "user", "content": [{"type": "text", "text": question.text}]},),
        purpose=question.purpose,
    )
    began = time.monotonic()
    try:
        reply = _asked(session, request)
    except ReplayError:
        return None
    except ModelError as error:
        session.small = None
        yield Notice(f"the small model {small.model.name} gives no answer, and is not asked again: {error}")
        return None
    text = session.masker.mask(reply.text.strip())
    milliseconds = round((time.monotonic() - began) * 1000)
    facts = {"stop": reply.stop_reason, "ms": milliseconds}
    session.record(session.side(question.purpose, reply.usage, text, by=small, **facts))
    return text if reply.stop_reason == "end_turn" else ""


def _affordable(session: Session, question: SideQuestion, tokens: int) -> int | None:
    """The longest answer within the turn's limits; None when they leave no room."""
    allowance, small = session.allowance, session.small
    wanted = _ANSWER_TOKENS[question.purpose]
    if allowance.requests is not None and allowance.requests - session.spent.requests <= question.leaves:
        return None
    if small is None or (allowance.dollars is not None and small.price is None):
        return None
    try:
        return allowance.answer_tokens(wanted, tokens, 0, session.spent, small.price)
    except LimitReached:
        return None


def _asked(session: Session, request: Request) -> Reply:
    assert session.small is not None
    small = session.small
    try:
        for event in small.model.stream(request, session.interrupt):
            if isinstance(event, Reply):
                return event
            if isinstance(event, Retrying):
                session.record_lost(event.lost, by=small)
    except (ModelError, Interrupted) as error:
        session.record_lost(error.lost, by=small)
        raise
    raise AssertionError("a stream ends with a reply or an error")
