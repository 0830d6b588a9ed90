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
    data = whole[:cut]
    parsed = parse(data, "t.md")
    # A block is ended with its last line; the line break and the blank line behind it may be missing.
    ended = [block for block, end in zip(written, ends, strict=True) if end - 2 <= cut]
    assert kept(parsed) == ended and not any(block.kind == OUTSIDE for block in parsed.blocks)
    if parsed.torn_at is not None:
        data = _appended(data, Block("torn", {"bytes": len(data) - parsed.torn_at}))
    for count, text in enumerate(("later", "and later")):
        data = _appended(data, user_text(text, 9 + count, "now"))
        again = parse(data, "t.md")
        assert again.torn_at is None and not any(block.kind == OUTSIDE for block in again.blocks)
        found = [block for block in kept(again) if block.kind != "torn"]
        assert found[: len(ended)] == ended
        assert [block.text for block in found[len(ended) :]] == ["later", "and later"][: count + 1]
    assert again.header.items() <= HEADER.items()
    if cut >= len(render_header(HEADER)):
        assert (render_header(HEADER) + render(again.blocks)).encode("utf-8", "surrogateescape") == data


def _appended(data: bytes, block: Block) -> bytes:
    """What the store makes of a file: ``block`` on a line of its own, behind a blank one."""
    gap = b"" if data.endswith(b"\n\n") or not data else b"\n" if data.endswith(b"\n") else b"\n\n"
    return data + gap + render([block]).encode()


def test_a_cut_opener_behind_the_persons_text_leaves_that_text():
    whole = file_of([Block("turn_end", {})]) + b"And now the tests.\n\n"
    for cut in ("#", "### PLAN", "### PLAN.md <!-", '### PLAN.md <!-- tc:state {"m":', "<", "<!-- tc:pref"):
        parsed = parse(whole + cut.encode(), "t.md")
        assert [block.text.strip() for block in parsed.blocks if block.kind == OUTSIDE] == ["And now the tests."]
        assert parsed.torn_at == len(whole)
        again = parse(_appended(whole + cut.encode(), Block("torn", {"bytes": len(cut)})), "t.md")
        assert [block.text.strip() for block in again.blocks if block.kind == OUTSIDE] == ["And now the tests."]


def test_a_heading_whose_line_is_ended_is_the_persons_text():
    parsed = parse(file_of([Block("turn_end", {})]) + b"## Do this\n", "t.md")
    assert (parsed.blocks[-1].kind, parsed.torn_at) == (OUTSIDE, None)


def test_a_cut_file_with_carriage_returns_is_read_like_any_other():
    written = [user_text("a\nb", 1, "now"), Block("event", {"what": "x"}, "text", box=False), Block("turn_end", {})]
    whole = file_of(written).replace(b"\n", b"\r\n")
    ends = [len(file_of(written[: count + 1]).replace(b"\n", b"\r\n")) for count in range(len(written))]
    for cut in range(len(whole)):
        parsed = parse(whole[:cut], "t.md")
        assert kept(parsed) == [block for block, end in zip(written, ends, strict=True) if end - 4 <= cut]
        assert not any(block.kind == OUTSIDE for block in parsed.blocks)


# Headers


@given(st.dictionaries(st.from_regex("[a-z]{1,8}", fullmatch=True), st.text(max_size=30), max_size=4))
def test_a_header_comes_back(fields):
    assert parse(file_of([], fields), "t.md").header == fields


def test_a_header_that_is_not_closed_is_read_as_far_as_it_goes_and_said():
    data = b"---\nsession: s\nformat: 1\n\nMy own words: here.\n\n" + render([user_text("x", 1, "now")]).encode()
    parsed = parse(data, "t.md")
    assert parsed.header == {"session": "s", "format": "1"}
    assert [block.text.strip() for block in parsed.blocks] == ["My own words: here.", "x"]
    assert "not closed" in str(parsed.diagnostics[0])


@pytest.mark.parametrize(
    "data", [b"", b"x", b"--- x", b"----\n", b"\xef\xbb\xbf", b"---", b"---\n---", b"---\n:\n---\n"]
)
def test_a_file_without_a_header_has_no_fields(data):
    assert set(parse(data, "t.md").header.values()) <= {""}


def test_a_mark_at_the_files_beginning_is_no_text():
    parsed = parse(b"\xef\xbb\xbf" + file_of([user_text("x", 1, "now")]), "t.md")
    assert (parsed.header, [block.text for block in parsed.blocks]) == (HEADER, ["x"])


# Damage


@pytest.mark.parametrize("kind", ["outside", "damaged", "end"])
def test_no_block_can_claim_to_be_what_is_no_block(kind):
    data = (
        file_of([user_text("x", 1, "now")])
        + f"<!-- tc:{kind} {{}} /-->\n\n".encode()
        + file_of([Block("side", {})], {})
    )
    parsed = parse(data, "t.md")
    assert [block.kind for block in kept(parsed)] == ["text", "side"]
    assert len(parsed.diagnostics) == 1


def test_a_block_whose_text_lost_bytes_is_left_out_and_said():
    written = [user_text("one", 1, "now"), user_text("two two", 2, "now"), user_text("three", 3, "now")]
    parsed = parse(file_of(written).replace(b"o two", b"\0\0\0\0\0"), "t.md")
    assert kept(parsed) == [written[0], written[2]]
    assert [diagnostic.line for diagnostic in parsed.diagnostics] == [written_line(file_of(written), b"two two") - 3]


def written_line(data: bytes, text: bytes) -> int:
    return data[: data.index(text)].count(b"\n") + 1


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
    for style in (data, data.replace(b"\n", b"\r\n")):
        block = parse(style, "t.md").blocks[1]
        assert (block.kind, block.text, block.line) == (OUTSIDE, "And now the tests.\n", data.count(b"\n"))


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
