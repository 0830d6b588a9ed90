"""The files that every request states, read so often that proving them unchanged must cost nothing.

A file that somebody is saving right now is waited for, so that neither half a save nor a moment's
absence is ever taken for what the person meant.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tinyclaw.state._reading import FileRead, Signature, explained, read, signature
from tinyclaw.state.settling import Sleep, settle, stillness

FRESH_SECONDS = 0.25
"""A change that is older than this is taken as it stands."""
RACY_SECONDS = 2.0
"""Two changes within one tick of a coarse clock look alike; FAT's is 2 s, others' are shorter."""


@dataclass(frozen=True)
class _Seen:
    """One look at a file. Two looks are equal when nothing has changed between them."""

    signature: Signature | None
    read: FileRead
    at: float = field(compare=False)

    @property
    def is_racy(self) -> bool:
        return self.signature is not None and is_racy(self.signature, self.at)


@dataclass
class LiveFiles:
    """The last standing revision of each live file.

    ``now`` gives wall-clock seconds, as file times are; ``sleep`` waits. ``limit_bytes`` bounds each file.
    """

    now: Callable[[], float]
    sleep: Sleep
    limit_bytes: int | None = None
    _known: dict[Path, _Seen] = field(default_factory=dict)
    _wrote: dict[Path, str] = field(default_factory=dict)

    def wrote(self, path: Path, revision: str) -> None:
        """Tell of an own write: ``revision`` is whole, and not waited for when it is met."""
        self._wrote[path] = revision

    def read(self, path: Path) -> FileRead:
        """The file as it stands: proven unchanged by its times and size, or read.

        A change within the last ``FRESH_SECONDS`` is waited for, up to a second; if it goes on, the
        last standing revision is returned. The first read of all has none and gives what is there.

        Raises: StateError as ``files.read``.
        """
        known = self._known.get(path)
        if known and not known.is_racy and _signature_at(path) == known.signature:
            return known.read
        seen, still = settle(lambda: self._look(path), lambda seen: self._needs(seen, known), self.sleep)
        if known and not still:
            return known.read
        self._known[path] = seen
        return seen.read

    def _look(self, path: Path) -> _Seen:
        """The signature is taken before the content, so it is never newer than what it vouches for."""
        return _Seen(_signature_at(path), read(path, limit_bytes=self.limit_bytes), self.now())

    def _needs(self, seen: _Seen, known: _Seen | None) -> float:
        whole = {self._wrote.get(seen.read.path), known and known.read.revision}
        if seen.read.revision in whole or self._is_old(seen.read):
            return 0.0
        return stillness(seen.read.data)

    def _is_old(self, found: FileRead) -> bool:
        changed_at = _changed_at(found)
        return changed_at is not None and self.now() - changed_at >= FRESH_SECONDS


def _signature_at(path: Path) -> Signature | None:
    """The signature of what is at ``path``, None for nothing."""
    try:
        return signature(os.stat(path))  # noqa: PTH116 (Path.stat costs as much again)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        with explained(path, "read"):
            raise


def is_racy(seen: Signature, at: float) -> bool:
    """Whether a second change could hide behind a signature: the first was too young when it was taken at ``at``."""
    return seen.changed_ns / 1e9 > at - RACY_SECONDS


def _changed_at(found: FileRead) -> float | None:
    """When the file last changed or, for an absent one, the nearest folder that is there; None if nobody can tell."""
    try:
        if found.data is not None:
            return found.path.stat().st_ctime
        if found.path.is_symlink():
            return None
        return next(folder for folder in found.path.parents if folder.is_dir()).stat().st_mtime
    except (OSError, StopIteration):
        return None
