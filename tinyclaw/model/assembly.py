"""From the raw events of a stream to one complete ``Reply``.

Blocks grow in wire form, so that fields and block types that we do not know survive and can be sent
back. Nothing incomplete gets out: ``reply`` raises unless every block was closed, every call's
arguments are a JSON object, and the message was ended by the server.

Events: https://platform.claude.com/docs/en/build-with-claude/streaming
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from tinyclaw.errors import ModelError
from tinyclaw.types import Content, Json, Raw, Reply, Text, TextDelta, Thinking, ThinkingDelta, ToolUse, Usage

CUT_ARGUMENTS = "cut_by_output_limit"
"""Sole key of a call's input when the output limit fell inside its arguments: their first characters follow."""

_SHOWN_CHARACTERS = 500
_CHARACTERS_PER_TOKEN = 3
_VALID_ID = re.compile(r"[a-zA-Z0-9_-]+")
_LIMITS = frozenset({"max_tokens", "model_context_window_exceeded"})
_USAGE_KEYS = frozenset(
    {"input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"},
)


class Assembly:
    """One message in the making.

    Args:
        model: the id to note when the server names none.
        taken_ids: ids of calls that the conversation already holds; the API refuses a second use.
    """

    def __init__(self, model: str, taken_ids: Iterable[str] = ()) -> None:
        self._message: Json = {"model": model}
        self._usage: Json = {}
        self._blocks: dict[int, Json] = {}
        self._arguments: dict[int, str] = {}
        self._closed: set[int] = set()
        self._taken = set(taken_ids)
        self.is_complete = False

    def add(self, event: object) -> TextDelta | ThinkingDelta | None:
        """Take one event; what it shows of text or thinking comes back.

        Raises: ModelError for an event that is not the Messages API's.
        """
        try:
            return self._take(event)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            shown = str(event)[:200]
            raise ModelError(
                f"the server sent an event that the Messages API has not: {shown}", kind="server"
            ) from error

    def reply(self) -> Reply:
        """The message.

        Raises: ModelError of kind ``cut`` when something of it is missing.
        """
        if not self.is_complete:
            _cut("the stream ended before the message did")
        stop_reason = self._message.pop("stop_reason", None)
        if not isinstance(stop_reason, str):
            _cut("the message came without a stop reason")
        for index in self._blocks.keys() - self._closed:
            _cut(f"block {index} of the message was never closed")
        for index, text in self._arguments.items():
            self._blocks[index]["input"] = _arguments(text, stop_reason)
        content = [self._content(self._blocks[index]) for index in sorted(self._blocks)]
        model = str(self._message.pop("model"))
        kept = tuple(block for block in content if not (isinstance(block, Text) and not block.text.strip()))
        return Reply(kept, stop_reason, _usage(self._usage), model, self._extra())

    @property
    def lost(self) -> Usage | None:
        """What is billed of a message that broke off, None before it began. The answer's tokens are estimated.

        They are reported at a message's end only (https://platform.claude.com/docs/en/build-with-claude/streaming).
        """
        if not self._usage:
            return None
        told = _usage(self._usage)
        texts = (str(block.get("text") or block.get("thinking") or "") for block in self._blocks.values())
        came = sum(map(len, (*texts, *self._arguments.values()))) // _CHARACTERS_PER_TOKEN
        return Usage(told.input, max(told.output, came), told.cache_read, told.cache_write)

    def _take(self, event: Any) -> TextDelta | ThinkingDelta | None:
        match event["type"]:
            case "message_start":
                self._message |= {k: v for k, v in event["message"].items() if v is not None}
                self._usage |= _present(self._message.pop("usage", {}))
            case "content_block_start":
                self._blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                return self._grow(event["index"], event["delta"])
            case "content_block_stop":
                self._closed.add(event["index"])
            case "message_delta":
                self._message |= _present(event["delta"])
                self._usage |= _present(event.get("usage") or {})  # totals, not increments
            case "message_stop":
                self.is_complete = True
        return None  # other types are to be ignored: the API may add some

    def _grow(self, index: int, delta: Json) -> TextDelta | ThinkingDelta | None:
        block = self._blocks[index]
        match delta["type"]:
            case "text_delta":
                block["text"] += delta["text"]
                return TextDelta(delta["text"])
            case "thinking_delta":
                block["thinking"] += delta["thinking"]
                return ThinkingDelta(delta["thinking"])
            case "input_json_delta":
                self._arguments[index] = self._arguments.get(index, "") + delta["partial_json"]
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta["citation"]]
            case "signature_delta":
                block["signature"] = delta["signature"]
            case _:
                _merge(block, delta)
        return None

    def _content(self, block: Json) -> Content:
        fields = {key: value for key, value in block.items() if key != "type"}
        match block.get("type"):
            case "text":
                return Text(str(fields.pop("text", "")), _present(fields))
            case "thinking":
                return Thinking(
                    str(fields.pop("thinking", "")), str(fields.pop("signature", "") or ""), _present(fields)
                )
            case "tool_use":
                id_, name, arguments = fields.pop("id", ""), fields.pop("name", ""), fields.pop("input", {})
                if not isinstance(arguments, dict):
                    _cut(f"the arguments of {name} are not a JSON object")
                return ToolUse(self._new_id(str(id_ or "")), str(name), arguments, _present(fields))
            case _:
                return Raw(block)

    def _new_id(self, id_: str) -> str:
        """The id itself where it is valid and new in the conversation, otherwise one like it that is."""
        base = new = "_".join(_VALID_ID.findall(id_)) or "toolu"
        number = 1
        while new in self._taken:
            number += 1
            new = f"{base}_{number}"
        self._taken.add(new)
        return new

    def _extra(self) -> Json:
        known = ("type", "role", "content")
        extra = {key: value for key, value in self._message.items() if key not in known}
        usage = {key: value for key, value in self._usage.items() if key not in _USAGE_KEYS}
        return {**extra, "usage": usage} if usage else extra


def _present(fields: Json) -> Json:
    return {key: value for key, value in fields.items() if value is not None}


def _merge(block: Json, delta: Json) -> None:
    """Grow a block by a delta that we do not know: strings and lists go on, anything else replaces."""
    for key, value in delta.items():
        if key == "type":
            continue
        old = block.get(key)
        if isinstance(value, str) and isinstance(old, str):
            block[key] = old + value
        elif isinstance(value, list) and isinstance(old, list):
            block[key] = [*old, *value]
        else:
            block[key] = value


def _arguments(text: str, stop_reason: str) -> Json:
    """Parse a call's arguments. No text at all is the API's form of ``{}``.

    Where the output limit cut them, the call stays answerable: its input says so, and no tool takes it.
    """
    try:
        arguments = json.loads(text or "{}", parse_constant=_no_constant)
    except (ValueError, RecursionError):
        if stop_reason in _LIMITS:
            return {CUT_ARGUMENTS: f"{text[:_SHOWN_CHARACTERS]} [{len(text)} characters in all]"}
        _cut("the arguments of a tool call are not complete JSON")
    if not isinstance(arguments, dict):
        _cut("the arguments of a tool call are not a JSON object")
    return arguments


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _cut(what: str) -> NoReturn:
    raise ModelError(f"{what}; nothing of it was used", kind="cut")


def _usage(fields: Json) -> Usage:
    return Usage(
        input=int(fields.get("input_tokens", 0)),
        output=int(fields.get("output_tokens", 0)),
        cache_read=int(fields.get("cache_read_input_tokens", 0)),
        cache_write=int(fields.get("cache_creation_input_tokens", 0)),
    )
