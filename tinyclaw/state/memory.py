"""What is remembered: one Markdown file a record in .memory/, and the index in MEMORY.md that is made of them.

A record's identity is its name; its file is called after it. Writers need not know of each other: each record is
a file of its own, and the index says nothing that the records do not say, so whoever writes last writes it whole.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

from tinyclaw.errors import FileChanged, StateError
from tinyclaw.state.documents import Document, storable
from tinyclaw.state.files import ABSENT, read, write
from tinyclaw.state.workspace import MEMORY_INDEX
from tinyclaw.types import Diagnostic

RecordType = Literal["user", "feedback", "project", "reference"]
INDEX_BEGIN = "<!-- memory: made of the records beside this file; write your own words above or below -->"
INDEX_END = "<!-- /memory -->"
MAX_LINES = 150
"""Of the index. The prompt takes 200 of the file, and the person's own words need room, too."""

MAX_INDEX_BYTES = 20_000

_FOLDER, _INDEX = MEMORY_INDEX.split("/")
_TYPES: tuple[RecordType, ...] = get_args(RecordType)
_MAX_BYTES = 1 << 20
_SLUG_BYTES = 60
_DESCRIPTION_CHARS = 200
_MAX_TEXT_BYTES = 100_000
_MANY = 1_000
"""More records than this are not all read for the index; it then may name a few less than it could."""
_ENOUGH_LINES = 100
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|memory)", re.ASCII)
"""The index, and what Windows keeps for itself (https://learn.microsoft.com/windows/win32/fileio/naming-a-file)."""
_ARCHIVE = ".archive"
_LINK = re.compile(r"(?m)^- \[[^\[\]\n]*\]\((.+?)\.md\)(?: — |\r?$)")
_NO_BRACKETS = str.maketrans("[]", "()")
_MORE = re.compile(r"(?m)^- … and ([\d,]+) more records")
_CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")
_TRIES = 100
_WAIT_SECONDS = 0.02


@dataclass(frozen=True)
class Note:
    """What is to be remembered. ``source`` says where it comes from, a session for example."""

    name: str
    type: RecordType
    text: str
    description: str = ""
    source: str = ""


@dataclass(frozen=True)
class Record:
    """A record as its file says. ``slug`` is the file's name without ``.md``; times are as they were written.

    ``is_named``: it has a name of its own, and not that of its file.
    """

    slug: str
    name: str
    description: str
    type: RecordType
    text: str
    created: str
    updated: str
    source: str
    is_named: bool = True
    diagnostics: tuple[Diagnostic, ...] = ()

    @classmethod
    def parse(cls, data: bytes, slug: str) -> Record:
        """Read a record. Never raises: what is missing is made of what is there."""
        document = Document.parse(data, f"{_FOLDER}/{slug}.md")
        texts = {name: document.string(name) for name in ("name", "description", "created", "updated", "source")}
        kind = cast(RecordType, document.choice("type", _TYPES, "project"))
        first = next((line.strip("# ") for line in document.body.split("\n") if line.strip("# ")), "")
        return cls(
            slug=slug,
            name=texts["name"] or slug,
            description=_shortened(texts["description"] or first),
            type=kind,
            text=document.body.strip("\n"),
            created=texts["created"],
            updated=texts["updated"] or texts["created"],
            source=texts["source"],
            is_named=bool(texts["name"]),
            diagnostics=tuple(document.diagnostics),
        )

    @property
    def path(self) -> str:
        """The record's file, relative to the workspace."""
        return f"{_FOLDER}/{self.slug}.md"

    @property
    def index_line(self) -> str:
        name, description = _one_line(self.name).translate(_NO_BRACKETS), _one_line(self.description)
        return f"- [{name}]({self.slug}.md)" + (f" — {description}" if description else "")


@dataclass(frozen=True)
class Saved:
    """What became of a note: a new record, a changed one, one that said this already, or one that is kept as it is.

    ``revision`` is that of the record's file now.
    """

    slug: str
    how: Literal["new", "changed", "same", "kept"]
    revision: str = ""

    @property
    def path(self) -> str:
        """The record's file, relative to the workspace."""
        return f"{_FOLDER}/{self.slug}.md"


class _Entry(NamedTuple):
    """A record's file by its name, and when it was changed last, by the clock of the file system."""

    name: str
    changed_ns: int

    @property
    def slug(self) -> str:
        return self.name.removesuffix(".md")


@dataclass(frozen=True)
class _Told:
    """What the index says: the files that it names, how many it does not, and when it was made."""

    slugs: frozenset[str]
    more: int
    made_ns: int

    @property
    def count(self) -> int:
        return len(self.slugs) + self.more

    def newer(self, entries: Iterable[_Entry]) -> list[_Entry]:
        """Those that changed since, or within the same tick of the clock."""
        return [entry for entry in entries if entry.changed_ns >= self.made_ns]


