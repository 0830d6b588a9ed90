"""Which revision of which file the model has seen, and the bytes of it as far as this process holds them.

A whole-file write is allowed over a revision that stands here, and over no other. The revisions
come back from the transcript on resume (``reset``); the bytes do not.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping

from tinyclaw.state.files import FileRead

HELD_BYTES = 32_000_000
"""How much file content is kept to show what changed since; the files seen longest ago are let go first."""


class Ledger:
    """Keys are workspace paths (posix, from the root). Safe for tools that run side by side."""

    def __init__(self, held_bytes: int = HELD_BYTES) -> None:
        self._limit = held_bytes
        self._revisions: dict[str, str] = {}
        self._reads: OrderedDict[str, FileRead] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()
        """Guards that a path's revision is the revision of the bytes held for it."""

    def seen(self, path: str) -> str | None:
        """The revision that the model knows (``files.ABSENT`` for a file known to be gone); None if it knows none."""
        with self._lock:
            return self._revisions.get(path)

    def base(self, path: str) -> FileRead | None:
        """What the model has seen, bytes included; None after a resume, or when it was let go for its size."""
        with self._lock:
            return self._reads.get(path)

    def note(self, path: str, read: FileRead) -> None:
        """The model now knows the file as ``read``."""
        with self._lock:
            self._forget_bytes(path)
            self._revisions[path] = read.revision
            self._reads[path] = read
            self._size += _size(read)
            while self._size > self._limit:
                self._forget_bytes(next(iter(self._reads)))

    def restore(self, path: str, revision: str) -> None:
        """The model knows ``revision``, whose bytes are not at hand (unless they are the ones already held)."""
        with self._lock:
            held = self._reads.get(path)
            if held is None or held.revision != revision:
                self._forget_bytes(path)
            self._revisions[path] = revision

    def reset(self, revisions: Mapping[str, str]) -> None:
        """The model knows ``revisions`` and nothing else."""
        with self._lock:
            for path in self._revisions.keys() - revisions.keys():
                self._forget_bytes(path)
                del self._revisions[path]
        for path, revision in revisions.items():
            self.restore(path, revision)

    def _forget_bytes(self, path: str) -> None:
        read = self._reads.pop(path, None)
        self._size -= _size(read) if read else 0


def _size(read: FileRead) -> int:
    return len(read.data or b"")
