"""Rules on what stands beside the conversation: cache marks, tools, thinking, sampling."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.messages_api.request import TOOL_NAME, Placed, Received, Rule

MAXIMUM_MARKS = 4


def marks_are_well_formed(request: Received) -> Iterator[str]:
    for where, _, block in _marked(request):
        mark = block["cache_control"]
        if not isinstance(mark, dict) or mark.get("type") != "ephemeral" or mark.keys() - {"type", "ttl"}:
            yield f"{where}.cache_control: Input should be an object of type 'ephemeral' with an optional ttl"
        elif mark.get("ttl", "5m") not in ("5m", "1h"):
            yield f"{where}.cache_control.ttl: Input should be '5m' or '1h'"


def at_most_four_marks(request: Received) -> Iterator[str]:
    found = len(list(_marked(request)))
    if found > MAXIMUM_MARKS:
        yield f"A maximum of {MAXIMUM_MARKS} blocks with cache_control may be provided. Found {found}."


def no_mark_on_an_empty_block(request: Received) -> Iterator[str]:
    for where, _, block in _marked(request):
        if block.get("type") == "text" and not block["text"].strip():
            yield f"{where}.text: cache_control cannot be set for empty text blocks"


def no_long_mark_after_a_short_one(request: Received) -> Iterator[str]:
    short_seen = False
    for where, _, block in _marked(request):
        long = block["cache_control"].get("ttl") == "1h"
        if long and short_seen:
            yield (
                f"{where}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
                "cache_control block. Note that blocks are processed in the following order: `tools`, `system`, "
                "`messages`."
            )
        short_seen = short_seen or not long


def tool_names_match_the_pattern(request: Received) -> Iterator[str]:
    for index, tool in enumerate(request.tools):
        if not re.fullmatch(TOOL_NAME, tool["name"]):
            yield f"tools.{index}.custom.name: String should match pattern '{TOOL_NAME}'"


def tool_names_are_unique(request: Received) -> Iterator[str]:
    names = [tool["name"] for tool in request.tools]
    if len(set(names)) < len(names):
        yield "tools: Tool names must be unique."


def tool_schemas_are_objects(request: Received) -> Iterator[str]:
    for index, tool in enumerate(request.tools):
        schema = tool.get("input_schema", {"type": "object"})
        where = f"tools.{index}.custom.input_schema"
        if schema.get("type") != "object":
            yield f"{where}.type: Input should be 'object'"
        if schema.keys() & {"oneOf", "allOf", "anyOf"}:
            yield f"{where}: input_schema does not support oneOf, allOf, or anyOf at the top level"


def tool_choice_has_tools(request: Received) -> Iterator[str]:
    choice = request.body.get("tool_choice")
    if choice is None:
        return
    if not request.tools:
        yield "tool_choice: `tool_choice` may only be specified while providing `tools`"
    elif choice.get("type") not in ("auto", "any", "tool", "none"):
        yield f"tool_choice: Input tag {choice.get('type')!r} does not match 'auto', 'any', 'tool' or 'none'"
    elif choice["type"] == "tool" and choice.get("name") not in [tool["name"] for tool in request.tools]:
        yield f"tool_choice: Tool '{choice.get('name')}' not found in provided tools"


def a_forced_tool_does_not_think(request: Received) -> Iterator[str]:
    forced = (request.body.get("tool_choice") or {}).get("type") in ("any", "tool")
    if forced and request.thinking_type != "disabled":
        yield "Thinking may not be enabled when tool_choice forces tool use."


def thinking_suits_the_model(request: Received) -> Iterator[str]:
    thinking = request.body.get("thinking") or {"type": "disabled"}
    kind = thinking.get("type")
    if kind not in ("adaptive", "enabled", "disabled", "between_tools"):
        yield f"thinking: Input tag {kind!r} does not match 'adaptive', 'enabled', 'disabled' or 'between_tools'"
    elif kind != "enabled":
        for name in thinking.keys() - {"type", "display"}:
            yield f"thinking.{kind}.{name}: Extra inputs are not permitted"
    elif not request.takes_old_options:
        yield (
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
            '"output_config.effort" to control thinking behavior.'
        )
    elif not 1024 <= thinking.get("budget_tokens", 0) < request.body.get("max_tokens", 1 << 31):
        yield "thinking.enabled.budget_tokens: must be at least 1024 and less than `max_tokens`"


def sampling_suits_the_model(request: Received) -> Iterator[str]:
    for name in ("temperature", "top_p", "top_k"):
        if name in request.body and not request.takes_old_options:
            yield f"`{name}` is deprecated for this model."


OPTION_RULES: list[Rule] = [
    marks_are_well_formed,
    at_most_four_marks,
    no_mark_on_an_empty_block,
    no_long_mark_after_a_short_one,
    tool_names_match_the_pattern,
    tool_names_are_unique,
    tool_schemas_are_objects,
    tool_choice_has_tools,
    a_forced_tool_does_not_think,
    thinking_suits_the_model,
    sampling_suits_the_model,
]


def _marked(request: Received) -> Iterator[Placed]:
    """Everything that carries a mark, in cache order; the automatic mark of the whole request comes last."""
    for index, tool in enumerate(request.tools):
        if tool.get("cache_control") is not None:
            yield Placed(f"tools.{index}", "tools", tool)
    for placed in (*request.placed_system, *request.all_blocks, Placed("request", "request", request.body)):
        if placed.block.get("cache_control") is not None:
            yield placed
