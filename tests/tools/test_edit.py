from __future__ import annotations

import stat
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tools.workspace import Bench, bench
from tinyclaw.errors import ToolError
from tinyclaw.state import files
from tinyclaw.state.files import revision_of
from tinyclaw.tools._base import ToolContext
from tinyclaw.tools._locate import locate
from tinyclaw.tools._writing import Committed, commit, told


@pytest.fixture
def ws(tmp_path) -> Bench:
    return bench(tmp_path / "ws")


def test_the_result_shows_where_the_change_landed(ws):
    ws.put("a.py", "1\n2\n3\n4\n5\n6\n7\n")
    output = ws.call("edit", path="a.py", old_text="4\n5", new_text="four\nhalf\nfive")
    assert ws.bytes_of("a.py") == b"1\n2\n3\nfour\nhalf\nfive\n6\n7\n"
    assert output.text == "edited a.py (1 place)\n2 | 2\n3 | 3\n4 | four\n5 | half\n6 | five\n7 | 6\n8 | 7"


def test_a_large_change_is_shown_in_part(ws):
    ws.put("a", "x\n")
    text = ws.call("edit", path="a", old_text="x", new_text="\n".join(map(str, range(100)))).text
    assert text.count("\n") < 20 and "not shown]" in text


def test_the_revision_is_told_when_the_model_knows_the_file(ws):
    ws.put("a", "x y\n")
    assert ws.call("edit", path="a", old_text="x", new_text="z").revisions == {}
    ws.call("read", path="a")
    assert ws.call("edit", path="a", old_text="z", new_text="w").revisions == {"a": revision_of(b"w y\n")}


def test_an_edit_of_an_unread_file_allows_no_whole_write(ws):
    ws.put("a", "x\nunseen\n")
    ws.call("edit", path="a", old_text="x", new_text="z")
    assert "Read it first" in ws.fails("write", path="a", content="")


@pytest.mark.parametrize(
    ("data", "old", "new", "after"),
    [
        (b"alpha\r\nbeta\ngamma\r\nd\rx\r\n", "beta", "BETA", b"alpha\r\nBETA\ngamma\r\nd\rx\r\n"),
        (b"x = 1\n# caf\xe9\n", "x = 1", "x = 2", b"x = 2\n# caf\xe9\n"),
        (b"x = 1\n# caf\xe9\n", "# café", "# thé", b"x = 1\n# th\xe9\n"),
        (b"\xef\xbb\xbfimport os\r\n", "import os", "import sys", b"\xef\xbb\xbfimport sys\r\n"),
        (b"\xef\xbb\xbfimport os\r\n", "\ufeffimport os", "import sys", b"\xef\xbb\xbfimport sys\r\n"),
        ("a é\nb\n".encode("utf-16"), "b", "→", "a é\n→\n".encode("utf-16")),
        (b"a\xff\xc3\xa9\xc3\xa9\nb\n", "b", "é", b"a\xff\xc3\xa9\xc3\xa9\n\xc3\xa9\n"),
        (b"\x81\x8d\x00zz b \xfe", "b", "c", b"\x81\x8d\x00zz c \xfe"),
    ],
)
def test_bytes_outside_the_match_stay(ws, data, old, new, after):
    ws.put("a", data)
    ws.call("edit", path="a", old_text=old, new_text=new)
    assert ws.bytes_of("a") == after


def test_what_the_encoding_cannot_hold_is_refused(ws):
    ws.put("a", b"x\n# caf\xe9\n")
    assert "cannot hold '→'" in ws.fails("edit", path="a", old_text="x", new_text="→")
    ws.put("b", b"\xff \xc3\xa9\xc3\xa9 x\n")
    assert "not valid UTF-8" in ws.fails("edit", path="b", old_text="x", new_text="\ufffd")
    assert ws.bytes_of("b") == b"\xff \xc3\xa9\xc3\xa9 x\n"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.binary(max_size=60), st.binary(max_size=60), st.sampled_from(["new", "a\nb", ""]))
