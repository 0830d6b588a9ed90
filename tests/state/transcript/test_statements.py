"""What is said of a live file can be read back, and no content can end it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.state.transcript.strategies import texts
from tinyclaw.state.transcript.grammar import Block, parse, render
from tinyclaw.state.transcript.statements import apply_diff, make_diff, state_block, stated_text

lines = st.lists(st.sampled_from(["a", "b", "c", "", "@@ -1 +1 @@", "-x", "+y", " z", "</state ab>"]), max_size=12)


@given(lines.map("\n".join), lines.map("\n".join))
def test_a_diff_applied_to_the_text_before_gives_the_text_after(before, after):
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


@given(texts, texts)
def test_a_diff_of_any_two_texts_gives_the_second(before, after):
    assert apply_diff(before, make_diff(before, after)) == after


@given(texts, st.none() | texts, texts)
def test_any_content_is_read_back_from_the_file(after, before, path):
    block = state_block(path, "0123456789abcdef", "outside", after, before, 1)
    (read,) = parse(render([block]).encode(), "t.md").blocks
    assert stated_text(read, before) == after


@given(
    texts,
    texts,
    st.lists(st.sampled_from(["@@ -1 +1 @@", "@@ -9,2 +9 @@", "@@ -0,0 +1 @@", "+a", "-b", " c", "", "x"])),
)
def test_a_diff_that_somebody_broke_gives_nothing_or_a_text_and_never_an_error(before, after, broken):
    for diff in ("\n".join(broken), make_diff(before, after) + "\n" + "\n".join(broken)):
        assert isinstance(apply_diff(before, diff), str | None)


@pytest.mark.parametrize(
    "diff",
    ["@@ -9 +9 @@\n-a", "@@ -3 +3 @@\n-c\n@@ -1 +1 @@\n-a", "@@ -1 +1 @@\n-other", "no diff", "@@ -1 +1 @@\n-a\n\n+b"],
)
def test_hunks_that_do_not_fit_give_nothing(diff):
    assert apply_diff("a\nb\nc", diff) is None


def long_text(last: str) -> str:
    return "\n".join([*(f"{number}. step" for number in range(30)), last])


def test_a_small_change_of_a_long_file_is_a_diff_and_a_rewritten_file_is_stated_whole():
    before = long_text("old")
    assert state_block("a", "r", "outside", long_text("new"), before, 1).attrs["how"] == "diff"
    assert state_block("a", "r", "outside", "short", before, 1).attrs["how"] == "whole"
    assert state_block("a", "r", "outside", before, None, 1).attrs["how"] == "whole"


def test_a_diff_stands_on_the_very_text_that_it_was_made_from():
    block = state_block("a", "r", "outside", long_text("new"), long_text("old"), 1)
    assert stated_text(block, long_text("old")) == long_text("new")
    changed_elsewhere = long_text("old").replace("3. step", "3. other step")
    assert apply_diff(changed_elsewhere, make_diff(long_text("old"), long_text("new"))) is not None
    assert stated_text(block, changed_elsewhere) is None and stated_text(block, None) is None


def test_a_statement_that_a_person_edited_says_what_it_says_now():
    block = state_block("a", "r", "outside", "one\ntwo", None, 1)
    assert stated_text(Block("state", block.attrs, block.text.replace("two", "three")), None) == "one\nthree"


def test_a_path_cannot_break_the_statements_tag_or_its_heading():
    block = state_block('a"><b\n<!-- tc:end -->.md', "r", "outside", "x", None, 1)
    assert block.text.split("\n")[0].count('"') == 8 and block.text.split("\n")[0].count(">") == 1
    assert "<" not in block.heading and "\n" not in block.heading
