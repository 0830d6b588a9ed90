from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyclaw.tools._edit_match import LADDER, _spans, apart, find, replacement, rewritten


def edited(text: str, old: str, new: str) -> str:
    """``text`` after the one replacement that must be possible."""
    found = find(text, old)
    assert len(found.spans) == 1, f"{len(found.spans)} places by {found.rung}"
    span = found.spans[0]
    replaced = replacement(text, span, old, new)
    assert replaced is not None
    return text[: span.start] + replaced + text[span.end :]


def rung(text: str, old: str) -> str:
    return find(text, old).rung.differs_in


MIXED = "alpha\r\nbeta\ngamma\r\nd\rx\r\n"


def test_one_word_changes_one_word_in_mixed_line_endings():
    assert edited(MIXED, "beta", "BETA") == "alpha\r\nBETA\ngamma\r\nd\rx\r\n"


def test_lf_quote_matches_crlf_text_and_takes_its_endings():
    assert edited(MIXED, "gamma\nd", "gamma\nnew\nd") == "alpha\r\nbeta\ngamma\r\nnew\r\nd\rx\r\n"
    assert rung(MIXED, "gamma\nd") == "line endings"


def test_crlf_quote_matches_lf_text():
    assert edited("a\nb\nc\n", "a\r\nb", "a\r\nB") == "a\nB\nc\n"


def test_lone_cr_outside_and_inside_the_match_stays():
    assert edited("d\rx\ne\n", "x\ne", "y\ne") == "d\ry\ne\n"
    assert edited("d\rx\ne\n", "d\rx", "d\ry") == "d\ry\ne\n"


@pytest.mark.parametrize("old", ["\nb", "a\n"])
def test_a_match_never_splits_a_crlf(old):
    assert edited("a\r\nb", old, old.replace("\n", "\n\n")) == "a\r\n\r\nb"


def test_a_blank_line_is_not_found_inside_a_crlf():
    assert find("a\r\nb", "a\n\nb").spans == ()


def test_inserted_lines_take_the_ending_of_the_lines_around_them():
    assert edited("a\r\nb\r\n", "b", "b\nc") == "a\r\nb\r\nc\r\n"
    assert edited("a\r\nb", "b", "b\nc") == "a\r\nb\r\nc"
    assert edited("a", "a", "a\nb") == "a\nb"


def test_every_kept_line_of_a_mixed_file_keeps_its_own_ending():
    assert edited("a\r\nb\nc\r\nd\n", "a\nb\nc\nd", "a\nB\nB2\nc\nd") == "a\r\nB\nB2\nc\r\nd\n"


@pytest.mark.parametrize("new", [r"\1 \g<0> $& $$ \n %s {x}", "‘%s’", "a\\", "\x00", "\u2028"])
def test_new_text_is_inserted_literally(new):
    assert edited("say '%s' now", "'%s'", new) == f"say {new} now"


def test_straight_quotes_become_curly_when_asked():
    assert edited("say '%s'", "say '%s'", "say ‘%s’") == "say ‘%s’"


def test_quotes_dashes_and_spaces_may_differ():
    assert edited("it’s – a\u00a0test", "it's - a test", "done") == "done"
    assert edited("it's - a test", "it’s – a\u00a0test", "done") == "done"


def test_curly_lines_that_are_only_context_stay_curly():
    assert edited("“one”\ntwo\n", '"one"\ntwo', '"one"\n2') == "“one”\n2\n"


def test_either_unicode_form_of_an_accent_matches_and_the_rest_keeps_its_form():
    nfd, nfc = "cafe\u0301", "caf\u00e9"
    assert edited(f"{nfd} {nfd}!", f"{nfc}!", "tea!") == f"{nfd} tea!"
    assert edited(f"{nfc} x", f"{nfd} x", "tea") == "tea"


def test_accents_on_pattern_characters_do_not_break_the_pattern():
    assert edited("a.\u0301b*\u0301“", 'a.\u0301b*\u0301"', "x") == "x"


def test_blanks_at_line_ends_may_differ():
    assert edited("a  \nb\t\nc\n", "a\nb\nc", "a\nB\nc") == "a  \nB\nc\n"
    assert edited("a\nb\n", "a   \nb  ", "a   \nB") == "a\nB\n"