class Memory:
    """The records of one workspace.

    ``now`` gives an RFC 3339 time, ``mask`` hides secrets, ``sleep`` waits. No link is followed: what a tool may write
    without a question must not be a name for something else.
    """

    def __init__(
        self,
        root: Path,
        now: Callable[[], str],
        mask: Callable[[str], str],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._root = root
        self._now = now
        self._mask = mask
        self._sleep = sleep
        self.folder = root / _FOLDER

    def records(self) -> Iterator[Record]:
        """Every record that can be read, by slug."""
        yield from filter(None, (self._record(self.folder / entry.name) for entry in self._entries()))

    def save(self, note: Note, seen: Callable[[str], str | None]) -> Saved:
        """Write a note: as a new record or, where the writer knows what it says, into the one that has its name.

        ``seen`` gives the revision of a record's file that the writer has read, None for none: another is kept.

        Raises: StateError when it has neither name nor text, is too long, or a file cannot be written.
        """
        if not note.text.strip() or not note.name.strip():
            raise StateError("a record needs a name and a text")
        if len(note.text.encode("utf-8", "replace")) > _MAX_TEXT_BYTES:
            raise StateError(
                f"a record has at most {_MAX_TEXT_BYTES:,} bytes; keep a long text in a file, and remember where"
            )
        wanted = _identity(note.name)
        known = next((each for each in self._alike(note.name) if _identity(each.name) == wanted), None)
        for slug in [known.slug] if known is not None else _slugs(note.name):
            path = self._own(self.folder / f"{slug}.md")
            for _ in range(_TRIES):
                there = read(path, limit_bytes=_MAX_BYTES)
                old = Record.parse(there.data, slug) if there.data is not None else None
                if old is not None and old.is_named and _identity(old.name) != _identity(note.name) and known is None:
                    break  # another record's file
                is_seen = old is None or seen(f"{_FOLDER}/{slug}.md") == there.revision
                if old is not None and _says(old, note, is_exact=is_seen):
                    return Saved(slug, "same", there.revision)
                if not is_seen:
                    return Saved(slug, "kept", there.revision)
                data = _rendered(note, slug, there.data, self._now())
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
        wanted = _identity(plain)
        alike = list(self._alike(plain))
        named = (record for record in alike if record.is_named and _identity(record.name) == wanted)
        return next(named, None) or next((record for record in alike if _identity(record.slug) == wanted), None)

    def _alike(self, name: str) -> Iterator[Record]:
        """The records that may have that name, or whose files may."""
        wanted, words = _identity(name), set(_words(_identity(name)))
        names = {f"{slug}.md" for slug in _slugs(name)}
        for entry in self._entries():
            is_file = entry.name in names or _identity(entry.slug) == wanted
            if is_file or words <= set(_words(self._raw(entry.name))):
                record = self._record(self.folder / entry.name)
                if record is not None:
                    yield record

    def search(self, text: str) -> list[Record]:
        """The records that hold any word of ``text``, those first that hold most of its rarer words."""
        words = set(_words(text))
        found = [(entry, words.intersection(_words(self._raw(entry.name)))) for entry in self._entries()]
        weights = {word: math.log(1 + len(found) / (1 + sum(word in held for _, held in found))) for word in words}
        ranked = []
        for entry, held in found:
            record = self._record(self.folder / entry.name) if held else None
            if record is not None:
                named = words.intersection(_words(f"{record.name} {record.description}"))
                ranked.append((sum(weights[word] * (1 + (word in named)) for word in held), record))
        return [record for _, record in sorted(ranked, key=lambda each: (-each[0], each[1].slug))]

    def forget(self, record: Record) -> str:
        """Move a record's file into the archive, and give its place there. The index is to be written then.

        Raises: StateError.
        """
        archive = self._own(self.folder / _ARCHIVE)
        path = self._own(self.folder / f"{record.slug}.md")
        stamp = re.sub(r"\D", "", self._now())[:14]
        try:
            archive.mkdir(parents=True, exist_ok=True)
            for number in range(1, _TRIES):
                place = archive / (f"{record.slug}-{stamp}" + (f"-{number}" if number > 1 else "") + ".md")
                try:
                    os.link(path, place)  # which takes no name that is taken
                except FileExistsError:
                    continue
                path.unlink()
                return f"{_FOLDER}/{_ARCHIVE}/{place.name}"
        except OSError as error:
            raise StateError(f"{path}: cannot be moved into {archive} ({error.strerror}); it stays") from error
        raise StateError(f"{path}: {archive} has no free name for it; it stays")

    def problems(self) -> list[Diagnostic]:
        """What is wrong with the records: broken heads, a name that two have, files that lead out or cannot be read."""
        found: list[Diagnostic] = []
        names: dict[str, Record] = {}
        for path in sorted(self.folder.glob("*.md")) if self.folder.is_dir() else ():
            shown = f"{_FOLDER}/{path.name}"
            if path.name == _INDEX or path.name.startswith("."):
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
            first = names.setdefault(_identity(record.name), record)
            if first is not record:
                message = f"has the same name as {first.path}"
                found.append(Diagnostic(shown, None, message, "merge them, or give one another name"))
        return found

    def is_index_stale(self) -> bool:
        """Whether a record was written, added or taken away since the index was made; looks at no record's text."""
        entries = self._entries()
        told = self._told()
        return bool(entries) if told is None else bool(told.newer(entries)) or told.count != len(entries)

    def write_index(self) -> str:
        """Make the index of the records that are there, and keep what the person wrote around it; gives its revision.

        Records that it names and those that changed since it was made are read; of the others, if there are too many
        to be named, only the number counts.

        Raises: StateError.
        """
        path = self._own(self.folder / _INDEX)
        for attempt in range(_TRIES):
            entries = self._entries()
            records = list(self._indexed(entries))
            there = read(path, limit_bytes=_MAX_BYTES)
            try:
                text = (there.data or b"").decode()
            except UnicodeDecodeError as error:
                raise StateError(f"{path}: is not UTF-8, so no index is written into it; save it as UTF-8") from error
            wanted = with_index(text, records, len(entries), self._mask)
            if wanted == text:
                with suppress(OSError):  # it is as it has to be, and is looked at again the next time
                    path.touch()
                return there.revision
            try:
                written = write(path, wanted.encode(), base=there)
            except FileChanged:
                self._sleep(_WAIT_SECONDS * (1 + attempt % 5))
                continue
            if not written.merged and self._entries() == entries:
                return written.revision
        raise StateError(f"{path}: others change it all the time; the index is made again with the next record")

    def _indexed(self, entries: Sequence[_Entry]) -> Iterator[Record]:
        """The records that may have a line in the index: of very many only those that have one, and what changed."""
        told = self._told()
        if told is not None and len(entries) > _MANY and len(told.slugs) > _ENOUGH_LINES:
            wanted = told.slugs | {entry.slug for entry in told.newer(entries)}
            entries = [entry for entry in entries if entry.slug in wanted]
        yield from filter(None, (self._record(self.folder / entry.name) for entry in entries))

    def _told(self) -> _Told | None:
        """What the index says now; None when there is none."""
        try:
            path = self._own(self.folder / _INDEX)
            data = read(path, limit_bytes=_MAX_BYTES).data
            changed = path.stat().st_ctime_ns
        except (OSError, StateError):
            return None
        lines = (data or b"").decode("utf-8", "replace").split("\n")
        place = _part(lines)
        if place is None:
            return None
        part = "\n".join(lines[place[0] : place[1]])
        more = _MORE.search(part)
        return _Told(frozenset(_LINK.findall(part)), int(more[1].replace(",", "")) if more else 0, changed)

    def _record(self, path: Path) -> Record | None:
        """The record in a file; None where there is none, or none that can be read."""
        try:
            data = read(self._own(path), limit_bytes=_MAX_BYTES).data
        except StateError:
            return None
        return Record.parse(data, path.stem) if data is not None else None

    def _own(self, path: Path) -> Path:
        """The path, if no link is on the way to it: a link may lead anywhere. Raises: StateError."""
        if os.path.realpath(path) != os.path.join(os.path.realpath(self._root), path.relative_to(self._root)):  # noqa: PTH118
            raise StateError(f"{path}: is reached by a link, and the memory follows none; put the file itself there")
        return path

    def _entries(self) -> list[_Entry]:
        """The files of records, by name. A link is none, nor is what has a name that is no text."""
        try:
            with os.scandir(self.folder) as listed:
                return sorted(
                    _Entry(each.name, each.stat().st_ctime_ns)
                    for each in listed
                    if each.name.endswith(".md")
                    and each.name[0] != "."
                    and each.name != _INDEX
                    and _is_text(each.name)
                    and each.is_file(follow_symlinks=False)
                )
        except OSError:
            return []

    def _raw(self, name: str) -> str:
        """A file's text in small letters, frontmatter and all, for looking through many; "" where it cannot be read."""
        try:
            with open(f"{self.folder}/{name}", "rb") as file:  # noqa: PTH123 (a Path costs as much again)
                text = file.read(_MAX_BYTES).decode("utf-8", "replace")
        except OSError:
            return ""
        return text.casefold() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def with_index(text: str, records: Iterable[Record], count: int, mask: Callable[[str], str]) -> str:
    """``text`` of MEMORY.md with its generated part made new, or added at its end; all else stays as it is.

    The part stands between two lines of its own. ``count`` is that of all records there are.
    """
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    lines = text.split("\n")
    part = newline.join((INDEX_BEGIN, *(mask(line) for line in _lines(records, count)), INDEX_END))
    if (place := _part(lines)) is not None:
        ending = "\r" if lines[place[1]].endswith("\r") else ""
        return "\n".join((*lines[: place[0]], part + ending, *lines[place[1] + 1 :]))
    before = text if not text or text.endswith("\n") else text + newline
    gap = newline if before.strip() else ""
    return f"{before}{gap}{part}{newline}"


def _part(lines: Sequence[str]) -> tuple[int, int] | None:
    """Where the generated part stands: its first and last line, each of which is a marker and nothing else."""
    plain = [line.rstrip("\r") for line in lines]
    end = max((at for at, line in enumerate(plain) if line == INDEX_END), default=0)
    begin = max((at for at, line in enumerate(plain[:end]) if line == INDEX_BEGIN), default=-1)
    return (begin, end) if begin >= 0 else None


def _lines(records: Iterable[Record], count: int) -> list[str]:
    """The index's lines: about the person first, then how they want things done, each group newest first."""
    ranked = sorted(records, key=lambda record: record.slug)
    ranked.sort(key=lambda record: record.updated, reverse=True)
    ranked.sort(key=lambda record: _TYPES.index(record.type))
    shown: list[str] = []
    room = MAX_INDEX_BYTES
    for line in (record.index_line for record in ranked[:MAX_LINES]):
        room -= len(line.encode("utf-8", "replace")) + 1
        if room < 0:
            break
        shown.append(line)
    if (hidden := count - len(shown)) > 0:
        shown.append(f"- … and {hidden:,} more records in {_FOLDER}/; search there")
    return shown


def _says(record: Record, note: Note, *, is_exact: bool) -> bool:
    """Whether a record says what a note does; to the letter for one who has seen it."""
    if record.type != note.type:
        return False
    if not is_exact:
        return _squeezed(record.text) == _squeezed(note.text)
    return record.text.strip() == note.text.strip() and note.description in ("", record.description)


def _is_text(name: str) -> bool:
    """Whether a file's name is UTF-8; Python shows other bytes as half surrogates."""
    return not any("\ud800" <= char <= "\udfff" for char in name)


def _shown_name(name: str) -> str:
    return name.encode("utf-8", "replace").decode()


def _rendered(note: Note, slug: str, before: bytes | None, now: str) -> bytes:
    """The file of a record; where there is one, only what the note says differently is changed. Raises: StateError."""
    name = f"{_FOLDER}/{slug}.md"
    old = Document.parse(before, name) if before is not None else None
    fields = {"name": _one_line(note.name), "description": _shortened(note.description or note.text)}
    fields |= {"type": note.type, "created": now, "updated": now, "source": note.source}
    body = f"\n{storable(note.text.strip())}\n"
    if old is None:
        data = b""
    else:
        data = old.with_body(body)
        del fields["name"], fields["created"]
    for field, value in fields.items():
        if value:
            data = Document.parse(data, name).set_field(field, value)
    return data if old is not None else data + body.encode("utf-8", "replace")


def _slugs(name: str) -> Iterator[str]:
    """File names for a record, without ``.md``, the readable one first: portable, and the same every time."""
    words = re.sub(r"[\W_]+", "-", unicodedata.normalize("NFC", name).casefold()).strip("-")
    while len(words.encode()) > _SLUG_BYTES:
        words = words[:-1].rstrip("-")
    digest = hashlib.sha256(_identity(name).encode()).hexdigest()
    if words and not _RESERVED.fullmatch(words):
        yield words
    yield from (f"{words or 'note'}-{digest[:length]}" for length in (6, 12, 24))


def _identity(name: str) -> str:
    """What two names have in common that mean one record: case, blanks and the form of accents do not count."""
    return _squeezed(unicodedata.normalize("NFKC", storable(name)))


def _squeezed(text: str) -> str:
    return " ".join(text.casefold().split())


def _words(text: str) -> list[str]:
    """Words for searching; of scripts without blanks each character is one."""
    return _WORD.findall(text.casefold())


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _shortened(text: str) -> str:
    line = _one_line(text)
    return line if len(line) <= _DESCRIPTION_CHARS else line[: _DESCRIPTION_CHARS - 1] + "…"
