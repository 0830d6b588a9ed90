"""One turn: compile, send, record, run the calls, again, until the model stops by itself.

A generator of events and nothing else; the transcript is written before anything it says is done.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from typing import Any

from tinyclaw.agent.compaction import fitted, smallest, take_in
from tinyclaw.agent.consolidation import consolidate_when_many
from tinyclaw.agent.dispatch import Paused, run_calls
from tinyclaw.agent.events import EndReason, Event, Notice, ReplyReceived, RequestStarted, TurnEnded
from tinyclaw.agent.extraction import extract
from tinyclaw.agent.refused import clear_refused_pictures
from tinyclaw.agent.remembering import sync_index
from tinyclaw.agent.repair import answer_lost_calls, close_cut_turn, last_reply
from tinyclaw.agent.selection import state_records
from tinyclaw.agent.session import Session
from tinyclaw.context.compiler import WorkingSet
from tinyclaw.context.reuse import Reuse, Sent
from tinyclaw.errors import Interrupted, LimitReached, ModelError, PromptTooLong, ReplayError, UsageError
from tinyclaw.state.redaction import holds_mask
from tinyclaw.state.transcript.content import reply_block, result_block, user_text
from tinyclaw.state.transcript.grammar import Block
from tinyclaw.types import Content, Reply, Retrying, Text, TextDelta, Thinking, ToolUse

CUT_REASONS = ("max_tokens", "pause_turn")
CUT_TURNS = 3
"""Replies in a row that the output limit may cut before the turn ends."""


def run_turn(session: Session, text: str | None) -> Iterator[Event]:
    """Run one turn. The last event is always ``TurnEnded``, and the transcript always says how it ended.

    Args:
        text: what the person says; None goes on with what is pending or written below the last turn.

    Raises: UsageError when there is nothing to do; StateError when the transcript cannot be written.
    """
    begin(session, text)
    session.spent = session.conversation.turn_spent
    yield from _notices(session)
    try:
        yield from state_records(session)
        reason, answer = yield from _until_the_model_stops(session)
        if reason == "done":
            yield from _look_back(session)
    except Interrupted:
        session.record(session.event("interrupted"))
        reason, answer = "interrupted", "interrupted"
    except Paused as pause:
        yield from _notices(session)
        yield _ended(session, "paused", str(pause))
        return
    except LimitReached as limit:
        reason, answer = "limit", str(limit)
    except (ModelError, ReplayError) as error:
        reason, answer = "error", session.masker.mask(str(error))
        session.record(session.event("error", answer))
    cost = session.spent.cost_usd
    priced = {} if cost is None else {"cost_usd": cost}
    session.record(Block("turn_end", {"reason": reason, "at": session.now, **priced}))
    yield from _notices(session)
    yield _ended(session, reason, answer)


def _look_back(session: Session) -> Iterator[Event]:
    """What is done about the memory at a turn's natural end. An interrupt ends that alone: the answer is there."""
    try:
        yield from extract(session)
        yield from consolidate_when_many(session)
    except Interrupted:
        yield Notice("interrupted; what is worth remembering was not looked for")


def _ended(session: Session, reason: EndReason, text: str) -> TurnEnded:
    spent = session.spent
    return TurnEnded(reason, text, spent.requests, spent.usage, spent.cost_usd)


def begin(session: Session, text: str | None) -> None:
    """Take the person's text into the conversation, after mending what an earlier process left open.

    Raises: UsageError when there is neither text nor anything pending.
    """
    session.refresh()
    sync_index(session)
    conversation = session.conversation
    if text is None:
        if conversation.idle and not (conversation.awaits_reply or conversation.pending_calls):
            raise UsageError(
                "there is nothing to go on with: no question is open and no text stands below the last turn; "
                'give a prompt: tinyclaw run --resume last "…"'
            )
        answer_lost_calls(session, asked_again=True)
        return
    answer_lost_calls(session, asked_again=False)
    close_cut_turn(session)
    conversation = session.conversation
    number = conversation.last + (0 if conversation.awaits_reply and conversation.idle else 1)
    session.record(user_text(session.masker.mask(text), max(number, 1), session.now))


