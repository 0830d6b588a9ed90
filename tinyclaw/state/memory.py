"""What is remembered: one Markdown file a record in .memory/, and the index in MEMORY.md that is made of them.

A record's identity is its name; its file is called after it. Writers need not know of each other: each record is
a file of its own, and the index says nothing that the records do not say, so whoever writes last writes it whole.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

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

_FOLDER, _INDEX = MEMORY_INDEX.split("/")
_TYPES: tuple[RecordType, ...] = get_args(RecordType)
_MAX_BYTES = 1 << 20
_SLUG_BYTES = 60
_DESCRIPTION_CHARS = 200
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|memory)", re.ASCII)
"""The index, and what Windows keeps for itself (https://learn.microsoft.com/windows/win32/fileio/naming-a-file)."""
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
    """A record as its file says. ``slug`` is the file's name without ``.md``; times are as they were written."""

    slug: str
    name: str
    description: str
    type: RecordType
    text: str
    created: str
    updated: str
    source: str
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
            diagnostics=tuple(document.diagnostics),
        )

    @property
    def index_line(self) -> str:
        name, description = (_one_line(text) for text in (self.name, self.description))
        return f"- [{name}]({self.slug}.md)" + (f" — {description}" if description else "")


@dataclass(frozen=True)
class Saved:
    """What became of a note: a new record, a changed one, one that said this already, or one that is kept as it is."""

    slug: str
    how: Literal["new", "changed", "same", "kept"]


class Memory:
    """The records of one workspace.

    ``now`` gives an RFC 3339 time, ``mask`` hides secrets, ``sleep`` waits. Nothing outside the workspace is read or
    written: a link that leads out is no record.
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
        for path in self._paths():
            with suppress(StateError):
                data = read(self._inside(path), limit_bytes=_MAX_BYTES).data
                if data is not None:
                    yield Record.parse(data, path.stem)

    def save(self, note: Note, *, may_change: bool) -> Saved:
        """Write a note: as a new record or, if it ``may_change`` what is there, into the one that has its name.

        Raises: StateError when it has neither name nor text, or a file cannot be written.
        """
        if not note.text.strip() or not note.name.strip():
            raise StateError("a record needs a name and a text")
        for slug in _slugs(note.name):
            path = self._inside(self.folder / f"{slug}.md")
            for _ in range(_TRIES):
                there = read(path, limit_bytes=_MAX_BYTES)
                old = Record.parse(there.data, slug) if there.data is not None else None
                if old is not None and _identity(old.name) != _identity(note.name):
                    break  # another record's file
                if old is not None and not may_change:
                    return Saved(slug, "same" if _squeezed(old.text) == _squeezed(note.text) else "kept")
                data = _rendered(note, slug, there.data, self._now())
                if data == there.data:
                    return Saved(slug, "same")
                try:
                    write(path, data, base=there)
                except FileChanged:
                    self._sleep(_WAIT_SECONDS)
                    continue
                return Saved(slug, "new" if there.revision == ABSENT else "changed")
        raise StateError(f"{self.folder}: there is no free file name for {note.name!r}; give it another name")

    def write_index(self) -> str:
        """Make the index of the records that are there, and keep what the person wrote around it; gives its revision.

        Raises: StateError.
        """
        path = self._inside(self.folder / _INDEX)
        for attempt in range(_TRIES):
            there = read(path, limit_bytes=_MAX_BYTES)
            try:
                text = (there.data or b"").decode()
            except UnicodeDecodeError as error:
                raise StateError(f"{path}: is not UTF-8, so no index is written into it; save it as UTF-8") from error
            wanted = with_index(text, self.records(), self._mask)
            if wanted == text:
                return there.revision
            try:
                written = write(path, wanted.encode(), base=there)
            except FileChanged:
                self._sleep(_WAIT_SECONDS * (1 + attempt % 5))
                continue
            if not written.merged:
                return written.revision
        raise StateError(f"{path}: others change it all the time; the index is made again with the next record")

    def _inside(self, path: Path) -> Path:
        """The path, if it leads to no place outside the workspace. Raises: StateError."""
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self._root)):
            raise StateError(f"{path}: leads out of the workspace, where nothing is remembered; take the link away")
        return path

    def _paths(self) -> list[Path]:
        try:
            return sorted(path for path in self.folder.glob("*.md") if path.name != _INDEX and path.name[0] != ".")
        except OSError:
            return []


def with_index(text: str, records: Iterable[Record], mask: Callable[[str], str]) -> str:
    """``text`` of MEMORY.md with its generated part made new, or added at its end; all else stays as it is.

    The part stands between two lines of its own.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(newline)
    part = [INDEX_BEGIN, *(mask(line) for line in _lines(records)), INDEX_END]
    end = max((at for at, line in enumerate(lines) if line == INDEX_END), default=0)
    begin = max((at for at, line in enumerate(lines[:end]) if line == INDEX_BEGIN), default=-1)
    if begin >= 0:
        return newline.join((*lines[:begin], *part, *lines[end + 1 :]))
    before = text if not text or text.endswith(newline) else text + newline
    gap = newline if before.strip() else ""
    return f"{before}{gap}{newline.join(part)}{newline}"


def _lines(records: Iterable[Record]) -> list[str]:
    """The index's lines: about the person first, then how they want things done, each group newest first."""
    ranked = sorted(records, key=lambda record: record.slug)
    ranked.sort(key=lambda record: record.updated, reverse=True)
    ranked.sort(key=lambda record: _TYPES.index(record.type))
    shown = [record.index_line for record in ranked[:MAX_LINES]]
    if hidden := len(ranked) - len(shown):
        shown.append(f"- … and {hidden:,} more records in {_FOLDER}/; search there")
    return shown


def _rendered(note: Note, slug: str, before: bytes | None, now: str) -> bytes:
    """The file of a record; where there is one, only what the note says differently is changed. Raises: StateError."""
    name = f"{_FOLDER}/{slug}.md"
    old = Document.parse(before, name) if before is not None else None
    if old is not None and _squeezed(old.body) == _squeezed(note.text):
        is_told = not note.description or _squeezed(old.string("description")) == _squeezed(note.description)
        if is_told and old.string("type", note.type) == note.type:
            return before or b""
    fields = {"name": _one_line(note.name), "description": _shortened(note.description or note.text)}
    fields |= {"type": note.type, "created": now, "updated": now, "source": note.source}
    body = f"\n{note.text.strip()}\n"
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


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _shortened(text: str) -> str:
    line = _one_line(text)
    return line if len(line) <= _DESCRIPTION_CHARS else line[: _DESCRIPTION_CHARS - 1] + "…"
