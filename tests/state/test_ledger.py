from __future__ import annotations

from pathlib import Path

from tinyclaw.state.files import ABSENT, FileRead, revision_of
from tinyclaw.state.ledger import Ledger


def seen(data: bytes | None) -> FileRead:
    return FileRead(Path("x"), data, ABSENT if data is None else revision_of(data), None)


def test_an_unknown_file_has_neither_revision_nor_bytes():
    assert (Ledger().seen("a"), Ledger().base("a")) == (None, None)


def test_the_newest_note_counts():
    ledger = Ledger()
    ledger.note("a", seen(b"one"))
    ledger.note("a", seen(b"two"))
    assert ledger.seen("a") == revision_of(b"two")
    assert ledger.base("a") == seen(b"two")


def test_a_deleted_file_is_known_as_absent():
    ledger = Ledger()
    ledger.note("a", seen(None))
    assert ledger.seen("a") == ABSENT
    assert ledger.base("a") == seen(None)


def test_a_restored_revision_has_no_bytes():
    ledger = Ledger()
    ledger.note("a", seen(b"one"))
    ledger.restore("a", revision_of(b"two"))
    assert ledger.seen("a") == revision_of(b"two")
    assert ledger.base("a") is None


def test_restoring_the_held_revision_keeps_its_bytes():
    ledger = Ledger()
    ledger.note("a", seen(b"one"))
    ledger.restore("a", revision_of(b"one"))
    assert ledger.base("a") == seen(b"one")


def test_a_reset_leaves_what_it_names_and_the_bytes_that_fit():
    ledger = Ledger()
    for name in "abc":
        ledger.note(name, seen(b"one"))
    ledger.reset({"a": revision_of(b"one"), "b": revision_of(b"two")})
    assert [ledger.seen(name) for name in "abc"] == [revision_of(b"one"), revision_of(b"two"), None]
    assert [ledger.base(name) for name in "abc"] == [seen(b"one"), None, None]


def test_bytes_seen_longest_ago_are_let_go_and_their_revisions_stay():
    ledger = Ledger(held_bytes=10)
    for name, data in (("a", b"aaaa"), ("b", b"bbbb"), ("a", b"AAAA"), ("c", b"cccc")):
        ledger.note(name, seen(data))
    assert ledger.base("b") is None
    assert ledger.seen("b") == revision_of(b"bbbb")
    assert ledger.base("a") == seen(b"AAAA")
    assert ledger.base("c") == seen(b"cccc")


def test_a_file_larger_than_all_that_is_held_keeps_its_revision():
    ledger = Ledger(held_bytes=2)
    ledger.note("a", seen(b"aaa"))
    assert (ledger.seen("a"), ledger.base("a")) == (revision_of(b"aaa"), None)