def _until_the_model_stops(session: Session) -> Generator[Event, None, tuple[EndReason, str]]:
    """Requests and calls until the turn is over; returns how it ended and the answer."""
    cut_in_a_row = 0
    has_reacted = False
    if calls := session.conversation.pending_calls:
        yield from run_calls(session, calls)
    elif (said := last_reply(session)) is not None:
        if said.stop_reason not in CUT_REASONS:
            return _ending(said)
        _answer_cut_calls(session, said)
    while True:
        session.interrupt.check()
        session.allowance.check(session.spent)
        reply = yield from _exchange(session)
        yield from _notices(session)
        cut = reply.stop_reason in CUT_REASONS
        cut_in_a_row = cut_in_a_row + 1 if cut else 0
        if cut_in_a_row >= CUT_TURNS:
            _answer_cut_calls(session, reply)
            return (
                "limit",
                f"the output limit cut {CUT_TURNS} replies in a row; ask for smaller steps, or raise max_tokens",
            )
        if cut:
            _answer_cut_calls(session, reply)
        elif reply.stop_reason == "model_context_window_exceeded" and not has_reacted:
            has_reacted = True
            _answer_cut_calls(session, reply)
            session.is_summary_asked = True
        elif reply.stop_reason in ("refusal", "model_context_window_exceeded"):
            if reply.tool_uses:
                _answer_cut_calls(session, reply)
            return _ending(reply)
        elif reply.tool_uses:
            yield from run_calls(session, session.conversation.pending_calls)
        else:
            return _ending(reply)


def _ending(reply: Reply) -> tuple[EndReason, str]:
    if reply.stop_reason == "refusal":
        return "refused", reply.text or "the model refused to answer"
    if reply.stop_reason == "model_context_window_exceeded":
        return "limit", "the conversation no longer fits the model's window; untick turns, or start a new session"
    return "done", reply.text


def _exchange(session: Session) -> Generator[Event, None, Reply]:
    """One request and its reply, both recorded; returns the reply."""
    _tell_of_ended_jobs(session)
    sync_index(session, is_turn_begun=True)
    working = yield from fitted(session)
    began = time.monotonic()
    try:
        reply = yield from _sent(session, working)
    except PromptTooLong as error:
        yield Notice(f"{error}; making the conversation smaller")
        reply = yield from _sent(session, (yield from smallest(session)))
    except ModelError as error:
        if not clear_refused_pictures(session, working, error):
            raise
        yield Notice(f"{error}; the picture is taken out of the conversation")
        reply = yield from _sent(session, session.compile())
    milliseconds = round((time.monotonic() - began) * 1000)
    cost = session.cost(reply.usage)
    reply = _record_reply(session, reply, milliseconds, cost)
    if session.budgets is not None:
        session.budgets.grown(reply.usage)
    yield ReplyReceived(session.conversation.requests, reply.text, reply.stop_reason, reply.usage, milliseconds, cost)
    return reply


def _sent(session: Session, working: WorkingSet) -> Generator[Event, None, Reply]:
    """The reply to a request that is written down and sent, with an answer no longer than the limits allow.

    Raises: LimitReached, before anything is sent or before it is tried again.
    """
    found = session.reuse(working)
    wanted = working.request.max_tokens
    longest = session.answer_tokens(wanted, working.manifest.tokens, found.tokens)
    if longest < wanted:
        working = working.with_max_tokens(longest)
    at = session.clock()
    yield from _announce(session, working, found)
    reply = yield from _streamed(session, working)
    session.sent = Sent.of(working, at)
    return reply


def _streamed(session: Session, working: WorkingSet) -> Generator[Event, None, Reply]:
    """The reply to a request; what was said before an interrupt stays."""
    partial: list[str] = []
    try:
        for event in session.model.stream(working.request, session.interrupt):
            if isinstance(event, Reply):
                return event
            if isinstance(event, TextDelta):
                partial.append(event.text)
            elif isinstance(event, Retrying):
                partial.clear()
                session.record_lost(event.lost)
                session.afford_again(event.lost, working.request.max_tokens, working.manifest.tokens)
            yield event
    except ModelError as error:
        session.record_lost(error.lost)
        raise
    except Interrupted as error:
        session.record_lost(error.lost)
        _record_partial(session, "".join(partial))
        raise
    raise AssertionError("a stream ends with a reply or an error")


