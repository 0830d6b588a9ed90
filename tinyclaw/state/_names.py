"""Renames that the standard library lacks: exchange two names, or take a name only if it is free.

Each is one atomic step where the kernel and the file system have it (renameat2(2) on Linux,
renamex_np(2) on macOS). Elsewhere the file is moved aside first, so that whatever stood under the name
is in hand at every moment; nothing is ever overwritten unseen.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

Exchange = Callable[[Path, Path], None]
"""Swaps the files under two names of one folder. Raises FileNotFoundError when one is absent."""

TEMP_PREFIX = ".tinyclaw-"
"""How every hidden file begins. One that a crash left behind harms nobody, and may hold a save."""
HELD = "held-"
"""Follows the prefix while a file is moved aside."""

_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}
_AT_FDCWD = -100
_EXCHANGE_FLAG = 2  # RENAME_EXCHANGE in linux/fs.h, RENAME_SWAP in macOS' sys/stdio.h
_FREE_FLAG = 4 if sys.platform == "darwin" else 1  # RENAME_EXCL, RENAME_NOREPLACE


def exchange(temp: Path, target: Path) -> None:
    """Swap ``temp`` and ``target``; without the system call, as ``exchange_by_moving``.

    Raises: FileNotFoundError when ``target`` is absent, OSError for the rest; then nothing has moved.
    """
    try:
        _rename(temp, target, _EXCHANGE_FLAG)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        exchange_by_moving(temp, target)


def exchange_by_moving(temp: Path, target: Path) -> None:
    """Swap in three steps. ``target`` is absent for a moment.

    A file that somebody creates in that moment stays, as if it had overwritten ours right after the swap.
    """
    held = temp.with_name(f"{TEMP_PREFIX}{HELD}{temp.name.removeprefix(TEMP_PREFIX)}")
    target.rename(held)
    try:
        claim(temp, target)
    except FileExistsError:
        pass
    except OSError:
        claim(held, target)
        raise
    held.replace(temp)


def claim(temp: Path, target: Path) -> None:
    """Give the file ``temp`` the name ``target``, which must be free.

    Raises: FileExistsError when it is not; then ``temp`` is where it was.
    """
    try:
        _rename(temp, target, _FREE_FLAG)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        claim_by_link(temp, target)


def claim_by_link(temp: Path, target: Path) -> None:
    """``claim`` by hard link or, on file systems without them, by reserving the name."""
    try:
        os.link(temp, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        temp.replace(target)
    else:
        temp.unlink()


def _rename(source: Path, target: Path, flag: int) -> None:
    code = _system_rename()(os.fsencode(source), os.fsencode(target), flag)
    if code:
        raise OSError(code, os.strerror(code), str(source), None, str(target))


@cache
def _system_rename() -> Callable[[bytes, bytes, int], int]:
    """The C library's rename with flags; it answers with an errno, or 0."""
    import ctypes  # 12 ms that a run without writes does not need

    library = ctypes.CDLL(None, use_errno=True)

    def renamex_np(source: bytes, target: bytes, flag: int) -> int:
        return ctypes.get_errno() if library.renamex_np(source, target, ctypes.c_uint(flag)) else 0

    def renameat2(source: bytes, target: bytes, flag: int) -> int:
        failed = library.renameat2(_AT_FDCWD, source, _AT_FDCWD, target, ctypes.c_uint(flag))
        return ctypes.get_errno() if failed else 0

    if sys.platform == "darwin":
        return renamex_np
    return renameat2 if hasattr(library, "renameat2") else lambda source, target, flag: errno.ENOSYS
