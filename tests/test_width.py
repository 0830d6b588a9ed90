from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyclaw.width import cut, harmless, one_line, pad, table, width

FLAG, FAMILY, HEART = "\U0001f1ef\U0001f1f5", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f"


@pytest.mark.parametrize(
    ("text", "columns"),
    [("abc", 3), ("日本", 4), ("e\u0301", 1), (FLAG, 2), (FLAG * 2, 4), (FAMILY, 2), (HEART, 2), ("👍🏽", 2), ("", 0)],
)
def test_width_counts_columns_and_not_characters(text, columns):
    assert width(text) == columns


def test_a_cut_text_ends_in_an_ellipsis_and_keeps_joined_characters_together():
    assert cut("日本語のタイトル", 8) == "日本語…"
    assert cut(f"ab{FLAG}cd", 4) == "ab…"
    assert cut("e\u0301e\u0301e\u0301", 2) == "e\u0301…"
    assert cut("whole", 5) == "whole"
    assert cut("abc", 1) == "…"
    assert cut("abc", 0) == ""


@given(st.text(max_size=60), st.integers(0, 40))
def test_no_cut_text_is_wider_than_asked_for(text, columns):
    assert width(cut(one_line(text), columns)) <= columns


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=30)), min_size=1, max_size=5), st.integers(1, 60))
def test_all_rows_of_a_table_are_equally_wide_and_fit(rows, columns):
    lines = table([(one_line(first), one_line(second)) for first, second in rows], columns)
    assert len({width(line) for line in lines}) == 1
    assert width(lines[0]) <= columns


def test_columns_of_a_table_can_stand_at_the_right():
    assert table([("a", "1", "x"), ("bb", "100", "y")], 40, right=(1,)) == ["a     1  x", "bb  100  y"]


@given(st.text())
def test_harmless_text_holds_nothing_that_a_terminal_obeys(text):
    shown = harmless(text)
    assert all(char in "\n\t" or not ("\0" <= char < " " or "\x7f" <= char < "\xa0") for char in shown)
    assert "\u202e" not in shown


def test_an_escape_code_is_shown_by_its_picture_and_an_override_of_direction_by_a_mark():
    assert harmless("\x1b[2J\r\nx\u202ey") == "␛[2J\nx\ufffdy"
    assert pad("日", 3) == "日 "
