from __future__ import annotations

import os
import stat

import pytest

from tests.tools.workspace import Bench, bench
from tinyclaw.state.files import ABSENT, revision_of


@pytest.fixture
def ws(tmp_path) -> Bench:
    return bench(tmp_path / "ws")


def test_a_new_file_is_made_with_its_folders(ws):
    output = ws.call("write", path="a/b/c.py", content="x = 1\n")
    assert ws.bytes_of("a/b/c.py") == b"x = 1\n"
    assert output.text == "created a/b/c.py (1 line, 6 bytes)"
    assert output.revisions == {"a/b/c.py": revision_of(b"x = 1\n")}


def test_own_file_is_written_again_without_reading(ws):
    ws.call("write", path="a", content="1\n")
    ws.call("write", path="a", content="2\n")
    ws.call("edit", path="a", old_text="2", new_text="3")
    ws.call("write", path="a", content="4\n")
    assert ws.bytes_of("a") == b"4\n"


def test_an_unread_file_is_not_replaced(ws):
    ws.put("a", "mine\n")
    assert "Read it first" in ws.fails("write", path="a", content="x")
    assert ws.bytes_of("a") == b"mine\n"


def test_a_read_file_is_replaced(ws):
    ws.put("a", "1\n")
    ws.call("read", path="a")
    assert ws.call("write", path="a", content="2\n").text.startswith("replaced a")
    assert ws.bytes_of("a") == b"2\n"


def test_a_file_changed_since_the_read_is_kept_and_the_change_told(ws):
    path = ws.put("a", "one\ntwo\n")
    times = path.stat()
    ws.call("read", path="a")
    ws.put("a", "one\nTWO\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    error = ws.fails("write", path="a", content="mine\n")
    assert "changed since you read it" in error and "-two\n+TWO" in error
    assert ws.bytes_of("a") == b"one\nTWO\n"
    assert "changed since" in ws.fails("write", path="a", content="mine\n")
    ws.call("read", path="a")
    ws.call("write", path="a", content="mine\n")
    assert ws.bytes_of("a") == b"mine\n"


def test_a_change_after_a_resume_is_refused_without_a_difference(ws):
    ws.put("a", "new\n")
    ws.context.ledger.restore("a", revision_of(b"old\n"))
    assert ws.fails("write", path="a", content="x").endswith("keep these changes.")


def test_a_revision_known_from_before_a_resume_may_be_replaced(ws):
    ws.put("a", "old\n")
    ws.context.ledger.restore("a", revision_of(b"old\n"))
    ws.call("write", path="a", content="x\n")
    assert ws.bytes_of("a") == b"x\n"


def test_the_difference_that_is_told_is_bounded(ws):
    ws.put("a", "x\n")
    ws.call("read", path="a")
    ws.put("a", "y" * 100 + "\n" + "z\n" * 9000)
    error = ws.fails("write", path="a", content="m")
    assert "diff cut" in error and len(error) < 5_000


def test_a_deleted_file_comes_back_only_when_written_twice(ws):
    path = ws.put("a", "x\n")
    ws.call("read", path="a")
    path.unlink()
    assert "was deleted" in ws.fails("write", path="a", content="y\n")
    assert not path.exists()
    assert ws.context.ledger.seen("a") == ABSENT
    ws.call("write", path="a", content="y\n")
    assert ws.bytes_of("a") == b"y\n"


def test_crlf_bom_and_encoding_of_the_replaced_file_stay(ws):
    for name, data, written in (
        ("crlf", b"a\r\nb\r\n", b"x\r\ny\r\n"),
        ("bom", b"\xef\xbb\xbfa\r\n", b"\xef\xbb\xbfx\r\ny\r\n"),
        ("latin", b"x = 1\n# caf\xe9\n", b"x\ny\n"),
        ("wide", "a\n".encode("utf-16"), "x\ny\n".encode("utf-16")),
    ):
        ws.put(name, data)
        ws.call("read", path=name)
        ws.call("write", path=name, content="x\ny\n")
        assert ws.bytes_of(name) == written


def test_text_keeps_a_latin_1_file_latin_1(ws):
    ws.put("a", b"caf\xe9\n")
    ws.call("read", path="a")
    ws.call("write", path="a", content="th\u00e9\n")
    assert ws.bytes_of("a") == b"th\xe9\n"


def test_what_the_encoding_cannot_hold_is_refused(ws):
    ws.put("a", b"caf\xe9\n")
    ws.call("read", path="a")
    error = ws.fails("write", path="a", content="x\n→\n")
    assert "latin-1" in error and "'→' (line 2" in error
    assert ws.bytes_of("a") == b"caf\xe9\n"


def test_lines_that_stay_in_a_file_of_mixed_endings_keep_theirs(ws):
    ws.put("a", b"a\r\nb\nc\r\n")
    ws.call("read", path="a")
    ws.call("write", path="a", content="a\nb\nC\n")
    assert ws.bytes_of("a") == b"a\r\nb\nC\r\n"


def test_equal_content_is_said(ws):
    ws.put("a", "x\n")
    ws.call("read", path="a")
    assert ws.call("write", path="a", content="x\n").text.startswith("unchanged a")


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o640])
def test_the_mode_stays(ws, mode):
    path = ws.put("a", "x\n")
    path.chmod(mode)
    ws.call("read", path="a")
    ws.call("write", path="a", content="y\n")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert list(ws.root.iterdir()) == [path]


