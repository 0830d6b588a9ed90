"""Each rule refuses the request that breaks it, with its message, and a good request passes them all."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.messages_api.cache import measure
from tests.messages_api.request import Received
from tests.messages_api.rules import RULES, first_fault
from tests.messages_api.signatures import Signatures, sign

Json = dict[str, Any]
Change = Callable[[Json], object]

MODEL = "claude-sonnet-5-5"
OLDER = "claude-haiku-4-5"
MARK = {"type": "ephemeral"}
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()


def good() -> Json:
    """Two parallel calls with thinking, their results (one an image, one an error), state text, marks, all options."""
    return {
        "model": MODEL,
        "max_tokens": 1000,
        "stream": True,
        "thinking": {"type": "adaptive"},
        "tool_choice": {"type": "auto"},
        "tools": [
            {"name": "read", "description": "Read.", "input_schema": {"type": "object", "properties": {}}},
            {"name": "bash", "input_schema": {"type": "object"}, "cache_control": MARK},
        ],
        "system": [{"type": "text", "text": "You are a test.", "cache_control": MARK}],
        "messages": [
            {"role": "user", "content": "Go."},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": sign(MODEL, "Hm.")},
                    {"type": "text", "text": "Reading."},
                    {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}},
                    {"type": "tool_use", "id": "t2", "name": "bash", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": [image(), text("a picture")]},
                    {"type": "tool_result", "tool_use_id": "t2", "content": "failed", "is_error": True},
                ],
            },
            {"role": "user", "content": [text("PLAN.md changed") | {"cache_control": MARK}]},
        ],
    }


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def image(media_type: str = "image/png", data: str = PNG) -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def fault_of(body: Json, *, counting: bool = False) -> str | None:
    return first_fault(Received(body, counting, Signatures().knows))


def content(body: Json, message: int, block: int) -> Json:
    found: Json = body["messages"][message]["content"][block]
    return found


def setting(name: str, value: object) -> Change:
    return lambda body: body.__setitem__(name, value)


def replacing_message(number: int, value: object) -> Change:
    return lambda body: body["messages"].__setitem__(number, value)


def changing(message: int, block: int, **fields: object) -> Change:
    return lambda body: content(body, message, block).update(fields)


def dropping(message: int, block: int) -> Change:
    return lambda body: body["messages"][message]["content"].pop(block)


def inserting(message: int, block: int, value: Json) -> Change:
    return lambda body: body["messages"][message]["content"].insert(block, value)


def both(*changes: Change) -> Change:
    return lambda body: [change(body) for change in changes]


def tool(index: int, **fields: object) -> Change:
    return lambda body: body["tools"][index].update(fields)


BREAKS: list[tuple[str, Change, str]] = [
    ("required_fields_are_present", lambda body: body.pop("model"), "model: Field required"),
    ("required_fields_are_present", lambda body: body.pop("max_tokens"), "max_tokens: Field required"),
    ("no_unknown_field", setting("manifest", {}), "manifest: Extra inputs are not permitted"),
    ("fields_have_their_types", setting("max_tokens", "9"), "max_tokens: Input should be a valid integer"),
    ("fields_have_their_types", setting("max_tokens", True), "max_tokens: Input should be a valid integer"),
    ("fields_have_their_types", setting("model", ""), "model: String should have at least 1 character"),
    ("max_tokens_is_not_negative", setting("max_tokens", -1), "max_tokens: Input should be greater than or equal to 0"),
    ("messages_have_role_and_content", setting("messages", []), "messages: at least one message is required"),
    (
        "messages_have_role_and_content",
        replacing_message(0, {"role": "system", "content": "x"}),
        "messages.0.role: Input should be 'user' or 'assistant'",
    ),
    (
        "messages_have_role_and_content",
        replacing_message(0, {"role": "user", "content": "x", "m": 1}),
        "messages.0.m: Extra inputs are not permitted",
    ),
    ("messages_have_role_and_content", replacing_message(0, {"role": "user"}), "messages.0.content: Field required"),
    (
        "blocks_are_well_formed",
        changing(1, 2, caller_id="x"),
        "messages.1.content.2.tool_use.caller_id: Extra inputs are not permitted",
    ),
    (
        "blocks_are_well_formed",
        changing(1, 2, input="{}"),
        "messages.1.content.2.tool_use.input: Input should be a valid dictionary",
    ),
    ("blocks_are_well_formed", changing(1, 1, type="state"), "messages.1.content.1: Input tag 'state' found"),
    (
        "blocks_are_well_formed",
        changing(1, 0, cache_control=MARK),
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
    ),
    (
        "blocks_are_well_formed",
        changing(2, 0, content=[{"type": "tool_use", "id": "t3", "name": "x", "input": {}}]),
        "messages.2.content.0.tool_result.content.0: Input tag 'tool_use' found",
    ),
    (
        "blocks_stand_in_their_role",
        inserting(3, 0, {"type": "thinking", "thinking": "x", "signature": "y"}),
        "messages.3.content.0: `thinking` blocks can only be in `assistant` messages",
    ),
    ("system_is_text", setting("system", [image()]), "system.0: Input tag 'image' found"),
    ("tools_are_well_formed", tool(0, effect="read"), "tools.0.custom.effect: Extra inputs are not permitted"),
    ("tools_are_well_formed", tool(0, input_schema=None), "tools.0.custom.input_schema: Field required"),
    (
        "first_message_is_the_users",
        lambda body: body["messages"].insert(0, {"role": "assistant", "content": "Hello."}),
        "messages: first message must use the `user` role",
    ),
    (
        "marks_are_well_formed",
        changing(3, 0, cache_control={"type": "ephemeral", "ttl": "2h"}),
        "messages.3.content.0.cache_control.ttl: Input should be '5m' or '1h'",
    ),
    (
        "at_most_four_marks",
        both(changing(2, 0, cache_control=MARK), changing(2, 1, cache_control=MARK)),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    (
        "no_mark_on_an_empty_block",
        changing(3, 0, text=""),
        "messages.3.content.0.text: cache_control cannot be set for empty text blocks",
    ),
    (
        "no_long_mark_after_a_short_one",
        changing(3, 0, cache_control={"type": "ephemeral", "ttl": "1h"}),
        "messages.3.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come after",
    ),
    (
        "no_message_is_empty",
        replacing_message(0, {"role": "user", "content": []}),
        "messages.0: all messages must have non-empty content except for the optional final assistant message",
    ),
    ("no_text_is_blank", changing(1, 1, text=""), "messages.1.content.1: text content blocks must be non-empty"),
    (
        "no_text_is_blank",
        changing(1, 1, text=" \n"),
        "messages.1.content.1: text content blocks must contain non-whitespace text",
    ),
    (
        "no_text_is_blank",
        changing(2, 0, content=[text("\t")]),
        "messages.2.content.0.tool_result.content.0: text content blocks must contain non-whitespace text",
    ),
    ("no_text_is_blank", setting("system", " "), "system.0: text content blocks must contain non-whitespace text"),
    (
        "no_text_is_blank",
        changing(2, 0, content=" "),
        "messages.2.content.0: text content blocks must contain non-whitespace text",
    ),
    (
        "no_error_result_is_empty",
        changing(2, 1, content=""),
        "messages.2.content.1.tool_result: content cannot be empty if `is_error` is true",
    ),
    (
        "tool_use_ids_match_the_pattern",
        both(changing(1, 2, id="t.1"), changing(2, 0, tool_use_id="t.1")),
        "messages.1.content.2.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    (
        "tool_use_names_match_the_pattern",
        changing(1, 2, name="read file"),
        "messages.1.content.2.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    ),
    ("tool_use_ids_are_unique", changing(1, 3, id="t1"), "messages: `tool_use` ids must be unique"),
    (
        "every_result_has_its_call",
        dropping(1, 3),
        "messages.2.content.1: unexpected `tool_use_id` found in `tool_result` blocks: t2.",
    ),
    (
        "every_call_is_answered_at_once",
        dropping(2, 1),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t2.",
    ),
    (
        "every_call_has_one_result",
        inserting(2, 1, {"type": "tool_result", "tool_use_id": "t1", "content": "again"}),
        "messages.2: each tool_use must have a single result. Found multiple `tool_result` blocks with id: t1",
    ),
    (
        "results_stand_first",
        inserting(2, 1, text("before the second")),
        "messages.2.content.2: `tool_result` blocks must come before any other content of their turn",
    ),
    (
        "thinking_stands_first",
        inserting(1, 0, text("I will think.")),
        "messages.1.content.0: If an assistant message contains any thinking blocks, the first block must be",
    ),
    (
        "thinking_is_unchanged",
        changing(1, 0, thinking="Hm!"),
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    (
        "thinking_is_unchanged",
        setting("model", "claude-opus-5-5"),
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    (
        "images_are_readable",
        changing(2, 0, content=[image("image/bmp")]),
        "messages.2.content.0.tool_result.content.0.image.source.base64.media_type: Input should be 'image/jpeg'",
    ),
    (
        "images_are_readable",
        changing(2, 0, content=[image(data="!!")]),
        "messages.2.content.0.tool_result.content.0.image.source.base64.data: Invalid base64 data",
    ),
    (
        "images_are_readable",
        changing(2, 0, content=[image("image/gif")]),
        "messages.2.content.0.tool_result.content.0.image.source.base64.data: Image does not match",
    ),
    (
        "images_are_readable",
        changing(2, 0, content=[image(data="A" * (5 * 1024 * 1024 + 4))]),
        "messages.2.content.0.tool_result.content.0.image.source.base64: image exceeds 5 MB maximum: 5242884 bytes",
    ),
    (
        "the_users_message_is_last",
        lambda body: body["messages"].append({"role": "assistant", "content": "So"}),
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    ),
    (
        "tool_names_match_the_pattern",
        tool(0, name="x" * 129),
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    ),
    ("tool_names_are_unique", tool(0, name="bash"), "tools: Tool names must be unique."),
    (
        "tool_schemas_are_objects",
        tool(0, input_schema={}),
        "tools.0.custom.input_schema.type: Input should be 'object'",
    ),
    (
        "tool_schemas_are_objects",
        tool(0, input_schema={"type": "object", "anyOf": []}),
        "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
    ),
    (
        "tool_choice_has_tools",
        lambda body: body.pop("tools"),
        "tool_choice: `tool_choice` may only be specified while providing `tools`",
    ),
    (
        "tool_choice_has_tools",
        setting("tool_choice", {"type": "tool", "name": "write"}),
        "tool_choice: Tool 'write' not found in provided tools",
    ),
    (
        "a_forced_tool_does_not_think",
        setting("tool_choice", {"type": "any"}),
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
    (
        "thinking_suits_the_model",
        setting("thinking", {"type": "enabled", "budget_tokens": 2000}),
        '"thinking.type.enabled" is not supported for this model.',
    ),
    ("thinking_suits_the_model", setting("thinking", {"type": "on"}), "thinking: Input tag 'on' does not match"),
    ("sampling_suits_the_model", setting("temperature", 0), "`temperature` is deprecated for this model."),
]


def test_a_good_request_passes():
    assert fault_of(good()) is None


@pytest.mark.parametrize(
    ("rule", "change", "message"), BREAKS, ids=[f"{rule}-{i}" for i, (rule, *_) in enumerate(BREAKS)]
)
def test_a_request_that_breaks_one_rule_is_refused_with_its_message(rule: str, change: Change, message: str):
    body = good()
    change(body)
    found = fault_of(body)
    assert found is not None
    assert found.startswith(message)
    broken = next(each.__name__ for each in RULES if list(each(Received(body, False, Signatures().knows))))
    assert broken == rule


def test_every_rule_has_a_request_that_breaks_it():
    assert {rule for rule, _, _ in BREAKS} == {rule.__name__ for rule in RULES}


def test_messages_of_one_role_in_a_row_count_as_one_turn():
    body = good()
    results = body["messages"][2]["content"]
    body["messages"][2:3] = [{"role": "user", "content": [result]} for result in results]
    assert fault_of(body) is None


def test_results_after_text_are_refused_across_messages_of_one_turn():
    body = good()
    body["messages"].insert(2, {"role": "user", "content": "hold on"})
    assert "must come before any other content" in str(fault_of(body))


def test_thinking_may_be_left_out():
    body = good()
    dropping(1, 0)(body)
    assert fault_of(body) is None


def test_known_pairs_of_thinking_are_accepted():
    body = good()
    changing(1, 0, thinking="Recorded.", signature="from elsewhere")(body)
    assert fault_of(body) == "messages.1.content.0: Invalid `signature` in `thinking` block"
    assert first_fault(Received(body, False, Signatures([("Recorded.", "from elsewhere")]).knows)) is None


def test_an_older_model_takes_prefill_sampling_and_a_thinking_budget():
    body = good()
    dropping(1, 0)(body)
    body |= {
        "model": OLDER,
        "max_tokens": 3000,
        "temperature": 0,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
    }
    body["messages"].append({"role": "assistant", "content": "So"})
    assert fault_of(body) is None
    body["messages"][-1]["content"] = "So "
    assert fault_of(body) == "messages: final assistant content cannot end with trailing whitespace"
    body["max_tokens"] = 1500
    assert "budget_tokens" in str(fault_of(body))


def test_the_automatic_mark_counts_as_one():
    body = good() | {"cache_control": MARK}
    assert fault_of(body) is None
    changing(2, 0, cache_control=MARK)(body)
    assert fault_of(body) == "A maximum of 4 blocks with cache_control may be provided. Found 5."


def test_counting_takes_neither_max_tokens_nor_stream():
    body = good()
    assert fault_of(body, counting=True) == "max_tokens: Extra inputs are not permitted"
    del body["max_tokens"], body["stream"]
    assert fault_of(body, counting=True) is None


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just([]) | st.just({}),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "text", "content"]), inner),
    max_leaves=4,
)


@given(data=st.data())
def test_no_body_however_broken_makes_the_server_fail(data: st.DataObject):
    body = copy.deepcopy(good())
    holder: Any = body
    for _ in range(data.draw(st.integers(0, 6))):
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            break
        key = data.draw(st.sampled_from(keys))
        if not isinstance(holder[key], dict | list):
            break
        holder = holder[key]
    keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    if keys:
        holder[data.draw(st.sampled_from(keys))] = data.draw(JUNK)
    assert fault_of(body) or measure(body).tokens > 0
