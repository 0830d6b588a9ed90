import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.messages_api import stream_events
from tinyclaw.errors import ModelError
from tinyclaw.model.assembly import CUT_ARGUMENTS, Assembly
from tinyclaw.types import Raw, Reply, Text, TextDelta, Thinking, ThinkingDelta, ToolUse, Usage

USAGE = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2}
STOP = {"type": "message_stop"}


def message(*content, stop_reason="tool_use", **fields):
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": list(content),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": USAGE,
        **fields,
    }


def events_of(*content, **fields):
    return [json.loads(event.split(b"data: ")[1]) for event in stream_events(message(*content, **fields))]


def assemble(events, taken=()) -> Reply:
    assembly = Assembly("asked-for", taken)
    for event in events:
        assembly.add(event)
    return assembly.reply()


def call(id_, arguments, name="read", **fields):
    return {"type": "tool_use", "id": id_, "name": name, "input": arguments, **fields}


def raw_call(*pieces, stop_reason="tool_use"):
    """The events of one call whose arguments arrive as these pieces."""
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}
        for piece in pieces
    ]
    return [
        {"type": "message_start", "message": message()},
        {"type": "content_block_start", "index": 0, "content_block": call("toolu_1", {})},
        *deltas,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": {"output_tokens": 9}},
        STOP,
    ]


def test_a_message_becomes_typed_blocks_with_its_usage():
    reply = assemble(
        events_of(
            {"type": "thinking", "thinking": "Let me see.", "signature": "sig=="},
            {"type": "text", "text": "I read it."},
            call("toolu_1", {"path": "a.py"}),
        )
    )
    assert reply.content == (
        Thinking("Let me see.", "sig=="),
        Text("I read it."),
        ToolUse("toolu_1", "read", {"path": "a.py"}),
    )
    assert reply.stop_reason == "tool_use"
    assert reply.usage == Usage(input=10, output=5, cache_read=3, cache_write=2)
    assert reply.model == "claude-x"
    assert reply.extra["id"] == "msg_1"


def test_deltas_show_text_and_thinking_as_they_arrive():
    assembly = Assembly("m")
    events = events_of({"type": "thinking", "thinking": "abc", "signature": "s"}, {"type": "text", "text": "xyz"})
    shown = [delta for delta in map(assembly.add, events) if delta]
    assert shown == [ThinkingDelta("abc"), TextDelta("xyz")]


def test_unknown_fields_are_kept_and_empty_ones_left_out():
    reply = assemble(
        events_of(
            {"type": "text", "text": "Hi", "citations": None, "mood": "calm"},
            call("toolu_1", {}, caller={"type": "direct"}, toolset_name=None),
        )
    )
    assert [block.to_wire() for block in reply.content] == [
        {"type": "text", "text": "Hi", "mood": "calm"},
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}, "caller": {"type": "direct"}},
    ]


def test_a_block_of_unknown_type_goes_back_as_it_came():
    block = {"type": "redacted_thinking", "data": "opaque", "null": None}
    assert assemble(events_of(block)).content == (Raw(block),)


def test_deltas_of_unknown_type_grow_the_field_they_name():
    events = events_of({"type": "compaction", "content": "first", "parts": [1]})
    growth = {"type": "compaction_delta", "content": " second", "parts": [2], "encrypted": "x"}
    events.insert(3, {"type": "content_block_delta", "index": 0, "delta": growth})
    assert assemble(events).content == (
        Raw({"type": "compaction", "content": "first second", "parts": [1, 2], "encrypted": "x"}),
    )


def test_citations_are_collected():
    events = events_of({"type": "text", "text": "Hi", "citations": None})
    citation = {"type": "char_location", "cited_text": "h"}
    delta = {"type": "citations_delta", "citation": citation}
    events.insert(4, {"type": "content_block_delta", "index": 0, "delta": delta})
    assert assemble(events).content == (Text("Hi", {"citations": [citation]}),)


def test_events_of_unknown_type_are_ignored():
    assert assemble([{"type": "weather", "index": "rain"}, *events_of({"type": "text", "text": "Hi"})]).text == "Hi"


def test_blank_text_is_left_out_since_the_api_refuses_it_back():
    reply = assemble(events_of({"type": "text", "text": "\n"}, call("toolu_1", {})))
    assert reply.content == (ToolUse("toolu_1", "read", {}),)


