"""Saves are noticed whatever editor makes them; noise, reads and limits do no harm."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tinyclaw.state.watcher import Watcher, is_editor_noise

PATIENCE_SECONDS = 10


def truncate_and_write(path: Path, text: str) -> None:
    path.write_text(text)


def replace_from_same_folder(path: Path, text: str) -> None:
    temp = path.with_name(".goutputstream-X1")
    temp.write_text(text)
    temp.replace(path)


def replace_from_outside(path: Path, text: str) -> None:
    temp = path.parent.parent / "outside.tmp"
    temp.write_text(text)
    temp.replace(path)


def save_like_vim(path: Path, text: str) -> None:
    path.rename(path.with_name(path.name + "~"))
    path.write_text(text)
    path.with_name(path.name + "~").unlink()


def save_like_jetbrains(path: Path, text: str) -> None:
    new = path.with_name(path.name + "___jb_tmp___")
    new.write_text(text)
    path.rename(path.with_name(path.name + "___jb_old___"))
    new.rename(path)
    path.with_name(path.name + "___jb_old___").unlink()


def delete(path: Path, text: str) -> None:
    path.unlink()


STYLES = [
    truncate_and_write,
    replace_from_same_folder,
    replace_from_outside,
    save_like_vim,
    save_like_jetbrains,
    delete,
]


@pytest.fixture
def watched(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("old")
    watcher = start([folder])
    yield watcher, folder
    watcher.stop()


def start(folders, **options) -> Watcher:
    watcher = Watcher(folders, lambda path: path.suffix == ".md", **options)
    watcher.start()
    assert watcher.ready.wait(PATIENCE_SECONDS)
    return watcher


def collect(watcher: Watcher, *wanted: Path) -> set[Path]:
    """All paths that are reported until the ``wanted`` ones are."""
    seen: set[Path] = set()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not seen.issuperset(wanted) and time.monotonic() < deadline:
        watcher.wait(deadline - time.monotonic())
        seen |= watcher.take()
    assert seen.issuperset(wanted)
    return seen


def wait_until_healthy(watcher: Watcher) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not watcher.healthy() and time.monotonic() < deadline:
        watcher.wait(0.01)
    assert watcher.healthy()


@pytest.mark.parametrize("save", STYLES)
def test_a_save_is_seen_and_nothing_but_the_file_is_reported(watched, save):
    watcher, folder = watched
    save(folder / "AGENTS.md", "new")
    assert collect(watcher, folder / "AGENTS.md") == {folder / "AGENTS.md"}


def test_three_saves_in_a_row_are_each_seen(watched):
    watcher, folder = watched
    for save in (save_like_vim, replace_from_outside, truncate_and_write):
        save(folder / "AGENTS.md", save.__name__)
        collect(watcher, folder / "AGENTS.md")


def test_editors_companions_other_files_and_reads_are_not_reported(watched):
    watcher, folder = watched
    for name in (
        ".AGENTS.md.swp",
        "4913",
        "AGENTS.md~",
        "#AGENTS.md#",
        ".goutputstream-X",
        "main.py",
        ".tinyclaw-1.md",
    ):
        (folder / name).write_text("x")
        (folder / name).unlink()
    (folder / ".#AGENTS.md").symlink_to("nobody@nowhere.1")
    (folder / "AGENTS.md").read_text()
    (folder / "last.md").write_text("after all of these")
    assert collect(watcher, folder / "last.md") == {folder / "last.md"}


@pytest.mark.parametrize("name", [".SKILL.md.swx", ".a.swp", "a~", "#a#", ".#a", "a.md___jb_tmp___", ".tinyclaw-x"])
def test_companions_of_editors_are_noise(name):
    assert is_editor_noise(name)


@pytest.mark.parametrize("name", ["AGENTS.md", "4913.md", "swap.md", "a#b.md", ".tinyclaw", ".hidden.md"])
def test_other_names_are_no_noise(name):
    assert not is_editor_noise(name)


def test_folders_below_are_not_watched(watched):
    watcher, folder = watched
    for number in range(200):
        (folder / f"node_modules/p{number}").mkdir(parents=True)
    (folder / "node_modules/p1/x.md").write_text("x")
    (folder / "last.md").write_text("x")
    assert collect(watcher, folder / "last.md") == {folder / "last.md"}


def test_take_clears_and_wait_times_out_when_nothing_is_saved(watched):
    watcher, folder = watched
    replace_from_outside(folder / "a.md", "one event only")
    collect(watcher, folder / "a.md")
    assert not watcher.wait(0.05)
    assert watcher.take() == frozenset()


def test_a_folder_that_is_removed_and_made_again_is_watched_again(tmp_path):
    folder = tmp_path / "records"
    folder.mkdir()
    watcher = start([folder], check_seconds=0.02)
    folder.rmdir()
    folder.mkdir()
    collect(watcher, folder)
    wait_until_healthy(watcher)
    (folder / "new.md").write_text("x")
    collect(watcher, folder / "new.md")
    watcher.stop()


def test_a_folder_that_appears_later_is_watched_from_then_on(tmp_path):
    folder = tmp_path / "records"
    watcher = start([folder], check_seconds=0.02)
    assert watcher.healthy()
    folder.mkdir()
    collect(watcher, folder)
    wait_until_healthy(watcher)
    (folder / "new.md").write_text("x")
    collect(watcher, folder / "new.md")
    watcher.stop()


def test_a_folder_reached_by_a_link_is_reported_under_both_names(tmp_path):
    real, link = tmp_path / "skills", tmp_path / "linked"
    real.mkdir()
    link.symlink_to(real)
    watcher = start([real, link], check_seconds=0.02)
    (real / "a.md").write_text("x")
    collect(watcher, real / "a.md", link / "a.md")
    link.unlink()
    collect(watcher, link)
    wait_until_healthy(watcher)
    (real / "b.md").write_text("x")
    collect(watcher, real / "b.md")
    watcher.stop()


def test_stopping_is_quick_and_wakes_whoever_waits(watched):
    watcher, _ = watched
    begin = time.monotonic()
    watcher.stop()
    assert not watcher.wait(PATIENCE_SECONDS)
    assert time.monotonic() - begin < 2
    assert not watcher.healthy()


def test_starting_imports_nothing_in_the_foreground():
    program = (
        "import sys, threading\n"
        "from pathlib import Path\n"
        "from tinyclaw.state.watcher import Watcher\n"
        "Watcher([Path()], bool)\n"
        "print([name for name in sys.modules if name.startswith('watchdog')])\n"
    )
    assert run(program) == "[]\n"


def test_a_system_without_watches_to_give_is_said_once_and_harmless(tmp_path):
    program = (
        "import os, resource, sys\n"
        "from pathlib import Path\n"
        "import watchdog.observers\n"
        "from tinyclaw.state.watcher import Watcher\n"
        "watcher = Watcher([Path(sys.argv[1])], bool)\n"
        "free = os.dup(0); os.close(free)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (free, free))\n"
        "watcher.start(); watcher.ready.wait(10); watcher.stop()\n"
        "print(watcher.healthy(), watcher.diagnostic())\n"
    )
    if sys.platform != "linux":
        pytest.skip("the limit is inotify's")
    printed = run(program, str(tmp_path))
    assert printed.startswith(f"False {tmp_path}: saves are not noticed at once (")
    assert "checked at each turn" in printed


def run(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": "."},
    )
    assert done.stderr == ""
    return done.stdout
