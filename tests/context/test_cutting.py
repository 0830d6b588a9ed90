"""Whatever is cut and cleared of a conversation, what is left of it can be sent and the newest part is as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.state.transcript.test_fold import MODEL, answer, call, end, fault_of, result, said, thought
from tinyclaw.context.clearing import KEPT_MESSAGES, WaterMarks, clear_block
from tinyclaw.context.cutting import cut_before
from tinyclaw.context.tokens import Estimator
from tinyclaw.state.transcript.fold import conversation_of
from tinyclaw.state.transcript.grammar import Block

ONE_TO_ONE = Estimator(1.0)


def history(shape) -> list[Block]:
    """A valid history: turns, each with rounds of so many calls (0: text alone)."""
    written: list[Block] = []
    number = 0
    for turn in shape:
        number += 1
        written.append(said(number, f"please do {number}"))
        for calls in turn:
            number += 1
            written += [thought(number), answer(number, f"message {number}")]
            written += [call(number, f"c{number}-{at}") for at in range(calls)]
            if calls:
                number += 1
                written += [result(number, f"c{number - 1}-{at}", "content " * 800) for at in range(calls)]
        if turn and turn[-1]:
            number += 1
            written.append(answer(number, "done"))
        written.append(end())
    return written


turns = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=5)


def steps(written: list[Block], data) -> list[Block]:
    """A clear or a summary at a place that is chosen by chance."""
    conversation = conversation_of(written)
    messages = conversation.messages(MODEL).messages
    if data.draw(st.booleans()):
        high = data.draw(st.integers(0, 20_000))
        size = sum(message.length for message in messages)
        marks = WaterMarks(high, data.draw(st.integers(0, high)))
        made = clear_block(conversation, messages, size, marks, ONE_TO_ONE)
    else:
        at = cut_before(messages, data.draw(st.integers(0, len(messages))))
        made = Block("compact", {"keep": messages[at].number}, "Summary.") if at else None
    return [made] if made else []


@given(turns, st.data())
def test_any_two_clears_and_summaries_leave_a_request_that_is_valid_and_ends_as_it_did(shape, data):
    written = history(shape)
    whole = [message.wire for message in conversation_of(written).messages(MODEL).messages]
    for _ in range(2):
        made = steps(written, data)
        written += made
        messages = [message.wire for message in conversation_of(written).messages(MODEL).messages]
        assert fault_of(messages) is None
        recent = min(len(messages) - 1, KEPT_MESSAGES)  # the first one may hold the summary
        assert messages[len(messages) - recent :] == whole[len(whole) - recent :]


@pytest.mark.parametrize("keep", range(1, 13))
def test_every_wish_of_what_to_keep_gives_a_valid_cut(keep):
    written = history([[2, 1], [0], [3, 2, 1]])
    conversation = conversation_of(written)
    messages = conversation.messages(MODEL).messages
    at = cut_before(messages, len(messages) - keep)
    if at:
        conversation.append(Block("compact", {"keep": messages[at].number}, "Summary."))
        after = [message.wire for message in conversation.messages(MODEL).messages]
        assert fault_of(after) is None
        suffix = [message.wire for message in messages[at:]]
        assert after[len(after) - len(suffix) + 1 :] == suffix[1:]
        assert after[-len(suffix)]["content"][-len(suffix[0]["content"]) :] == suffix[0]["content"]
        assert len(suffix) >= keep
    else:
        assert keep >= len(messages) - 1


def test_results_of_the_last_messages_and_of_the_last_interactions_are_never_cleared():
    written = history([[1] * 8, [0] * 1, [0], [0], [0], [0], [0], [0]])
    conversation = conversation_of(written)
    messages = conversation.messages(MODEL).messages
    made = clear_block(conversation, messages, 10**6, WaterMarks(0, 0), ONE_TO_ONE)
    assert made is not None
    assert len(made.attrs["results"]) == 5, "of eight, the last three interactions stay, however long ago"


def test_a_clear_that_gains_too_little_is_not_made():
    def cleared(rounds, tokens):
        conversation = conversation_of(history([[1] * rounds]))
        messages = conversation.messages(MODEL).messages
        made = clear_block(conversation, messages, tokens, WaterMarks(500_000, 1_000), ONE_TO_ONE)
        return len(made.attrs["results"]) if made else 0

    assert cleared(30, 900) == 0, "it is small"
    assert [cleared(rounds, 400_000) for rounds in (4, 12, 60)] == [0, 0, 57], "below the high mark it has to pay"
    assert [cleared(rounds, 600_000) for rounds in (3, 6)] == [0, 3], "above it, it needs less to pay"


def test_a_result_for_which_a_recent_one_stands_is_not_cleared():
    written = history([[1] * 9])
    last = max(index for index, block in enumerate(written) if block.kind == "tool_result")
    written[last] = Block("tool_result", {**written[last].attrs, "same_as": "c2-0"}, "[unchanged]")
    conversation = conversation_of(written)
    made = clear_block(conversation, conversation.messages(MODEL).messages, 10**6, WaterMarks(0, 0), ONE_TO_ONE)
    assert "c2-0" not in made.attrs["results"] and "c4-0" in made.attrs["results"]


def test_a_marker_says_what_was_there_and_the_way_back():
    written = history([[1] * 9])
    kept = "All of it is in .task_outputs/s/1-bash.md: read it with an offset … "
    written[4] = result(3, "c2-0", kept + "x" * 1000)
    conversation = conversation_of(written)
    made = clear_block(conversation, conversation.messages(MODEL).messages, 10**6, WaterMarks(0, 0), ONE_TO_ONE)
    first, second, *_ = made.attrs["results"].values()
    assert first.startswith("[cleared to save room: 1,0")
    assert first.endswith("all of it is in .task_outputs/s/1-bash.md]")
    assert "6,400 characters of read" in second and second.endswith("call read again if you need it]")
