"""A message as server-sent events, and the events as pieces that fall where they like.

https://platform.claude.com/docs/en/build-with-claude/streaming
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

DELTAS = 6
"""About so many deltas carry a text or the arguments of a call."""


def stream_events(message: Json) -> list[bytes]:
    """All events of a complete message, in order, each with its blank line."""
    usage = message["usage"]
    opening = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
    opening["usage"] = {**usage, "output_tokens": 1}
    events = [event("message_start", message=opening), event("ping")]
    for index, block in enumerate(message["content"]):
        events += _block_events(index, block)
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"]}
    events.append(event("message_delta", delta=ending, usage=usage))
    events.append(event("message_stop"))
    return events


def event(kind: str, **fields: Any) -> bytes:
    """One server-sent event."""
    data = json.dumps({"type": kind, **fields}, ensure_ascii=False, separators=(",", ":"))
    return f"event: {kind}\ndata: {data}\n\n".encode()


def pieces(data: bytes) -> Iterator[bytes]:
    """The bytes in about a dozen pieces, none of which ends where an event ends, save the last."""
    size = max(97, len(data) // 12)
    start = 0
    while start < len(data):
        end = start + size
        while end < len(data) and data[end - 1 : end] == b"\n":
            end += 1
        yield data[start:end]
        start = end


def _block_events(index: int, block: Json) -> list[bytes]:
    opening, deltas = _opened(block)
    return [
        event("content_block_start", index=index, content_block=opening),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    ]


def _opened(block: Json) -> tuple[Json, list[Json]]:
    """The block as it starts, and the deltas that fill it. A type that does not stream comes whole."""
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": part} for part in _parts(block["text"])]
    if block["type"] == "tool_use":
        arguments = json.dumps(block["input"], ensure_ascii=False) if block["input"] else ""
        parts = ["", *_parts(arguments)]  # the API itself begins with an empty one, and sends no more for {}
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in parts]
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": part} for part in _parts(block["thinking"])]
        signature = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*deltas, signature]
    return block, []


def _parts(text: str) -> list[str]:
    size = max(3, len(text) // DELTAS)
    return [text[start : start + size] for start in range(0, len(text), size)]
