"""Writes never lose what somebody else saved; reads never block."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tinyclaw.errors import FileChanged, StateError
from tinyclaw.state._names import claim, claim_by_link, exchange, exchange_by_moving
from tinyclaw.state.files import ABSENT, Written, read, recheck_displaced, revision_of, write

BASE = b"one\ntwo\nthree\nfour\n"
OURS = b"ONE\ntwo\nthree\nfour\n"
THEIRS = b"one\ntwo\nthree\nFOUR\n"
BOTH = b"ONE\ntwo\nthree\nFOUR\n"
CLASH = b"uno\ntwo\nthree\nfour\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "PLAN.md"
    path.write_bytes(BASE)
    return path


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path):
    """After every write no hidden file remains, and no late save is forgotten."""
    yield
    assert not list(tmp_path.rglob(".tinyclaw-*"))
    assert recheck_displaced(last=True) == []


# Each is a way in which editors save.


def save_in_place(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def save_over_without_truncating(path: Path, data: bytes) -> None:
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()


def save_by_rename(path: Path, data: bytes) -> None:
    temp = path.with_name("save.tmp")
    temp.write_bytes(data)
    temp.replace(path)


def save_with_backup(path: Path, data: bytes) -> None:
    backup = path.with_name(path.name + "~")
    path.rename(backup)
    path.write_bytes(data)
    backup.unlink()


def save_by_two_renames(path: Path, data: bytes) -> None:
    temp, backup = path.with_name("___jb_tmp___"), path.with_name("___jb_old___")
    temp.write_bytes(data)
    path.rename(backup)
    temp.rename(path)
    backup.unlink()


def save_anew(path: Path, data: bytes) -> None:
    path.unlink()
    path.write_bytes(data)


STYLES = [
    save_in_place,
    save_over_without_truncating,
    save_by_rename,
    save_with_backup,
    save_by_two_renames,
    save_anew,
]
styles = pytest.mark.parametrize("save", STYLES)
exchanges = pytest.mark.parametrize("exchange", [exchange, exchange_by_moving])


def during(exchange, *actions):
    """An exchange before which the next of ``actions`` happens, as if somebody were just that quick."""
    left = list(actions)

    def exchange_after_action(temp, target):
        if left:
            left.pop(0)()
        exchange(temp, target)

    return exchange_after_action


# Reading


def test_a_read_gives_content_revision_and_mode(file):
    file.chmod(0o640)
    found = read(file)
    assert (found.data, found.revision, found.mode) == (BASE, revision_of(BASE), 0o640)


def test_revisions_are_16_hex_digits_of_sha256():
    assert revision_of(b"") == "e3b0c44298fc1c14"


@pytest.mark.parametrize("name", ["no", "no/where", "PLAN.md/below"])
def test_what_is_not_there_is_absent(file, name):
    found = read(file.parent / name)
    assert (found.data, found.revision, found.mode) == (None, ABSENT, None)


def test_a_dangling_link_is_absent(tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    assert read(tmp_path / "link").revision == ABSENT


def test_a_folder_a_pipe_a_socket_and_a_device_are_refused_without_blocking(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.relpath(tmp_path / "socket"))
    with listener:
        for path, what in [("folder", "a folder"), ("pipe", "pipe"), ("socket", "socket"), ("/dev/null", "a device")]:
            with pytest.raises(StateError, match=what):
                read(tmp_path / path)


def test_a_file_over_the_limit_is_refused_with_both_sizes(file):
    assert read(file, limit_bytes=len(BASE)).data == BASE
    with pytest.raises(StateError, match=rf"{len(BASE)} bytes, the limit is {len(BASE) - 1}"):
        read(file, limit_bytes=len(BASE) - 1)


def test_links_in_a_circle_and_impossible_names_are_refused(tmp_path):
    (tmp_path / "link").symlink_to("link")
    for path in (tmp_path / "link", Path("a\0b"), tmp_path / ("x" * 300)):
        with pytest.raises(StateError, match="cannot be read"):
            read(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(file):
    file.chmod(0)
    with pytest.raises(StateError, match="permission denied"):
        read(file)


# Writing when nobody interferes


def test_a_write_replaces_the_content_and_names_the_revision(file):
    assert write(file, OURS, base=read(file)) == Written(revision_of(OURS))
    assert file.read_bytes() == OURS


def test_a_second_own_write_needs_the_first_ones_result_as_base(file):
    base = read(file)
    write(file, OURS, base=base)
    write(file, BOTH, base=read(file), fsync=True)
    assert file.read_bytes() == BOTH


def test_equal_content_writes_nothing(file):
    before = file.stat()
    write(file, BASE, base=read(file))
    assert (file.stat().st_ino, file.stat().st_ctime_ns) == (before.st_ino, before.st_ctime_ns)


def test_equal_content_writes_nothing_even_when_somebody_else_wrote_it(file):
    base = read(file)
    file.write_bytes(OURS)
    inode = file.stat().st_ino
    assert write(file, OURS, base=base) == Written(revision_of(OURS))
    assert file.stat().st_ino == inode


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o444, 0o664])
@pytest.mark.parametrize("umask", [0o077, 0o022])
def test_the_mode_is_kept(file, mode, umask):
    file.chmod(mode)
    before = os.umask(umask)
    try:
        write(file, OURS, base=read(file))
    finally:
        os.umask(before)
    assert file.stat().st_mode & 0o7777 == mode


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path, umask, mode):
    path = tmp_path / "new" / "deep" / "file"
    before = os.umask(umask)
    try:
        write(path, OURS, base=read(path))
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o7777 == mode
    assert path.read_bytes() == OURS


@exchanges
def test_links_stay_links_and_their_target_is_written(file, exchange):
    first, second = file.with_name("AGENTS.md"), file.with_name("CLAUDE.md")
    first.symlink_to("PLAN.md")
    second.symlink_to("AGENTS.md")
    write(second, OURS, base=read(second), exchange=exchange)
    assert (first.is_symlink(), second.is_symlink(), file.read_bytes()) == (True, True, OURS)


def test_writing_through_a_dangling_link_makes_its_target(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("real.md")
    write(link, OURS, base=read(link))
    assert link.is_symlink()
    assert (tmp_path / "real.md").read_bytes() == OURS


def test_any_bytes_can_be_written(file):
    data = b"\xff\xfe\0caf\xe9"
    write(file, data, base=read(file))
    assert file.read_bytes() == data


# Writing over what changed before


@styles
def test_a_change_elsewhere_in_the_file_is_merged_and_reported(file, save):
    base = read(file)
    save(file, THEIRS)
    written = write(file, OURS, base=base)
    assert (file.read_bytes(), written.revision, written.merged) == (BOTH, revision_of(BOTH), True)
    assert "-four\n+FOUR\n" in written.diff


@styles
def test_a_change_of_the_same_line_stands_and_the_write_is_refused(file, save):
    base = read(file)
    save(file, CLASH)
    with pytest.raises(FileChanged, match="changed since it was read") as refused:
        write(file, OURS, base=base)
    assert file.read_bytes() == CLASH
    assert refused.value.revision == revision_of(CLASH)
    assert "-one\n+uno\n" in refused.value.diff


def test_a_change_is_noticed_with_equal_size_and_times(file):
    base, status = read(file), file.stat()
    file.write_bytes(CLASH)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(FileChanged):
        write(file, OURS, base=base)
    assert file.read_bytes() == CLASH


def test_a_deleted_file_is_not_made_again(file):
    base = read(file)
    file.unlink()
    with pytest.raises(FileChanged, match="deleted") as refused:
        write(file, OURS, base=base)
    assert refused.value.revision == ABSENT
    assert not file.exists()


def test_a_file_that_somebody_created_meanwhile_stands(tmp_path):
    path = tmp_path / "new"
    base = read(path)
    path.write_bytes(THEIRS)
    with pytest.raises(FileChanged, match="created") as refused:
        write(path, OURS, base=base)
    assert path.read_bytes() == THEIRS
    assert refused.value.revision == revision_of(THEIRS)


def test_bytes_that_are_no_text_are_never_merged(file):
    base = read(file)
    binary = BASE + b"\xe9"
    file.write_bytes(binary)
    with pytest.raises(FileChanged):
        write(file, OURS, base=base)
    assert file.read_bytes() == binary


def test_a_base_whose_bytes_are_gone_is_compared_by_revision(file):
    base = read(file)
    forgotten = type(base)(file, None, base.revision, None)
    write(file, OURS, base=forgotten)
    with pytest.raises(FileChanged, match="changed"):
        write(file, BOTH, base=forgotten)
    assert file.read_bytes() == OURS


# Writing while somebody saves


@exchanges
@styles
def test_a_save_in_the_moment_of_the_exchange_is_merged(file, save, exchange):
    quick = during(exchange, lambda: save(file, THEIRS))
    written = write(file, OURS, base=read(file), exchange=quick)
    assert (file.read_bytes(), written.revision, written.merged) == (BOTH, revision_of(BOTH), True)
    assert "+FOUR\n" in written.diff


@exchanges
@styles
def test_a_clashing_save_in_the_moment_of_the_exchange_is_put_back(file, save, exchange):
    quick = during(exchange, lambda: save(file, CLASH))
    with pytest.raises(FileChanged) as refused:
        write(file, OURS, base=read(file), exchange=quick)
    assert file.read_bytes() == CLASH
    assert refused.value.revision == revision_of(CLASH)
    assert "+uno\n" in refused.value.diff


@exchanges
@styles
def test_the_newest_save_stands_when_one_comes_while_another_is_put_back(file, save, exchange):
    newer = b"uno\ndue\nthree\nfour\n"
    quick = during(exchange, lambda: save(file, CLASH), lambda: save(file, newer))
    with pytest.raises(FileChanged) as refused:
        write(file, OURS, base=read(file), exchange=quick)
    assert file.read_bytes() == newer
    assert refused.value.revision == revision_of(newer)
    assert list(file.parent.glob("*.rescued-*")) == []


def test_a_save_that_the_newest_was_not_made_of_is_kept_beside_the_file(file):
    made_of_ours = OURS + b"five\n"
    quick = during(exchange, lambda: file.write_bytes(CLASH), lambda: file.write_bytes(made_of_ours))
    with pytest.raises(FileChanged):
        write(file, OURS, base=read(file), exchange=quick)
    assert file.read_bytes() == made_of_ours
    [rescued] = recheck_displaced()
    assert rescued.saved_as == file.with_name(f"PLAN.md.rescued-{revision_of(CLASH)}")
    assert rescued.saved_as.read_bytes() == CLASH


@exchanges
def test_two_saves_of_one_editor_are_both_merged(file, exchange):
    second = THEIRS + b"five\n"
    quick = during(exchange, lambda: save_by_rename(file, THEIRS), lambda: save_by_rename(file, second))
    written = write(file, OURS, base=read(file), exchange=quick)
    assert file.read_bytes() == BOTH + b"five\n"
    assert "+FOUR\n" in written.diff
    assert "+five\n" in written.diff


def test_a_file_that_is_away_for_a_moment_is_waited_for(file):
    backup = file.with_name("PLAN.md~")
    steps = iter([lambda: save_by_rename(file, THEIRS)])
    quick = during(exchange, lambda: file.rename(backup))
    write(file, OURS, base=read(file), exchange=quick, sleep=lambda seconds: next(steps, lambda: None)())
    assert file.read_bytes() == BOTH


@exchanges
def test_a_file_that_is_deleted_in_the_moment_of_the_exchange_stays_deleted(file, exchange):
    quick = during(exchange, file.unlink)
    with pytest.raises(FileChanged, match="deleted"):
        write(file, OURS, base=read(file), exchange=quick, sleep=lambda seconds: None)
    assert list(file.parent.iterdir()) == []


@pytest.mark.parametrize("data", [THEIRS, CLASH])
def test_a_writer_that_has_truncated_the_file_is_waited_for(file, data):
    writer = file.open("r+b", buffering=0)
    pieces = [data[:5], data[5:9], data[9:]]

    def sleep(seconds):
        if pieces:
            writer.write(pieces.pop(0))

    quick = during(exchange, lambda: writer.truncate(0))
    try:
        write(file, OURS, base=read(file), exchange=quick, sleep=sleep)
    except FileChanged:
        assert (data, file.read_bytes()) == (CLASH, CLASH)
    else:
        assert (data, file.read_bytes()) == (THEIRS, BOTH)
    writer.close()
    assert recheck_displaced() == []


def test_a_folder_that_takes_the_files_place_is_put_back(file):
    def replace_by_folder():
        file.unlink()
        file.mkdir()
        (file / "kept").touch()

    with pytest.raises(StateError, match="no plain file"):
        write(file, OURS, base=read(file), exchange=during(exchange, replace_by_folder))
    assert (file / "kept").exists()


def test_a_link_that_takes_the_files_place_is_put_back(file):
    def replace_by_link():
        file.unlink()
        file.symlink_to("other")

    with pytest.raises(StateError, match="no plain file"):
        write(file, OURS, base=read(file), exchange=during(exchange, replace_by_link))
    assert file.is_symlink()


# Saves that come late


def test_a_late_save_is_merged_into_the_file(file):
    with file.open("r+b", buffering=0) as writer:
        write(file, OURS, base=read(file))
        assert recheck_displaced() == []
        writer.write(THEIRS)
        [rescued] = recheck_displaced()
    assert (rescued.path, rescued.saved_as) == (file, None)
    assert "+FOUR\n" in rescued.diff
    assert file.read_bytes() == BOTH


@pytest.mark.parametrize("late", [CLASH, BASE + b"\xe9"])
def test_a_late_save_that_cannot_be_merged_is_kept_beside_the_file(file, late):
    with file.open("r+b", buffering=0) as writer:
        write(file, OURS, base=read(file))
        writer.write(late)
    [rescued] = recheck_displaced()
    assert file.read_bytes() == OURS
    assert rescued.saved_as is not None
    assert rescued.saved_as.read_bytes() == late
    assert rescued.saved_as.name in str(rescued)


def test_a_late_save_that_finds_no_room_is_kept_in_hand_until_it_does(file):
    with file.open("r+b", buffering=0) as writer:
        write(file, OURS, base=read(file))
        writer.write(CLASH + b"x" * 5000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(StateError, match="cannot be rescued"):
            recheck_displaced()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    [rescued] = recheck_displaced()
    assert rescued.saved_as is not None
    assert rescued.saved_as.read_bytes() == CLASH + b"x" * 5000


def test_a_late_save_into_our_own_version_that_was_taken_back_is_not_lost(file):
    writers = []
    clash_then_open = during(
        exchange, lambda: file.write_bytes(CLASH), lambda: writers.append(file.open("r+b", buffering=0))
    )
    with pytest.raises(FileChanged):
        write(file, OURS, base=read(file), exchange=clash_then_open)
    writers[0].write(BOTH)
    writers[0].close()
    [rescued] = recheck_displaced()
    assert file.read_bytes() == b"uno\ntwo\nthree\nFOUR\n"
    assert "+FOUR\n" in rescued.diff


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whether a file is open")
def test_a_file_that_nobody_has_open_is_not_held(file):
    write(file, OURS, base=read(file))
    with file.open("r+b"):
        write(file, BOTH, base=read(file))
    held = [os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()]
    assert len([name for name in held if name.startswith(str(file.parent))]) == 1


# What the system refuses


def test_a_write_that_fails_half_way_leaves_the_file_and_nothing_else(file):
    base = read(file)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(StateError, match=r"PLAN\.md: cannot be written"):
            write(file, b"x" * 100_000, base=base)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert file.read_bytes() == BASE
    assert [path.name for path in file.parent.iterdir()] == ["PLAN.md"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_write_in_a_read_only_folder_is_refused_with_the_reason(file):
    base = read(file)
    file.parent.chmod(0o555)
    with pytest.raises(StateError, match="permission denied"):
        write(file, OURS, base=base)
    file.parent.chmod(0o755)
    assert file.read_bytes() == BASE


def test_a_file_where_a_folder_should_be_is_said(file):
    path = file / "below"
    with pytest.raises(StateError, match="cannot be written"):
        write(path, OURS, base=read(path))


def test_a_hidden_file_of_a_dead_process_is_in_nobodys_way(file):
    left = [file.with_name(f".tinyclaw-{os.getpid()}-{number}") for number in range(2000)]
    for path in left:
        path.touch()
    write(file, OURS, base=read(file))
    for path in left:
        path.unlink()
    assert file.read_bytes() == OURS


# Names


@pytest.mark.parametrize("claim", [claim, claim_by_link])
def test_a_name_is_claimed_only_if_it_is_free(file, claim):
    temp, free = file.with_name("temp"), file.with_name("free")
    temp.write_bytes(OURS)
    with pytest.raises(FileExistsError):
        claim(temp, file)
    assert (temp.read_bytes(), file.read_bytes()) == (OURS, BASE)
    claim(temp, free)
    assert (free.read_bytes(), temp.exists()) == (OURS, False)


@exchanges
def test_an_exchange_with_an_absent_file_moves_nothing(file, exchange):
    with pytest.raises(FileNotFoundError):
        exchange(file, file.with_name("absent"))
    assert file.read_bytes() == BASE


# Many writers at once

OWN_WRITER = """
import sys
from pathlib import Path
from tinyclaw.errors import FileChanged
from tinyclaw.state.files import read, recheck_displaced, write
path, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for number in range(count):
    while True:
        base = read(path)
        try:
            write(path, (base.data or b"") + f"{name} {number}\\n".encode(), base=base)
            break
        except FileChanged:
            pass
