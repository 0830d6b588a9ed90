"""Which sessions there are, and which one is meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tinyclaw.errors import StateError, UsageError
from tinyclaw.state.transcript.grammar import Block, render, render_header
from tinyclaw.state.transcript.sessions import find_session, list_sessions


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / ".transcripts"
    made.mkdir()
    for number, (stamp, token) in enumerate(
        [("20261130-101500", "3f9a"), ("20261130-111500", "77aa"), ("20261201-090000", "3f9b")]
    ):
        path = made / f"{stamp}-title-{token}.md"
        header = {
            "session": f"{stamp}-{token}",
            "title": f"title: {number}",
            "created": f"2026-11-30T1{number}:15:00Z",
            "format": "1",
        }
        path.write_text(render_header(header))
        os.utime(path, (1000 - number, 1000 - number))
    return made


def test_sessions_are_listed_oldest_first_with_what_their_headers_say(folder):
    assert [(session.id, session.title) for session in list_sessions(folder)] == [
        ("20261130-101500-3f9a", "title: 0"),
        ("20261130-111500-77aa", "title: 1"),
        ("20261201-090000-3f9b", "title: 2"),
    ]


def test_no_folder_is_no_sessions(tmp_path):
    assert list_sessions(tmp_path / "none") == []


def test_a_folder_that_is_none_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="cannot be listed"):
        list_sessions(tmp_path / "file")


def test_locks_kept_blocks_hidden_files_and_prefixes_are_no_sessions(folder):
    (folder / "prefixes").mkdir()
    for name in ("20261130-101500-title-3f9a.lock", "20261130-101500-title-3f9a.lost-ab.md", ".hidden.md", "notes.txt"):
        (folder / name).write_text("x")
    assert len(list_sessions(folder)) == 3


def test_a_file_without_a_readable_header_is_listed_by_its_name(folder):
    (folder / "a.md").write_bytes(b"\xff\0---")
    (folder / "b.md").symlink_to("nowhere")
    os.mkfifo(folder / "c.md")
    listed = {session.path.name: session.id for session in list_sessions(folder)}
    assert {name: listed[name] for name in ("a.md", "b.md", "c.md")} == {"a.md": "a", "b.md": "b", "c.md": "c"}


def test_a_header_longer_than_what_is_read_of_a_file_is_no_error(folder):
    (folder / "a.md").write_text(render_header({"session": "long", "title": "x" * 10_000}))
    assert find_session(folder, "long").path.name == "a.md"


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("20261130-101500-3f9a", "20261130-101500-3f9a"),
        ("20261130-101500-title-3f9a.md", "20261130-101500-3f9a"),
        ("20261130-101500-title-3f9a", "20261130-101500-3f9a"),
        ("77aa", "20261130-111500-77aa"),
        ("20261201", "20261201-090000-3f9b"),
        ("20261130-10", "20261130-101500-3f9a"),
        ("last", "20261130-111500-77aa"),
    ],
)
def test_a_session_is_found_by_its_id_its_file_their_ends_or_as_the_last_one_that_ran(folder, wanted, found):
    """When a file was last saved, or checked out, says nothing."""
    ended = Block("turn_end", {"reason": "done", "at": "2026-12-02T10:00:00Z"})
    (folder / "20261130-111500-title-77aa.md").open("a").write(render([ended]))
    (folder / "20261201-090000-title-3f9b.md").open("a").write(
        render([Block("turn_end", {"at": "2026-12-01T09:00:01Z"})])
    )
    assert find_session(folder, wanted).id == found


def test_a_whole_id_wins_over_ids_that_begin_with_it(folder):
    (folder / "x.md").write_text(render_header({"session": "20261130-101500-3f9a-2"}))
    assert find_session(folder, "20261130-101500-3f9a").path.name == "20261130-101500-title-3f9a.md"


@pytest.mark.parametrize(
    ("wanted", "words"), [("20261130", "may mean"), ("3f9", "no session"), ("nobody", "no session")]
)
def test_what_is_ambiguous_or_unknown_is_said(folder, wanted, words):
    with pytest.raises(UsageError, match=words):
        find_session(folder, wanted)


def test_without_sessions_the_last_one_is_said_to_be_none(tmp_path):
    with pytest.raises(UsageError, match="no session in"):
        find_session(tmp_path, "last")
