"""The conversation that a transcript gives: what is sent, and that it may always be sent."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.messages_api.request import Received
from tests.messages_api.rules import first_fault
from tests.messages_api.signatures import Signatures, sign
from tests.state.transcript.strategies import blocks, json_values
from tinyclaw.state.transcript.content import image_block, reply_block, result_block, user_text
from tinyclaw.state.transcript.fold import INTERRUPTED, Conversation, conversation_of, merge_manifest
from tinyclaw.state.transcript.grammar import OUTSIDE, Block, parse, render
from tinyclaw.state.transcript.statements import state_block
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
    roles = [message["role"] for message in messages]
    if any(one == next_one for one, next_one in pairwise(roles)):
        return f"roles do not alternate: {roles}"
    sent_json = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8")
    return first_fault(Received(json.loads(sent_json), False, Signatures().knows))


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


def test_thinking_between_other_blocks_goes_back_where_it_stood():
    written = (said(1, "go"), thought(2), answer(2, "First."), thought(2, "Then?"), call(2, "t1"), result(3, "t1"))
    found = conversation_of(written).messages(MODEL)
    assert [block["type"] for block in found.messages[1].wire["content"]] == [
        "thinking",
        "text",
        "thinking",
        "tool_use",
    ]
    assert found.notes == ()


def test_thinking_behind_anything_else_than_thinking_is_left_out_and_said():
    found = conversation_of([said(1, "go"), answer(2, "First."), thought(2), answer(2, "ok")]).messages(MODEL)
    assert [block["type"] for block in found.messages[1].wire["content"]] == ["text", "text"]
    assert "moved" in found.notes[0]


def test_a_block_of_an_unknown_type_is_sent_as_it_came_and_not_after_an_edit():
    search = reply_block(Raw({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}), 2, MODEL)
    assert sent(said(1, "go"), search)[1]["content"][0]["id"] == "s1"
    edited = Block("raw", search.attrs, search.text.replace("s1", "s2"))
    found = conversation_of([said(1, "go"), edited, answer(2, "ok")]).messages(MODEL)
    assert found.messages[1].wire["content"] == [{"type": "text", "text": "ok"}]
    assert "edited" in found.notes[0]


def test_a_block_of_a_known_type_cannot_be_smuggled_in_as_unknown():
    smuggled = reply_block(Raw({"type": "tool_result", "tool_use_id": "t1"}), 2, MODEL)
    assert sent(said(1, "go"), smuggled, answer(2, "ok"))[1]["content"] == [{"type": "text", "text": "ok"}]


def test_redacted_thinking_goes_back_to_its_own_model_only():
    hidden = reply_block(Raw({"type": "redacted_thinking", "data": "x"}), 2, MODEL)
    history = (said(1, "go"), hidden, answer(2, "ok"), said(3, "more"))
    assert len(sent(*history)[1]["content"]) == 2
    assert len(sent(*history, model="claude-opus-5-5")[1]["content"]) == 1


def test_what_stands_around_a_blank_message_becomes_one_message():
    messages = sent(said(1, "a"), answer(2, " "), said(3, "b"), answer(4, "c"), said(5, "\n"), answer(6, "d"))
    assert [[block["text"] for block in message["content"]] for message in messages] == [["a", "b"], ["c", "d"]]


def test_a_half_of_an_emoji_is_replaced_and_whole_ones_are_not():
    (message,) = sent(said(1, "\ud83d \U0001f600 \ud83d\ude00"))
    assert message["content"][0]["text"] == "\ufffd \U0001f600 \U0001f600"


def test_ids_and_names_that_the_api_refuses_are_made_safe_on_both_sides():
    odd = Block("tool_use", {"m": 2, "id": "a b", "name": "ü!"}, "{}")
    messages = sent(said(1, "go"), odd, result(3, "a b", "found"), call(4, ""), result(5, "", "also"))
    assert messages[1]["content"][0] == {"type": "tool_use", "id": "a_b", "name": "__", "input": {}}
    assert [message["content"][0]["content"] for message in messages[2::2]] == ["found", "also"]
    assert fault_of(messages) is None


def test_arguments_that_are_no_json_object_are_sent_empty_and_said():
    found = conversation_of([said(1, "go"), Block("tool_use", {"m": 2, "id": "t1", "name": "n"}, "{")]).messages(MODEL)
    assert found.messages[1].wire["content"][0]["input"] == {} and "no JSON object" in found.notes[0]


def picture(identity: str, media_type: str = "image/png") -> Block:
    return image_block(identity, 3, "1.png", media_type, "ab")


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        ("iVBORw0KGgoAAAA", "image/png"),
        ("/9j/AAAA", "image/jpeg"),
        ("R0lGODlhAAAA", "image/gif"),
        ("UklGRAAA", "image/webp"),
    ],
)
def test_a_picture_goes_with_its_result_under_the_type_that_it_has(data, media_type):
    written = [said(1, "go"), call(2, "t1"), picture("t1", "image/bmp"), result(3, "t1", "a picture")]
    content = conversation_of(written, lambda path, sha256: data).messages(MODEL).messages[2].wire["content"]
    source = {"type": "base64", "media_type": media_type, "data": data}
    assert content[0]["content"] == [{"type": "text", "text": "a picture"}, {"type": "image", "source": source}]


@pytest.mark.parametrize("data", [None, "", "Qk0AAAA"])
def test_a_picture_that_is_gone_or_none_is_said_in_its_result(data):
    written = [said(1, "go"), call(2, "t1"), picture("t1"), result(3, "t1", "a picture")]
    content = conversation_of(written, lambda path, sha256: data).messages(MODEL).messages[2].wire["content"]
    assert content[0]["content"] == "a picture\n(the picture 1.png is gone or changed and is left out)"


def test_messages_that_are_missing_are_said():
    conversation = conversation_of([*HISTORY[:5], *HISTORY[10:]])
    assert len(conversation.notes) == 1 and "messages 3 to 5 are missing before this one" in conversation.notes[0]


def test_calls_are_pending_until_they_are_answered_and_only_the_last_message_has_any():
    open_calls = (said(1, "go"), call(2, "t1"), call(2, "t2"), call(2, "t1"))
    assert [each.id for each in conversation_of(open_calls).pending_calls] == ["t1", "t2"]
    assert [each.id for each in conversation_of([*open_calls, result(3, "t2")]).pending_calls] == ["t1"]
    assert conversation_of([*open_calls, answer(3, "never mind")]).pending_calls == ()
    again = (*HISTORY, said(11, "again"), call(12, "t1"), call(12, "t9"))
    assert [each.id for each in conversation_of(again).pending_calls] == ["t9"]


@pytest.mark.parametrize(
    ("written", "awaits"),
    [
        ((), False),
        ((said(1, "hi"),), True),
        ((said(1, "  \n"),), False),
        ((said(1, "hi"), answer(2, "ho")), False),
        ((said(1, "hi"), call(2, "t1")), False),
        ((said(1, "hi"), call(2, "t1"), result(3, "t1", "")), True),
        ((said(1, "hi"), call(2, "t1"), said(3, "wait")), False),
        ((said(1, "hi"), answer(2, "ho"), end(), Block(OUTSIDE, {}, "and this")), True),
    ],
)
def test_a_reply_is_awaited_when_the_last_word_is_the_users_and_no_call_is_open(written, awaits):
    assert conversation_of(written).awaits_reply is awaits


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


ATTRIBUTES = [
    "m", "id", "n", "role", "name", "args", "extra", "is_error", "revisions", "states", "file", "path", "rev",
    "by", "how", "from", "model", "signature", "sha256", "hash", "at", "manifest", "results", "keep", "what",
    "answer", "in", "out", "cache_read", "cache_write", "stop", "bytes", "tokens", "set", "drop",
    "folder",
]  # fmt: skip
KINDS = [
    "text", "thinking", "tool_use", "tool_result", "image", "state", "raw", "prefix", "request", "reply",
    "side", "clear", "compact", "event", "turn_end", "torn", "content", "revisions", "outside", "damaged",
    "put", "append", "notes",
]  # fmt: skip
scrawls = st.builds(
    lambda kind, attrs, parts, box: Block(kind, attrs, *parts, box=box),
    st.sampled_from(KINDS),
    st.dictionaries(
        st.sampled_from(ATTRIBUTES),
        st.one_of(json_values, st.integers(0, 5), st.sampled_from(["rewind", "answer", "diff", "user", "whole", "t1"])),
        max_size=6,
    ),
    st.lists(st.sampled_from(["", "{}", "text", "[1]", '{"type": "thinking"}']), max_size=3),
    st.sampled_from([None, True, False]),
)


@settings(deadline=None, max_examples=200)
@given(st.lists(scrawls, max_size=8), st.integers(0, len(HISTORY)))
def test_attributes_of_any_kind_and_type_are_lived_with(scrawled, place):
    conversation = conversation_of([*HISTORY[:place], *scrawled, *HISTORY[place:]])
    messages = [message.wire for message in conversation.messages(MODEL).messages]
    assert fault_of(messages) is None
    assert isinstance(conversation.pending_calls, tuple) and conversation.awaits_reply in (True, False)
    assert all(isinstance(folder, str) and folder for folder in conversation.touched)


def test_a_kind_that_is_none_of_ours_is_kept_and_means_nothing():
    strangers = [Block(kind, {"m": 1}) for kind in ("content", "revisions", "put", "append", "later_kind")]
    assert sent(*HISTORY[:3], *strangers, *HISTORY[3:]) == sent(*HISTORY)


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
    assert conversation_of([*HISTORY, compact]).summary == compact
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


def test_a_rewind_that_reaches_behind_a_summary_brings_the_history_back():
    compacted = (*HISTORY, Block("compact", {"keep": 9}, "Summary"))
    assert sent(*compacted, Block("event", {"what": "rewind", "m": 7})) == sent(*HISTORY[:12])
    twice = (*compacted, said(11, "more"), answer(12, "ok"), Block("compact", {"keep": 11}, "Second"))
    assert sent(*twice, Block("event", {"what": "rewind", "m": 10})) == sent(*compacted)[:-1]
    assert sent(*twice, Block("event", {"what": "rewind", "m": 3})) == sent(*HISTORY[:5])


def test_a_rewind_behind_what_is_kept_leaves_the_summary():
    messages = sent(*HISTORY, Block("compact", {"keep": 7}, "Summary"), Block("event", {"what": "rewind", "m": 7}))
    assert messages == [{"role": "user", "content": [{"type": "text", "text": "Summary"}]}]


def looked(number: int, identity: str, **facts) -> Block:
    return result_block(identity, number, "content", name="read", **facts)


def test_the_touched_folders_are_those_that_results_name_in_order_and_once():
    conversation = conversation_of(
        [
            said(1, "go"),
            *(call(2, identity) for identity in ("t1", "t2", "t3", "t4", "t5", "t6")),
            looked(3, "t2", folder="b"),
            looked(3, "t1", revisions={"a/in/x.py": "0", "top.py": "0"}),
            looked(3, "t3", folder="c", is_error=True),
            looked(3, "t4", folder="a/in", revisions={"b/y.py": "0"}),
            looked(3, "t5", folder=["d"], revisions=["e/f"]),
            looked(3, "t6", revisions={"~/skills/look/SKILL.md": "0"}),
        ]
    )
    assert conversation.touched == ("b", "a/in")


def test_touched_folders_outlive_a_summary_and_go_with_a_rewind_or_a_turn_that_is_taken_out():
    def turn(number: int, folder: str, box: bool = True) -> list[Block]:
        text = user_text("go", number, "now")
        asked = Block("text", text.attrs, text.text, heading=text.heading, box=box)
        return [
            asked,
            call(number + 1, folder),
            looked(number + 2, folder, folder=folder),
            answer(number + 3, "ok"),
            end(),
        ]

    written = [*turn(1, "a"), *turn(5, "b"), *turn(9, "c")]
    summary = Block("compact", {"keep": 9}, "Summary")
    assert conversation_of([*written, summary]).touched == ("a", "b", "c")
    assert conversation_of([*written, summary, Block("event", {"what": "rewind", "m": 5})]).touched == ("a",)
    assert conversation_of([*turn(1, "a"), *turn(5, "b", False), *turn(9, "c"), summary]).touched == ("a", "c")


def test_a_rewind_lets_a_call_of_the_same_id_count_again():
    conversation = conversation_of(
        [*HISTORY[:12], said(7, "again"), call(8, "t3"), result(9, "t3"), answer(10, "k"), end()]
    )
    assert "second call" in conversation.messages(MODEL).notes[0]
    conversation.append(Block("event", {"what": "rewind", "m": 4}))
    for block in (said(11, "again"), call(12, "t3"), result(13, "t3", "fresh")):
        conversation.append(block)
    found = conversation.messages(MODEL)
    assert found.messages[-1].wire["content"][0]["content"] == "fresh" and found.notes == ()


def stated(conversation: Conversation) -> dict[str, str]:
    return {path: said.revision for path, said in conversation.statements.items()}


PLAN = "\n".join(f"{number}. step" for number in range(20))
STATED = (
    said(1, "go"),
    state_block("PLAN.md", "aaaa", "outside", PLAN, None, 1),
    answer(2, "ok"),
    end(),
    said(3, "on"),
    state_block("PLAN.md", "bbbb", "outside", PLAN + "\nmore", PLAN, 3),
    answer(4, "ok"),
    end(),
)


def test_a_rewind_lets_the_statement_before_stand_again():
    conversation = conversation_of([*STATED, Block("event", {"what": "rewind", "m": 3})])
    assert stated(conversation) == {"PLAN.md": "aaaa"} and conversation.statements["PLAN.md"].text == PLAN


@pytest.mark.parametrize(("keep", "standing"), [(1, {"PLAN.md": "bbbb"}), (2, {}), (3, {}), (4, {})])
def test_a_diff_whose_whole_text_was_summarized_away_no_longer_stands(keep, standing):
    conversation = conversation_of([*STATED, Block("compact", {"keep": keep}, "Summary")])
    assert stated(conversation) == standing
    conversation.append(Block("event", {"what": "rewind", "m": 1}))
    assert stated(conversation) == {}


def test_a_rewind_that_undoes_a_summary_lets_its_statements_stand_again():
    undone = (Block("compact", {"keep": 4}, "Summary"), Block("event", {"what": "rewind", "m": 3}))
    assert stated(conversation_of([*STATED, *undone])) == {"PLAN.md": "aaaa"}


def test_a_result_may_state_a_file():
    wrote = result_block(
        "t1", 3, "written", name="plan", revisions={"PLAN.md": "cccc", "a.py": "dddd"}, states=["PLAN.md"]
    )
    conversation = conversation_of([said(1, "go"), call(2, "t1", "plan"), wrote])
    assert stated(conversation) == {"PLAN.md": "cccc"} and conversation.statements["PLAN.md"].text is None
    assert conversation.revisions == {"PLAN.md": "cccc", "a.py": "dddd"}


def test_only_what_is_sent_of_a_file_counts_as_seen():
    def read(number, name, path, revision):
        return result_block(name, number, "text", name="read", revisions={path: revision})

    blocks = [
        said(1, "go"),
        call(2, "t1", "read"),
        call(2, "t2", "read"),
        call(2, "t3", "read"),
        read(3, "t1", "a", "a1"),
        read(3, "t1", "a", "a2"),
        read(3, "no-such-call", "b", "b1"),
        result_block("t2", 3, " ", name="read", revisions={"c": "c1"}),
        read(3, "t3", "d", "d1"),
        Block("state", {"m": 3, "path": "PLAN.md", "rev": "p1", "by": "outside", "how": "whole"}, "x"),
        Block("state", {"m": 3, "path": "TODO.md", "rev": "q1", "by": "outside", "how": "whole", "cut": True}, "x"),
    ]
    conversation = conversation_of(blocks)
    assert conversation.revisions == {"a": "a1", "d": "d1", "PLAN.md": "p1"}
    conversation.append(Block("clear", {"results": {"t3": "(cleared)"}}))
    assert conversation.revisions == {"a": "a1", "PLAN.md": "p1"}


def test_a_box_that_is_unticked_late_in_a_turn_leaves_out_what_the_turn_stated():
    late = Block("text", {"m": 3, "role": "user"}, "x", box=False)
    conversation = conversation_of([*STATED[:6], late, *STATED[6:]])
    assert stated(conversation) == {"PLAN.md": "aaaa"}


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


@pytest.mark.parametrize(("answer", "allowed"), [("allow", True), ("deny", False), ("void", None), (["allow"], None)])
def test_the_last_answer_to_a_permission_counts(answer, allowed):
    ticked = Block("event", {"what": "permission", "id": "t1"}, "make", box=True)
    answered = Block("event", {"what": "answer", "id": "t1", "answer": answer, "started": True})
    known = conversation_of([said(1, "go"), call(2, "t1"), ticked, answered]).permissions["t1"]
    assert (known.allowed, known.started) == (allowed, True)


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
