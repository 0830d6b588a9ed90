"""What a resumed session does first: every call that an earlier process left open gets its one answer."""

from __future__ import annotations

from tinyclaw.agent.session import Session
from tinyclaw.state.transcript.content import result_block, text_of
from tinyclaw.state.transcript.fold import INTERRUPTED
from tinyclaw.state.transcript.grammar import Block
from tinyclaw.tools._permissions import denial
from tinyclaw.types import Reply, ToolUse, Usage


def answer_lost_calls(session: Session, *, asked_again: bool) -> None:
    """Answer the open calls that cannot be run any more, and leave the others open.

    A call that was begun has an unknown outcome. One that waits for a permission, and those behind it,
    were never begun: they stay open when the turn goes on (``asked_again``), and are refused when the
    person says something else instead.
    """
    waiting = False
    for call in session.conversation.pending_calls:
        known = session.conversation.permissions.get(call.id)
        waiting = waiting or (known is not None and not known.started)
        if not waiting:
            _answer(session, call, INTERRUPTED)
            session.notices.append(f"the call {call.name} was interrupted earlier; its outcome counts as unknown")
        elif not asked_again:
            _answer(session, call, denial(call.name, "the person did not allow it and said something else instead"))


def close_cut_turn(session: Session) -> None:
    """End a turn that an earlier process did not end, so that the next text opens a turn of its own."""
    if not session.conversation.idle:
        session.record(session.event("interrupted"), Block("turn_end", {"reason": "interrupted", "at": session.now}))


def last_reply(session: Session) -> Reply | None:
    """What the model said last in a turn that is not ended; None when it is not the model that spoke last.

    An earlier process died before it recorded the turn's end, or, where the stop reason is max_tokens, before
    it had the whole of the reply on disk.
    """
    conversation = session.conversation
    groups = conversation.live_groups
    if conversation.idle or conversation.awaits_reply or conversation.pending_calls or not groups:
        return None
    content = tuple(text_of(block) for block in groups[-1].blocks if block.kind == "text")
    is_whole = conversation.usage_request == conversation.requests
    return Reply(content, conversation.stop_reason if is_whole else "max_tokens", Usage(), session.model.name)


def _answer(session: Session, call: ToolUse, text: str) -> None:
    conversation = session.conversation
    number = conversation.last + (conversation.groups[-1].role == "assistant")
    session.record(result_block(call.id, number, text, name=call.name, is_error=True))
