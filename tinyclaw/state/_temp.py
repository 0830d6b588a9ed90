"""Hidden files of a write under way, and the order among our own writers."""

from __future__ import annotations

import itertools
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tinyclaw.state.settling import Sleep

TEMP_PREFIX = ".tinyclaw-"
"""How every hidden file begins. One that a crash left behind harms nobody, and may hold a save."""

_TURN_SECONDS = 3.0
_numbers = itertools.count()


def temp_file(target: Path, data: bytes, like: Path | None, fsync: bool) -> Path:
    """A hidden file next to ``target``, with the mode of ``like`` or what the umask leaves of 0666."""
    fd, temp = _create_temp(target.parent, 0o666 if like is None else 0o600)
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


def _create_temp(folder: Path, mode: int) -> tuple[int, Path]:
    while True:
        temp = folder / f"{TEMP_PREFIX}{os.getpid()}-{next(_numbers)}"
        with suppress(FileExistsError):  # left by a dead process that had our number
            return os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), temp


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
