"""A transcript plays the model: its replies in order, while tools run for real.

It is the one fake model there is: demos, examples and tests use it. With ``strict`` the first request
that differs from the recorded one ends the replay, and the error names the part that differs.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tinyclaw.context.compiler import rebuild_request
from tinyclaw.context.wire import describe
from tinyclaw.errors import ModelError, PromptTooLong, ReplayError, StateError, UsageError
from tinyclaw.state.files import read
from tinyclaw.state.transcript.content import call_of, raw_of, text_of, thinking_of
from tinyclaw.state.transcript.fold import Conversation, usage_of
from tinyclaw.state.transcript.grammar import Block, parse
from tinyclaw.state.transcript.prefixes import PrefixStore
from tinyclaw.types import Content, Interrupt, Json, ModelEvent, Reply, Request, Text, TextDelta

_SHOWN_CHARS = 60


@dataclass(frozen=True)
class _Exchange:
    """One recorded exchange: the place of its request's record, the content of the reply, and the reply's record."""

    at: int
    content: tuple[Content, ...]
    reply: Block

    @property
    def small(self) -> str:
        """What a small question was for; "" for any other exchange."""
        what = str(self.reply.attrs.get("what", "")) if self.reply.kind == "side" else ""
        return what if what != "summary" else ""


class ReplayModel:
    """Plays the replies of the transcript ``path``. ``user_folder`` holds private parts of its prefixes.

    Raises: UsageError when there is no such transcript or it holds no reply; StateError when it cannot be read.
    """

    def __init__(self, path: Path, user_folder: Path, strict: bool = False) -> None:
        data = read(path).data
        if data is None:
            raise UsageError(f"{path}: there is no such transcript; name the file of a recorded session")
        parsed = parse(data, path.name)
        self.path = path
        self.strict = strict
        self.recorded_date = parsed.header.get("created", "")[:10]
        self._blocks = parsed.blocks
        self._exchanges = list(_exchanges(parsed.blocks))
        self._played = 0
        self._prefixes = PrefixStore(path.parent, user_folder)
        self._conversation = Conversation(load_image=self._load_image)
        self._folded = 0
        if not self._exchanges:
            raise UsageError(f"{path}: holds no reply of a model; replay needs a recorded session")

    @property
    def name(self) -> str:
        """The recorded model's id, so that a replayed request can equal the recorded one."""
        main = (each for each in self._exchanges if not each.small)
        return str(self._blocks[next(main, self._exchanges[0]).at].attrs.get("model", "replay"))

    def stream(self, request: Request, interrupt: Interrupt) -> Iterator[ModelEvent]:
        """The next recorded reply; see ``Model.stream``.

        Raises: ReplayError when the recording is at its end, or with ``strict`` when the request differs; PromptTooLong
            and ModelError where a recorded request was refused.
        """
        interrupt.check()
        self._pass_over(request)
        if self._played >= len(self._exchanges):
            raise ReplayError(
                f"{self.path.name} holds {len(self._exchanges)} replies, and one more was asked for; "
                "go on with a real model, or give the replay the recorded prompts in their order"
            )
        exchange = self._exchanges[self._played]
        if is_recorded_side := exchange.reply.kind == "side":
            if request.purpose is None:
                raise PromptTooLong("the recorded request was refused as too long")
        elif request.purpose is not None:
            raise ModelError("no such call beside the conversation is recorded here", kind="invalid")
        if self.strict and not is_recorded_side:
            self._compare(exchange, request)
        self._played += 1
        for block in exchange.content:
            if isinstance(block, Text):
                yield TextDelta(block.text)
        yield _reply(exchange, request.model)

    def _pass_over(self, request: Request) -> None:
        """Small questions are answered where they are recorded; elsewhere they are not asked, or go without an answer.

        Raises: ReplayError.
        """
        at = self._played
        while at < len(self._exchanges) and (asked := self._exchanges[at].small) and asked != request.purpose:
            at += 1
        if request.purpose not in (None, "summary") and (at == len(self._exchanges) or not self._exchanges[at].small):
            raise ReplayError(f"{self.path.name} holds no answer to this")
        self._played = at

    def _compare(self, exchange: _Exchange, request: Request) -> None:
        for block in self._blocks[self._folded : exchange.at]:
            self._conversation.append(block)
        self._folded = exchange.at
        number, name = self._played + 1, self._conversation.prefix
        prefix = self._prefixes.load(name)
        if prefix is None:
            raise ReplayError(
                f"request {number} cannot be compared: {self._prefixes.folder / name}.md is not there or was edited"
            )
        recorded = rebuild_request(self._conversation, prefix, self._blocks[exchange.at])
        difference = first_difference(recorded, request, [block.id for block in prefix.blocks])
        if difference:
            raise ReplayError(f"request {number} differs from the recorded one: {difference}")

    def _load_image(self, path: str, sha256: str) -> str | None:
        """A picture of the recorded session, which lies in the workspace around the transcript's folder."""
        try:
            data = read(self.path.parent.parent / path).data
        except StateError:
            return None
        return base64.b64encode(data).decode() if data and hashlib.sha256(data).hexdigest() == sha256 else None


