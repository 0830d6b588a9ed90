from __future__ import annotations

import pytest

from tests.tools.workspace import Bench, bench
from tinyclaw.state.files import revision_of

LIST = "# Tasks\n\nSome prose.\n\n- [ ] write the parser\n  - [x] read the format\n- [~] fix `a  b`\n* [ ] last one\n"


@pytest.fixture
def ws(tmp_path) -> Bench:
    return bench(tmp_path / "ws")


def test_without_a_file_the_list_is_begun_by_adding(ws):
    assert "no TODO.md yet" in ws.call("todo").text
    output = ws.call("todo", add=["first", "- [ ] second"])
    assert ws.bytes_of("TODO.md") == b"- [ ] first\n- [ ] second\n"
    assert output.text == 'added "first"; added "second". TODO.md now:\n\n- [ ] first\n- [ ] second\n'
    assert output.revisions == {"TODO.md": revision_of(ws.bytes_of("TODO.md"))}


def test_shown_without_arguments(ws):
    ws.put("TODO.md", LIST)
    output = ws.call("todo")
    assert output.text == f"TODO.md:\n\n{LIST}"
    assert output.revisions == {"TODO.md": revision_of(LIST.encode())}
    assert ws.bytes_of("TODO.md") == LIST.encode()


@pytest.mark.parametrize(
    ("arguments", "old", "new"),
    [
        ({"done": ["write the parser"]}, "- [ ] write", "- [x] write"),
        ({"in_progress": ["Write the PARSER"]}, "- [ ] write", "- [~] write"),
        ({"pending": ["  - [x] read the format"]}, "- [x] read", "- [ ] read"),
        ({"done": ["fix `a b`"]}, "- [~] fix", "- [x] fix"),
        ({"done": ["parser"]}, "- [ ] write", "- [x] write"),
        ({"done": ["8"]}, "* [ ] last", "* [x] last"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_marking_changes_one_character(ws, arguments, old, new, newline):
    ws.put("TODO.md", LIST.replace("\n", newline))
    ws.call("todo", **arguments)
    assert ws.bytes_of("TODO.md").decode() == LIST.replace(old, new).replace("\n", newline)


def test_one_call_adds_and_marks(ws):
    ws.put("TODO.md", LIST)
    text = ws.call("todo", add=["new"], under="write the parser", done=["last one"], in_progress=["new"]).text
    assert ws.bytes_of("TODO.md").decode() == LIST.replace("* [ ]", "* [x]").replace(
        "  - [x] read the format\n", "  - [x] read the format\n  - [~] new\n"
    )
    assert text.startswith('added "new"; "last one" is done; "new" is in progress.')


def test_an_unknown_item_names_those_there_are_and_changes_nothing(ws):
    ws.put("TODO.md", LIST)
    error = ws.fails("todo", add=["new"], done=["nonsense"])
    assert '5: "write the parser"' in error and "Nothing was changed" in error
    assert ws.bytes_of("TODO.md") == LIST.encode()


def test_items_alike_are_told_apart_by_line(ws):
    ws.put("TODO.md", "- [ ] same\n- [ ] same\n")
    assert "lines 1, 2" in ws.fails("todo", done=["same"])
    ws.call("todo", done=["2"])
    assert ws.bytes_of("TODO.md") == b"- [ ] same\n- [x] same\n"


def test_a_part_that_fits_several_items_is_refused(ws):
    ws.put("TODO.md", "- [ ] test a\n- [ ] test b\n")
    ws.fails("todo", done=["test"])
    assert ws.bytes_of("TODO.md") == b"- [ ] test a\n- [ ] test b\n"


@pytest.mark.parametrize("arguments", [{"add": ["  "]}, {"done": [""]}, {"add": ["[masked:token]"]}, {"add": "text"}])
def test_what_is_no_item_is_refused(ws, arguments):
    ws.put("TODO.md", "- [ ] a\n")
    ws.fails("todo", **arguments)
    assert ws.bytes_of("TODO.md") == b"- [ ] a\n"


def test_a_file_that_is_not_utf8_is_not_touched(ws):
    ws.put("TODO.md", b"- [ ] caf\xe9\n")
    assert "UTF-8" in ws.fails("todo", add=["x"])
    assert ws.bytes_of("TODO.md") == b"- [ ] caf\xe9\n"


def test_a_long_list_is_not_repeated(ws):
    ws.put("TODO.md", "".join(f"- [ ] item number {n}\n" for n in range(1000)))
    output = ws.call("todo", done=["item number 7"])
    assert len(output.text) < 200 and output.revisions == {}
    assert "read it" in ws.call("todo").text
    ws.call("read", path="TODO.md")
    output = ws.call("todo", done=["item number 8"])
    assert output.revisions == {"TODO.md": revision_of(ws.bytes_of("TODO.md"))}


def test_a_folder_of_that_name_is_an_error(ws):
    (ws.root / "TODO.md").mkdir()
    assert "folder" in ws.fails("todo", add=["x"])
