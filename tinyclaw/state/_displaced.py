"""A file that lost its name to ours, held until nobody can write to it any more.

A program that opened the file before the exchange goes on writing to it afterwards, out of sight.
The kernel knows whether there is such a program: a read lease is refused while anybody has the file
open for writing (fcntl(2), F_SETLEASE; Linux).
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tinyclaw.state.settling import LONGEST_SECONDS, STILL_SECONDS, Sleep, settle, stillness

Writers = Literal["none", "some", "unknown"]

HELD_SECONDS = 5.0
"""How long a displaced file is watched where the kernel cannot tell whether it is still open."""


@dataclass
class Displaced:
    """The open file behind ``temp``, its hidden name; ``target`` is the name that it had.

    ``content`` is what it held when it was last looked at, ``writers`` who could still change it then.
    """

    fd: int
    temp: Path
    target: Path
    content: bytes = b""
    writers: Writers = "unknown"
    held_since: float = 0.0

    @classmethod
    def open(cls, temp: Path, target: Path) -> Displaced:
        """Raises: OSError when ``temp`` is not a plain file (somebody put a folder or a link there)."""
        fd = os.open(temp, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        if stat.S_ISREG(os.fstat(fd).st_mode):
            return cls(fd, temp, target)
        os.close(fd)
        raise IsADirectoryError(f"{target} is no longer a file")

    def look(self) -> bytes:
        """Read it whole. Writers are looked for first: what is read without any is final."""
        self.writers = _writers_of(self.fd)
        self.content = _read_from_start(self.fd)
        return self.content

    def settled(self, sleep: Sleep) -> bytes:
        """Its content once it has stood still, or what is there after the longest wait."""
        content, _ = settle(self.look, stillness, sleep)
        return content

    def release(self) -> None:
        """Take its hidden name away; hold the file itself while somebody may yet write to it."""
        self.temp.unlink(missing_ok=True)
        self.held_since = time.monotonic()
        self.hold_or_close()

    def hold_or_close(self, *, last: bool = False) -> None:
        """Go on holding it unless no late write is to be expected, or this was the ``last`` look."""
        waited = time.monotonic() - self.held_since
        if last or self.writers == "none" or (self.writers == "unknown" and waited > HELD_SECONDS):
            os.close(self.fd)
        else:
            self.hold()

    def hold(self) -> None:
        """Go on holding it until the next ``take_held``."""
        with _held_lock:
            _held.append(self)

    def outlast_writers(self, sleep: Sleep) -> None:
        """Look until nobody writes any more, or for as long as waiting makes sense."""
        patience = {"none": 0.0, "unknown": STILL_SECONDS, "some": LONGEST_SECONDS}
        settle(lambda: (self.look(), self.writers), lambda seen: patience[seen[1]], sleep)


_held: list[Displaced] = []
_held_lock = threading.Lock()
"""Guards that a held file is in exactly one place: ``_held`` or the hands of one caller."""


def take_held() -> list[Displaced]:
    """All held files, which are the caller's from now on: ``hold`` and ``hold_or_close`` end that."""
    with _held_lock:
        taken = list(_held)
        _held.clear()
    return taken


def _writers_of(fd: int) -> Writers:
    """Whether a program has the file open for writing."""
    if sys.platform != "linux" or os.fstat(fd).st_nlink > 1:
        return "unknown"  # through another name it can be opened at any time
    import fcntl

    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return "some" if error.errno == errno.EAGAIN else "unknown"
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return "none"


def _read_from_start(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    with os.fdopen(fd, "rb", closefd=False) as file:
        return file.read()
