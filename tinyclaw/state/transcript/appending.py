"""A file that is only appended to, and that anybody else may change at any time.

``AppendedFile`` knows what it has read and written: device, inode, size and times tell at a glance
whether the file is still that, its hash tells for sure. It adds all of a text or nothing of it, and
only to the very file that it knows.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from tinyclaw.errors import StateError
from tinyclaw.state._reading import Signature, read, signature
from tinyclaw.state.settling import settle, stillness


class AppendedFile:
    """``path`` as it was when it was last read or written. ``crlf`` says how its lines end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.crlf = False
        self._signature: Signature | None = None
        self._hash = hashlib.sha256()
        self._gap = ""

    def is_known(self) -> bool:
        """Whether the file is what we know. Where only its outside differs, the new outside is known from then on."""
        seen = self._look()
        if seen is None or seen == self._signature:
            return seen is not None
        data = read(self.path).data
        if data is None or hashlib.sha256(data).digest() != self._hash.digest():
            return False
        self._signature = seen
        return True

    def take(self, *, settled: bool = True) -> bytes | None:
        """Read the file and know it from then on; None when it is gone.

        With ``settled`` a save that is under way is waited for, a second at most. Raises: StateError.
        """

        def look() -> tuple[Signature | None, bytes | None]:
            return self._look(), read(self.path).data

        seen, data = settle(look, lambda seen: stillness(seen[1]), time.sleep)[0] if settled else look()
        self._know(seen, data or b"")
        return data

    def forget(self) -> None:
        """Know nothing, so that nothing is appended before the file has been taken again."""
        self._know(None, b"")

    def append(self, text: str) -> bool:
        """Add ``text`` at the end, on a line of its own; False when the file is no longer the one that we know.

        Raises: StateError, with the file as it was, when the disk is full or the file cannot be written.
        """
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StateError(
                f"{self.path}: the transcript cannot be written ({error.strerror}); mend it, nothing is lost"
            ) from error
        try:
            if signature(os.fstat(descriptor)) != self._signature:
                return False
            self._write(descriptor, self._gap + text)
            return True
        finally:
            os.close(descriptor)

    def make(self, text: str) -> None:
        """Make the file with this content, whole or not at all.

        Raises: StateError when it is there, or the disk is full.
        """
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise StateError(
                f"{self.path}: the transcript cannot be made ({error.strerror}); free the name or the disk"
            ) from error
        self.forget()
        try:
            self._write(descriptor, text)
        except StateError:
            self.path.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)

    def _write(self, descriptor: int, text: str) -> None:
        data = (text.replace("\n", "\r\n") if self.crlf else text).encode("utf-8", "surrogateescape")
        size = os.fstat(descriptor).st_size
        written = 0
        try:
            while written < len(data):
                written += os.write(descriptor, data[written:])
        except OSError as error:
            if written:
                os.ftruncate(descriptor, size)
            raise StateError(
                f"{self.path}: {len(data)} bytes could not be added ({error.strerror}); the file is as it was. "
                "Free some space, then go on with: tinyclaw run --resume last"
            ) from error
        self._hash.update(data)
        self._gap = _gap_behind(data)
        status = os.fstat(descriptor)
        self._signature = signature(status) if status.st_size == size + len(data) else None

    def _know(self, seen: Signature | None, data: bytes) -> None:
        self._signature, self._hash, self._gap = seen, hashlib.sha256(data), _gap_behind(data)

    def _look(self) -> Signature | None:
        try:
            return signature(self.path.stat())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateError(f"{self.path}: cannot be looked at ({error.strerror})") from error


def _gap_behind(data: bytes) -> str:
    """The line ends that are missing before a new block."""
    if not data or data.endswith((b"\n\n", b"\n\r\n")):
        return ""
    return "\n" if data.endswith(b"\n") else "\n\n"
