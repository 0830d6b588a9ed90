"""The right to append to one session file, which dies with its process."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from tinyclaw.errors import Locked, StateError

_TRIES = 5
_PAUSE_SECONDS = 0.02
"""Somebody who only looks whether a session is held holds it for a moment."""


class SessionLock:
    """The right to append to one session file: a lock file beside it, which dies with its process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, transcript: Path) -> SessionLock:
        """Raises: Locked, naming the holder; StateError when the lock file cannot be made."""
        path = transcript.with_suffix(".lock")
        tries = _TRIES
        while True:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as error:
                raise StateError(
                    f"{path}: the session cannot be locked ({error.strerror}); give write access to the folder"
                ) from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                tries -= 1
                if tries:
                    os.close(descriptor)
                    time.sleep(_PAUSE_SECONDS)
                    continue
                holder = os.read(descriptor, 200).decode("utf-8", "replace").strip() or "another process"
                os.close(descriptor)
                raise Locked(
                    f"{transcript.name} is in use by {holder}; end that one first, or start a session of your own"
                ) from None
            if _same_file(descriptor, path):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, f"process {os.getpid()} on {os.uname().nodename}\n".encode())
                return cls(path, descriptor)
            os.close(descriptor)

    def release(self) -> None:
        if self._descriptor is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None


def is_locked(transcript: Path) -> bool:
    """Whether some process holds the session now."""
    try:
        descriptor = os.open(transcript.with_suffix(".lock"), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def clear_orphan_locks(folder: Path) -> None:
    """Take away the locks of processes that were killed before they had made their transcript."""
    for path in folder.glob("*.lock"):
        if not path.with_suffix(".md").exists():
            with suppress(Locked, StateError):
                SessionLock.take(path.with_suffix(".md")).release()


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
