"""Hidden files of writes that a crash cut short: what is ours goes away, what is somebody's save is brought home."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tinyclaw.errors import StateError
from tinyclaw.state._names import claim
from tinyclaw.state._reading import read, revision_of
from tinyclaw.state._temp import KEPT, TempName
from tinyclaw.state.files import Rescued


def clear_leftovers(folders: Iterable[Path]) -> list[Rescued]:
    """Look through ``folders``, without what lies below them; those where one of us is writing are left alone.

    Returns the saves that were brought home. What cannot be read or moved stays; ``find_leftovers`` names it.
    """
    rescued = []
    for folder in dict.fromkeys(folders):
        with suppress(OSError, StateError), _quiet(folder):
            for path in find_leftovers(folder):
                rescued += _clear(path)
    return rescued


def find_leftovers(folder: Path) -> list[Path]:
    """The hidden files in ``folder`` whose process is gone. Raises: OSError."""
    with os.scandir(folder) as entries:
        found = [(Path(entry.path), TempName.parse(entry.name)) for entry in entries]
    return sorted(path for path, name in found if name is not None and not _is_alive(name.process))


@contextmanager
def _quiet(folder: Path) -> Iterator[None]:
    """No write of ours is under way there, nor begins. Raises: BlockingIOError when one is."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)


def _is_alive(process: int) -> bool:
    if process == os.getpid():  # in a container numbers come again; ours is not writing yet
        return False
    try:
        os.kill(process, 0)
    except OSError as error:
        return error.errno == errno.EPERM
    return True


def _clear(path: Path) -> list[Rescued]:
    """Raises: OSError, StateError."""
    name = TempName.parse(path.name)
    status = path.lstat()
    assert name is not None
    if not stat.S_ISREG(status.st_mode):
        return []
    target = path.with_name(name.name) if name.name else None
    if name.is_held and target and not os.path.lexists(target):
        claim(path, target)
        return []
    is_ours = name.inode == status.st_ino and name.base != KEPT
    if status.st_size == 0 or is_ours or _revision(path) == name.base:
        path.unlink()
        return []
    return [_keep(path, target or path.with_name("file"), finish=name.base == KEPT)]


def _keep(path: Path, target: Path, *, finish: bool) -> Rescued:
    """Give a save a name that people see: ``target`` itself, if that was under way, or one beside it."""
    beside = target.with_name(f"{target.name}.rescued-{_revision(path)}")
    for name in [target, beside] if finish else [beside]:
        with suppress(FileExistsError):
            claim(path, name)
            return Rescued(target, "", name)
    path.unlink()  # the same save has been kept under that name already
    return Rescued(target, "", beside)


def _revision(path: Path) -> str:
    return revision_of(read(path).data or b"")