def first_difference(recorded: Request, request: Request, system_names: Sequence[str]) -> str:
    """Where two requests differ first, in words, or "" when they are equal.

    ``system_names`` are the system blocks' sources.
    """
    for name in ("model", "max_tokens", "params"):
        if getattr(recorded, name) != getattr(request, name):
            return f"{name} was {getattr(recorded, name)!r} and is {getattr(request, name)!r}"
    if recorded.tools != request.tools:
        return f"the tools: {_changed_tools(recorded.tools, request.tools)}"
    if found := _system_difference(recorded.system, request.system, system_names):
        return found
    for index, (old, new) in enumerate(zip(recorded.messages, request.messages, strict=False)):
        if found := _message_difference(old, new):
            return f"message {index + 1}, {found}"
    if len(recorded.messages) != len(request.messages):
        return f"it has {len(request.messages)} messages and had {len(recorded.messages)}"
    return ""


def _system_difference(recorded: Sequence[Json], now: Sequence[Json], names: Sequence[str]) -> str:
    for old, new, name in zip(recorded, now, names, strict=False):
        if old["text"] != new["text"]:
            return f"the source {name}: {_texts(old['text'], new['text'])}"
    if len(now) < len(recorded):
        return f"the source {names[len(now)]} has nothing to say now"
    return f"{describe(now[len(recorded)])} is a new part of the prompt" if len(now) > len(recorded) else ""


def _message_difference(old: Json, new: Json) -> str:
    if old["role"] != new["role"]:
        return f"its role was {old['role']} and is {new['role']}"
    before, after = ([_unmarked(block) for block in message["content"]] for message in (old, new))
    for one, other in zip(before, after, strict=False):
        if one != other:
            return _block_difference(one, other)
    if len(before) > len(after):
        return f"{describe(before[len(after)])} is not there now"
    return f"{describe(after[len(before)])} is new" if len(after) > len(before) else ""


def _block_difference(old: Json, new: Json) -> str:
    was, now = describe(old), describe(new)
    if was.partition(" that begins ")[0] != now.partition(" that begins ")[0]:
        return f"{was} stood there, and now {now}"
    return f"{was}: {_texts(_flat(old), _flat(new)) or 'the text is the same, and another field differs'}"


def _unmarked(block: Json) -> Json:
    return {key: value for key, value in block.items() if key != "cache_control"}


def _flat(block: Json) -> str:
    text = str(block.get("text") or block.get("content") or block.get("input") or block)
    return text.partition("\n")[2] if text.startswith("<state path=") else text


def _texts(old: str, new: str) -> str:
    """The first place where two texts part; "" when they are equal."""
    if old == new:
        return ""
    place = next((index for index, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    line = old.count("\n", 0, place) + 1
    start = max(0, place - 20)
    before, after = (text[start : start + _SHOWN_CHARS] for text in (old, new))
    return f"at line {line} it said {before!r} and says {after!r}"


def _changed_tools(old: Sequence[Json], new: Sequence[Json]) -> str:
    before, after = ({tool["name"]: tool for tool in tools} for tools in (old, new))
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return ", ".join(names) or "their order"


def _exchanges(blocks: Sequence[Block]) -> Iterator[_Exchange]:
    request: int | None = None
    content: list[Content] = []
    for index, block in enumerate(blocks):
        if block.kind == "request":
            request, content = index, []
        elif block.kind == "side" and block.attrs.get("what") != "lost":
            yield _Exchange(index, (Text(block.text),) if block.text.strip() else (), block)
        elif block.kind == "reply" and request is not None:
            yield _Exchange(request, tuple(content), block)
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


def _reply(exchange: _Exchange, model: str) -> Reply:
    facts = exchange.reply.attrs
    return Reply(exchange.content, str(facts.get("stop", "end_turn")), usage_of(exchange.reply), model)
