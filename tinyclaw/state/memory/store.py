"""The records of one workspace as people, tools and other processes leave them.

Writers need not know of each other: each record is a file of its own, and the index says nothing that the records do
not say, so whoever writes last writes it whole.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Set
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tinyclaw.errors import FileChanged, StateError
from tinyclaw.state.documents import Document
from tinyclaw.state.files import ABSENT, read, write
from tinyclaw.state.memory.evidence import Evidence, Standing, Standings, evidence_in
from tinyclaw.state.memory.folder import MAX_BYTES, Folder, Look
from tinyclaw.state.memory.index import Line
from tinyclaw.state.memory.record import (
    FOLDER,
    MAX_NAME,
    Head,
    Hits,
    Note,
    Record,
    Saved,
    identity,
    rendered,
    says,
    slugs,
)
from tinyclaw.state.memory.upkeep import Index
from tinyclaw.state.workspace import Workspace

if TYPE_CHECKING:
    from tinyclaw.state.memory.cache import RecordCache

_MAX_TEXT_BYTES = 100_000
_ABOUT_CODE = ("project", "reference")
"""What a person is or wants does not rest on files, even where it names some."""
_TRIES = 100
_WAIT_SECONDS = 0.02


class Memory:
    """The records of one workspace; ``files`` are theirs, ``index`` keeps MEMORY.md true.

    ``now`` gives an RFC 3339 time, ``mask`` hides secrets, ``sleep`` waits. ``cache`` is the file that makes searches
    fast, None to do without.
    """

    def __init__(
        self,
        root: Path,
        now: Callable[[], str],
        mask: Callable[[str], str],
        cache: Path | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._root = root
        self._now = now
        self._mask = mask
        self._sleep = sleep
        self._cache_file = cache
        self._standings = Standings(root)
        self.files = Folder(root, now)
        self.index = Index(self.files, self._standings, self._taken_in, mask, sleep)

    @classmethod
    def of(cls, workspace: Workspace, now: Callable[[], str], mask: Callable[[str], str]) -> Memory:
        """The memory of a workspace, with its cache at user level."""
        name = hashlib.sha256(os.fsencode(workspace.root)).hexdigest()[:16]
        return cls(workspace.root, now, mask, workspace.user_dir / "cache" / f"memory-{name}.sqlite")

    def records(self) -> Iterator[Record]:
        """Every record that can be read, by slug."""
        yield from filter(None, (self.files.record(look.slug) for look in sorted(self.files.looks())))

    def heads(self, most: int | None = None) -> list[Head]:
        """The first ``most`` heads, or all: about the person first, then about how they work, the newest first."""
        return self.looked_up().ranked(0, most) if self.files.has_records else []

    def search(self, text: str, most: int) -> Hits:
        """The records that have any word of ``text``; see ``RecordCache.search``."""
        return self.looked_up().search(text, most)

    def looked_up(self) -> RecordCache:
        """What is known of the records as they are now, for several questions at once."""
        return self._taken_in(self.files.looks())

    def save(self, note: Note, seen: Callable[[str], str | None]) -> Saved:
        """Write a note: as a new record or, where the writer knows what it says, into the one that has its name.

        ``seen`` gives the revision of a record's file that the writer has read, None for none: another is kept. What
        the note says of files in the workspace is pinned to what they say now; the same note again pins it anew. Of
        a text that gives way to another a copy is kept in the archive.

        Raises: StateError when it has neither name nor text, is too long, or a file cannot be written.
        """
        if not note.text.strip() or not note.name.strip():
            raise StateError("a record needs a name and a text")
        if len(note.name) > MAX_NAME:
            raise StateError(f"a record's name has at most {MAX_NAME} characters; put the rest into its text")
        if len(note.text.encode("utf-8", "replace")) > _MAX_TEXT_BYTES:
            raise StateError(
                f"a record has at most {_MAX_TEXT_BYTES:,} bytes; keep a long text in a file, and remember where"
            )
        wanted = identity(note.name)
        known = next((each for each in self._alike(note.name) if identity(each.name) == wanted), None)
        for slug in [known.slug] if known is not None else slugs(note.name):
            path = self.files.own(f"{slug}.md")
            for _ in range(_TRIES):
                there = read(path, limit_bytes=MAX_BYTES)
                old = Record.parse(there.data, slug, there.revision) if there.data is not None else None
                if old is not None and old.is_named and identity(old.name) != wanted and known is None:
                    break  # another record's file
                is_seen = old is None or seen(f"{FOLDER}/{slug}.md") == there.revision
                evidence = self._evidence(note, old if is_seen else None)
                is_said = old is not None and says(old, note, is_exact=is_seen)
                if is_said and old is not None and (not is_seen or old.evidence == evidence):
                    return Saved(slug, "same", there.revision)
                if not is_seen:
                    return Saved(slug, "kept", there.revision)
                data = rendered(note, slug, there.data, self._now(), evidence)
                if old is not None and old.text.strip() != note.text.strip():
                    self.files.keep_copy(path.name)
                try:
                    written = write(path, data, base=there)
                except FileChanged:
                    self._sleep(_WAIT_SECONDS)
                    continue
                return Saved(slug, "new" if there.revision == ABSENT else "changed", written.revision)
        raise StateError(f"{self.files.path}: there is no free file name for {note.name!r}; give it another name")

    def find(self, name: str) -> Record | None:
        """The record with that name or, if there is none, with that file's name."""
        plain = name.removesuffix(".md")
        wanted = identity(plain)
        alike = list(self._alike(plain))
        named = (record for record in alike if record.is_named and identity(record.name) == wanted)
        return next(named, None) or next((record for record in alike if identity(record.slug) == wanted), None)

    def forget(self, head: Head) -> str:
        """Move a record's file into the archive, and give its place there. The index is to be written then.

        Raises: StateError.
        """
        return self.files.archive(f"{head.slug}.md")

    def doubts(self, head: Head) -> tuple[Standing, str]:
        """The worst standing of what a record rests on, and where: what changed or is gone."""
        return self._standings.doubts(head.evidence)

    def line(self, head: Head) -> Line:
        """The record's line for an index, with what is doubtful of it."""
        return Line(head, *self.doubts(head))

    def renew(self, record: Record) -> bool:
        """Pin what a record rests on to what the workspace says now; False where it rests on nothing.

        Raises: StateError.
        """
        there = read(self.files.own(f"{record.slug}.md"), limit_bytes=MAX_BYTES)
        evidence = [each.renewed(self._root) for each in record.evidence]
        if not evidence or there.data is None:
            return False
        document = Document.parse(there.data, record.path)
        data = document.set_field("evidence", [str(each) for each in evidence])
        data = Document.parse(data, record.path).set_field("updated", self._now())
        write(self.files.own(f"{record.slug}.md"), data, base=there)
        return True

    def holds_secret(self, text: str) -> bool:
        """Whether something in a text would be masked."""
        return self._mask(text) != text

    def _alike(self, name: str) -> Iterator[Record]:
        """The records that have that name, or whose files do, as they are now."""
        yield from filter(None, map(self.files.record, self.looked_up().alike(name)))

    def _evidence(self, note: Note, old: Record | None) -> tuple[Evidence, ...]:
        """What the note's text names, as it is now; where it names nothing, what the person wrote there is renewed."""
        named = evidence_in(note.text, self._root) if note.type in _ABOUT_CODE else []
        return tuple(named) or tuple(each.renewed(self._root) for each in (old.evidence if old else ()))

    def _taken_in(self, looks: Set[Look]) -> RecordCache:
        self._cache.update(looks, self.files.record)
        return self._cache

    @cached_property
    def _cache(self) -> RecordCache:
        # SQLite takes 20 ms to import: not where nothing is looked up
        from tinyclaw.state.memory.cache import RecordCache

        return RecordCache(self._cache_file, self._mask, time.time_ns)