def test_usage_at_the_end_counts_and_null_does_not_erase():
    events = events_of({"type": "text", "text": "Hi"})
    events[-2]["usage"] = {"output_tokens": 70, "input_tokens": None, "server_tool_use": {"web_search_requests": 1}}
    reply = assemble(events)
    assert reply.usage == Usage(input=10, output=70, cache_read=3, cache_write=2)
    assert reply.extra["usage"] == {"server_tool_use": {"web_search_requests": 1}}


def test_equal_empty_and_odd_ids_become_distinct_valid_ones():
    content = [call(id_, {}) for id_ in ("a", "a", "", "", "functions.read:0", "a_2")]
    ids = [use.id for use in assemble(events_of(*content)).tool_uses]
    assert ids == ["a", "a_2", "toolu", "toolu_2", "functions_read_0", "a_2_2"]


def test_an_id_that_the_conversation_holds_is_renamed():
    assert assemble(events_of(call("call_0", {})), taken=["call_0"]).tool_uses[0].id == "call_0_2"


@given(st.lists(st.text(max_size=6), max_size=8), st.sets(st.sampled_from(["a", "toolu", "toolu_2", "0"])))
def test_ids_are_always_distinct_and_valid(ids, taken):
    new = [use.id for use in assemble(events_of(*[call(id_, {}) for id_ in ids]), taken).tool_uses]
    assert len({*new, *taken}) == len(new) + len(taken)
    assert all(id_.isascii() and id_.replace("_", "a").replace("-", "a").isalnum() for id_ in new)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=4), st.text().filter(str.strip))
def test_any_arguments_and_text_survive(arguments, text):
    content = [{"type": "text", "text": text}, call("toolu_1", arguments)]
    reply = assemble(events_of(*content))
    assert [block.to_wire() for block in reply.content] == content


@given(st.data())
def test_no_prefix_of_a_stream_is_a_reply(data):
    events = events_of({"type": "text", "text": "I write it."}, call("toolu_1", {"path": "a", "text": "b"}))
    kept = data.draw(st.integers(0, len(events) - 1))
    with pytest.raises(ModelError) as caught:
        assemble(events[:kept])
    assert caught.value.kind == "cut"


@pytest.mark.parametrize(
    "pieces",
    [
        ['{"path": "a.txt", "content": "abc'],
        ['{"path": "a.txt"}', "}"],
        ['["a.txt"]'],
        ['"a.txt"'],
        ["null"],
        ['{"size": NaN}'],
        ["[" * 100_000],
    ],
    ids=["unfinished", "too much", "list", "string", "null", "NaN", "endless nesting"],
)
def test_arguments_that_are_no_json_object_are_no_reply(pieces):
    with pytest.raises(ModelError) as caught:
        assemble(raw_call(*pieces))
    assert caught.value.kind == "cut"


def test_no_arguments_at_all_mean_an_empty_object_in_a_complete_message():
    assert assemble(raw_call()).tool_uses[0].input == {}
    assert assemble(raw_call("")).tool_uses[0].input == {}


def test_a_block_that_is_never_closed_is_no_reply():
    events = [event for event in raw_call('{"path": "a"}') if event["type"] != "content_block_stop"]
    with pytest.raises(ModelError, match="never closed"):
        assemble(events)


def test_a_message_without_stop_reason_is_no_reply():
    events = [event for event in raw_call("{}") if event["type"] != "message_delta"]
    del events[0]["message"]["stop_reason"]
    with pytest.raises(ModelError, match="stop reason"):
        assemble(events)


def test_a_call_cut_by_the_output_limit_can_be_answered_but_not_run():
    reply = assemble(raw_call('{"path": "a.txt", "content": "', "x" * 2000, stop_reason="max_tokens"))
    assert reply.stop_reason == "max_tokens"
    (use,) = reply.tool_uses
    assert list(use.input) == [CUT_ARGUMENTS]
    assert use.input[CUT_ARGUMENTS].startswith('{"path": "a.txt"')
    assert use.input[CUT_ARGUMENTS].endswith("[2030 characters in all]")


@pytest.mark.parametrize(
    "event",
    [
        "text",
        {"no": "type"},
        {"type": "message_start"},
        {"type": "content_block_start", "index": 0, "content_block": 3},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "message_delta", "delta": None},
    ],
)
def test_an_event_that_is_not_the_apis_is_an_error_not_a_traceback(event):
    with pytest.raises(ModelError) as caught:
        Assembly("m").add(event)
    assert caught.value.kind == "server"
