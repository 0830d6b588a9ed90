"""A transcript plays the model: its replies in order, while tools run for real.

It is the one fake model there is: demos, examples and tests use it. With ``strict`` the first request
that differs from the recorded one ends the replay, and the error names the part that differs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tinyclaw.context.compiler import rebuild_request
from tinyclaw.errors import ReplayError, StateError
from tinyclaw.state.transcript.content import call_of, raw_of, text_of, thinking_of
from tinyclaw.state.transcript.fold import conversation_of
from tinyclaw.state.transcript.grammar import Block, parse
from tinyclaw.state.transcript.prefixes import PrefixStore
from tinyclaw.types import Content, Interrupt, Json, ModelEvent, Reply, Request, Text, TextDelta, Usage

_SHOWN_CHARS = 60


@dataclass(frozen=True)
class _Turn:
    """One recorded exchange: the blocks before it, its request record, its content and its reply record."""

    before: tuple[Block, ...]
    request: Block
    content: tuple[Content, ...]
    reply: Block


@dataclass
class ReplayModel:
    """Plays the replies of the transcript ``path``. ``user_folder`` holds private parts of its prefixes."""

    path: Path
    user_folder: Path
    strict: bool = False
    recorded_date: str = ""
    _turns: list[_Turn] = field(default_factory=list)
    _next: int = 0

    def __post_init__(self) -> None:
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise StateError(f"{self.path}: the transcript to replay cannot be read ({error.strerror})") from error
        parsed = parse(data, self.path.name)
        self.recorded_date = parsed.header.get("created", "")[:10]
        self._turns = list(_turns(parsed.blocks))
        if not self._turns:
            raise StateError(f"{self.path}: holds no reply of a model; replay needs a recorded session")

    @property
    def name(self) -> str:
        """The recorded model's id, so that a replayed request can equal the recorded one."""
        return str(self._turns[0].request.attrs.get("model", "replay"))

    def stream(self, request: Request, interrupt: Interrupt) -> Iterator[ModelEvent]:
        """The next recorded reply; see ``Model.stream``.

        Raises: ReplayError when the recording is at its end, or with ``strict`` when the request differs.
        """
        interrupt.check()
        if self._next >= len(self._turns):
            raise ReplayError(f"{self.path.name} holds {len(self._turns)} replies, and one more was asked for")
        turn = self._turns[self._next]
        if self.strict:
            self._compare(turn, request)
        self._next += 1
        for block in turn.content:
            if isinstance(block, Text):
                yield TextDelta(block.text)
        yield _reply(turn, request.model)

    def _compare(self, turn: _Turn, request: Request) -> None:
        number = self._next + 1
        conversation = conversation_of(turn.before)
        prefix = PrefixStore(self.path.parent, self.user_folder).load(conversation.prefix)
        if prefix is None:
            raise ReplayError(
                f"request {number} cannot be compared: its prefix {conversation.prefix} is not beside the transcript"
            )
        recorded = rebuild_request(conversation, prefix, turn.request)
        difference = first_difference(recorded, request, [block.id for block in prefix.blocks])
        if difference:
            raise ReplayError(f"request {number} differs from the recorded one: {difference}")


def first_difference(recorded: Request, request: Request, system_names: Sequence[str]) -> str:
    """Where two requests differ first, in words, or "" when they are equal.

    ``system_names`` are the system blocks' sources.
    """
    for name in ("model", "max_tokens", "params"):
        if getattr(recorded, name) != getattr(request, name):
            return f"{name} was {getattr(recorded, name)!r} and is {getattr(request, name)!r}"
    if recorded.tools != request.tools:
        return f"the tools: {_changed_tools(recorded.tools, request.tools)}"
    for index, (old, new) in enumerate(zip(recorded.system, request.system, strict=False)):
        if old["text"] != new["text"]:
            return f"the source {system_names[index]}: {_texts(old['text'], new['text'])}"
    if len(recorded.system) != len(request.system):
        return f"the prefix has {len(request.system)} blocks and had {len(recorded.system)}"
    for index, (old, new) in enumerate(zip(recorded.messages, request.messages, strict=False)):
        if found := _message_difference(old, new):
            return f"message {index + 1}, {found}"
    if len(recorded.messages) != len(request.messages):
        return f"it has {len(request.messages)} messages and had {len(recorded.messages)}"
    return ""


def _message_difference(old: Json, new: Json) -> str:
    for before, after in zip(old["content"], new["content"], strict=False):
        before, after = _unmarked(before), _unmarked(after)
        if before != after:
            return f"{_source_of(before)}: {_texts(_flat(before), _flat(after))}"
    if len(old["content"]) != len(new["content"]):
        more = max(old["content"], new["content"], key=len)[min(len(old["content"]), len(new["content"]))]
        return f"{_source_of(more)} is only in one of them"
    return "" if old["role"] == new["role"] else f"its role was {old['role']} and is {new['role']}"


def _unmarked(block: Json) -> Json:
    return {key: value for key, value in block.items() if key != "cache_control"}


def _source_of(block: Json) -> str:
    if block["type"] == "tool_result":
        return f"the result of {block['tool_use_id']}"
    if block["type"] == "tool_use":
        return f"the call {block['name']}"
    text = block.get("text", "")
    if text.startswith("<state path="):
        return f"the state of {json.loads(text.partition('=')[2].partition(' ')[0])}"
    return f"the {block['type']} that begins {text[:_SHOWN_CHARS]!r}"


def _flat(block: Json) -> str:
    text = str(block.get("text") or block.get("content") or block.get("input") or block)
    return text.partition("\n")[2] if text.startswith("<state path=") else text


def _texts(old: str, new: str) -> str:
    """The first place where two texts part."""
    place = next((index for index, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    line = old.count("\n", 0, place) + 1
    start = max(0, place - 20)
    return (
        f"at line {line} it said {old[start : start + _SHOWN_CHARS]!r} and says {new[start : start + _SHOWN_CHARS]!r}"
    )


def _changed_tools(old: Sequence[Json], new: Sequence[Json]) -> str:
    before, after = ({tool["name"]: tool for tool in tools} for tools in (old, new))
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return ", ".join(names) or "their order"


def _turns(blocks: Sequence[Block]) -> Iterator[_Turn]:
    request: tuple[int, Block] | None = None
    content: list[Content] = []
    for index, block in enumerate(blocks):
        if block.kind == "request":
            request, content = (index, block), []
        elif block.kind == "reply" and request is not None:
            yield _Turn(tuple(blocks[: request[0]]), request[1], tuple(content), block)
            request = None
        elif request is not None and (found := _content(block)) is not None:
            content.append(found)


def _content(block: Block) -> Content | None:
    if block.kind == "tool_use":
        return call_of(block)
    if block.kind == "text" and block.attrs.get("role") == "assistant":
        return text_of(block)
    if block.kind == "thinking":
        return thinking_of(block)
    return raw_of(block) if block.kind == "raw" else None


def _reply(turn: _Turn, model: str) -> Reply:
    facts: dict[str, Any] = turn.reply.attrs
    usage = Usage(*(facts.get(key, 0) for key in ("in", "out", "cache_read", "cache_write")))
    return Reply(turn.content, str(facts.get("stop", "end_turn")), usage, model)
