"""Format 1: lossless in both directions, at any byte offset, whatever people did to the file."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.state.transcript.strategies import blocks
from tinyclaw.state.transcript.bodies import fenced_parts
from tinyclaw.state.transcript.content import reply_block, result_block, user_text
from tinyclaw.state.transcript.grammar import DAMAGED, OUTSIDE, Block, heading, parse, render, render_header
from tinyclaw.types import Text, ToolUse

HEADER = {
    "session": "20261130-101500-3f9a",
    "title": "Fix: the #1 'bug'",
    "created": "2026-11-30T10:15:00Z",
    "format": "1",
}


def file_of(blocks, header=HEADER) -> bytes:
    return (render_header(header) + render(blocks)).encode("utf-8")


def kept(parsed) -> list[Block]:
    """The blocks that are neither damage nor the person's text."""
    return [block for block in parsed.blocks if block.kind not in (DAMAGED, OUTSIDE)]


@given(st.lists(blocks, max_size=6))
def test_what_is_rendered_is_read_back_equal(written):
    parsed = parse(file_of(written), "t.md")
    assert list(parsed.blocks) == written
    assert parsed.header == HEADER
    assert (parsed.diagnostics, parsed.torn_at) == ((), None)


@given(st.lists(blocks, max_size=6))
def test_a_file_that_we_wrote_is_rendered_to_the_same_bytes(written):
    data = file_of(written)
    parsed = parse(data, "t.md")
    assert file_of(parsed.blocks, parsed.header) == data


@settings(deadline=None, max_examples=60)
@given(st.lists(blocks, min_size=1, max_size=4), st.data())
def test_a_file_cut_anywhere_keeps_every_ended_block(written, data):
    whole = file_of(written)
    cut = data.draw(st.integers(0, len(whole)))
    _check_cut(written, whole, cut)


def test_a_rich_file_cut_at_every_single_offset_keeps_every_ended_block():
    written = [
        user_text("Fix it\n\n```\ncode\n```\n<!-- tc:end -->", 1, "now"),
        Block("request", {"n": 1}),
        reply_block(Text("Größe 🎉"), 2, "m"),
        reply_block(ToolUse("t1", "edit", {"path": "a.py", "new_text": "a\nb\n"}), 2, "m", "edit a.py"),
        Block("reply", {"n": 1}),
        result_block("t1", 3, "done\n\n", name="edit"),
        Block("event", {"what": "permission"}, "text", heading="### permission", box=False),
        Block("turn_end", {}),
    ]
    whole = file_of(written)
    for cut in range(len(whole) + 1):
        _check_cut(written, whole, cut)


def _check_cut(written, whole: bytes, cut: int) -> None:
    ends = [len(file_of(written[: count + 1])) for count in range(len(written))]
    first = kept(parse(whole[:cut], "t.md"))
    # A block is ended with its last line; the line break and the blank line behind it may be missing.
    ended = [block for block, end in zip(written, ends, strict=True) if end - 2 <= cut]
    assert first == ended
    torn = Block("torn", {"bytes": 1})
    later = user_text("later", 9, "now")
    glue = b"" if whole[:cut].endswith(b"\n\n") else b"\n"
    again = kept(parse(whole[:cut] + glue + render([torn, later]).encode(), "t.md"))
    assert [block for block in again if block.kind != "torn"][-1] == later
    assert [block for block in again if block.kind != "torn"][:-1] == ended


def test_nul_bytes_in_the_middle_lose_only_what_they_cover():
    written = [user_text("one", 1, "now"), user_text("two two two", 2, "now"), user_text("three", 3, "now")]
    data = file_of(written)
    start = data.index(b"two two two")
    end = data.index(b"## You", start)
    parsed = parse(data[:start] + bytes(end - start) + data[end:], "t.md")
    assert kept(parsed) == [written[0], written[2]]
    assert len(parsed.diagnostics) == 1 and parsed.diagnostics[0].line is not None


def test_a_file_with_carriage_returns_loads_equal():
    written = [user_text("a\nb", 1, "now"), Block("request", {"n": 1}), result_block("t", 3, "x\n  y\n", name="read")]
    parsed = parse(file_of(written).replace(b"\n", b"\r\n"), "t.md")
    assert (list(parsed.blocks), parsed.crlf, parsed.header) == (written, True, HEADER)


def test_an_end_line_that_a_person_deleted_does_not_lose_the_block():
    written = [user_text("one", 1, "now"), user_text("two", 2, "now")]
    data = file_of(written).replace(b"<!-- tc:end -->\n", b"", 1)
    assert list(parse(data, "t.md").blocks) == written


def test_text_between_blocks_is_the_persons():
    data = file_of([Block("turn_end", {})]) + b"And now the tests.\n"
    assert [(block.kind, block.text) for block in parse(data, "t.md").blocks][1] == (OUTSIDE, "And now the tests.\n")


def test_a_line_that_begins_like_an_opener_and_is_none_is_said_with_its_line():
    data = (
        file_of([user_text("one", 1, "now")])
        + b'<!-- tc:text {"m":2 -->\n\nlost?\n\n'
        + file_of([user_text("b", 3, "n")], {})
    )
    parsed = parse(data, "t.md")
    assert [block.text for block in kept(parsed)][:1] == ["one"]
    assert "t.md:" in str(parsed.diagnostics[0]) and "backslash" in str(parsed.diagnostics[0])


@pytest.mark.parametrize("mark", ["x", "X", " "])
def test_a_checkbox_below_an_opener_is_read_and_never_confused_with_the_text(mark):
    block = user_text("- [ ] in the conversation\nis my text", 1, "now")
    data = file_of([block]).replace(b"- [x] in the conversation", f"- [{mark}] in the conversation".encode(), 1)
    (read,) = parse(data, "t.md").blocks
    assert (read.box, read.text) == (mark != " ", block.text)


@given(st.text(st.characters(exclude_categories=()), max_size=200))
def test_a_heading_never_holds_what_would_break_an_opener(words):
    made = heading(3, words)
    assert made.startswith("### ") and len(made) <= 84 and not set(made) & set("<\\\n\r\0")


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_an_error(data):
    for block in parse(data, "t.md").blocks:
        assert isinstance(block.text, str)


def test_a_long_argument_gets_a_fence_of_its_own_in_the_files_language():
    block = reply_block(ToolUse("t1", "write", {"path": "a.py", "content": "x = 1\ny = 2\n"}), 2, "m", "write a.py")
    text = render([block])
    assert '"args": ["/content"]' in text and "```py\nx = 1\ny = 2\n\n```" in text


def test_fences_that_a_person_broke_are_read_as_plain_text():
    assert fenced_parts("```text\nno end") is None
    data = file_of([result_block("t1", 3, "abc", name="x")]).replace(b"```text\n", b"")
    (read,) = parse(data, "t.md").blocks
    assert read.text == "abc\n```"
