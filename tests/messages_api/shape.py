"""Rules on the shape of a request: fields, types, roles. They hold before any other rule is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.messages_api.request import Placed, Received, inner_blocks

REQUIRED = {"model": str, "max_tokens": int, "messages": list}
OPTIONAL: dict[str, type | tuple[type, ...]] = {
    "cache_control": dict,
    "container": (str, dict),
    "diagnostics": dict,
    "inference_geo": str,
    "metadata": dict,
    "output_config": dict,
    "service_tier": str,
    "speed": str,
    "stop_sequences": list,
    "stream": bool,
    "system": (str, list),
    "temperature": (int, float),
    "thinking": dict,
    "tool_choice": dict,
    "tools": list,
    "top_k": int,
    "top_p": (int, float),
}
NOT_COUNTED = {"max_tokens", "stream", "stop_sequences", "metadata", "service_tier", "diagnostics", "container"}
"""Fields that count_tokens does not take."""


@dataclass(frozen=True)
class Shape:
    """Fields of a block type, and the role whose messages may hold it (both where empty)."""

    required: dict[str, type | tuple[type, ...]]
    optional: frozenset[str] = frozenset()
    role: str = ""


MARKABLE = frozenset({"cache_control"})
SHAPES = {
    "text": Shape({"text": str}, MARKABLE | {"citations"}),
    "image": Shape({"source": dict}, MARKABLE, "user"),
    "document": Shape({"source": dict}, MARKABLE | {"title", "context", "citations"}, "user"),
    "search_result": Shape({"source": str, "title": str, "content": list}, MARKABLE | {"citations"}, "user"),
    "tool_result": Shape({"tool_use_id": str}, MARKABLE | {"content", "is_error", "toolset_name"}, "user"),
    "tool_use": Shape({"id": str, "name": str, "input": dict}, MARKABLE | {"caller", "toolset_name"}, "assistant"),
    "thinking": Shape({"thinking": str, "signature": str}, role="assistant"),
    "redacted_thinking": Shape({"data": str}, role="assistant"),
}
SERVER_BLOCKS = (
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "container_upload",
)
"""Blocks of tools that run at the API: accepted from the assistant as they are."""
IN_RESULTS = {"text", "image", "document", "search_result"}


def required_fields_are_present(request: Received) -> Iterator[str]:
    for name in REQUIRED:
        if name not in request.body and not (request.counting and name in NOT_COUNTED):
            yield f"{name}: Field required"


def no_unknown_field(request: Received) -> Iterator[str]:
    known = {*REQUIRED, *OPTIONAL} - (NOT_COUNTED if request.counting else set())
    for name in request.body:
        if name not in known:
            yield f"{name}: Extra inputs are not permitted"


def fields_have_their_types(request: Received) -> Iterator[str]:
    for name, expected in {**REQUIRED, **OPTIONAL}.items():
        value = request.body.get(name)
        if name in request.body and not _is(value, expected) and not (value is None and name == "cache_control"):
            yield f"{name}: Input should be a valid {_name(expected)}"
    if request.body["model"] == "":
        yield "model: String should have at least 1 character"


def max_tokens_is_not_negative(request: Received) -> Iterator[str]:
    if request.body.get("max_tokens", 0) < 0:
        yield "max_tokens: Input should be greater than or equal to 0"


def messages_have_role_and_content(request: Received) -> Iterator[str]:
    if not request.body["messages"]:
        yield "messages: at least one message is required"
    for number, message in enumerate(request.body["messages"]):
        yield from _message_faults(f"messages.{number}", message)


def blocks_are_well_formed(request: Received) -> Iterator[str]:
    for placed in request.blocks:
        yield from _block_faults(placed)
        content = placed.block.get("content", "")
        if placed.block["type"] == "tool_result" and not isinstance(content, str | list):
            yield f"{placed.where}.tool_result.content: Input should be a valid string or list"
        for inner in inner_blocks(placed):
            yield from _block_faults(inner, IN_RESULTS)


def blocks_stand_in_their_role(request: Received) -> Iterator[str]:
    for where, role, block in request.blocks:
        kind = block["type"]
        expected = SHAPES[kind].role if kind in SHAPES else "assistant"
        if expected and role != expected:
            yield f"{where}: `{kind}` blocks can only be in `{expected}` messages"


def system_is_text(request: Received) -> Iterator[str]:
    for index, block in enumerate(request.system):
        if not isinstance(block, dict):
            yield f"system.{index}: Input should be a valid dictionary"
        else:
            yield from _block_faults(Placed(f"system.{index}", "system", block), {"text"})


def tools_are_well_formed(request: Received) -> Iterator[str]:
    for index, tool in enumerate(request.tools):
        if not isinstance(tool, dict):
            yield f"tools.{index}: Input should be a valid dictionary"
        elif not isinstance(tool.get("name"), str):
            yield f"tools.{index}.name: Field required"
        elif tool.get("type", "custom") == "custom":
            yield from _custom_tool_faults(f"tools.{index}.custom", tool)


SHAPE_RULES = [
    required_fields_are_present,
    no_unknown_field,
    fields_have_their_types,
    max_tokens_is_not_negative,
    messages_have_role_and_content,
    blocks_are_well_formed,
    blocks_stand_in_their_role,
    system_is_text,
    tools_are_well_formed,
]

_TOOL_FIELDS = {
    "allowed_callers",
    "cache_control",
    "defer_loading",
    "description",
    "eager_input_streaming",
    "input_examples",
    "input_schema",
    "name",
    "strict",
    "type",
}


def _message_faults(where: str, message: Any) -> Iterator[str]:
    if not isinstance(message, dict):
        yield f"{where}: Input should be a valid dictionary"
        return
    yield from (f"{where}.{name}: Extra inputs are not permitted" for name in message.keys() - {"role", "content"})
    yield from (f"{where}.{name}: Field required" for name in ("role", "content") if name not in message)
    if message.get("role") not in ("user", "assistant"):
        yield f"{where}.role: Input should be 'user' or 'assistant'"
    content = message.get("content")
    if not isinstance(content, str | list):
        yield f"{where}.content: Input should be a valid string or list"
    elif any(not isinstance(block, dict) or "type" not in block for block in content if isinstance(content, list)):
        yield f"{where}.content: Input should be a list of objects with a type"


def _block_faults(placed: Placed, allowed: set[str] | None = None) -> Iterator[str]:
    where, _, block = placed
    kind = block.get("type") if isinstance(block, dict) else None
    if allowed is None and kind in SERVER_BLOCKS:
        return
    shape = SHAPES.get(kind) if isinstance(kind, str) else None
    if shape is None or (allowed is not None and kind not in allowed):
        tags = ", ".join(sorted(allowed or {*SHAPES, *SERVER_BLOCKS}))
        yield f"{where}: Input tag {kind!r} found using 'type' does not match any of the expected tags: {tags}"
        return
    for name, expected in shape.required.items():
        if name not in block:
            yield f"{where}.{kind}.{name}: Field required"
        elif not _is(block[name], expected):
            yield f"{where}.{kind}.{name}: Input should be a valid {_name(expected)}"
    for name in block.keys() - shape.required.keys() - shape.optional - {"type"}:
        yield f"{where}.{kind}.{name}: Extra inputs are not permitted"


def _custom_tool_faults(where: str, tool: dict[str, Any]) -> Iterator[str]:
    for name in tool.keys() - _TOOL_FIELDS:
        yield f"{where}.{name}: Extra inputs are not permitted"
    if not isinstance(tool.get("description", ""), str):
        yield f"{where}.description: Input should be a valid string"
    if not isinstance(tool.get("input_schema"), dict):
        yield f"{where}.input_schema: Field required"


def _is(value: Any, expected: type | tuple[type, ...]) -> bool:
    return isinstance(value, expected) and not (isinstance(value, bool) and expected is not bool)


def _name(expected: type | tuple[type, ...]) -> str:
    names = {str: "string", int: "integer", list: "list", dict: "dictionary", bool: "boolean", float: "number"}
    kinds = expected if isinstance(expected, tuple) else (expected,)
    return " or ".join(names[kind] for kind in kinds)
