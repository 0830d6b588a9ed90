"""A text is cut so that what is left reads, fits, and says what is missing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyclaw.context.cut import cut, cut_file
from tinyclaw.state.snapshot import StateFile
from tinyclaw.types import Diagnostic


def body(text: str) -> str:
    """The text without the notice at its end."""
    return text.rpartition("\n")[0]


def test_what_fits_is_left_alone():
    assert cut("\none\ntwo\n", 9, "A.md") == cut("\none\ntwo\n", 900, "A.md")
    shown = cut("one\ntwo\n", 8, "A.md")
    assert (shown.text, shown.lines, shown.note) == ("one\ntwo", "1-2", "")


def test_whole_lines_are_kept_and_the_notice_says_size_share_and_the_way_on():
    shown = cut("line\n" * 1_000, 500, "A.md", setting="some_bytes")
    kept = body(shown.text).count("\n") + 1
    assert body(shown.text) == "\n".join(["line"] * kept) and kept > 50
    assert shown.text.endswith(
        f"[A.md is 5,000 bytes in 1,000 lines; only lines 1-{kept} are shown. Read the rest from line {kept + 1}.]"
    )
    assert shown.lines == f"1-{kept} of 1000"
    assert shown.note == (
        f"cut: it is 5,000 bytes in 1,000 lines, and only lines 1-{kept} are in the prompt; "
        "some_bytes in SETTINGS.md sets the limit"
    )


def test_the_limit_of_lines_holds_too():
    shown = cut("a\nb\nc\n", 900, "A.md", limit_lines=2)
    assert body(shown.text) == "a\nb" and "only lines 1-2 are shown" in shown.text


def test_a_long_line_is_cut_inside_and_short_ones_before_it_stay():
    shown = cut("intro\n" + "é" * 20_000, 1_000, "A.md")
    assert re.fullmatch(r"intro\né+", body(shown.text))
    assert "only lines 1-1 and the first 8" in shown.text and shown.text.endswith("Read the rest from line 2.]")
    assert shown.lines == "1-2 of 2"


def test_a_long_line_that_leaves_little_room_is_left_whole_for_later():
    shown = cut("x\n" * 350 + "y" * 500, 1_000, "A.md")
    assert "y" not in body(shown.text) and "lines 1-350 are shown" in shown.text


def test_nobody_is_sent_to_read_a_file_of_the_user_level():
    assert "Read the rest" not in cut("line\n" * 1_000, 500, "~/AGENTS.md").text


@pytest.mark.parametrize("fence", ["```", "````", "~~~", "  ```"])
def test_an_open_code_fence_is_closed(fence):
    lines = cut(f"intro\n{fence}py\n" + "x = 1\n" * 100, 400, "A.md").text.split("\n")
    assert lines[-2] == fence.strip()


def test_a_closed_code_fence_is_left_alone():
    lines = cut("```py\n```text\n```\n" + "x = 1\n" * 100, 400, "A.md").text.split("\n")
    assert lines[-2] == "x = 1"


@given(
    st.lists(st.one_of(st.text(max_size=30), st.sampled_from(["```", "~~~py", "日本語" * 200])), max_size=40),
    st.integers(400, 3_000),
)
def test_a_cut_fits_its_limit_and_is_a_beginning_of_the_text(lines, limit):
    text = "\n".join(lines)
    shown = cut(text, limit, "A.md")
    assert len(shown.text.encode()) <= limit
    if shown.note:
        kept = re.search(r"only lines 1-(\d+)", shown.text.rpartition("\n[")[2] or shown.text)
        whole = text.rstrip("\n").split("\n")[: int(kept[1]) if kept else 0]
        assert shown.text.startswith("\n".join(whole))
    else:
        assert shown.text == text.strip("\n")


def state_file(text: str, line: int | None, message: str, mend: str = "") -> StateFile:
    return StateFile("A.md", text, "r", problem=Diagnostic("A.md", line, message, mend))


def test_a_file_that_is_empty_says_so():
    assert cut_file(StateFile("A.md", " \n", "r"), 900).text == "(the file is empty)"


def test_a_file_that_cannot_be_read_says_why_in_the_text_and_in_the_note():
    shown = cut_file(state_file("", 2, "holds NUL bytes", "save it as UTF-8"), 900)
    assert shown.text == "(A.md could not be read: line 2 holds NUL bytes; save it as UTF-8)"
    assert shown.note == "could not be read: line 2 holds NUL bytes; save it as UTF-8"


def test_a_damaged_file_is_shown_with_what_is_wrong_with_it():
    shown = cut_file(state_file("text\n", None, "is not UTF-8", "save it as UTF-8"), 900)
    assert (shown.text, shown.lines) == ("(A.md: is not UTF-8)\n\ntext", "1-1")
    assert shown.note == "is not UTF-8; save it as UTF-8"
    both = cut_file(state_file("text\n" * 500, None, "is not UTF-8"), 500)
    assert both.note.startswith("is not UTF-8; cut: it is 2,500 bytes")
