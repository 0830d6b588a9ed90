"""Clear old tool results when the conversation has grown: a marker takes a result's place and says the way back.

Each clear costs the provider's cache once: what stands behind the first cleared result is written
again. So it is done in one step, when it pays: when much more is cleared than has to be written
again, or when the high-water mark is passed. What is cleared is recorded in the transcript; deleting
the record brings the results back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tinyclaw.context.tokens import Estimator
from tinyclaw.state.transcript.fold import Conversation, Message
from tinyclaw.state.transcript.grammar import Block
from tinyclaw.types import Json, ToolUse

KEPT_MESSAGES = 6
KEPT_INTERACTIONS = 3
"""Results in the union of the last messages and of the last finished tool interactions stay."""
PAYS = 5.5
"""So many times as much is cleared as has to be written again: of ``benchmarks/long_session.py --sweep`` the cheapest
that reads 90% from the cache."""
_LEAST_SHARE = 0.3
"""Above the high-water mark less will do; with less than this share a summary does better."""
_LEAST_CHARS = 600
"""A shorter result is about as long as its marker."""
_STORED = re.compile(r"\.task_outputs/[^\s:,\]]+\.md")
_SHOWN_CHARS = 80


@dataclass(frozen=True)
class WaterMarks:
    """Request sizes in tokens: above ``high`` the conversation is made smaller, and not below ``low``.

    ``gain`` is the least that is worth a summary.
    """

    high: int = 100_000
    low: int = 10_000

    @property
    def gain(self) -> int:
        return (self.high - self.low) // 3


@dataclass(frozen=True)
class _Result:
    """A result that is sent whole: the index of its message, its call, its length in characters, its text."""

    message: int
    call: ToolUse
    length: int
    text: str


def clear_block(
    conversation: Conversation, messages: Sequence[Message], tokens: int, marks: WaterMarks, estimator: Estimator
) -> Block | None:
    """The record that clears old results of a request of that many ``tokens``; None when that is not worth it."""
    if tokens <= marks.low:
        return None
    markers: dict[str, str] = {}
    gained = first = 0
    for result in _old_results(conversation, messages):
        if tokens - estimator.tokens(gained) <= marks.low:
            break
        first = first or result.message
        markers[result.call.id] = _marker(result)
        gained += result.length - len(markers[result.call.id])
    again = sum(message.length for message in messages[first:]) - gained
    if not markers or gained < again * (PAYS if tokens <= marks.high else _LEAST_SHARE):
        return None
    return Block("clear", {"results": markers, "before": tokens, "after": tokens - estimator.tokens(gained)})


def _old_results(conversation: Conversation, messages: Sequence[Message]) -> Iterator[_Result]:
    """The results that may be cleared, oldest first."""
    answers = [index for index, message in enumerate(messages) if message.wire["role"] == "user" and index]
    finished = [index for index in answers if messages[index - 1].calls]
    kept = {*range(len(messages) - KEPT_MESSAGES, len(messages)), *finished[-KEPT_INTERACTIONS:]}
    named = {same for index in finished if index in kept for same in _named(messages[index])}
    done = named.union(conversation.cleared)
    for index in finished:
        if index in kept:
            continue
        calls = {call.id: call for call in messages[index - 1].calls}
        for block in messages[index].wire["content"]:
            if block["type"] != "tool_result" or block["tool_use_id"] in done:
                continue
            text, length = _measured(block["content"])
            if length >= _LEAST_CHARS:
                yield _Result(index, calls[block["tool_use_id"]], length, text)


def _named(message: Message) -> Iterator[str]:
    """The calls whose results stand for those of this message, too."""
    blocks = (block for group in message.groups for block in group.blocks if block.kind == "tool_result")
    yield from (str(block.attrs["same_as"]) for block in blocks if block.attrs.get("same_as"))


def _measured(content: str | list[Json]) -> tuple[str, int]:
    """A result's text, and its length with its pictures. Not as JSON: this is done for all results at each request."""
    if isinstance(content, str):
        return content, len(content)
    text = "\n".join(part["text"] for part in content if part["type"] == "text")
    return text, len(text) + sum(len(part["source"]["data"]) for part in content if part["type"] == "image")


def _marker(result: _Result) -> str:
    shown = json.dumps(result.call.input, ensure_ascii=False)
    if len(shown) > _SHOWN_CHARS:
        shown = shown[: _SHOWN_CHARS - 1] + "…"
    stored = _STORED.search(result.text)
    way_back = f"all of it is in {stored[0]}" if stored else f"call {result.call.name} again if you need it"
    return f"[cleared to save room: {len(result.text):,} characters of {result.call.name} {shown}; {way_back}]"
