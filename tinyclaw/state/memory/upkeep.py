"""Keeps the generated part of MEMORY.md true: to the records, and to what they rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tinyclaw.errors import FileChanged, StateError
from tinyclaw.state.files import read, write
from tinyclaw.state.memory.evidence import Standings
from tinyclaw.state.memory.folder import MAX_BYTES, Folder, Look
from tinyclaw.state.memory.index import Line, Told, told_in, with_index
from tinyclaw.state.memory.record import INDEX, Head

if TYPE_CHECKING:
    from tinyclaw.state.memory.cache import RecordCache

_TRIES = 100
_PAGE = 200
_WAIT_SECONDS = 0.02


class Written(NamedTuple):
    """The revision of MEMORY.md, and whether it says anything else than before."""

    revision: str
    is_new: bool


class Index:
    """The index of one memory. ``known`` gives what is known of the records after it has taken in how they look."""

    def __init__(
        self,
        folder: Folder,
        standings: Standings,
        known: Callable[[Set[Look]], RecordCache],
        mask: Callable[[str], str],
        sleep: Callable[[float], None],
    ) -> None:
        self._folder = folder
        self._standings = standings
        self._known = known
        self._mask = mask
        self._sleep = sleep
        self._watched: dict[str, object] | None = None
        """What the records with a line rest on, and how that looked; None as long as this process has not seen it."""

    def is_stale(self) -> bool:
        """Whether a record, or what one rests on, may have changed since the index was made; reads none of them."""
        return self._is_stale(self._folder.looks())

    def is_evidence_touched(self) -> bool:
        """Whether a file that the index's records rest on changed since it was made; costs a stat each."""
        return any(self._standings.look(path) != look for path, look in (self._watched or {}).items())

    def refresh(self) -> str | None:
        """Make the index anew where it may be out of date; gives its revision if that is another then.

        Raises: StateError.
        """
        looks = self._folder.looks()
        if not self._is_stale(looks):
            return None
        written = self._write(looks)
        return written.revision if written.is_new else None

    def write(self) -> Written:
        """Make the index of the records that are there, and keep what the person wrote around it.

        A record with changed evidence is marked, one whose evidence is missing has no line.

        Raises: StateError.
        """
        return self._write(self._folder.looks())

    def _is_stale(self, looks: Set[Look]) -> bool:
        told = self._told()
        if told is None:
            return bool(looks)
        if told.count != len(looks) or any(look.changed_ns >= told.made_ns for look in looks):
            return True
        return bool(looks) and (self._watched is None or self.is_evidence_touched())

    def _write(self, looks: Set[Look]) -> Written:
        path = self._folder.own(INDEX)
        for attempt in range(_TRIES):
            looks = self._folder.looks() if attempt else looks
            watched: dict[str, object] = {}
            lines = self._lines(self._known(looks), watched)
            there = read(path, limit_bytes=MAX_BYTES)
            try:
                text = (there.data or b"").decode()
            except UnicodeDecodeError as error:
                raise StateError(f"{path}: is not UTF-8, so no index is written into it; save it as UTF-8") from error
            wanted = with_index(text, lines, len(looks), self._mask)
            if wanted == text:
                self._touch(path, looks)
                self._watched = watched
                return Written(there.revision, is_new=False)
            try:
                written = write(path, wanted.encode(), base=there)
            except FileChanged:
                self._sleep(_WAIT_SECONDS * (1 + attempt % 5))
                continue
            if not written.merged and self._folder.looks() == looks:
                self._watched = watched
                return Written(written.revision, is_new=True)
        raise StateError(f"{path}: others change it all the time; the index is made again with the next record")

    def _touch(self, path: Path, looks: Set[Look]) -> None:
        """It is as it has to be: where a record is newer, say so, so that it is not made again the next time."""
        told = self._told()
        if told is not None and any(look.changed_ns >= told.made_ns for look in looks):
            with suppress(OSError):
                path.touch()

    def _lines(self, known: RecordCache, watched: dict[str, object]) -> Iterator[Line]:
        """A line for each record; ``watched`` takes in what those that are asked for rest on, as it is now."""
        for head in _all(known):
            for each in head.evidence:
                watched.setdefault(each.path, self._standings.look(each.path))
            yield Line(head, *self._standings.doubts(head.evidence))

    def _told(self) -> Told | None:
        """What the index says now; None when there is none."""
        try:
            path = self._folder.own(INDEX)
            data = read(path, limit_bytes=MAX_BYTES).data
            changed = path.stat().st_ctime_ns
        except (OSError, StateError):
            return None
        return told_in((data or b"").decode("utf-8", "replace"), changed)


def _all(known: RecordCache) -> Iterator[Head]:
    start = 0
    while page := known.ranked(start, _PAGE):
        yield from page
        start += len(page)
