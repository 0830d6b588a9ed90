"""Live files: cheap while nothing changes, patient while somebody saves."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tinyclaw.errors import StateError
from tinyclaw.state.files import ABSENT, read, revision_of, write
from tinyclaw.state.live import LiveFiles

TEXT = b"# Plan\n\nFirst this, then that.\n"
NEW = b"# Plan\n\nFirst that, then this.\n"


class Clock:
    """Wall-clock time that passes in sleeps, and what happens at each of them.

    With ``rate`` 0 it is the time of the files themselves, which are written in no time.
    """

    def __init__(self):
        self.ahead = 0.0
        self.slept = 0.0
        self.rate = 1.0
        self.steps = []

    def now(self):
        return time.time() + self.ahead

    def sleep(self, seconds):
        self.slept += seconds
        self.ahead += seconds * self.rate
        if self.steps:
            self.steps.pop(0)()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def live(clock):
    return LiveFiles(clock.now, clock.sleep)


@pytest.fixture
def file(tmp_path, live, clock):
    """A live file that was read long after its last change."""
    path = tmp_path / "PLAN.md"
    path.write_bytes(TEXT)
    clock.ahead = 10
    assert live.read(path).data == TEXT
    clock.ahead, clock.slept = 0, 0
    return path


def test_a_file_that_is_proven_unchanged_is_not_read(file, live):
    file.chmod(0o644)
    known = live.read(file)
    assert live.read(file) == known


def test_an_unchanged_file_is_the_same_object(file, live):
    assert live.read(file) is live.read(file)


def test_an_old_change_is_taken_at_once(file, live, clock):
    file.write_bytes(NEW)
    clock.ahead = 0.3
    assert live.read(file).data == NEW
    assert clock.slept == 0


def test_a_change_with_equal_size_and_mtime_is_seen(file, live, clock):
    times = file.stat()
    file.write_bytes(NEW)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    clock.ahead = 0.3
    assert live.read(file).data == NEW


def test_a_file_that_was_young_when_it_was_read_is_read_again(tmp_path, live):
    path = tmp_path / "PLAN.md"
    path.write_bytes(TEXT)
    first = live.read(path)
    assert live.read(path) is not first
    assert live.read(path) == first


def test_a_young_change_is_taken_once_it_has_stood_still(file, live, clock):
    file.write_bytes(NEW)
    assert live.read(file).data == NEW
    assert 0.05 <= clock.slept < 0.1


def test_half_a_save_is_never_stated(file, live, clock):
    writer = file.open("wb", buffering=0)
    clock.steps = [lambda: None, lambda: writer.write(NEW[:9]), lambda: None, lambda: writer.write(NEW[9:])]
    assert live.read(file).data == NEW
    writer.close()


def test_an_empty_file_is_stated_after_a_quarter_of_a_second(file, live, clock):
    file.write_bytes(b"")
    assert live.read(file).data == b""
    assert 0.2 <= clock.slept <= 0.3


def test_a_moments_absence_is_never_stated(file, live, clock):
    file.unlink()
    clock.steps = [lambda: None] * 15 + [lambda: file.write_bytes(NEW)]
    assert live.read(file).data == NEW


def test_a_deleted_file_is_absent_after_a_quarter_of_a_second(file, live, clock):
    file.unlink()
    assert live.read(file).revision == ABSENT
    assert 0.2 <= clock.slept <= 0.3
    assert live.read(file).revision == ABSENT
    assert clock.slept <= 0.3


def test_a_file_that_never_stands_still_keeps_its_last_revision_for_now(file, live, clock):
    clock.rate = 0
    changes = iter(range(1000))
    clock.steps = [lambda: file.write_bytes(b"%d" % next(changes))] * 1000
    file.write_bytes(b"start")
    assert live.read(file).data == TEXT
    assert clock.slept < 1.1
    clock.steps = []
    assert live.read(file).data == file.read_bytes()


def test_a_first_read_that_never_stands_still_gives_what_is_there(tmp_path, live, clock):
    path = tmp_path / "PLAN.md"
    clock.rate = 0
    changes = iter(range(1000))
    clock.steps = [lambda: path.write_bytes(b"%d" % next(changes))] * 1000
    assert live.read(path).data == path.read_bytes()


def test_a_first_read_waits_for_a_save_to_end(tmp_path, live, clock):
    path = tmp_path / "PLAN.md"
    clock.steps = [lambda: path.write_bytes(TEXT[:4]), lambda: None, lambda: path.write_bytes(TEXT)]
    assert live.read(path).data == TEXT


def test_an_own_write_is_not_waited_for(file, live, clock):
    written = write(file, NEW, base=read(file))
    live.wrote(file, written.revision)
    assert live.read(file).revision == written.revision
    assert clock.slept == 0


def test_a_persons_save_right_after_an_own_write_is_seen(file, live):
    live.wrote(file, write(file, NEW, base=read(file)).revision)
    live.read(file)
    file.write_bytes(TEXT[::-1])
    assert live.read(file).data == TEXT[::-1]


def test_a_file_behind_a_link_is_followed_when_the_link_changes(tmp_path, live, clock):
    link, one, two = (tmp_path / name for name in ("AGENTS.md", "one.md", "two.md"))
    one.write_bytes(TEXT)
    two.write_bytes(NEW)
    link.symlink_to("one.md")
    assert live.read(link).data == TEXT
    link.unlink()
    link.symlink_to("two.md")
    assert live.read(link).data == NEW


def test_what_is_no_file_is_refused_each_time_and_read_once_it_is_one(tmp_path, live):
    path = tmp_path / "PLAN.md"
    os.mkfifo(path)
    for _ in range(2):
        with pytest.raises(StateError, match="pipe"):
            live.read(path)
    path.unlink()
    path.write_bytes(TEXT)
    assert live.read(path).revision == revision_of(TEXT)


def test_a_size_limit_holds(tmp_path, clock):
    path = tmp_path / "PLAN.md"
    path.write_bytes(TEXT)
    with pytest.raises(StateError, match="too large"):
        LiveFiles(clock.now, clock.sleep, limit_bytes=5).read(path)


def test_a_name_that_cannot_be_is_refused(live):
    with pytest.raises(StateError, match="cannot be read"):
        live.read(Path("a\0b"))


def test_a_file_whose_folder_was_never_there_is_not_waited_for(live, clock, tmp_path):
    clock.ahead = 10.0
    assert live.read(tmp_path / "no" / "such" / "MEMORY.md").data is None
    assert clock.slept == 0.0
