"""Keeps the generated part of MEMORY.md true: to the records, and to what they rest on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tinyclaw.errors import FileChanged, StateError
from tinyclaw.state.files import read, write
from tinyclaw.state.memory.evidence import Standings
from tinyclaw.state.memory.folder import MAX_BYTES, Folder, Look
from tinyclaw.state.memory.index import Line, with_index
from tinyclaw.state.memory.record import INDEX, Head
from tinyclaw.state.workspace import MEMORY_INDEX

if TYPE_CHECKING:
    from tinyclaw.state.memory.cache import RecordCache

_TRIES = 100
_PAGE = 200
_FEW = 200
"""So many records can be looked at before each request."""
_WAIT_SECONDS = 0.02


class Written(NamedTuple):
    """The revision of MEMORY.md, and whether it says anything else than before."""

    revision: str
    is_new: bool


@dataclass(frozen=True)
class _Proved:
    """How everything looked that the index was made of when it was found or made right."""

    looks: Set[Look]
    folder: object
    index: object
    evidence: Mapping[str, object]


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
        self._proved: _Proved | None = None

    def is_stale(self) -> bool:
        """Whether the index may say something else than the records; reads none of them.

        True as long as this process has not made it, where there are any.
        """
        if self._proved is None:
            return self._folder.has_records or os.path.lexists(self._folder.path / INDEX)
        return self._is_touched(self._proved) or self._folder.looks() != self._proved.looks

    def may_be_stale(self) -> bool:
        """As ``is_stale``, as far as some 200 stats can tell: of more records only whether some came or went."""
        proved = self._proved
        if proved is None or len(proved.looks) <= _FEW:
            return self.is_stale()
        return self._folder.look() != proved.folder or self._is_touched(proved)

    def refresh(self) -> str | None:
        """Make the index anew where it may be out of date; gives its revision if that is another then.

        Raises: StateError.
        """
        if not self.is_stale():
            return None
        written = self.write()
        return written.revision if written.is_new else None

    def write(self) -> Written:
        """Make the index of the records that are there, and keep what the person wrote around it.

        A record with changed evidence is marked, one whose evidence is missing has no line.

        Raises: StateError.
        """
        path = self._folder.own(INDEX)
        for attempt in range(_TRIES):
            folder = self._folder.look()
            looks = self._folder.looks()
            watched: dict[str, object] = {}
            lines = self._lines(self._known(looks), watched) if looks else ()
            there = read(path, limit_bytes=MAX_BYTES)
            try:
                text = (there.data or b"").decode()
            except UnicodeDecodeError as error:
                raise StateError(f"{path}: is not UTF-8, so no index is written into it; save it as UTF-8") from error
            wanted = with_index(text, lines, len(looks), self._mask)
            if wanted == text:
                self._proved = _Proved(looks, folder, self._look(), watched)
                return Written(there.revision, is_new=False)
            try:
                written = write(path, wanted.encode(), base=there)
            except FileChanged:
                self._sleep(_WAIT_SECONDS * (1 + attempt % 5))
                continue
            look = self._look()
            if not written.merged and self._folder.looks() == looks:
                self._proved = _Proved(looks, self._folder.look(), look, watched)
                return Written(written.revision, is_new=True)
        raise StateError(f"{path}: others change it all the time; the index is made again with the next record")

    def _is_touched(self, proved: _Proved) -> bool:
        is_moved = any(self._standings.look(path) != look for path, look in proved.evidence.items())
        return is_moved or self._look() != proved.index

    def _look(self) -> object:
        return self._standings.look(MEMORY_INDEX)

    def _lines(self, known: RecordCache, watched: dict[str, object]) -> Iterator[Line]:
        """A line for each record; ``watched`` takes in what those that are asked for rest on, as it is now."""
        for head in _all(known):
            for each in head.evidence:
                watched.setdefault(each.path, self._standings.look(each.path))
            yield Line(head, *self._standings.doubts(head.evidence))


def _all(known: RecordCache) -> Iterator[Head]:
    start = 0
    while page := known.ranked(start, _PAGE):
        yield from page
        start += len(page)
