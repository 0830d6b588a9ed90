"""Three-way merges keep both edits whole or say that they cannot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyclaw.state.merge import distance, merge3, split_lines, unified

texts = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "\n", "d"]), max_size=8).map("".join)


@given(texts, texts)
def test_a_side_that_changed_nothing_takes_the_other_as_it_is(base, other):
    assert merge3(base, other, base) == other
    assert merge3(base, base, other) == other
    assert merge3(base, other, other) == other


@given(texts, texts, texts)
def test_the_order_of_the_sides_does_not_matter(base, ours, theirs):
    assert merge3(base, ours, theirs) == merge3(base, theirs, ours)


@given(st.lists(st.integers(0, 99), unique=True, min_size=1), st.data())
def test_every_line_that_a_side_added_survives_and_every_line_it_took_out_is_gone(numbers, data):
    base = [f"{number}\n" for number in numbers]
    sides = [_edited(base, name, data) for name in ("ours", "theirs")]
    merged = merge3("".join(base), *("".join(side) for side in sides))
    if merged is not None:
        lines = set(split_lines(merged))
        assert lines == (set(sides[0]) | set(sides[1])) - (set(base) - set(sides[0])) - (set(base) - set(sides[1]))


def _edited(base, name, data):
    """Some lines left out, replaced, or with a new one before them."""
    side = []
    for number, line in enumerate(base):
        what = data.draw(st.sampled_from(["keep", "keep", "keep", "drop", "replace", "insert"]))
        side += {"keep": [line], "drop": [], "replace": [f"{name} {number}\n"], "insert": [f"{name} {number}\n", line]}[
            what
        ]
    return side


def test_edits_of_neighbouring_lines_are_merged():
    base = "- [ ] one\n- [ ] two\n"
    assert merge3(base, "- [x] one\n- [ ] two\n", "- [ ] one\n- [x] two\n") == "- [x] one\n- [x] two\n"


def test_a_tick_of_the_last_line_and_a_line_added_behind_it_are_merged():
    assert merge3("- [ ] a\n", "- [x] a\n", "- [ ] a\n- [ ] b\n") == "- [x] a\n- [ ] b\n"


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        ("a\n", "b\n", "c\n"),
        ("a\n", "a\nb\n", "a\nc\n"),
        ("a\nb\nc\n", "c\n", "a\nB\nc\n"),
        ("a\nb\n", "a\nb", "a\nb\nc\n"),
        ("", "ours\n", "theirs\n"),
    ],
    ids=["same line", "same place", "edit of a deleted line", "last newline dropped", "two new files"],
)
def test_overlapping_edits_are_not_merged(base, ours, theirs):
    assert merge3(base, ours, theirs) is None


def test_line_ends_of_each_side_are_kept():
    assert merge3("a\r\nb\nc\rd\n", "A\r\nb\nc\rd\n", "a\r\nb\nc\rD\n") == "A\r\nb\nc\rD\n"


def test_a_diff_names_the_file_and_the_missing_last_newline():
    diff = unified("a\nb\n", "a\nc", "PLAN.md")
    assert diff == "--- a/PLAN.md\n+++ b/PLAN.md\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n"
    assert unified("same\n", "same\n", "PLAN.md") == ""


def test_distance_counts_the_lines_of_a_diff():
    assert distance("a\nb\n", "a\nc\nd\n") == 3


def test_long_texts_without_a_common_line_are_one_edit():
    old, new = ("".join(f"{side}{number}\n" for number in range(6000)) for side in "ab")
    assert merge3(old, new, old) == new
