"""Messages to blocks: how each kind of content stands in the transcript, and how it is read back.

The body is the wire text: nothing is formatted here that ``from_block`` would have to guess.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from tinyclaw.state.transcript.block import OUTSIDE, Block, heading
from tinyclaw.state.transcript.bodies import fits_fence, to_json
from tinyclaw.types import Content, Json, Raw, Role, Text, Thinking, ToolUse

SPEAKERS: dict[Role, str] = {"user": "You", "assistant": "tinyclaw"}


def text_hash(text: str) -> str:
    """The hash that says whether a text is still the one that was signed or stored."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def user_text(text: str, message: int, at: str, *, opens_turn: bool = True) -> Block:
    """What the person said; the first of a turn carries the checkbox that keeps it in the conversation."""
    facts: Json = {"m": message, "role": "user", "at": at}
    return Block("text", facts, text, heading=heading(2, SPEAKERS["user"]), box=True if opens_turn else None)


def reply_block(content: Content, message: int, model: str, headline: str = "") -> Block:
    """One content block of the model's message ``message``; ``headline`` names a call for its heading."""
    if isinstance(content, ToolUse):
        return _call_block(content, message, headline or content.name)
    if isinstance(content, Thinking):
        facts: Json = {
            "m": message,
            "model": model,
            "signature": content.signature,
            "sha256": text_hash(content.thinking),
        }
        return Block("thinking", _with_extra(facts, content.extra), content.thinking, heading="### thinking")
    if isinstance(content, Text):
        facts = _with_extra({"m": message, "role": "assistant"}, content.extra)
        return Block("text", facts, content.text, heading=heading(2, SPEAKERS["assistant"]))
    if isinstance(content, Raw):
        text = to_json(content.data)
        facts = {"m": message, "role": "assistant", "model": model, "sha256": text_hash(text)}
        return Block("raw", facts, text, heading=heading(3, str(content.data.get("type", "block"))))
    raise TypeError(f"a reply cannot hold {type(content).__name__}")


def result_block(call: str, message: int, text: str, *, name: str, is_error: bool = False, **facts: Any) -> Block:
    """The answer to the call with id ``call``. ``facts`` are kept when they are not empty (ms, revisions).

    ``allowed`` is kept when it is not None: an empty list allows nothing.
    """
    kept = {key: value for key, value in facts.items() if value or (key == "allowed" and value is not None)}
    error = {"is_error": True} if is_error else {}
    return Block(
        "tool_result", {"m": message, "id": call, **error, **kept}, text, heading=heading(3, f"result of {name}")
    )


def image_block(call: str, message: int, path: str, media_type: str, sha256: str) -> Block:
    """A picture of the result of ``call``; the bytes lie in the file ``path``."""
    return Block("image", {"m": message, "id": call, "file": path, "media_type": media_type, "sha256": sha256})


def arguments_of(block: Block) -> Json | None:
    """The arguments in a ``tool_use`` block; None where a person made something else of them than a JSON object."""
    try:
        arguments = json.loads(block.text)
        json.dumps(arguments, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    if not isinstance(arguments, dict):
        return None
    pointers = block.attrs.get("args")
    for pointer, text in zip(pointers if isinstance(pointers, list) else (), block.parts[1:], strict=False):
        _put(arguments, str(pointer), text)
    return arguments


def call_of(block: Block) -> ToolUse:
    """The call in a ``tool_use`` block; arguments that a person broke come out as an empty object."""
    name, identity = block.attrs.get("name"), block.attrs.get("id")
    return ToolUse(str(identity or ""), str(name or "unknown"), arguments_of(block) or {}, _extra(block))


def text_of(block: Block) -> Text:
    return Text(block.text, _extra(block))


def thinking_of(block: Block) -> Thinking | None:
    """The signed thinking, or None when its text is no longer the one that was signed."""
    signature = block.attrs.get("signature")
    if not isinstance(signature, str) or not signature or block.attrs.get("sha256") != text_hash(block.text):
        return None
    return Thinking(block.text, signature, _extra(block))


def raw_of(block: Block) -> Raw | None:
    """The block as the API sent it, or None when a person edited it."""
    if block.attrs.get("sha256") != text_hash(block.text):
        return None
    try:
        data = json.loads(block.text)
    except (ValueError, RecursionError):
        return None
    return Raw(data) if isinstance(data, dict) and isinstance(data.get("type"), str) else None


def _call_block(call: ToolUse, message: int, headline: str) -> Block:
    pointers: list[str] = []
    texts: list[str] = []
    shown = _take_long_texts(call.input, "", pointers, texts)
    facts: Json = {"m": message, "id": call.id, "name": call.name}
    if pointers:
        facts["args"] = pointers
    return Block("tool_use", _with_extra(facts, call.extra), to_json(shown), *texts, heading=heading(3, headline))


def _take_long_texts(value: Any, pointer: str, pointers: list[str], texts: list[str]) -> Any:
    """``value`` with null in the place of every multi-line string that a fence can carry (RFC 6901 pointers)."""
    if isinstance(value, dict):
        return {
            key: _take_long_texts(item, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", pointers, texts)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_take_long_texts(item, f"{pointer}/{index}", pointers, texts) for index, item in enumerate(value)]
    if isinstance(value, str) and "\n" in value and fits_fence(value):
        pointers.append(pointer)
        texts.append(value)
        return None
    return value


def _put(target: Any, pointer: str, text: str) -> None:
    """Set the string at ``pointer``; a pointer into nowhere, made by hand, sets nothing."""
    if not pointer.startswith("/"):
        return
    *parents, last = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    for step in parents:
        target = _step(target, step)
    if isinstance(target, dict):
        target[last] = text
    elif isinstance(target, list) and last.isdecimal() and int(last) < len(target):
        target[int(last)] = text


def _step(target: Any, step: str) -> Any:
    if isinstance(target, dict):
        return target.get(step)
    if isinstance(target, list) and step.isdecimal() and int(step) < len(target):
        return target[int(step)]
    return None


def _with_extra(facts: Json, extra: Json) -> Json:
    return {**facts, "extra": extra, "extra_sha256": text_hash(to_json(extra))} if extra else facts


def _extra(block: Block) -> Json:
    """The fields that the API sent with a block and we do not know; what a person made of them may not go back."""
    extra = block.attrs.get("extra")
    is_whole = isinstance(extra, dict) and block.attrs.get("extra_sha256") == text_hash(to_json(extra))
    return extra if isinstance(extra, dict) and is_whole else {}


def is_persons(block: Block) -> bool:
    """Whether a block is what the person said: a text with a box of its own, or one that stands outside blocks."""
    return block.kind == OUTSIDE or (block.kind == "text" and block.box is not None)
