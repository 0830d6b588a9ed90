"""The conversation that a transcript gives: what is sent, and that it may always be sent."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.messages_api.request import Received
from tests.messages_api.rules import first_fault
from tests.messages_api.signatures import Signatures, sign
from tests.state.transcript.strategies import blocks
from tinyclaw.state.transcript.content import reply_block, result_block, user_text
from tinyclaw.state.transcript.fold import INTERRUPTED, Conversation, conversation_of, merge_manifest
from tinyclaw.state.transcript.grammar import OUTSIDE, Block, parse, render
from tinyclaw.state.transcript.statements import apply_diff, make_diff, state_block, stated_text
from tinyclaw.types import Raw, Text, Thinking, ToolUse

MODEL = "claude-sonnet-5-5"


def said(number: int, text: str, *, opens_turn: bool = True) -> Block:
    return user_text(text, number, "now", opens_turn=opens_turn)


def answer(number: int, text: str) -> Block:
    return reply_block(Text(text), number, MODEL)


def call(number: int, identity: str, name: str = "read", **arguments) -> Block:
    return reply_block(ToolUse(identity, name, arguments or {"path": "a"}), number, MODEL)


def result(number: int, identity: str, text: str = "content") -> Block:
    return result_block(identity, number, text, name="read")


def thought(number: int, text: str = "Hm.", model: str = MODEL) -> Block:
    return reply_block(Thinking(text, sign(model, text)), number, model)


def end() -> Block:
    return Block("turn_end", {"reason": "done"})


def sent(*written: Block, model: str = MODEL) -> list[dict]:
    return [message.wire for message in conversation_of(written).messages(model).messages]


def fault_of(messages: list[dict], model: str = MODEL) -> str | None:
    """What the API would refuse in a request with these messages and one more text of the person."""
    body = {
        "model": model,
        "max_tokens": 1000,
        "messages": [*messages, {"role": "user", "content": [{"type": "text", "text": "go on"}]}],
    }
    return first_fault(Received(json.loads(json.dumps(body)), False, Signatures().knows))


HISTORY = (
    said(1, "fix it"),
    thought(2),
    answer(2, "Two reads."),
    call(2, "t1"),
    call(2, "t2", path="b"),
    result(3, "t2", "second"),
    result(3, "t1", "first"),
    thought(4, "So."),
    call(4, "t3", "bash", command="make"),
    result(5, "t3", "ok"),
    answer(6, "Done."),
    end(),
    said(7, "and the docs"),
    call(8, "t4", "edit", path="a", new_text="x\ny\n"),
    result(9, "t4", "edited"),
    answer(10, "Done too."),
    end(),
)


def test_a_clean_history_is_sent_as_it_was_without_notes():
    conversation = conversation_of(HISTORY)
    found = conversation.messages(MODEL)
    assert (found.notes, conversation.notes) == ((), [])
    roles = [message.wire["role"] for message in found.messages]
    assert roles == ["user", "assistant"] * 5
    results = found.messages[2].wire["content"]
    assert [(block["tool_use_id"], block["content"]) for block in results] == [("t1", "first"), ("t2", "second")]
    assert found.messages[1].wire["content"][0]["signature"] == sign(MODEL, "Hm.")


def test_results_stand_first_then_states_then_text():
    (_, _, last) = sent(
        said(1, "go"),
        call(2, "t1"),
        said(3, "wait", opens_turn=False),
        state_block("PLAN.md", "abc", "outside", "plan", None, 3),
        result(3, "t1"),
    )
    assert [block["type"] for block in last["content"]] == ["tool_result", "text", "text"]
    assert last["content"][1]["text"].startswith("<state") and last["content"][2]["text"] == "wait"


def test_a_call_without_a_result_counts_as_interrupted_once_and_always_the_same():
    torn = (said(1, "hi"), answer(2, "Reading."), call(2, "t1"))
    once, twice = sent(*torn), sent(*torn)
    assert once == twice
    assert once[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "t1", "content": INTERRUPTED, "is_error": True}
    ]
    assert len(sent(*HISTORY)) == 10


def test_a_result_without_its_call_is_left_out_and_said():
    found = conversation_of([said(1, "hi"), result(1, "t9"), answer(2, "ok")]).messages(MODEL)
    assert found.messages[0].wire["content"] == [{"type": "text", "text": "hi"}]
    assert "answers no call" in found.notes[0]


def test_a_turn_that_was_pasted_twice_counts_once():
    pasted = (*HISTORY[:12], *HISTORY[:12], *HISTORY[12:])
    messages = sent(*pasted)
    ids = [block["id"] for message in messages for block in message["content"] if block["type"] == "tool_use"]
    assert sorted(ids) == ["t1", "t2", "t3", "t4"]
    assert fault_of(messages) is None


def test_blank_text_is_never_sent():
    messages = sent(said(1, "hi"), answer(2, ""), call(2, "t1"), result(3, "t1", "\n"), answer(4, "  "), end())
    assert fault_of(messages) is None
    assert messages[2]["content"][0]["content"] == "(no output)"
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]


def test_what_the_person_and_the_model_said_is_sent_to_the_byte():
    text = "see:\n\n    indented = 1\n\n"
    messages = sent(said(1, text), answer(2, "Done.  \n"), said(3, "x"))
    assert messages[0]["content"][0]["text"] == text
    assert messages[1]["content"][0]["text"] == "Done.  \n"


@pytest.mark.parametrize(
    "changed",
    [
        lambda: thought(2, "Hm.", model="claude-opus-5-5"),
        lambda: Block("thinking", thought(2).attrs, "Ha."),
        lambda: Block("thinking", {k: v for k, v in thought(2).attrs.items() if k != "signature"}, "Hm."),
    ],
    ids=["another model", "edited", "no signature"],
)
def test_thinking_that_does_not_hold_any_more_is_left_out_and_the_rest_stays(changed):
    messages = sent(said(1, "go"), changed(), answer(2, "Reading."), call(2, "t1"), result(3, "t1"))
    assert [block["type"] for block in messages[1]["content"]] == ["text", "tool_use"]
    assert fault_of(messages) is None


def test_redacted_thinking_goes_back_to_its_own_model_only():
    hidden = reply_block(Raw({"type": "redacted_thinking", "data": "x"}), 2, MODEL)
    history = (said(1, "go"), hidden, answer(2, "ok"), said(3, "more"))
    assert len(sent(*history)[1]["content"]) == 2
    assert len(sent(*history, model="claude-opus-5-5")[1]["content"]) == 1


def test_a_history_that_begins_with_the_model_gets_a_beginning():
    messages = sent(*HISTORY[1:])
    assert messages[0]["role"] == "user" and fault_of(messages) is None


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_whatever_people_do_to_a_history_it_can_be_sent(data):
    written = list(HISTORY)
    for _ in range(data.draw(st.integers(0, 5))):
        index = data.draw(st.integers(0, len(written) - 1)) if written else 0
        kind = data.draw(st.sampled_from(["delete", "double", "move", "number", "id", "role", "box", "text", "insert"]))
        written = _vandalized(written, index, kind, data)
    reparsed = parse(render(written).encode("utf-8", "replace"), "t.md").blocks
    for model in (MODEL, "other-model"):
        assert fault_of(sent(*reparsed, model=model)) is None


known = blocks.filter(lambda block: block.kind != "raw")
"""Blocks of kinds that the API knows: nobody writes an unknown one by hand."""


def _vandalized(written: list[Block], index: int, kind: str, data) -> list[Block]:
    if kind == "insert" or not written:
        outside = Block(OUTSIDE, {}, "\n\nWhat about this?\n\n")
        return [*written[:index], data.draw(st.one_of(known, st.just(outside))), *written[index:]]
    block, rest = written[index], [*written[:index], *written[index + 1 :]]
    if kind == "delete":
        return rest
    if kind == "double":
        return [*written[:index], block, *written[index:]]
    if kind == "move":
        place = data.draw(st.integers(0, len(rest)))
        return [*rest[:place], block, *rest[place:]]
    values = {
        "number": {"m": data.draw(st.one_of(st.integers(-1, 12), st.none(), st.text(max_size=2)))},
        "id": {"id": data.draw(st.sampled_from(["t1", "t2", "", "a b", "ü", 7, None]))},
        "role": {"role": data.draw(st.sampled_from(["user", "assistant", "system", None]))},
    }.get(kind, {})
    text = data.draw(st.sampled_from(["", " ", "x", "{}", "[1]", "null"])) if kind == "text" else None
    parts = (text,) if text is not None and block.parts else block.parts
    box = (not block.box) if kind == "box" and block.box is not None else block.box
    changed = Block(block.kind, {**block.attrs, **values}, *parts, heading=block.heading, box=box)
    return [*written[:index], changed, *written[index + 1 :]]


@given(st.lists(blocks, max_size=12))
def test_growing_block_by_block_equals_the_fold_from_scratch(written):
    grown = Conversation()
    for block in written:
        before = grown
        grown = grown.extended([block])
        grown.messages(MODEL)
        before.messages(MODEL)
    whole = conversation_of(written)
    assert [m.wire for m in grown.messages(MODEL).messages] == [m.wire for m in whole.messages(MODEL).messages]
    assert (grown.statements, grown.pending_calls, grown.last) == (whole.statements, whole.pending_calls, whole.last)


def test_extending_a_copy_leaves_the_original_as_it_was():
    original = conversation_of(HISTORY)
    before = [message.digest for message in original.messages(MODEL).messages]
    original.extended([said(11, "more"), Block("event", {"what": "rewind", "m": 3})])
    assert [message.digest for message in original.messages(MODEL).messages] == before


# Clears, compactions, rewinds, boxes


def test_a_cleared_result_is_replaced_by_its_marker_and_the_call_stays():
    clear = Block("clear", {"results": {"t1": "[cleared: 5 characters]", "gone": "x"}})
    messages = sent(*HISTORY, clear)
    assert [block["content"] for block in messages[2]["content"]] == ["[cleared: 5 characters]", "second"]
    assert len(messages) == 10


@pytest.mark.parametrize("keep", range(1, 11))
def test_a_summary_may_stand_before_any_message(keep):
    compact = Block("compact", {"keep": keep}, "Summary: all is well.")
    messages = sent(*HISTORY, compact)
    assert fault_of(messages) is None
    assert messages[0]["content"][0]["text"] == "Summary: all is well."
    kept = [message for message in sent(*HISTORY) if message["role"] == "assistant"][(keep - 1) // 2 :]
    assert [message for message in messages if message["role"] == "assistant"] == kept


@pytest.mark.parametrize("facts", [{"keep": 99}, {}, {"keep": "x"}])
def test_a_summary_that_names_no_message_is_void_and_said(facts):
    conversation = conversation_of([*HISTORY, Block("compact", facts, "Summary")])
    assert len(conversation.messages(MODEL).messages) == 10
    assert "void" in conversation.notes[0]


def test_a_rewind_takes_the_messages_behind_it_out():
    messages = sent(*HISTORY, Block("event", {"what": "rewind", "m": 7}))
    assert messages == sent(*HISTORY[:12])


def test_an_unticked_turn_is_left_out_whole():
    first = Block("text", HISTORY[0].attrs, HISTORY[0].text, heading="## You", box=False)
    assert sent(first, *HISTORY[1:]) == sent(*HISTORY[12:])


def test_what_an_unticked_turn_stated_is_no_longer_stated_and_neither_is_a_diff_of_it():
    plan = "\n".join(f"{n}. step" for n in range(20))
    first = said(1, "go")
    unticked = Block("text", first.attrs, first.text, heading="## You", box=False)
    whole = state_block("PLAN.md", "aaaa", "outside", plan, None, 1)
    change = state_block("PLAN.md", "bbbb", "outside", plan + "\nmore", plan, 3)
    rest = (answer(2, "ok"), end(), said(3, "on"), change)
    assert conversation_of([first, whole, *rest]).statements["PLAN.md"].revision == "bbbb"
    assert conversation_of([unticked, whole, *rest]).statements["PLAN.md"].revision == ""
    assert conversation_of([unticked, whole, *rest[:2]]).statements == {}


def test_a_box_ticked_below_a_permission_allows_its_call():
    asked = (said(1, "go"), call(2, "t1", "bash", command="make"))
    permission = Block("event", {"what": "permission", "id": "t1"}, "make", box=False)
    assert conversation_of([*asked, permission]).permissions["t1"].allowed is None
    ticked = Block("event", permission.attrs, "make", box=True)
    assert conversation_of([*asked, ticked]).permissions["t1"].allowed is True


def test_text_outside_blocks_is_a_message_between_turns_and_a_note_within_one():
    outside = Block(OUTSIDE, {}, "\nAlso this.\n")
    assert sent(*HISTORY, outside)[-1] == {"role": "user", "content": [{"type": "text", "text": "Also this."}]}
    within = conversation_of([*HISTORY[:3], outside, *HISTORY[3:]])
    assert [message.wire for message in within.messages(MODEL).messages] == sent(*HISTORY)
    assert "kept as a note" in within.notes[0]


def test_manifests_are_recorded_as_differences():
    first = {"tokens": 5, "set": {"a": {"tokens": 1}, "b": {"tokens": 2}}}
    second = {"tokens": 6, "set": {"a": {"tokens": 3}}, "drop": ["b"]}
    assert merge_manifest(merge_manifest({}, first), second) == {"tokens": 6, "blocks": {"a": {"tokens": 3}}}


# Statements

lines = st.lists(st.sampled_from(["a", "b", "c", "", "@@ -1 +1 @@", "-x", "+y", " z", "</state ab>"]), max_size=12)


@given(lines.map("\n".join), lines.map("\n".join))
def test_a_diff_applied_to_the_text_before_gives_the_text_after(before, after):
    if before != after:
        assert apply_diff(before, make_diff(before, after)) == after


@given(lines.map("\n".join), lines.map("\n".join), st.sampled_from(["ab", "0123456789abcdef"]))
def test_a_statement_is_read_back_and_its_content_cannot_close_it(before, after, revision):
    block = state_block("PLAN.md", revision, "outside", after, before, 1)
    assert stated_text(block, before) == after
    closing = block.text.rpartition("\n")[2]
    assert block.text.count(closing) == 1


def test_a_file_that_is_gone_is_said_so():
    block = state_block("PLAN.md", "absent", "outside", None, "old", 1)
    assert (block.attrs["how"], stated_text(block, "old")) == ("gone", None)