def _announce(session: Session, working: WorkingSet, found: Reuse) -> Iterator[Event]:
    """Write down the request before it is sent."""
    number = session.conversation.requests + 1
    change = working.manifest.difference(session.conversation.manifest)
    record = {
        "n": number,
        "model": working.request.model,
        "max_tokens": working.request.max_tokens,
        "params": working.request.params,
        "sha256": working.sha256,
        "manifest": {"at": session.now, **change},
        **({"held": found.tokens} if found.tokens else {}),
        **({"again": found.again, "why": found.why, "what": found.what} if found.why else {}),
    }
    yield from take_in(session, working, Block("request", record))
    yield from _notices(session)
    yield RequestStarted(number, working.manifest.tokens, working.manifest.to_json())


def _record_reply(session: Session, reply: Reply, milliseconds: int, cost: float | None) -> Reply:
    """Append the whole message with its reply record, masked; returns it as recorded."""
    number = session.conversation.last + 1
    model = session.target.model  # thinking goes back to whom it was asked of, whatever name a gateway answers with
    content = tuple(masked for block in reply.content if (masked := _masked(session, block)) is not None)
    blocks = [
        reply_block(block, number, model, _headline(session, block) if isinstance(block, ToolUse) else "")
        for block in content
    ]
    record = {
        "n": session.conversation.requests,
        "in": reply.usage.input,
        "cache_read": reply.usage.cache_read,
        "cache_write": reply.usage.cache_write,
        "out": reply.usage.output,
        "stop": reply.stop_reason,
        "ms": milliseconds,
        **({"cost_usd": cost} if cost is not None else {}),
        **({"model": reply.model} if reply.model != model else {}),
    }
    session.record(*blocks, Block("reply", record))
    return Reply(content, reply.stop_reason, reply.usage, reply.model, reply.extra)


def _tell_of_ended_jobs(session: Session) -> None:
    """Background commands that ended since the last request are told to the model with it."""
    for job in session.jobs.finished():
        conversation = session.conversation
        number = conversation.last + (not conversation.awaits_reply)
        session.record(user_text(f"[{job}]", number, session.now, opens_turn=False))


def _headline(session: Session, call: ToolUse) -> str:
    tool = session.registry.get(call.name)
    return tool.headline(call.input) if tool else call.name


def _masked(session: Session, block: Content) -> Content | None:
    """The block with secrets masked; thinking that holds one is left out, for its signature would not hold."""
    if isinstance(block, Text):
        return Text(session.masker.mask(block.text), block.extra)
    if isinstance(block, ToolUse):
        return ToolUse(block.id, block.name, _masked_json(session, block.input), block.extra)
    if isinstance(block, Thinking) and holds_mask(session.masker.mask(block.thinking)):
        return None
    return block


def _masked_json(session: Session, value: object) -> Any:
    if isinstance(value, str):
        return session.masker.mask(value)
    if isinstance(value, list):
        return [_masked_json(session, item) for item in value]
    if isinstance(value, dict):
        return {key: _masked_json(session, item) for key, item in value.items()}
    return value


def _record_partial(session: Session, text: str) -> None:
    """What the model had said when the person interrupted stays in the conversation."""
    if text.strip():
        attrs = {"m": session.conversation.last + 1, "role": "assistant", "partial": True}
        session.record(Block("text", attrs, session.masker.mask(text), heading="## tinyclaw"))


def _answer_cut_calls(session: Session, reply: Reply) -> None:
    """A message that the output limit cut is never executed; the model is told to go on in smaller steps."""
    number = session.conversation.last + 1
    if reply.tool_uses:
        for call in reply.tool_uses:
            text = session.hints.get("cut_call", name=call.name)
            session.record(result_block(call.id, number, text, name=call.name, is_error=True))
    else:
        session.record(user_text(session.hints.get("go_on"), number, session.now, opens_turn=False))


def _notices(session: Session) -> Iterator[Notice]:
    for text in session.take_notices():
        yield Notice(text)
