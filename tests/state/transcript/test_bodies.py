"""A body carries any text to the character, as plain lines, in fences or as JSON."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.state.transcript.strategies import texts
from tinyclaw.state.transcript.bodies import escape, fence, fenced_parts, read_body, to_json, unescape, write_body


@given(texts)
def test_escaping_is_undone_and_hides_every_opener(text):
    assert unescape(escape(text)) == text
    assert not any(line.lstrip("# ").startswith("<!-- tc:") for line in escape(text).split("\n"))


@given(texts)
def test_a_plain_body_is_read_back_exactly(text):
    body, encoded = write_body([text], None)
    assert read_body(body, encoded=encoded, fenced=False) == (text,)


@given(st.lists(texts, min_size=1, max_size=4))
def test_fenced_parts_are_read_back_exactly(parts):
    body, encoded = write_body(parts, ["text"] * len(parts))
    assert read_body(body, encoded=encoded, fenced=True) == tuple(parts)


@pytest.mark.parametrize("text", ["", " ", "\n", " edge", "edge\n", "\r", "a\r\nb", "\0", "\x9b", "\ud83d", "\u2028"])
def test_what_plain_lines_cannot_carry_becomes_json(text):
    body, encoded = write_body([text], None)
    assert encoded and body == to_json(text)


@pytest.mark.parametrize("text", ["a\u2028b", "# heading", "```\ncode\n```", "---", "a\tb", "-->", "\U0001f600"])
def test_what_a_person_can_read_stays_plain(text):
    assert write_body([text], None) == (text, False)


@given(texts)
def test_json_in_an_opener_holds_nothing_that_ends_a_comment_or_a_line(text):
    written = to_json({"name": text})
    assert not set(written) & set("<>\r\n\0\x85")
    written.encode("utf-8")


def test_a_fence_is_longer_than_any_run_of_backticks_in_it():
    assert fence("a ```` b", "md") == "`````md\na ```` b\n`````"
    assert fence("a `` b", "") == "```\na `` b\n```"


@pytest.mark.parametrize("body", ["", "text", "```text\nno end", "```\na\n```\nmore", "before\n```\na\n```"])
def test_a_body_that_is_more_or_less_than_fences_is_no_fenced_body(body):
    assert fenced_parts(body) is None


@pytest.mark.parametrize("body", ["no json", "{}", "[1, null]", '"text"', "[]"])
def test_a_json_body_that_a_person_broke_is_read_as_text(body):
    assert all(isinstance(part, str) for part in read_body(body, encoded=True, fenced=False))


@pytest.mark.parametrize("line", ["\\" * 200_000, "a\\" * 100_000, "<!-- tc:" * 20_000, "`" * 200_000])
def test_long_lines_are_escaped_in_linear_time(line):
    text = f"{line}\n<!-- tc:end -->"
    began = time.perf_counter()
    assert unescape(escape(text)) == text
    assert time.perf_counter() - began < 5
