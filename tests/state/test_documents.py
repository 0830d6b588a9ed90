"""Documents are read whatever is wrong with them, and edited without touching what is not meant."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tinyclaw.errors import StateError
from tinyclaw.state.documents import Document, storable

RECORD = b"""---
zeta: last in the alphabet
alpha: "01"  # quoted on purpose
# a comment
list:
- one
-   two

block: |
  text
  ---
  more

nested: {type: user, tags: [a, b]}
---
    code first

and three newlines



"""


def parse(data, name="NOTE.md"):
    return Document.parse(data if isinstance(data, bytes) else data.encode(), name)


def with_field(line):
    return parse(f"---\n{line}\nnext: good\n---\nbody\n")


def said(document):
    return [str(diagnostic) for diagnostic in document.diagnostics]


# Reading


def test_fields_body_and_lines_are_read():
    document = parse(RECORD)
    assert document.fields == {
        "zeta": "last in the alphabet",
        "alpha": "01",
        "list": ["one", "two"],
        "block": "text\n---\nmore\n",
        "nested": {"type": "user", "tags": ["a", "b"]},
    }
    assert document.field_lines == {"zeta": 2, "alpha": 3, "list": 5, "block": 9, "nested": 14}
    assert document.body == "    code first\n\nand three newlines\n\n\n\n"
    assert document.body_line == 16
    assert said(document) == []


def test_a_document_without_frontmatter_is_all_body():
    document = parse("# Title\n\n---\n\nno: field\n")
    assert (document.fields, document.body, said(document)) == ({}, document.text, [])


PLAIN = b"---\nname: x\ndescription: y z\n---\n# Body\n\ntext\n"


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("first", [b"", b"\n", b"  \n\n"])
def test_byte_order_mark_line_ends_and_a_blank_first_line_change_nothing(bom, newline, first):
    document = parse(bom + (first + PLAIN).replace(b"\n", newline))
    assert (document.fields, document.body) == (parse(PLAIN).fields, parse(PLAIN).body)
    assert "\ufeff" not in document.text
    assert said(document) == []


def test_every_scalar_stays_the_text_that_was_typed():
    lines = (
        "name: no\nversion: 1.10\ncreated: 2024-01-02\nat: 12:30:45\ncode: 010\non: push\n1: x\ndue: 2024-02-30\nnil: ~"
    )
    fields = parse(f"---\n{lines}\n---\n").fields
    assert fields == dict(line.split(": ") for line in lines.split("\n"))
    assert json.loads(json.dumps(fields)) == fields


@pytest.mark.parametrize(
    "value",
    [
        "Runs checks: lint, types",
        "@team rules",
        "*.py helper",
        "`x` tool",
        '"open',
        "[a, b",
        "{x} y",
        "- a",
        "&x y",
        "!y z",
        "*all",
        "%a",
        "a: b: c",
    ],
)
def test_a_value_that_yaml_refuses_or_bends_is_taken_as_text_and_said_once(value):
    document = with_field(f"description: {value}")
    assert document.fields == {"description": value, "next": "good"}
    [message] = said(document)
    assert message.startswith('NOTE.md:2: "description"')
    assert message.endswith("quote the value")


def test_a_hash_that_begins_a_word_does_not_cut_the_value():
    document = with_field("description: fix issue #12 now")
    assert document.fields["description"] == "fix issue #12 now"
    assert said(document) == ['NOTE.md:2: "description" holds a # that YAML takes for a comment; quote the value']


def test_a_comment_is_a_comment():
    assert with_field("status: draft  # or approved").fields["status"] == "draft"
    assert said(with_field("status: draft  # or approved")) == []


def test_tabs_as_indentation_are_read_and_said():
    document = with_field("metadata:\n\tkey: value")
    assert document.fields == {"metadata": {"key": "value"}, "next": "good"}
    assert said(document) == ["NOTE.md:3: is indented by a tab; indent it by spaces"]


def test_a_value_that_goes_on_in_the_next_line_without_indentation_is_kept_whole():
    assert with_field("description: this is long\nand goes on").fields["description"] == "this is long and goes on"


def test_the_first_of_two_fields_counts_and_the_second_is_said():
    document = parse("---\nname: one\nother: x\nname: two\n---\n")
    assert document.fields == {"name": "one", "other": "x"}
    assert said(document) == ['NOTE.md:4: "name" stands here again; the first one, 2 lines up, counts; remove one']


@pytest.mark.parametrize("closing", ["---", "--- ", "...", "---\t"])
def test_a_block_ends_at_a_line_of_dashes_or_dots(closing):
    document = parse(f'---\nd: "a --- b"\nt: |\n  x\n  ---\n{closing}\none\n---\ntwo\n---\nthree')
    assert document.fields == {"d": "a --- b", "t": "x\n---\n"}
    assert document.body == "one\n---\ntwo\n---\nthree"


def test_a_block_that_never_ends_is_body_and_said_once():
    document = parse("---\nname: x\n\ntext\n")
    assert (document.fields, document.body) == ({}, "---\nname: x\n\ntext\n")
    assert said(document) == [
        "NOTE.md:1: the frontmatter is never closed, so all is taken as text; add a line --- below its fields"
    ]


@pytest.mark.parametrize("block", ["just text", "- a\n- b: c", "[a, b]", "42"])
def test_a_block_that_is_no_mapping_is_body_and_said_once(block):
    document = parse(f"---\n{block}\n---\nrest\n")
    assert (document.fields, document.body) == ({}, document.text)
    assert len(said(document)) == 1


def test_an_empty_block_is_frontmatter():
    assert parse("---\n---\nbody\n").body == "body\n"
    assert parse("---\n# nothing yet\n---\nbody\n").body == "body\n"


def test_aliases_are_not_followed():
    bomb = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    document = parse(f"---\n{bomb}---\nbody\n")
    assert document.fields["i"] == "&i [*h, *h]"
    assert document.body == "body\n"
    assert len(said(document)) == 9


def test_huge_frontmatter_is_not_read_and_the_body_is_there():
    document = parse("---\nname: " + "x" * 100_000 + "\n---\nbody\n")
    assert (document.fields, document.body) == ({}, "body\n")
    assert "too large" in said(document)[0]


@pytest.mark.parametrize("value", ["[" * 900, "- " * 900, "{a: " * 900])
def test_deep_nesting_is_taken_as_text(value):
    assert with_field(f"deep: {value}").fields == {"deep": value.strip(), "next": "good"}


def test_text_that_is_not_utf8_is_readable_but_not_writable():
    document = parse(b"---\nname: x\n---\ncaf\xe9\n")
    assert (document.fields, document.body, document.writable) == ({"name": "x"}, "caf\ufffd\n", False)
    assert said(document) == ["NOTE.md:4: byte e9 is not UTF-8; save it as UTF-8 to have it edited"]
    with pytest.raises(StateError, match="not UTF-8"):
        document.set_field("name", "y")


def test_utf16_is_readable_but_not_writable():
    document = parse("---\nname: x\n---\nbody".encode("utf-16"))
    assert (document.fields, document.body, document.writable) == ({"name": "x"}, "body", False)


def test_line_ends_that_are_none_stay_in_their_value():
    fields = with_field("d: a\u2028b\x85c\rd\x00e").fields
    assert fields["d"] == "a\u2028b\x85c\rd\x00e"


# Getters


def test_a_missing_field_is_its_default_without_a_word():
    document = parse(PLAIN)
    assert (document.string("none"), document.string("none", "x"), document.strings("none")) == ("", "x", ())
    assert document.choice("none", ("a", "b"), "b") == "b"
    assert said(document) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("name:", 'NOTE.md:2: "name" is empty; give it a value or remove the line'),
        ("name: [a]", 'NOTE.md:2: "name" is a list, not text; write "name: text"'),
        ("name: {a: b}", 'NOTE.md:2: "name" is a mapping, not text; write "name: text"'),
    ],
)
def test_a_field_that_is_no_text_is_its_default_and_said_once(line, message):
    document = with_field(line)
    assert [document.string("name", "x"), document.string("name", "x")] == ["x", "x"]
    assert said(document) == [message]


def test_a_choice_is_read_in_any_case_and_an_unknown_one_is_said():
    assert with_field("status: Approved").choice("status", ("draft", "approved", "done"), "draft") == "approved"
    document = with_field("status: ready")
    assert document.choice("status", ("draft", "approved", "done"), "draft") == "draft"
    assert said(document) == ['NOTE.md:2: "ready" is no status; use draft, approved or done']


def test_a_list_of_texts_may_be_one_text():
    assert with_field("tools: [read, grep]").strings("tools") == ("read", "grep")
    assert with_field("tools: read").strings("tools") == ("read",)
    document = with_field("tools: {a: b}")
    assert document.strings("tools") == ()
    assert len(said(document)) == 1


# Editing


def test_one_field_changes_one_line():
    edited = parse(RECORD).set_field("zeta", "new")
    assert edited == RECORD.replace(b"last in the alphabet", b"new")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("alpha", b'alpha: "01"  # quoted', b"alpha: v  # quoted"),
        ("list", b"list:\n- one\n-   two\n", b"list: v\n"),
        ("block", b"block: |\n  text\n  ---\n  more\n", b"block: v\n"),
        ("nested", b"nested: {type: user, tags: [a, b]}\n", b"nested: v\n"),
        ("more", b"tags: [a, b]}\n", b"tags: [a, b]}\nmore: v\n"),
    ],
)
def test_a_value_of_any_shape_is_replaced_in_its_own_span(name, old, new):
    assert parse(RECORD).set_field(name, "v") == RECORD.replace(old, new)


def test_an_edit_keeps_byte_order_mark_and_line_ends():
    data = b"\xef\xbb\xbf" + RECORD.replace(b"\n", b"\r\n")
    document = parse(data)
    assert document.set_field("zeta", "new") == data.replace(b"last in the alphabet", b"new")
    assert b"tags: [a, b]}\r\nadded: x\r\n---" in document.set_field("added", "x")


def test_an_equal_value_changes_nothing():
    assert parse(RECORD).set_field("alpha", "01") == RECORD


def test_a_missing_block_is_added_above_the_text():
    assert parse("# Title\n").set_field("status", "done") == b"---\nstatus: done\n---\n# Title\n"
    assert parse(b"\xef\xbb\xbfa\r\n").set_field("n", "v") == b"\xef\xbb\xbf---\r\nn: v\r\n---\r\na\r\n"
    assert parse(b"").set_field("n", "v") == b"---\nn: v\n---\n"


def test_an_empty_value_is_filled_in():
    assert (
        parse("---\ngoal:   # the goal\nx: y\n---\n").set_field("goal", "v")
        == b"---\ngoal: v   # the goal\nx: y\n---\n"
    )
    assert parse("---\ngoal:\n---\n").set_field("goal", "v") == b"---\ngoal: v\n---\n"


def test_faulty_neighbours_stay_as_they_are():
    data = b"---\na: x: y\nstatus: draft\nb: @z\n---\n"
    assert parse(data).set_field("status", "done") == data.replace(b"draft", b"done")
    assert parse(data).set_field("a", "ok") == data.replace(b"x: y", b"ok")


@pytest.mark.parametrize(
    "data", [b"---\nname: x\n", b"---\n" + b"a: b\n" * 20_000 + b"---\n"], ids=["never closed", "too large"]
)
def test_frontmatter_that_cannot_be_read_is_not_edited(data):
    with pytest.raises(StateError, match=r"NOTE\.md:1"):
        parse(data).set_field("name", "y")


@pytest.mark.parametrize("value", ["|x", ">x", "|", "|\U0004cd2b", "\U0001f600: x"])
def test_a_value_that_yaml_would_take_for_more_is_written_in_quotes(value):
    edited = parse("---\na: b\n---\n  text\n").set_field("name", value)
    assert parse(edited).set_field("more", "words") and parse(edited).string("name") == value


def test_a_character_that_yaml_cannot_carry_is_replaced():
    edited = parse("text\n").set_field("name", "a\U00107bd5\udc80")
    assert parse(edited).string("name") == "a\ufffd\ufffd"


def test_another_body_takes_the_place_of_the_text_alone():
    data = b"\xef\xbb\xbf---\r\nname: x  # mine\r\n---\r\nold\r\n"
    assert parse(data).with_body("\nnew\n") == data.replace(b"old\r\n", b"\r\nnew\r\n")
    assert parse("no head").with_body("new\n") == b"new\n"
    with pytest.raises(StateError, match="never closed"):
        parse("---\nname: x\n").with_body("new\n")


def test_a_name_that_is_none_is_refused():
    with pytest.raises(StateError, match="name of a field"):
        parse(RECORD).set_field("a: b", "c")


# For all documents

FENCES = ["---\n", "--- \n", "...\n"]
FIELDS = ["name: x\n", "goal: |\n  a\n\n", "list:\n- a\n", "k: {a: b}\n", "name: 'a\n  b'\n", "f: v\r\n", '"q r": s\n']


def test_a_list_is_written_a_line_each_in_the_place_of_what_stood_there():
    added = parse("---\na: b\n---\nbody\n").set_field("list", ["x", "y: z", "- w"])
    assert added == b'---\na: b\nlist:\n  - x\n  - "y: z"\n  - "- w"\n---\nbody\n'
    assert parse(added).set_field("list", ["x"]) == b"---\na: b\nlist:\n  - x\n---\nbody\n"
    assert parse(added).set_field("list", []) == b"---\na: b\nlist: []\n---\nbody\n"
    assert parse("---\r\nl: [a, b]\r\n---\r\n").set_field("l", ["c"]) == b"---\r\nl:\r\n  - c\r\n---\r\n"


FAULTS = ["a: x: y\n", "\ttab: x\n", "d: fix #1\n", "e:  # c\n", "b: &x y\n", "text\n", "- [ ] item\n"]
SCRAPS = ["# c\n", "\n", "\r\n", "\u2028", "\x00", "   ", ": ", "#", "{", "]", "'", "é", "😀", "x"]
pieces = st.lists(st.sampled_from([*FENCES, *FIELDS, *FAULTS, *SCRAPS]), max_size=12).map("".join)
documents = st.one_of(pieces, pieces.map(lambda text: f"---\n{text}---\nbody\n"), st.text())
values = st.one_of(
    st.text(min_size=1), st.sampled_from(["v", "a: b", "# x", "a #b", "no", "- x", '"', "\\", "a\nb", " a ", "\udc80"])
)


@given(st.binary())
@example(b"---\n? a\n: b\n---\n")
@example(b"---\n{a: b,\nc: d}\n---\n")
@example(b"\xff\xfe")
def test_any_bytes_can_be_parsed(data):
    document = parse(data)
    assert document.text.endswith(document.body)
    assert document.data == data


@given(documents)
def test_any_text_can_be_parsed_and_its_body_is_its_end(text):
    document = parse(text.encode("utf-8", "replace"))
    assert document.text.endswith(document.body)
    assert set(document.fields) == set(document.field_lines)
    json.dumps(document.fields)


@given(
    documents,
    st.sampled_from(["name", "goal", "list", "k", "a", "d", "e", "f", "new"]),
    st.one_of(values, st.lists(values, max_size=3)),
)
def test_an_edit_changes_its_own_span_and_reads_back(text, name, value):
    document = parse(text.encode("utf-8", "replace"))
    try:
        edited = document.set_field(name, value)
    except StateError:
        return
    again = parse(edited)
    wanted = storable(value) if isinstance(value, str) else [storable(item) for item in value]
    assert again.fields == {**document.fields, name: wanted}
    assert again.body == document.body
    start, end = _removed(document.data, edited)
    assert start == end or _own_span(document, name)[0] <= start <= end <= _own_span(document, name)[1]


def _removed(old, new):
    """The span of ``old`` that is not in ``new``."""
    head = _common(old, new)
    return head, len(old) - _common(old[head:][::-1], new[head:][::-1])


def _common(one, other):
    """How many bytes both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _own_span(document, name):
    """From the first byte of a field's lines to the last."""
    [field] = [field for field in document._block.fields if field.name == name]
    lines = [line + b"\n" for line in document.data.split(b"\n")]
    first = document.field_lines[name] - 1
    last = first + field.end_line - field.line
    return len(b"".join(lines[:first])), len(b"".join(lines[:last]))
