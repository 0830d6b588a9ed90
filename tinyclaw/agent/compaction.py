"""A summary takes the place of the older part of the conversation; what the person said stays in their own words.

The request for it is the one that would be sent next, with the instruction behind it, so that all of it
but the instruction is read from the provider's cache. Whatever it answers, no tool is run. The summary
is a block of the transcript that people can read, edit and delete.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import replace

from tinyclaw.agent.events import ConversationSummarized, Event, FileStated, Notice, ResultsCleared
from tinyclaw.agent.remembering import remember, split_notes
from tinyclaw.agent.session import Session
from tinyclaw.context.compiler import LEAST_OUTPUT_TOKENS, WorkingSet
from tinyclaw.context.cutting import cut_before
from tinyclaw.context.wire import SUMMARY
from tinyclaw.errors import Interrupted, ModelError
from tinyclaw.state.transcript.content import is_persons
from tinyclaw.state.transcript.fold import Conversation
from tinyclaw.state.transcript.grammar import Block, heading
from tinyclaw.types import Json, Reply, Request, Retrying, Spent

KEPT_MESSAGES = 12
KEPT_ON_DEMAND = 2
MOST_FAILURES = 3
"""After so many failed summaries in a row none is tried by itself any more."""
_MOST_PARTS = 8
_ANSWER_TOKENS = 8_000
_INSTRUCTION_TOKENS = 1_000
_REQUEST_TOKENS = _ANSWER_TOKENS + _INSTRUCTION_TOKENS
"""What is needed beside what is summarized."""
_WORDS_CHARS = 24_000
_WORDS = "## In the person's own words"


def fitted(session: Session) -> Generator[Event, None, WorkingSet]:
    """The next request, with summaries made first where it has grown too large, or where one was asked for.

    Raises: StateError, Interrupted; PromptTooLong when it does not fit whatever is done.
    """
    is_asked, session.is_summary_asked = session.is_summary_asked, False
    for number in range(_MOST_PARTS):
        working = session.compile(may_exceed=True)
        at = _cut(session, working, is_asked=is_asked and number == 0, is_first=number == 0)
        if not at and working.manifest.tokens <= _room(session):
            return working
        if not at or not (yield from compact(session, working, at)):
            break
    return session.compile()


def smallest(session: Session) -> Generator[Event, None, WorkingSet]:
    """The next request as small as it can be made, after the provider has refused a larger one.

    Raises: StateError, Interrupted, PromptTooLong.
    """
    working = session.compile(clears_all=True, may_exceed=True)
    if not any(block.kind == "clear" for block in working.blocks):
        at = cut_before(working.messages, len(working.messages) - KEPT_ON_DEMAND)
        while at and not (yield from compact(session, session.compile(may_exceed=True), at, is_whole=False)):
            at = cut_before(working.messages, at // 2)
        working = session.compile(clears_all=True, may_exceed=True)
    return working


def summarize_now(session: Session) -> Generator[Event, None, bool]:
    """Summarize on demand, all but the last messages; False, with nothing changed, when there is nothing or it fails.

    Raises: StateError, Interrupted, LimitReached.
    """
    if session.conversation.idle:
        session.spent = Spent()
    working = session.compile(may_exceed=True)
    at = _cut(session, working, is_asked=True, is_first=True)
    if not at:
        yield Notice("there is nothing to summarize yet")
        return False
    return (yield from compact(session, working, at, between_turns=session.conversation.idle))


def _cut(session: Session, working: WorkingSet, *, is_asked: bool, is_first: bool) -> int:
    """The index of the first message to keep, when a summary is to be made now; 0 when not."""
    messages, tokens, marks = working.messages, working.manifest.tokens, session.marks
    room = _room(session)
    if is_asked or tokens > room:
        at = cut_before(messages, len(messages) - KEPT_ON_DEMAND)
        while at and _share(working, at) > room - _REQUEST_TOKENS:  # in parts, each merged with the next
            at = cut_before(messages, at - 1)
        return at
    if not is_first or tokens <= marks.high or session.failed_summaries >= MOST_FAILURES:
        return 0
    at = cut_before(messages, len(messages) - KEPT_MESSAGES)
    return at if _share(working, at) - _share(working, 0) >= marks.gain else 0


def _room(session: Session) -> int:
    """The tokens that a request may have."""
    return session.target.window_tokens - LEAST_OUTPUT_TOKENS


def _share(working: WorkingSet, at: int) -> float:
    """About the tokens of the prefix and the messages before index ``at``."""
    length = working.prefix.length + sum(message.length for message in working.messages[:at])
    return working.manifest.tokens * length / max(1, working.manifest.chars)


def take_in(
    session: Session, working: WorkingSet, *records: Block, between_turns: bool = False
) -> Generator[Event, None, None]:
    """Write down what a request holds before it is sent. Between turns live files are left to the next turn to tell."""
    blocks = [block for block in working.blocks if block.kind != "state" or not between_turns]
    session.pin(working.prefix)
    session.record(*blocks, *records)
    for block in blocks:
        if block.kind == "state":
            if not block.attrs.get("cut"):
                session.ledger.restore(block.attrs["path"], block.attrs["rev"])
            yield FileStated(block.attrs["path"], block.attrs["how"], block.attrs["by"])
        elif block.kind == "clear":
            yield ResultsCleared(len(block.attrs["results"]), block.attrs["before"], block.attrs["after"])


def compact(
    session: Session, working: WorkingSet, at: int, *, is_whole: bool = True, between_turns: bool = False
) -> Generator[Event, None, bool]:
    """Let a summary stand for the messages before index ``at``; False, with nothing changed, if it fails.

    Args:
        working: the newest compile, not recorded yet.
        is_whole: send the whole conversation with the request for it, if it fits, which the cache holds.
        between_turns: no turn is running, and none is to be begun.

    Raises: Interrupted.
    """
    keep = working.messages[at].number
    yield from take_in(session, working, between_turns=between_turns)
    yield Notice(f"summarizing {at} of {len(working.messages)} messages, so that the conversation goes on smaller")
    try:
        text = yield from _ask(session, *_request(session, working, at, is_whole=is_whole))
    except ModelError as error:
        text, why = "", str(error)
    else:
        why = "the model answered with nothing"
    text, notes = split_notes(text, f"session {session.transcript.session}")
    if not text:
        session.failed_summaries += 1
        session.record(session.event("compaction_failed", session.masker.mask(why)))
        yield Notice(f"the conversation could not be summarized, and is as it was: {why}")
        return False
    session.failed_summaries = 0
    if session.habits.flush:
        yield from remember(session, notes, by="the summary")
    words = _persons_words(session.conversation, keep)
    body = "\n\n".join(part for part in (SUMMARY, text, words) if part)
    before = working.manifest.tokens
    block = Block("compact", {"keep": keep, "at": session.now, "before": before}, body, heading=heading(2, "Summary"))
    session.record(block)
    yield ConversationSummarized(keep, before, len(body))
    return True


def _request(session: Session, working: WorkingSet, at: int, *, is_whole: bool) -> tuple[Request, int, int]:
    """All of the next request, or only what is summarized where all does not fit, and the instruction behind it.

    Also its tokens, and those of them that the cache holds.
    """
    request = working.request
    fits = working.manifest.tokens < session.target.window_tokens - _ANSWER_TOKENS
    is_all = is_whole and fits
    messages = list(request.messages if is_all else request.messages[:at])
    size = working.manifest.tokens if is_all else round(_share(working, at))
    held = min(session.reuse(working).tokens, size)
    instruction: Json = {"type": "text", "text": session.prompts("summarize").strip()}
    if messages[-1]["role"] == "user":
        messages[-1] = {**messages[-1], "content": [*messages[-1]["content"], instruction]}
    else:
        messages.append({"role": "user", "content": [instruction]})
    max_tokens = min(session.target.max_tokens, _ANSWER_TOKENS)
    asked = replace(request, messages=tuple(messages), max_tokens=max_tokens, purpose="summary")
    return asked, size + _INSTRUCTION_TOKENS, held


def _ask(session: Session, request: Request, tokens: int, held: int) -> Generator[Event, None, str]:
    """The summary, asked for once more without tools when the first answer has no text; "" when there is none.

    Args:
        tokens: the request's, ``held`` those of them that the cache holds.

    Raises: ModelError, Interrupted, LimitReached.
    """
    for params in (request.params, {**request.params, "tool_choice": {"type": "none"}}):
        longest = session.answer_tokens(request.max_tokens, tokens, held)
        began = time.monotonic()
        reply = yield from _asked(session, replace(request, params=params, max_tokens=longest), tokens)
        text = session.masker.mask(reply.text.strip())
        milliseconds = round((time.monotonic() - began) * 1000)
        session.record(session.side("summary", reply.usage, text, held=held, stop=reply.stop_reason, ms=milliseconds))
        if text and not reply.tool_uses and reply.stop_reason in ("end_turn", "stop_sequence"):
            return text.partition(_WORDS)[0].strip()
    return ""


def _asked(session: Session, request: Request, tokens: int) -> Generator[Event, None, Reply]:
    """The answer to a request of so many tokens beside the conversation.

    Raises: ModelError, Interrupted, LimitReached.
    """
    try:
        for event in session.model.stream(request, session.interrupt):
            if isinstance(event, Retrying):
                session.record_lost(event.lost)
                session.afford_again(event.lost, request.max_tokens, tokens)
                yield event
            elif isinstance(event, Reply):
                return event
    except (ModelError, Interrupted) as error:
        session.record_lost(error.lost)
        raise
    raise AssertionError("a stream ends with a reply or an error")


def _persons_words(conversation: Conversation, keep: int) -> str:
    """What the person said before message ``keep``, word for word; the longest texts are cut when it is too much."""
    earlier = conversation.summary.text.partition(_WORDS)[2].strip() if conversation.summary else ""
    said = [
        block.text.strip()
        for group in conversation.live_groups
        for block in group.blocks
        if group.role == "user" and group.number < keep and is_persons(block)
    ]
    texts = [text for text in (earlier, *said) if text]
    if not texts:
        return ""
    room = _WORDS_CHARS
    while sum(min(len(text), room) for text in texts) > _WORDS_CHARS:
        room = room * 9 // 10
    return "\n\n".join((_WORDS, *(_shortened(text, room) for text in texts)))


def _shortened(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    left_out = f"[… {len(text) - room:,} characters left out; they are in the transcript …]"
    return f"{text[: room // 2]}\n{left_out}\n{text[-room // 2 :]}"