def test_a_link_stays_a_link(ws):
    ws.put("real.md", "x\n")
    (ws.root / "AGENTS.md").symlink_to("real.md")
    ws.call("read", path="AGENTS.md")
    ws.call("write", path="AGENTS.md", content="y\n")
    assert (ws.root / "AGENTS.md").is_symlink() and ws.bytes_of("real.md") == b"y\n"


@pytest.mark.parametrize("name", ["../out", "link/x", "dangling.md", "~/x", "a/../../out", "file/x", "folder", "pipe"])
def test_nothing_is_written_outside_or_over_what_is_no_file(ws, name):
    outside = ws.root.parent / "outside"
    outside.mkdir()
    (ws.root / "link").symlink_to(outside)
    (ws.root / "dangling.md").symlink_to(outside / "new")
    (ws.root / "folder").mkdir()
    os.mkfifo(ws.root / "pipe")
    ws.put("file", "x")
    before = sorted(ws.root.rglob("*"))
    ws.fails("write", path=name, content="x")
    assert list(outside.iterdir()) == []
    assert sorted(ws.root.rglob("*")) == before


def test_a_binary_file_is_not_replaced(ws):
    ws.put("a", b"\0\1\2")
    assert "binary" in ws.fails("write", path="a", content="x")


def test_a_mask_is_never_written(ws):
    assert "mask" in ws.fails("write", path="a", content="key = [masked:anthropic-key]\n")
    assert not (ws.root / "a").exists()


def test_half_a_character_is_refused(ws):
    assert "half a character" in ws.fails("write", path="a", content="x\ud83d")


APPROVED = "---\nstatus: approved\n---\nplan\n"


@pytest.mark.parametrize("name", ["PLAN.md", "./x/../PLAN.md", "link.md"])
def test_a_plan_is_not_approved_by_writing(ws, name):
    (ws.root / "link.md").symlink_to("PLAN.md")
    assert "Only the person approves" in ws.fails("write", path=name, content=APPROVED)
    assert not (ws.root / "PLAN.md").exists()
    ws.put("PLAN.md", "---\nstatus: draft\n---\nplan\n")
    ws.call("read", path="PLAN.md")
    assert "Only the person approves" in ws.fails(
        "write", path=name, content=APPROVED.replace("approved", '"Approved"')
    )
    assert ws.bytes_of("PLAN.md") == b"---\nstatus: draft\n---\nplan\n"


def test_an_approved_plan_may_be_rewritten(ws):
    ws.put("PLAN.md", APPROVED)
    ws.call("read", path="PLAN.md")
    ws.call("write", path="PLAN.md", content=APPROVED + "more\n")
    assert ws.bytes_of("PLAN.md").endswith(b"more\n")
