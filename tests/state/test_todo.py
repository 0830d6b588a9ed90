"""TODO.md is a task list; ticking a box changes one character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyclaw.errors import StateError
from tinyclaw.state.todo import Todo

LIST = b"""# Work

- [ ] parser
  - [x] lexer
    verify: `pytest tests/lexer`
  - [~] grammar
* [X] docs
+ [ ] docs
1. [ ] first
2) [ ] second

- no box
- [link](url), [name][ref]

```
- [ ] code
```

<!--
- [ ] hidden
-->
"""


def todo(text):
    return Todo.parse(text.encode())


def said(text):
    return [str(diagnostic) for diagnostic in todo(text).diagnostics]


def test_items_are_read_with_mark_nesting_and_line():
    found = [(item.line, item.text, item.mark, item.depth, item.parent) for item in Todo.parse(LIST).items]
    assert found == [
        (3, "parser", " ", 0, None),
        (4, "lexer", "x", 1, 3),
        (6, "grammar", "~", 1, 3),
        (7, "docs", "x", 0, None),
        (8, "docs", " ", 0, None),
        (9, "first", " ", 0, None),
        (10, "second", " ", 0, None),
    ]
    assert Todo.parse(LIST).diagnostics == []


def test_an_item_knows_the_command_that_verifies_it():
    items = Todo.parse(LIST).items
    assert [item.verify for item in items[:3]] == [None, "pytest tests/lexer", None]
    [item] = todo("- [ ] a\n  more text\n  - verify: make check\n  verify: second\n").items
    assert item.verify == "make check"
    assert todo("- [ ] a\nverify: not indented\n").items[0].verify is None


@pytest.mark.parametrize(
    "text",
    [
        "~~~\n- [ ] a\n```\n- [ ] b\n~~~~\n",
        "````md\n```\n- [ ] a\n```\n````\n",
        "    - [ ] indented code\n",
        "- text\n  ```\n  - [ ] a\n  ```\n",
        "<!-- one\n- [ ] a -->\n",
        "---\nsteps: |\n  - [ ] a\n---\n",
    ],
)
def test_what_stands_in_code_comments_or_frontmatter_is_no_item(text):
    assert todo(text).items == ()


def test_a_fence_that_looks_like_inline_code_opens_nothing():
    assert len(todo("```code``` here\n- [ ] a\n").items) == 1


def test_items_below_a_heading_are_not_nested_in_those_above_it():
    assert [item.depth for item in todo("- [ ] a\n\n## Next\n  - [ ] b\n").items] == [0, 0]


def test_items_nest_in_plain_bullets_and_by_tabs():
    assert [item.depth for item in todo("- group\n    - [ ] a\n\t\t- [ ] b\n").items] == [0, 1]


@pytest.mark.parametrize(
    ("line", "shown", "bullet"),
    [
        ("- [y] a", "- [y]", "-"),
        ("- [] a", "- []", "-"),
        ("* [ x] a", "* [ x]", "*"),
        ("- [-] a", "- [-]", "-"),
        ("-[ ] a", "-[ ]", "-"),
        ("1. [✓] a", "1. [✓]", "1."),
        ("- [x]done", "- [x]done", "-"),
    ],
)
def test_what_is_nearly_a_checkbox_is_said_with_its_line_and_mend(line, shown, bullet):
    assert said(f"# Work\n\n{line}\n") == [
        f'TODO.md:3: "{shown}" is not a checkbox; use "{bullet} [ ]" or "{bullet} [x]"'
    ]


@pytest.mark.parametrize(
    "line", ["- [a](b)", "- [x](b)", "- [a][b]", "- [a]: b", "- [word] a", "- a [ ] b", "*[x]*", "- a"]
)
def test_links_and_text_are_no_checkboxes(line):
    assert said(line + "\n") == []
    assert todo(line + "\n").items == ()


# Finding


def test_an_item_is_found_by_text_or_line():
    found = Todo.parse(LIST)
    assert found.find("  lexer ").line == 4
    assert found.at(4).text == "lexer"
    assert found.find("docs", 2).line == 8


@pytest.mark.parametrize(
    ("text", "ordinal", "message"),
    [
        ("docs", None, r'TODO\.md: "docs" stands in lines 7, 8; say which one'),
        ("docs", 3, r"stands there 2 times, not 3"),
        ("nothing", None, r'no item reads "nothing"; its items are 3: "parser"; '),
    ],
)
def test_an_item_that_is_not_there_or_not_clear_is_said(text, ordinal, message):
    with pytest.raises(StateError, match=message):
        Todo.parse(LIST).find(text, ordinal)


def test_a_line_without_a_box_is_said():
    with pytest.raises(StateError, match=r"TODO\.md:5: no checkbox"):
        Todo.parse(LIST).at(5)
    with pytest.raises(StateError, match="it has no checkboxes"):
        todo("").at(1)


# Editing


def test_a_mark_changes_one_character():
    found = Todo.parse(LIST)
    assert found.set_mark(found.find("grammar"), "x") == LIST.replace(b"[~]", b"[x]")
    assert found.set_mark(found.find("docs", 2), "~") == LIST.replace(b"+ [ ]", b"+ [~]")


def test_a_mark_that_is_set_already_changes_nothing():
    found = Todo.parse(LIST)
    assert found.set_mark(found.find("docs", 1), "x") == LIST


def test_an_item_of_an_older_reading_is_refused():
    item = todo("- [ ] a\n").items[0]
    with pytest.raises(StateError, match=r'TODO\.md:1: "a" no longer stands there'):
        todo("- [ ] b\n").set_mark(item, "x")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "- [ ] new\n"),
        ("# Work\n", "# Work\n\n- [ ] new\n"),
        ("# Work\n\n", "# Work\n\n- [ ] new\n"),
        ("# Work", "# Work\n\n- [ ] new"),
        ("- [ ] a", "- [ ] a\n- [ ] new"),
        ("- [x] a\n  - [ ] b\n\n    text of b\n\nend\n", "- [x] a\n  - [ ] b\n\n    text of b\n- [ ] new\n\nend\n"),
        ("* [ ] a\r\n\r\n## More\r\n", "* [ ] a\r\n* [ ] new\r\n\r\n## More\r\n"),
        ("1. [ ] a\n2. [ ] b\n", "1. [ ] a\n2. [ ] b\n3. [ ] new\n"),
        ("- [ ] a\n  ```\nx\n  ```\n# End\n", "- [ ] a\n  ```\nx\n  ```\n- [ ] new\n# End\n"),
        ("- [ ] a\nlazy line\n", "- [ ] a\nlazy line\n- [ ] new\n"),
        ("\ufeff---\nk: v\n---", "\ufeff---\nk: v\n---\n- [ ] new"),
    ],
)
def test_an_item_is_added_behind_the_last_one(before, after):
    assert todo(before).add(" new ").decode() == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- [ ] a\n- [ ] b\n", "- [ ] a\n  - [ ] new\n- [ ] b\n"),
        ("- [ ] a\n    - [ ] c\n\n- [ ] b\n", "- [ ] a\n    - [ ] c\n    - [ ] new\n\n- [ ] b\n"),
        ("1. [ ] a\n2. [ ] b\n", "1. [ ] a\n   - [ ] new\n2. [ ] b\n"),
        ("- [ ] a\n  verify: x\n", "- [ ] a\n  verify: x\n  - [ ] new\n"),
    ],
)
def test_an_item_is_added_under_another(before, after):
    found = todo(before)
    assert found.add("new", under=found.items[0]).decode() == after


def test_an_item_is_added_after_another_with_its_command():
    found = todo("- [ ] a\n  - [ ] b\n- [ ] c\n")
    assert found.add("new", after=found.find("b"), verify="make  check").decode() == (
        "- [ ] a\n  - [ ] b\n  - [ ] new\n    verify: make check\n- [ ] c\n"
    )


def test_what_could_not_be_an_item_is_not_added():
    with pytest.raises(StateError, match="needs a text"):
        todo("").add(" \n ")
    with pytest.raises(StateError, match="close what is open"):
        todo("```\ncode without end\n").add("new")


def test_a_list_that_is_not_utf8_is_not_edited():
    found = Todo.parse(b"- [ ] caf\xe9\n")
    with pytest.raises(StateError, match="not UTF-8"):
        found.set_mark(found.items[0], "x")


# For all lists

ITEMS = ["- [ ] a", "  - [x] b", "    - [~] c", "1. [ ] d", "* [X] e", "\t- [ ] f", "- [ ]"]
OTHERS = ["- text", "text", "  text", "# H", "", "  verify: y", "---", "k: v", "- [y] z", "> - [ ] q", "\u2028", "\x00"]
lines = st.sampled_from([*ITEMS, *OTHERS, "```", "  ```", "~~~", "<!-- x", "-->"])
lists = st.builds(
    lambda bom, newline, parts, end: (bom + newline.join(parts) + end).encode(),
    st.sampled_from(["", "\ufeff"]),
    st.sampled_from(["\n", "\r\n"]),
    st.lists(lines, max_size=12),
    st.sampled_from(["", "\n", "\r\n"]),
)


@given(st.one_of(lists, st.binary()))
def test_any_bytes_can_be_read(data):
    numbers = [item.line for item in Todo.parse(data).items]
    assert numbers == sorted(set(numbers))


@given(lists, st.data(), st.sampled_from([" ", "x", "~"]))
def test_a_mark_leaves_every_other_byte_alone(data, draw, mark):
    found = Todo.parse(data)
    if found.items:
        item = draw.draw(st.sampled_from(found.items))
        edited = found.set_mark(item, mark)
        assert len(edited) == len(data)
        assert sum(one != other for one, other in zip(data, edited, strict=True)) == (item.mark != mark)
        assert Todo.parse(edited).at(item.line).mark == mark


@given(lists, st.data())
def test_an_added_item_leaves_every_other_byte_and_item_alone(data, draw):
    found = Todo.parse(data)
    near = draw.draw(st.sampled_from([None, *found.items]))
    where = draw.draw(st.sampled_from(["under", "after"]))
    try:
        edited = found.add("brand new", **{where: near})
    except StateError:
        return
    start = next((at for at, (one, other) in enumerate(zip(data, edited, strict=False)) if one != other), len(data))
    added = len(edited) - len(data)
    assert any(edited[:at] + edited[at + added :] == data for at in range(max(0, start - added), start + 1))
    again = Todo.parse(edited)
    assert [item.text for item in again.items if item.text != "brand new"] == [item.text for item in found.items]
    if near and where == "under":
        [new] = [item for item in again.items if item.text == "brand new"]
        assert new.parent == near.line
