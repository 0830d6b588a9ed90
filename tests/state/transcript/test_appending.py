"""A file that is appended to whole or not at all, and only when it is the one that is known."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tinyclaw.errors import StateError
from tinyclaw.state.transcript.appending import AppendedFile


@pytest.fixture
def file(tmp_path: Path) -> AppendedFile:
    made = AppendedFile(tmp_path / "t.md")
    made.make("one\n\n")
    return made


def test_what_is_appended_stands_at_the_end_and_is_known(file):
    assert file.append("two\n") and file.append("three\n\n") and file.append("four")
    assert file.path.read_text() == "one\n\ntwo\n\nthree\n\nfour"
    assert file.is_known()


@pytest.mark.parametrize(
    ("end", "gap"), [("", "\n\n"), ("\n", "\n"), ("\n\n", ""), ("\r\n\r\n", ""), ("\r\n", "\n"), ("\n\n\n", "")]
)
def test_an_append_begins_on_a_line_of_its_own_behind_a_blank_one(file, end, gap):
    file.path.write_bytes(b"x" + end.encode())
    file.take()
    assert file.append("y\n")
    assert file.path.read_bytes() == b"x" + (end + gap + "y\n").encode()


def test_nothing_is_put_before_the_first_line_of_an_empty_file(file):
    file.path.write_bytes(b"")
    file.take()
    assert file.append("y\n") and file.path.read_bytes() == b"y\n"


def test_a_file_of_another_style_is_appended_in_its_own(file):
    file.crlf = True
    file.append("a\nb\n")
    assert file.path.read_bytes() == b"one\n\na\r\nb\r\n"


def test_bytes_that_are_no_text_come_back_as_they_were(file):
    file.append(b"\xff\xfe".decode("utf-8", "surrogateescape"))
    assert file.path.read_bytes() == b"one\n\n\xff\xfe"


def rewrite_in_place(path: Path) -> None:
    status = path.stat()
    path.write_bytes(b"ONE\n\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace_by_rename(path: Path) -> None:
    beside = path.with_name("beside")
    beside.write_bytes(b"ONE\n\n")
    beside.rename(path)


@pytest.mark.parametrize(
    "change", [rewrite_in_place, replace_by_rename, Path.unlink], ids=lambda change: change.__name__
)
def test_a_file_that_is_not_the_known_one_is_never_appended_to(file, change):
    change(file.path)
    before = file.path.read_bytes() if file.path.exists() else None
    assert not file.append("two\n") and not file.is_known()
    assert (file.path.read_bytes() if file.path.exists() else None) == before
    assert file.take() == before


def test_a_file_with_another_outside_and_the_same_content_is_the_known_one(file):
    beside = file.path.with_name("beside")
    beside.write_bytes(file.path.read_bytes())
    beside.rename(file.path)
    assert file.is_known() and file.append("two\n")


def test_what_somebody_else_adds_between_two_appends_is_noticed(file):
    file.append("two\n\n")
    with file.path.open("a") as other:
        other.write("mine\n")
    assert not file.append("three\n")
    assert file.take() == b"one\n\ntwo\n\nmine\n"
    assert file.append("three\n") and file.path.read_text().endswith("mine\n\nthree\n")


def test_a_save_that_is_under_way_is_waited_for(file):
    half = threading.Event()

    def save() -> None:
        with file.path.open("wb") as out:
            half.set()
            for part in (b"a" * 10, b"b" * 10, b"c\n"):
                out.write(part)
                out.flush()

    editor = threading.Thread(target=save)
    editor.start()
    half.wait(10)
    assert file.take() == b"a" * 10 + b"b" * 10 + b"c\n"
    editor.join()


def test_a_file_that_is_there_is_not_made_again(file):
    with pytest.raises(StateError, match="cannot be made"):
        AppendedFile(file.path).make("other")
    assert file.path.read_text() == "one\n\n"


def test_a_file_that_was_forgotten_is_not_appended_to_before_it_is_read_again(file):
    file.forget()
    assert not file.append("two\n") and not file.is_known()
    file.take()
    assert file.append("two\n")
