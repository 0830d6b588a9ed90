"""Reading files as bytes, without ever blocking, and explaining what the system refuses."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tinyclaw.errors import StateError

ABSENT = "absent"
"""The revision of a file that does not exist."""

_STABLE_READS = 5


@dataclass(frozen=True)
class FileRead:
    """A file as it was at one moment. ``data`` is None, and ``mode`` too, where it was absent.

    ``mode`` holds the permission bits.
    """

    path: Path
    data: bytes | None
    revision: str
    mode: int | None


def revision_of(data: bytes) -> str:
    """The revision of a content: the first 16 hex digits of its SHA-256."""
    return hashlib.sha256(data).hexdigest()[:16]


def read(path: Path, *, limit_bytes: int | None = None) -> FileRead:
    """The file at ``path``, links followed; an absent file and a dangling link are ``ABSENT``.

    Never blocks on a named pipe. A file that changes while it is read is read again.

    Raises: StateError when it is no plain file, cannot be read, or is larger than ``limit_bytes``.
    """
    with explained(path, "read"):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return FileRead(path, None, ABSENT, None)
        try:
            return _read_open(path, fd, limit_bytes)
        finally:
            os.close(fd)


@contextmanager
def explained(path: Path, verb: str) -> Iterator[None]:
    """Turn the system's errors into a StateError that says what cannot be done to ``path``, and why.

    ``verb`` completes "cannot be": "read", "written".
    """
    try:
        yield
    except OSError as error:
        reason, mend = _REASONS.get(error.errno or 0, (error.strerror or str(error), ""))
        raise StateError(f"{path}: cannot be {verb}: {reason}{mend and '; '}{mend}") from error
    except ValueError as error:  # a NUL in the name
        raise StateError(f"{path}: cannot be {verb}: the name is not valid ({error})") from error


_REASONS = {
    errno.EACCES: ("permission denied", "give yourself the right to it, or to its folder"),
    errno.EPERM: ("the system does not permit it", "see who owns the file and its folder"),
    errno.ENXIO: ("it is a socket or a pipe, not a file", "move it away"),
    errno.EISDIR: ("it is a folder, not a file", "move it away"),
    errno.ELOOP: ("its symbolic links go in a circle", "mend the link"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter one"),
    errno.ENOSPC: ("the disk is full", "make room; the file is as it was"),
    errno.EDQUOT: ("the disk quota is used up", "make room; the file is as it was"),
    errno.EROFS: ("the file system is read-only", "the file is as it was"),
    errno.ENOTDIR: ("a part of its path is a file, not a folder", "check the path"),
    errno.ENOENT: ("its folder is gone", "check the path"),
}

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def _read_open(path: Path, fd: int, limit_bytes: int | None) -> FileRead:
    before = os.fstat(fd)
    if not stat.S_ISREG(before.st_mode):
        kind = _KINDS.get(stat.S_IFMT(before.st_mode), "no plain file")
        raise StateError(f"{path}: is {kind}, not a file; move it away")
    data = b""
    for _ in range(_STABLE_READS):
        data = _read_bounded(path, fd, before.st_size, limit_bytes)
        after = os.fstat(fd)
        if signature(after) == signature(before) and len(data) == after.st_size:
            break
        before = after
    return FileRead(path, data, revision_of(data), stat.S_IMODE(before.st_mode))


def _read_bounded(path: Path, fd: int, size: int, limit_bytes: int | None) -> bytes:
    data = b""
    if limit_bytes is None or size <= limit_bytes:
        os.lseek(fd, 0, os.SEEK_SET)
        with os.fdopen(fd, "rb", closefd=False) as file:
            data = file.read() if limit_bytes is None else file.read(limit_bytes + 1)
    actual = max(size, len(data))
    if limit_bytes is not None and actual > limit_bytes:
        raise StateError(f"{path}: is too large ({actual:,} bytes, the limit is {limit_bytes:,}); shorten or split it")
    return data


class Signature(NamedTuple):
    """What changes when a file changes; times in nanoseconds, ``changed_ns`` that of the inode (ctime)."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


def signature(status: os.stat_result) -> Signature:
    """The signature in what ``os.stat`` says."""
    return Signature(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