def test_arbitrary_bytes_around_an_edit_survive(ws, before, after, new):
    quote = b"<<unique quote>>"
    ws.put("a", before + quote + after)
    if (before + after)[:4].startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")):
        return
    ws.call("edit", path="a", old_text=quote.decode(), new_text=new)
    result = ws.bytes_of("a")
    assert result.startswith(before) and result.endswith(after)
    assert result[len(before) : len(result) - len(after)].decode().replace("\r\n", "\n").replace("\r", "\n") == new


def test_forgiven_differences_are_said(ws):
    ws.put("a", "if x:\n\ty = 'a'  \n")
    text = ws.call("edit", path="a", old_text="if x:\n    y = ‘a’\n", new_text="if x:\n    y = 'b'\n").text
    assert ws.bytes_of("a") == b"if x:\n\ty = 'b'\n"
    assert "old_text differed in indentation, which was forgiven" in text


def test_several_places_are_named_by_line(ws):
    ws.put("a", "x\ny\nx\n")
    error = ws.fails("edit", path="a", old_text="x", new_text="z")
    assert "2 times" in error and "lines 1, 3" in error and "replace_all" in error
    assert ws.bytes_of("a") == b"x\ny\nx\n"


def test_all_places_are_replaced_on_request(ws):
    ws.put("a", b"x\r\ny\r\nxx\r\n\xff")
    output = ws.call("edit", path="a", old_text="x", new_text="ab", replace_all=True)
    assert ws.bytes_of("a") == b"ab\r\ny\r\nabab\r\n\xff"
    assert "3 places" in output.text


def test_a_failed_quote_gets_the_nearest_lines_as_they_are(ws):
    ws.put("a.py", "import os\n\n\ndef compute_total(items):\n    return sum(items)\n\nprint(1)\n")
    error = ws.fails("edit", path="a.py", old_text="def compute_totals(item):\n    return sum(item)", new_text="x")
    assert "4 | def compute_total(items):\n5 |     return sum(items)" in error


def test_a_quote_like_nothing_says_so(ws):
    ws.put("a", "abc\n")
    assert "no line is like it" in ws.fails("edit", path="a", old_text="zzzzzzzz", new_text="y")


def test_an_edit_that_is_done_already_is_recognised(ws):
    ws.put("a", "start\nnew value\n")
    assert "new_text stands at line 2 already" in ws.fails("edit", path="a", old_text="old value", new_text="new value")


def test_new_lines_less_indented_than_the_file_allows_are_refused(ws):
    ws.put("a", "if a:\n    b\n")
    error = ws.fails("edit", path="a", old_text="    if a:\n        b", new_text="if a:\n    b")
    assert "1 | if a:" in error


def test_empty_and_equal_texts_are_refused(ws):
    ws.put("a", "x\n")
    assert "use write" in ws.fails("edit", path="a", old_text="", new_text="y")
    assert "nothing to change" in ws.fails("edit", path="a", old_text="x", new_text="x")
    ws.put("b", b"x\r\ny\r\n")
    assert "already" in ws.fails("edit", path="b", old_text="x\ny", new_text="x\r\ny")


def test_a_mask_is_neither_searched_nor_written(ws):
    ws.put("a", "key = 1\n")
    mark = "[masked:anthropic-key]"
    assert "mask" in ws.fails("edit", path="a", old_text="1", new_text=mark)
    assert "mask" in ws.fails("edit", path="a", old_text=mark, new_text="1")


def test_a_missing_file_names_its_neighbours(ws):
    ws.put("parser.py", "")
    assert "parser.py" in ws.fails("edit", path="parsr.py", old_text="x", new_text="y")


def test_a_change_since_the_read_is_told_and_kept(ws):
    ws.put("a", "one\ntwo\nthree\n")
    ws.call("read", path="a")
    ws.put("a", "ONE\ntwo\nthree\n")
    output = ws.call("edit", path="a", old_text="three", new_text="3")
    assert ws.bytes_of("a") == b"ONE\ntwo\n3\n"
    assert "-one\n+ONE" in output.text
    assert output.revisions == {"a": revision_of(b"ONE\ntwo\n3\n")}


