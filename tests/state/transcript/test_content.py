"""Messages become blocks and come back; what a person made of a block in between is never an error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.state.transcript.strategies import ids, inputs, json_values, names, texts
from tinyclaw.state.transcript.content import (
    arguments_of,
    call_of,
    image_block,
    raw_of,
    reply_block,
    result_block,
    text_of,
    thinking_of,
    user_text,
)
from tinyclaw.state.transcript.grammar import Block, parse, render
from tinyclaw.types import Image, Raw, Text, Thinking, ToolUse


def reread(block: Block) -> Block:
    (read,) = parse(render([block]).encode(), "t.md").blocks
    return read


@given(ids, names, inputs)
def test_a_call_comes_back_with_its_very_arguments(identity, name, arguments):
    call = call_of(reread(reply_block(ToolUse(identity, name or "x", arguments), 2, "m")))
    assert (call.id, call.name, json.dumps(call.input)) == (identity, name or "x", json.dumps(arguments))


def test_long_arguments_come_back_from_under_any_key_and_any_nesting():
    long = "one\n```\ntwo\n````\n<!-- tc:end -->\n"
    arguments = {
        "a/b~c": long,
        "~1": {"/": [None, [long, {"": long + "x"}]]},
        "edge": "\r\n",
        "": long,
    }
    block = reply_block(ToolUse("t1", "edit", arguments), 2, "m")
    assert block.attrs["args"] == ["/a~1b~0c", "/~01/~1/1/0", "/~01/~1/1/1/", "/"]
    assert call_of(reread(block)).input == arguments


def test_deeply_nested_arguments_come_back():
    value: object = "a\nb"
    for _ in range(150):
        value = [value]
    assert call_of(reread(reply_block(ToolUse("t", "x", {"deep": value}), 2, "m"))).input == {"deep": value}


@given(texts)
def test_text_and_results_and_thinking_come_back(text):
    assert text_of(reread(reply_block(Text(text), 2, "m"))) == Text(text)
    assert reread(user_text(text, 1, "now")).text == text
    assert reread(result_block("t", 3, text, name="read")).text == text
    assert thinking_of(reread(reply_block(Thinking(text, "sig"), 2, "m"))) == Thinking(text, "sig")


@given(inputs)
def test_a_block_of_an_unknown_type_comes_back_with_all_its_fields(data):
    raw = Raw({**data, "type": "strange"})
    back = raw_of(reread(reply_block(raw, 2, "m")))
    assert back is not None and json.dumps(back.data) == json.dumps(raw.data)


def test_fields_that_we_do_not_know_come_back():
    extra = {"citations": [{"cited_text": "a --> b"}], "caller": {"type": "direct"}}
    assert text_of(reread(reply_block(Text("x", extra), 2, "m"))).extra == extra
    assert call_of(reread(reply_block(ToolUse("t", "n", {}, extra), 2, "m"))).extra == extra


@pytest.mark.parametrize("extra", [{"type": "image", "text": ""}, {"": None}, {"cache_control": {}}, [1], "x"])
def test_fields_that_a_person_wrote_or_changed_are_not_sent(extra):
    sent_with = reply_block(Text("x", {"citations": []}), 2, "m")
    changed = Block("text", {**sent_with.attrs, "extra": extra}, "x")
    assert text_of(changed).extra == {} and text_of(Block("text", {"extra": extra}, "x")).extra == {}


@pytest.mark.parametrize("facts", [{"signature": ""}, {"signature": 5}, {"signature": None}, {"sha256": None}])
def test_thinking_without_its_signature_or_its_hash_is_none(facts):
    whole = reply_block(Thinking("Hm.", "sig"), 2, "m")
    assert thinking_of(Block("thinking", {**whole.attrs, **facts}, "Hm.")) is None


def test_thinking_and_unknown_blocks_that_a_person_edited_are_none():
    thinking = reply_block(Thinking("Hm.", "sig"), 2, "m")
    assert thinking_of(Block("thinking", thinking.attrs, "Ha.")) is None
    raw = reply_block(Raw({"type": "strange", "n": 1}), 2, "m")
    assert raw_of(Block("raw", raw.attrs, '{"type": "strange", "n": 2}')) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", "null", '"x"', "[" * 50_000, '{"a": NaN}', '{"a": 1e999}', "9" * 5000]
)
def test_arguments_that_are_no_json_object_any_more_are_none_and_the_call_has_none(text):
    block = Block("tool_use", {"m": 2, "id": "t1", "name": "read"}, text)
    assert arguments_of(block) is None and call_of(block).input == {}


@given(json_values, st.lists(texts, max_size=3), json_values)
def test_a_call_whose_opener_says_anything_is_read_without_an_error(pointers, parts, name):
    block = Block("tool_use", {"args": pointers, "id": name, "name": name}, '{"a": [null]}', *parts)
    call = call_of(block)
    assert isinstance(call.id, str) and isinstance(call.name, str) and isinstance(call.input, dict)


@pytest.mark.parametrize("pointer", ["", "a", "/x/y", "/a/7", "/a/b", "/a/0/c"])
def test_a_pointer_into_nowhere_sets_nothing(pointer):
    block = Block("tool_use", {"args": [pointer], "id": "t", "name": "n"}, '{"a": [1]}', "text")
    assert call_of(block).input == {"a": [1]}


def test_facts_that_are_empty_are_not_written():
    block = result_block("t", 3, "x", name="read", ms=0, revisions={}, states=[], other=1)
    assert block.attrs == {"m": 3, "id": "t", "other": 1}


def test_a_picture_is_a_path_and_a_hash():
    block = image_block("t", 3, ".task_outputs/s/1.png", "image/png", "ab")
    assert reread(block) == block and block.parts == ()


def test_a_reply_holds_no_picture():
    with pytest.raises(TypeError, match="Image"):
        reply_block(Image("image/png", ""), 2, "m")
