"""The records of one workspace as people, tools and other processes leave them.

Writers need not know of each other: each record is a file of its own, and the index says nothing that the records do
not say, so whoever writes last writes it whole.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Set
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tinyclaw.errors import FileChanged, StateError
from tinyclaw.state.documents import Document
from tinyclaw.state.files import ABSENT, read, write
from tinyclaw.state.memory.evidence import Evidence, Standing, evidence_in
from tinyclaw.state.memory.index import Line, Told, told_in, with_index
from tinyclaw.state.memory.record import (
    FOLDER,
    INDEX,
    PROPOSAL,
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
from tinyclaw.state.workspace import Workspace
from tinyclaw.types import Diagnostic

if TYPE_CHECKING:
    from tinyclaw.state.memory.cache import Look, RecordCache

ARCHIVE = ".archive"
_MAX_BYTES = 1 << 20
_MAX_TEXT_BYTES = 100_000
_ABOUT_CODE = ("project", "reference")
"""What a person is or wants does not rest on files, even where it names some."""
_NO_RECORDS = (INDEX, PROPOSAL)
_TRIES = 100
_PAGE = 200
_WAIT_SECONDS = 0.02


class IndexWritten(NamedTuple):
    """The revision of MEMORY.md, and whether it says anything else than before."""

    revision: str
    is_new: bool


class Memory:
    """The records of one workspace.

    ``now`` gives an RFC 3339 time, ``mask`` hides secrets, ``sleep`` waits. ``cache`` is the file that makes searches
    fast, None to do without. No link is followed: what a tool may write without a question must not be a name for
    something else.
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
        self._standings: dict[Evidence, tuple[object, Standing]] = {}
        self._watched: dict[Path, object] | None = None
        self.folder = root / FOLDER

    @classmethod
    def of(cls, workspace: Workspace, now: Callable[[], str], mask: Callable[[str], str]) -> Memory:
        """The memory of a workspace, with its cache at user level."""
        name = hashlib.sha256(os.fsencode(workspace.root)).hexdigest()[:16]
        return cls(workspace.root, now, mask, workspace.user_dir / "cache" / f"memory-{name}.sqlite")

    @cached_property
    def _cache(self) -> RecordCache:
        from tinyclaw.state.memory.cache import (
            RecordCache,  # SQLite takes 20 ms to import: not where nothing is looked up
        )

        return RecordCache(self._cache_file, self._mask, time.time_ns)

    def records(self) -> Iterator[Record]:
        """Every record that can be read, by slug."""
        yield from filter(None, (self._record(slug) for slug, *_ in sorted(self._looks())))

    def heads(self, most: int | None = None) -> list[Head]:
        """The first ``most`` heads, or all: about the person first, then about how they work, the newest first."""
        return self.looked_up().ranked(0, most) if self.folder.is_dir() else []

    def looked_up(self) -> RecordCache:
        """What is known of the records as they are now, for several questions at once."""
        self._cache.update(self._looks(), self._record)
        return self._cache

    def save(self, note: Note, seen: Callable[[str], str | None]) -> Saved:
        """Write a note: as a new record or, where the writer knows what it says, into the one that has its name.

        ``seen`` gives the revision of a record's file that the writer has read, None for none: another is kept. What
        the note says of files in the workspace is pinned to what they say now; the same note again pins it anew.

        Raises: StateError when it has neither name nor text, is too long, or a file cannot be written.
        """
        if not note.text.strip() or not note.name.strip():
            raise StateError("a record needs a name and a text")
        if len(note.text.encode("utf-8", "replace")) > _MAX_TEXT_BYTES:
            raise StateError(
                f"a record has at most {_MAX_TEXT_BYTES:,} bytes; keep a long text in a file, and remember where"
            )
        wanted = identity(note.name)
        known = next((each for each in self._alike(note.name) if identity(each.name) == wanted), None)
        for slug in [known.slug] if known is not None else slugs(note.name):
            path = self._own(self.folder / f"{slug}.md")
            for _ in range(_TRIES):
                there = read(path, limit_bytes=_MAX_BYTES)
                old = Record.parse(there.data, slug) if there.data is not None else None
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
                try:
                    written = write(path, data, base=there)
                except FileChanged:
                    self._sleep(_WAIT_SECONDS)
                    continue
                return Saved(slug, "new" if there.revision == ABSENT else "changed", written.revision)
        raise StateError(f"{self.folder}: there is no free file name for {note.name!r}; give it another name")

    def find(self, name: str) -> Record | None:
        """The record with that name or, if there is none, with that file's name."""
        plain = name.removesuffix(".md")
        wanted = identity(plain)
        alike = list(self._alike(plain))
        named = (record for record in alike if record.is_named and identity(record.name) == wanted)
        return next(named, None) or next((record for record in alike if identity(record.slug) == wanted), None)

    def read(self, slug: str) -> Record | None:
        """The record in that file; None where there is none that can be read."""
        return self._record(slug)

    def search(self, text: str, most: int, *, rare: bool = False) -> Hits:
        """The records that have any word of ``text``; see ``RecordCache.search``."""
        return self.looked_up().search(text, most, rare=rare)

    def forget(self, head: Head) -> str:
        """Move a record's file into the archive, and give its place there. The index is to be written then.

        Raises: StateError.
        """
        return self.archive(self.own(f"{head.slug}.md"), head.slug)

    def forgotten(self, name: str) -> str:
        """The place in the archive of a record that had that name, the newest; "" where there is none."""
        plain = name.removesuffix(".md")
        names = [f"{slug}-" for slug in (*slugs(plain), plain)]
        try:
            listed = sorted((path.name for path in self.own(ARCHIVE).iterdir()), reverse=True)
        except (OSError, StateError):
            return ""
        for each in listed:
            if each.endswith(".md") and any(each.startswith(begin) for begin in names):
                record = self._record(f"{ARCHIVE}/{each[:-3]}")
                if record is not None and identity(plain) in (identity(record.name), identity(_without_stamp(each))):
                    return f"{FOLDER}/{ARCHIVE}/{each}"
        return ""

    def keep_copy(self, head: Head) -> str:
        """Copy a record's file into the archive before it is changed, and give its place there. Raises: StateError."""
        path = self.own(f"{head.slug}.md")
        data = read(path, limit_bytes=_MAX_BYTES).data or b""

        def copy(place: Path) -> None:
            with place.open("xb") as file:
                file.write(data)

        return self._into_archive(path, head.slug, copy)

    def archive(self, path: Path, name: str) -> str:
        """Move a file of the memory into the archive, and give its place there. Raises: StateError."""

        def move(place: Path) -> None:
            os.link(path, place)  # which takes no name that is taken
            path.unlink()

        return self._into_archive(path, name, move)

    def _into_archive(self, path: Path, name: str, put: Callable[[Path], None]) -> str:
        """``put`` takes no name that is taken. Raises: StateError."""
        archive = self.own(ARCHIVE)
        stamp = re.sub(r"\D", "", self._now())[:14]
        try:
            archive.mkdir(parents=True, exist_ok=True)
            for number in range(1, _TRIES):
                place = archive / (f"{name}-{stamp}" + (f"-{number}" if number > 1 else "") + ".md")
                with suppress(FileExistsError):
                    put(place)
                    return f"{FOLDER}/{ARCHIVE}/{place.name}"
        except OSError as error:
            raise StateError(f"{path}: cannot be put into {archive} ({error.strerror}); it stays") from error
        raise StateError(f"{path}: {archive} has no free name for it; it stays")

    def own(self, name: str) -> Path:
        """The path of a file in the folder, if no link is on the way to it. Raises: StateError."""
        return self._own(self.folder / name)

    # Evidence

    def doubts(self, head: Head) -> tuple[Standing, str]:
        """The worst standing of what a record rests on, and where: what changed or is gone."""
        found: dict[Standing, list[str]] = {}
        for each in head.evidence:
            found.setdefault(self._standing(each), []).append(each.place)
        worst: Standing = "missing" if "missing" in found else "changed" if "changed" in found else "holds"
        return worst, ", ".join(found.get(worst, []))

    def line(self, head: Head) -> Line:
        """The record's line for an index, with what is doubtful of it."""
        return Line(head, *self.doubts(head))

    def _standing(self, evidence: Evidence) -> Standing:
        """Read again only where the file's signature says so."""
        look = _look(self._root / evidence.path)
        known = self._standings.get(evidence)
        if known is None or known[0] != look:
            known = self._standings[evidence] = (look, evidence.standing(self._root))
        return known[1]

    def _evidence(self, note: Note, old: Record | None) -> tuple[Evidence, ...]:
        """What the note's text names, as it is now; where it names nothing, what the person wrote there is renewed."""
        named = evidence_in(note.text, self._root) if note.type in _ABOUT_CODE else []
        return tuple(named) or tuple(each.renewed(self._root) for each in (old.evidence if old else ()))

    # The index

    def is_index_stale(self) -> bool:
        """Whether a record, or what one rests on, may have changed since the index was made; reads none of them."""
        return self._is_stale(self._looks())

    def _is_stale(self, looks: Set[Look]) -> bool:
        told = self._told()
        if told is None:
            return bool(looks)
        if told.count != len(looks) or any(changed >= told.made_ns for _, changed, *_ in looks):
            return True
        return bool(looks) and (self._watched is None or self.is_evidence_touched())

    def renew(self, record: Record) -> bool:
        """Pin what a record rests on to what the workspace says now; False where nothing of it is there to be pinned.

        Raises: StateError.
        """
        path = self.own(f"{record.slug}.md")
        there = read(path, limit_bytes=_MAX_BYTES)
        evidence = [each.renewed(self._root) for each in record.evidence]
        if not evidence or there.data is None:
            return False
        document = Document.parse(there.data, record.path)
        data = document.set_field("evidence", [str(each) for each in evidence])
        data = Document.parse(data, record.path).set_field("updated", self._now())
        write(path, data, base=there)
        return True

    def count_since(self, created: str) -> int:
        """How many records were made after that time."""
        return self.looked_up().count_since(created)

    def is_evidence_touched(self) -> bool:
        """Whether a file that the index's records rest on changed since it was made; costs a stat each."""
        return any(_look(path) != look for path, look in (self._watched or {}).items())

    def refresh_index(self) -> str | None:
        """Make the index anew where it may be out of date; gives its revision if that is another then.

        Raises: StateError.
        """
        looks = self._looks()
        if not self._is_stale(looks):
            return None
        written = self._write_index(looks)
        return written.revision if written.is_new else None

    def write_index(self) -> IndexWritten:
        """Make the index of the records that are there, and keep what the person wrote around it.

        A record with changed evidence is marked, one whose evidence is missing has no line.

        Raises: StateError.
        """
        return self._write_index(self._looks())

    def _write_index(self, looks: Set[Look]) -> IndexWritten:
        path = self._own(self.folder / INDEX)
        for attempt in range(_TRIES):
            looks = looks if not attempt else self._looks()
            self._cache.update(looks, self._record)
            watched: dict[Path, object] = {}
            lines = self._lines(watched)
            there = read(path, limit_bytes=_MAX_BYTES)
            try:
                text = (there.data or b"").decode()
            except UnicodeDecodeError as error:
                raise StateError(f"{path}: is not UTF-8, so no index is written into it; save it as UTF-8") from error
            wanted = with_index(text, lines, len(looks), self._mask)
            if wanted == text:
                told = self._told()
                if told is not None and any(changed >= told.made_ns for _, changed, *_ in looks):
                    with suppress(OSError):  # it is as it has to be, and need not be made again the next time
                        path.touch()
                self._watched = watched
                return IndexWritten(there.revision, is_new=False)
            try:
                written = write(path, wanted.encode(), base=there)
            except FileChanged:
                self._sleep(_WAIT_SECONDS * (1 + attempt % 5))
                continue
            if not written.merged and self._looks() == looks:
                self._watched = watched
                return IndexWritten(written.revision, is_new=True)
        raise StateError(f"{path}: others change it all the time; the index is made again with the next record")

    def _lines(self, watched: dict[Path, object]) -> Iterator[Line]:
        """A line for each record; ``watched`` takes in what those that are asked for rest on, as it is now."""
        for head in self._ranked():
            for each in head.evidence:
                watched.setdefault(self._root / each.path, _look(self._root / each.path))
            yield self.line(head)

    def _ranked(self) -> Iterator[Head]:
        start = 0
        while page := self._cache.ranked(start, _PAGE):
            yield from page
            start += len(page)

    def _told(self) -> Told | None:
        """What the index says now; None when there is none."""
        try:
            path = self._own(self.folder / INDEX)
            data = read(path, limit_bytes=_MAX_BYTES).data
            changed = path.stat().st_ctime_ns
        except (OSError, StateError):
            return None
        return told_in((data or b"").decode("utf-8", "replace"), changed)

    # Files

    def problems(self) -> list[Diagnostic]:
        """What is wrong with the records: broken heads, a name that two have, files that lead out or cannot be read."""
        found: list[Diagnostic] = []
        names: dict[str, Record] = {}
        for path in sorted(self.folder.glob("*.md")) if self.folder.is_dir() else ():
            shown = f"{FOLDER}/{path.name}"
            if path.name in _NO_RECORDS or path.name.startswith("."):
                continue
            if not _is_text(path.name):
                found.append(
                    Diagnostic(_shown_name(shown), None, "has a name that is not UTF-8", "give it another one")
                )
                continue
            try:
                data = read(self._own(path), limit_bytes=_MAX_BYTES).data
            except StateError as error:
                found.append(Diagnostic(shown, None, str(error).removeprefix(f"{path}: ")))
                continue
            record = Record.parse(data or b"", path.stem)
            found += record.diagnostics
            first = names.setdefault(identity(record.name), record)
            if first is not record:
                message = f"has the same name as {first.path}"
                found.append(Diagnostic(shown, None, message, "merge them, or give one another name"))
        return found

    def _alike(self, name: str) -> Iterator[Record]:
        """The records that have that name, or whose files do, as they are now."""
        yield from filter(None, map(self._record, self.looked_up().alike(name)))

    def _record(self, slug: str) -> Record | None:
        path = self.folder / f"{slug}.md"
        try:
            data = read(self._own(path), limit_bytes=_MAX_BYTES).data
        except StateError:
            return None
        return Record.parse(data, slug) if data is not None else None

    def _own(self, path: Path) -> Path:
        """The path, if no link is on the way to it: a link may lead anywhere. Raises: StateError."""
        if os.path.realpath(path) != os.path.join(os.path.realpath(self._root), path.relative_to(self._root)):  # noqa: PTH118
            raise StateError(f"{path}: is reached by a link, and the memory follows none; put the file itself there")
        return path

    def _looks(self) -> set[Look]:
        """The files of records. A link is none, nor is what has a name that is no text."""
        found = set()
        try:
            with os.scandir(self.folder) as listed:
                for each in listed:
                    name = each.name
                    if name[-3:] == ".md" and name[0] != "." and name not in _NO_RECORDS and _is_text(name):
                        status = each.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            found.add((name[:-3], status.st_ctime_ns, status.st_size, status.st_ino))
        except OSError:
            return set()
        return found


def _without_stamp(name: str) -> str:
    return re.sub(r"-\d{14}(-\d+)?\.md$", "", name)


def _look(path: Path) -> object:
    """A file's signature; None where there is none."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _is_text(name: str) -> bool:
    """Whether a file's name is UTF-8; Python shows other bytes as half surrogates."""
    return name.isascii() or not any("\ud800" <= char <= "\udfff" for char in name)


def _shown_name(name: str) -> str:
    return name.encode("utf-8", "replace").decode()
