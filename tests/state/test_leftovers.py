from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from tinyclaw.state._names import exchange, exchange_by_moving
from tinyclaw.state._temp import TempName, temp_file
from tinyclaw.state.files import read, revision_of, write
from tinyclaw.state.leftovers import clear_leftovers, find_leftovers

BASE, OURS, THEIRS = b"one\ntwo\nthree\n", b"one\nours\nthree\n", b"one\ntheirs\nthree\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "PLAN.md"
    write(path, BASE, base=read(path))  # loads all that a write needs, so that its steps are always the same
    return path


def dies(act: Callable[[], object], at: int | None = None) -> bool:
    """Run ``act`` in a process that kills itself before its call into the system number ``at``; False if it ended."""
    process = os.fork()
    if process == 0:
        try:
            if at is not None:
                sys.setprofile(_killer(at))
            act()
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)
    ended = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert ended in (0, -signal.SIGKILL)
    return ended == -signal.SIGKILL


def _killer(at: int) -> Callable[[object, str, object], None]:
    numbers = itertools.count()

    def look(frame: object, event: str, called: object) -> None:
        if event == "c_call" and getattr(called, "__module__", "") in ("posix", "_io") and next(numbers) == at:
            die()

    return look


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("swap", [exchange, exchange_by_moving])
def test_a_write_that_is_killed_at_any_step_leaves_the_old_or_the_new_file_and_nothing_else(file: Path, swap):
    seen = set()
    at = 0
    while dies(lambda: write(file, OURS, base=read(file), exchange=swap), at):
        assert clear_leftovers([file.parent]) == []
        assert [path.name for path in file.parent.iterdir()] == ["PLAN.md"]
        seen.add(file.read_bytes())
        file.write_bytes(BASE)
        at += 1
    assert seen == {BASE, OURS}


def test_a_new_file_that_is_killed_at_any_step_is_whole_or_absent(tmp_path: Path):
    path = tmp_path / "new.md"
    seen = set()
    at = 0
    while dies(lambda: write(path, OURS, base=read(path)), at):
        assert clear_leftovers([tmp_path]) == []
        assert hidden(tmp_path) == []
        seen.add(path.read_bytes() if path.exists() else None)
        path.unlink(missing_ok=True)
        at += 1
    assert seen == {None, OURS}


@pytest.mark.parametrize("swap", [exchange, exchange_by_moving])
def test_a_save_that_was_displaced_when_we_died_is_kept_beside_the_file_and_told(file: Path, swap):
    def save_swap_die(temp: Path, target: Path) -> None:
        beside = target.with_name("theirs")
        beside.write_bytes(THEIRS)
        beside.replace(target)
        swap(temp, target)
        die()

    assert dies(lambda: write(file, OURS, base=read(file), exchange=save_swap_die))
    assert file.read_bytes() == OURS
    [rescued] = clear_leftovers([file.parent])
    assert rescued.saved_as == file.with_name(f"PLAN.md.rescued-{revision_of(THEIRS)}")
    assert rescued.saved_as.read_bytes() == THEIRS
    assert rescued.saved_as.name in str(rescued)
    assert hidden(file.parent) == []


def test_a_file_that_was_moved_aside_when_we_died_gets_its_name_back(file: Path):
    temp = temp_file(file, OURS, file, fsync=False, base=revision_of(BASE))
    held = temp.with_name(temp.name.replace(".tinyclaw-", ".tinyclaw-held-", 1))
    file.rename(held)
    assert clear_leftovers([file.parent]) == []
    assert (file.read_bytes(), hidden(file.parent)) == (BASE, [])


def test_a_save_on_its_way_to_a_name_of_its_own_arrives_there(file: Path):
    place = file.with_name("PLAN.md.rescued-0123456789abcdef")
    temp_file(place, THEIRS, None, fsync=False)
    [rescued] = clear_leftovers([file.parent])
    assert (place.read_bytes(), rescued.saved_as, hidden(file.parent)) == (THEIRS, place, [])


def test_hidden_files_of_a_living_process_and_of_others_are_left_alone(file: Path):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as living:
        names = [f".tinyclaw-{living.pid}-0-1-absent-PLAN.md", ".tinyclaw-notes", ".tinyclaw"]
        for name in names:
            file.with_name(name).write_text("x")
        assert find_leftovers(file.parent) == clear_leftovers([file.parent]) == []
        assert sorted(hidden(file.parent)) == sorted(names)
        living.communicate(b"\n")


def test_a_folder_in_which_one_of_us_writes_is_left_alone(file: Path):
    temp = temp_file(file, OURS, file, fsync=False, base=revision_of(BASE))
    told: list[object] = []

    def look(first: Path, second: Path) -> None:
        told.extend(clear_leftovers([file.parent]))
        exchange(first, second)

    write(file, OURS, base=read(file), exchange=look)
    assert (told, temp.exists()) == ([], True)


def test_folders_that_are_not_there_or_no_folders_are_no_trouble(file: Path):
    assert clear_leftovers([file, file.parent / "gone"]) == []


@pytest.mark.parametrize("name", ["PLAN.md", "a-b-c", "é" * 60, "x" * 250, "two\nlines"])
def test_the_name_of_a_hidden_file_tells_its_target_unless_that_is_too_long(tmp_path: Path, name: str):
    temp = temp_file(tmp_path / name, OURS, None, fsync=False, base="absent")
    told = TempName.parse(temp.name)
    assert told is not None
    assert (told.process, told.inode, told.base) == (os.getpid(), temp.stat().st_ino, "absent")
    assert told.name == (name if len(name) < 200 else "")