assert recheck_displaced(last=True) == []
"""


def test_own_processes_that_append_to_one_file_lose_nothing(file):
    processes = [
        subprocess.Popen([sys.executable, "-c", OWN_WRITER, file, name, "30"], env=_env()) for name in ("a", "b", "c")
    ]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0]
    lines = file.read_text().splitlines()[4:]
    assert sorted(lines) == sorted(f"{name} {number}" for name in "abc" for number in range(30))


def _env():
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


PERSON = Path(__file__).with_name("person.py")


def be_agent_beside_a_person(folder: Path, style: str, buffer: str, saves: int) -> None:
    """Write one line of a file again and again while a person's process saves it; no save may be lost."""
    path = folder / "TODO.md"
    path.write_bytes(b"agent: 0\n" + b"".join(b"line %d\n" % number for number in range(20)) + b"person: none\n")
    told: list[str] = []
    person = subprocess.Popen(
        [sys.executable, PERSON, path, style, buffer, str(saves)], env=_env(), stdout=subprocess.PIPE, text=True
    )
    number = 0
    while person.poll() is None:
        number += 1
        base = read(path)
        told += [rescued.diff for rescued in recheck_displaced()]
        if base.data is None:
            continue
        _, _, rest = base.data.partition(b"\n")
        try:
            told.append(write(path, b"agent: %d\n" % number + rest, base=base).diff)
        except FileChanged as refused:
            told.append(refused.diff)
    told += [rescued.diff for rescued in recheck_displaced(last=True)]
    assert person.stdout is not None
    saved = person.stdout.read().split()
    kept = "".join([path.read_text(), *told, *(file.read_text() for file in folder.glob("*.rescued-*"))])
    assert len(saved) == saves
    assert [token for token in saved if token not in kept] == []
    assert saved[-1] in path.read_text()
    assert number > 3


@pytest.mark.parametrize("buffer", ["stale", "reloaded"])
@pytest.mark.parametrize("style", ["in-place", "overwrite", "rename", "backup", "two-renames", "anew"])
def test_a_person_and_an_agent_save_one_file_and_no_save_is_lost(tmp_path, style, buffer):
    be_agent_beside_a_person(tmp_path, style, buffer, saves=25)


@pytest.mark.campaign
@pytest.mark.parametrize("buffer", ["stale", "reloaded"])
@pytest.mark.parametrize("style", ["in-place", "overwrite", "rename", "backup", "two-renames", "anew"])
def test_hundreds_of_saves_and_none_is_lost(tmp_path, style, buffer):
    be_agent_beside_a_person(tmp_path, style, buffer, saves=400)
