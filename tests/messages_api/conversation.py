"""Rules on the conversation: who speaks, what is blank, calls and their results, thinking, images."""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterator

from tests.messages_api.request import TOOL_NAME, Json, Received, Rule

MAXIMUM_IMAGE_BYTES = 5 * 1024 * 1024
TOOL_USE_ID = "^[a-zA-Z0-9_-]+$"
IMAGE_TYPES = {
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
THINKING = ("thinking", "redacted_thinking")


def first_message_is_the_users(request: Received) -> Iterator[str]:
    if request.turns[0].role != "user":
        yield "messages: first message must use the `user` role"


def no_message_is_empty(request: Received) -> Iterator[str]:
    last = len(request.body["messages"]) - 1
    for number, message in enumerate(request.body["messages"]):
        if not message["content"] and not (number == last and message["role"] == "assistant"):
            yield f"messages.{number}: all messages must have non-empty content except for the optional final " + (
                "assistant message"
            )


def no_error_result_is_empty(request: Received) -> Iterator[str]:
    for where, _, block in request.blocks:
        if block["type"] == "tool_result" and block.get("is_error") and not block.get("content"):
            yield f"{where}.tool_result: content cannot be empty if `is_error` is true"


def no_text_is_blank(request: Received) -> Iterator[str]:
    for placed in (*request.placed_system, *request.all_blocks):
        for text in _texts(placed.block):
            if not text:
                yield f"{placed.where}: text content blocks must be non-empty"
            elif text.isspace():
                yield f"{placed.where}: text content blocks must contain non-whitespace text"


def tool_use_ids_match_the_pattern(request: Received) -> Iterator[str]:
    for where, _, block in request.blocks:
        for field in {"tool_use": ["id"], "tool_result": ["tool_use_id"]}.get(block["type"], ()):
            if not re.fullmatch(TOOL_USE_ID, block[field]):
                yield f"{where}.{block['type']}.{field}: String should match pattern '{TOOL_USE_ID}'"


def tool_use_names_match_the_pattern(request: Received) -> Iterator[str]:
    for where, _, block in request.blocks:
        if block["type"] == "tool_use" and not re.fullmatch(TOOL_NAME, block["name"]):
            yield f"{where}.tool_use.name: String should match pattern '{TOOL_NAME}'"


def tool_use_ids_are_unique(request: Received) -> Iterator[str]:
    ids = Counter(block["id"] for _, _, block in request.blocks if block["type"] == "tool_use")
    if ids and max(ids.values()) > 1:
        yield "messages: `tool_use` ids must be unique"


def every_result_has_its_call(request: Received) -> Iterator[str]:
    calls: set[str] = set()
    for turn in request.turns:
        for where, _, block in turn.of_type("tool_result"):
            if block["tool_use_id"] not in calls:
                yield (
                    f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {block['tool_use_id']}. Each "
                    "`tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
        calls = {placed.block["id"] for placed in turn.of_type("tool_use")}


def every_call_is_answered_at_once(request: Received) -> Iterator[str]:
    for turn, answer in zip(request.turns, [*request.turns[1:], None], strict=True):
        answered = {placed.block["tool_use_id"] for placed in answer.of_type("tool_result")} if answer else set()
        missing = [call.block["id"] for call in turn.of_type("tool_use") if call.block["id"] not in answered]
        if missing:
            yield (
                f"{turn.where}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message."
            )


def every_call_has_one_result(request: Received) -> Iterator[str]:
    for turn in request.turns:
        for id, count in Counter(placed.block["tool_use_id"] for placed in turn.of_type("tool_result")).items():
            if count > 1:
                yield (
                    f"{turn.where}: each tool_use must have a single result. Found multiple `tool_result` blocks "
                    f"with id: {id}"
                )


def results_stand_first(request: Received) -> Iterator[str]:
    for turn in request.turns:
        others = False
        for where, _, block in turn.blocks:
            if block["type"] == "tool_result" and others:
                yield f"{where}: `tool_result` blocks must come before any other content of their turn"
            others = others or block["type"] != "tool_result"


def thinking_stands_first(request: Received) -> Iterator[str]:
    for turn in request.turns:
        kinds = [placed.block["type"] for placed in turn.blocks]
        if any(kind in THINKING for kind in kinds) and kinds[0] not in THINKING:
            yield (
                f"{turn.blocks[0].where}: If an assistant message contains any thinking blocks, the first block must "
                f"be `thinking` or `redacted_thinking`. Found `{kinds[0]}`."
            )


def thinking_is_unchanged(request: Received) -> Iterator[str]:
    for where, _, block in request.blocks:
        if block["type"] == "thinking" and not request.knows_thinking(
            request.body["model"], block["thinking"], block["signature"]
        ):
            yield f"{where}: Invalid `signature` in `thinking` block"


def images_are_readable(request: Received) -> Iterator[str]:
    for where, _, block in request.all_blocks:
        if block["type"] == "image" and block["source"].get("type") == "base64":
            yield from _image_faults(f"{where}.image.source.base64", block["source"])


def the_users_message_is_last(request: Received) -> Iterator[str]:
    last = request.turns[-1]
    if last.role == "user":
        return
    if not request.takes_old_options:
        yield ("This model does not support assistant message prefill. The conversation must end with a user message.")
    elif last.blocks and last.blocks[-1].block.get("text", "x")[-1:].isspace():
        yield "messages: final assistant content cannot end with trailing whitespace"


CONVERSATION_RULES: list[Rule] = [
    first_message_is_the_users,
    no_message_is_empty,
    no_error_result_is_empty,
    no_text_is_blank,
    tool_use_ids_match_the_pattern,
    tool_use_names_match_the_pattern,
    tool_use_ids_are_unique,
    every_result_has_its_call,
    every_call_is_answered_at_once,
    every_call_has_one_result,
    results_stand_first,
    thinking_stands_first,
    thinking_is_unchanged,
    images_are_readable,
    the_users_message_is_last,
]


def _texts(block: Json) -> Iterator[str]:
    if block["type"] == "text":
        yield block["text"]
    if block["type"] == "tool_result" and isinstance(block.get("content"), str):
        yield block["content"]


def _image_faults(where: str, source: Json) -> Iterator[str]:
    media_type, data = source.get("media_type"), source.get("data")
    if media_type not in IMAGE_TYPES:
        yield f"{where}.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
    elif not isinstance(data, str) or not data:
        yield f"{where}.data: Field required"
    elif len(data) > MAXIMUM_IMAGE_BYTES:
        yield f"{where}: image exceeds 5 MB maximum: {len(data)} bytes > {MAXIMUM_IMAGE_BYTES} bytes"
    else:
        yield from _image_data_faults(where, data, IMAGE_TYPES[media_type], media_type)


def _image_data_faults(where: str, data: str, signatures: tuple[bytes, ...], media_type: str) -> Iterator[str]:
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        yield f"{where}.data: Invalid base64 data"
        return
    if not decoded.startswith(signatures):
        yield f"{where}.data: Image does not match the provided media type {media_type}"
