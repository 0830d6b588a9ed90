"""Hidden files of a write under way, and the order among our own writers.

A hidden file's name tells what it is, should we die before it is gone: ``.tinyclaw-PID-COUNT-INODE-BASE-NAME``.
``INODE`` is that of the file we made, so any other file under the name is one that the exchange took out
of ``NAME``; ``BASE`` is the revision that we expected to come out. See ``leftovers``.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tinyclaw.state._names import HELD, TEMP_PREFIX, claim
from tinyclaw.state.settling import Sleep

KEPT = "kept"
"""Stands for ``BASE`` where the hidden file holds somebody's save, which is about to get a name of its own."""

_NAME_BYTES = 180
_NAME = re.compile(rf"{re.escape(TEMP_PREFIX)}({HELD})?(\d+)-\d+(?:-(\d+)-([0-9a-z]+)-(.+))?", re.DOTALL)
_TURN_SECONDS = 3.0
_numbers = itertools.count()


@dataclass(frozen=True)
class TempName:
    """What a hidden file's name says; ``name`` is "" where it was cut, or the file was not begun."""

    is_held: bool
    process: int
    inode: int
    base: str
    name: str

    @classmethod
    def parse(cls, name: str) -> TempName | None:
        """None for a name that is not ours."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        held, process, inode, base, target = found.groups()
        whole = target if target and len(os.fsencode(target)) < _NAME_BYTES else ""
        return cls(held is not None, int(process), int(inode or 0), base or "", whole)


def temp_file(target: Path, data: bytes, like: Path | None, fsync: bool, base: str = KEPT) -> Path:
    """A hidden file next to ``target``, with the mode of ``like`` or what the umask leaves of 0666.

    ``base`` is the revision that ``target`` is expected to have.
    """
    fd, temp = _create_temp(target, base, 0o666 if like is None else 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            if like is not None:
                _copy_attributes(like, fd)
            if fsync:
                os.fsync(fd)
    except BaseException:
        temp.unlink()
        raise
    return temp


def _create_temp(target: Path, base: str, mode: int) -> tuple[int, Path]:
    while True:
        first = target.parent / f"{TEMP_PREFIX}{os.getpid()}-{next(_numbers)}"
        with suppress(FileExistsError):  # left by a dead process that had our number
            fd = os.open(first, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            temp = first.with_name(f"{first.name}-{os.fstat(fd).st_ino}-{base}-{_cut(target.name)}")
            try:
                claim(first, temp)
            except BaseException:
                os.close(fd)
                first.unlink()
                raise
            return fd, temp


def _cut(name: str) -> str:
    while len(os.fsencode(name)) > _NAME_BYTES:
        name = name[:-1]
    return name


def _copy_attributes(source: Path, fd: int) -> None:
    """Owner and access list as far as we may, then the mode, which a change of owner would have cut."""
    status, own = source.stat(), os.fstat(fd)
    if (status.st_uid, status.st_gid) != (own.st_uid, own.st_gid):
        with suppress(PermissionError):
            os.fchown(fd, status.st_uid, status.st_gid)
    if sys.platform == "linux":
        for name in os.listxattr(source):
            if not name.startswith("security."):
                with suppress(OSError):
                    os.setxattr(fd, name, os.getxattr(source, name))
    os.fchmod(fd, stat.S_IMODE(status.st_mode))


def fsync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def turn(folder: Path, sleep: Sleep) -> Iterator[None]:
    """Own writers in one folder take turns, so that none takes another's first try for a person's save.

    A courtesy, not what safety rests on: where it cannot be had in time, the write goes on without.
    """
    import fcntl

    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    waited = 0.0
    try:
        while waited < _TURN_SECONDS:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                sleep(0.005)
                waited += 0.005
            except OSError:
                break  # a file system without locks
        yield
    finally:
        os.close(fd)