def test_a_change_that_cannot_be_told_leaves_the_file_unknown(ws):
    ws.put("a", "one\ntwo\n")
    ws.context.ledger.restore("a", revision_of(b"older\n"))
    output = ws.call("edit", path="a", old_text="two", new_text="2")
    assert "read it again" in output.text and output.revisions == {}
    assert "changed since" in ws.fails("write", path="a", content="x")


def test_mode_and_link_stay(ws):
    path = ws.put("run.sh", "echo 1\n")
    path.chmod(0o755)
    (ws.root / "link").symlink_to("run.sh")
    ws.call("edit", path="link", old_text="1", new_text="2")
    assert ws.bytes_of("run.sh") == b"echo 2\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o755 and (ws.root / "link").is_symlink()
    assert sorted(path.name for path in ws.root.iterdir()) == ["link", "run.sh"]


@pytest.mark.parametrize("name", ["../outside/v.txt", "n.md"])
def test_nothing_outside_is_edited(ws, name):
    outside = ws.root.parent / "outside"
    outside.mkdir()
    (outside / "v.txt").write_text("x\n")
    (ws.root / "n.md").symlink_to(outside / "v.txt")
    ws.fails("edit", path=name, old_text="x", new_text="y")
    assert (outside / "v.txt").read_text() == "x\n"


@pytest.mark.parametrize("old", ["draft", "status: draft", "---\nstatus: draft\n---"])
def test_a_plan_is_not_approved_by_editing(ws, old):
    plan = ws.put("PLAN.md", "---\nstatus: draft\n---\nplan\n")
    new = old.replace("draft", "approved")
    assert "Only the person approves" in ws.fails("edit", path="PLAN.md", old_text=old, new_text=new)
    assert plan.read_text() == "---\nstatus: draft\n---\nplan\n"


def test_a_plan_is_not_approved_by_an_edit_that_makes_frontmatter(ws):
    ws.put("PLAN.md", "plan\n")
    new = "---\nstatus: approved\n---\nplan"
    assert "Only the person approves" in ws.fails("edit", path="PLAN.md", old_text="plan", new_text=new)


def test_many_edits_at_the_same_time_lose_nothing(ws):
    ws.put("a", "".join(f"line {n} open\n\n\n" for n in range(8)))
    failures: list[BaseException] = []

    def tick(number: int) -> None:
        try:
            ws.call("edit", path="a", old_text=f"line {number} open", new_text=f"line {number} done")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=tick, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert ws.bytes_of("a").decode() == "".join(f"line {n} done\n\n\n" for n in range(8))


def commit_over_a_save(ws: Bench, saved: str) -> tuple[ToolContext, Committed]:
    """A write whose file somebody saves between our read and it."""
    ws.put("a", "one\ntwo\nthree\n")
    place = locate(ws.context.workspace, "a")
    base = files.read(place.path)
    ws.put("a", saved)
    return ws.context, commit(ws.context, place, b"one\ntwo\n3\n", base, knows_base=True)


def test_a_save_in_the_same_moment_is_merged_and_told(ws):
    context, done = commit_over_a_save(ws, "ONE\ntwo\nthree\n")
    assert ws.bytes_of("a") == b"ONE\ntwo\n3\n"
    assert "+ONE" in told(done.others)
    assert context.ledger.seen("a") == done.revisions["a"] == revision_of(ws.bytes_of("a"))


def test_a_save_of_the_same_line_stands_and_the_write_is_refused(ws):
    with pytest.raises(ToolError, match=r"saved by somebody else[\s\S]*-three\n\+THREE"):
        commit_over_a_save(ws, "one\ntwo\nTHREE\n")
    assert ws.bytes_of("a") == b"one\ntwo\nTHREE\n"