def test_blanks_behind_the_quote_are_not_part_of_it():
    assert edited("x = 1  \ny", "x = 1", "x = 2") == "x = 2  \ny"


def test_a_line_break_at_the_end_of_the_quote_may_be_missing_in_the_file():
    assert edited("a\nb", "b\n", "B\n") == "a\nB"
    assert edited("a\r\nb", "b\n", "B\nC\n") == "a\r\nB\r\nC"


def test_shifted_quote_brings_its_new_lines_to_the_file_indentation():
    text = "class A:\n    def f(self):\n        return 1\n"
    assert edited(text, "def f(self):\n    return 1", "def f(self):\n    if x:\n        return 2") == (
        "class A:\n    def f(self):\n        if x:\n            return 2\n"
    )


def test_quote_with_too_much_indentation():
    assert edited("if a:\n    b\n", "    if a:\n        b", "    if a:\n        c") == "if a:\n    c\n"


def test_spaces_quoted_for_tabs_become_tabs():
    assert edited("\tif a:\n\t\tb\n", "    if a:\n        b", "    if a:\n        b\n        c") == (
        "\tif a:\n\t\tb\n\t\tc\n"
    )


def test_tabs_quoted_for_spaces_become_spaces():
    assert edited("  if a:\n    b\n", "\tif a:\n\t\tb", "\tif a:\n\t\tc\n\t\t\td") == "  if a:\n    c\n      d\n"


def test_tabs_and_a_shift_together():
    assert edited("\tif a:\n\t\tb\n", "if a:\n    b", "if a:\n    c") == "\tif a:\n\t\tc\n"


def test_indentation_that_differs_line_by_line_is_no_match():
    assert find("if a:\n    b\n        c\n", "if a:\n  b\nc").spans == ()


def test_a_new_line_without_counterpart_in_the_file_is_refused():
    text, old = "if a:\n    b\n", "    if a:\n        b"
    assert replacement(text, find(text, old).spans[0], old, "if a:\n    b") is None


def test_every_place_counts_overlapping_ones_too():
    assert len(find("aaa", "aa").spans) == 2
    assert [span.start for span in apart(find("aaaa", "aa").spans)] == [0, 2]


def test_the_strictest_rung_decides():
    assert rung("it's\nit’s\n", "it's") == ""
    assert len(find("a \n a\n", "a\n").spans) == 1


def test_a_quote_of_blanks_matches_only_exactly():
    assert find("a\nb", "  ").spans == ()
    assert len(find("a  b", "  ").spans) == 1


def test_rewriting_a_whole_text_keeps_its_line_endings():
    assert rewritten("a\r\nb\r\n", "x\ny\n") == "x\r\ny\r\n"
    assert rewritten("a\nb\n", "x\r\ny\r\n") == "x\ny\n"
    assert rewritten("a\r\nb\nc\r\n", "a\nb\nB\nc\n") == "a\r\nb\nB\nc\r\n"
    assert rewritten("", "x\r\n") == "x\r\n"


ALPHABET = st.text(alphabet="ab \t\n\r'’-–é\u0301é(\\.", max_size=40)


@given(ALPHABET, ALPHABET, ALPHABET, ALPHABET)
def test_what_stands_in_a_text_is_found_and_nothing_outside_the_span_changes(before, old, after, new):
    text = before + old + after
    found = find(text, old) if old else None
    if found is None or len(found.spans) != 1:
        return
    span = found.spans[0]
    replaced = replacement(text, span, old, new)
    if replaced is not None:
        result = text[: span.start] + replaced + text[span.end :]
        assert result.startswith(text[: span.start]) and result.endswith(text[span.end :])
        if "\r" not in text and not found.rung.differs_in:
            assert replaced == new.replace("\r\n", "\n")


@given(ALPHABET, ALPHABET)
def test_each_rung_finds_what_the_rung_before_it_finds(text, old):
    if not old.strip():
        return
    starts = [{span.start for span in _spans(text, old, step)} for step in LADDER[:4]]
    for strict, lenient in pairwise(starts):
        assert strict <= lenient


@given(ALPHABET, ALPHABET)
def test_replacing_by_the_same_text_changes_nothing(text, old):
    for span in find(text, old).spans if old else ():
        assert replacement(text, span, old, old) == text[span.start : span.end]
