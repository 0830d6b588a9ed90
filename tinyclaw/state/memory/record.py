"""A memory record: one Markdown file, whose name is its identity and whose file is called after it."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast, get_args

from tinyclaw.state.documents import Document, storable
from tinyclaw.state.memory.evidence import Evidence
from tinyclaw.state.workspace import MEMORY_INDEX
from tinyclaw.types import Diagnostic

RecordType = Literal["user", "feedback", "project", "reference"]
TYPES: tuple[RecordType, ...] = get_args(RecordType)
FOLDER, INDEX = MEMORY_INDEX.split("/")
PROPOSAL = "PROPOSAL.md"

_SLUG_BYTES = 60
_DESCRIPTION_CHARS = 200
SHOWN_NAME = 120
"""Characters of a name where it is one of many."""
MAX_NAME = 1_000
_MOST_EVIDENCE = 20
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|memory|proposal)", re.ASCII)
"""What is no record beside them, and what Windows keeps for itself (https://learn.microsoft.com/windows/win32/fileio/naming-a-file)."""
_NO_BRACKETS = str.maketrans("[]", "()")
_CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")


@dataclass(frozen=True)
class Note:
    """What is to be remembered. ``source`` says where it comes from, a session for example."""

    name: str
    type: RecordType
    text: str
    description: str = ""
    source: str = ""


@dataclass(frozen=True)
class Head:
    """What a record's file says of it, without its text.

    ``slug`` is the file's name without ``.md``; times are as they were written. ``is_named``: it has a name of its own,
    and not that of its file. ``evidence``: what in the workspace it rests on.
    """

    slug: str
    name: str
    description: str
    type: RecordType
    created: str
    updated: str
    source: str
    evidence: tuple[Evidence, ...] = ()
    is_named: bool = True

    @property
    def path(self) -> str:
        """The record's file, relative to the workspace."""
        return f"{FOLDER}/{self.slug}.md"

    @property
    def index_line(self) -> str:
        name, description = cut(one_line(self.name), SHOWN_NAME).translate(_NO_BRACKETS), one_line(self.description)
        return f"- [{name}]({self.slug}.md)" + (f" — {description}" if description else "")


@dataclass(frozen=True)
class Record(Head):
    """A record as its file says, and what is wrong with the file."""

    text: str = ""
    revision: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()

    @classmethod
    def parse(cls, data: bytes, slug: str, revision: str = "") -> Record:
        """Read a record, of that revision. Never raises: what is missing is made of what is there."""
        document = Document.parse(data, f"{FOLDER}/{slug}.md")
        texts = {name: document.string(name) for name in ("name", "description", "created", "updated", "source")}
        kind = cast(RecordType, document.choice("type", TYPES, "project"))
        first = next((line.strip("# ") for line in document.body.split("\n") if line.strip("# ")), "")
        evidence = tuple(_evidence(document))
        return cls(
            slug=slug,
            name=texts["name"] or slug,
            description=shortened(texts["description"] or first),
            type=kind,
            created=texts["created"],
            updated=texts["updated"] or texts["created"],
            source=texts["source"],
            evidence=evidence,
            is_named=bool(texts["name"]),
            text=document.body.strip("\n"),
            revision=revision,
            diagnostics=tuple(document.diagnostics),
        )


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
        return f"{FOLDER}/{self.slug}.md"


class Hits(NamedTuple):
    """Records that a search found, the likeliest first, and how many there are in all."""

    heads: list[Head]
    total: int


def says(record: Record, note: Note, *, is_exact: bool) -> bool:
    """Whether a record says what a note does; to the letter for one who has seen it."""
    if record.type != note.type:
        return False
    if not is_exact:
        return squeezed(record.text) == squeezed(note.text)
    return record.text.strip() == note.text.strip() and note.description in ("", record.description)


def rendered(note: Note, slug: str, before: bytes | None, now: str, evidence: Sequence[Evidence]) -> bytes:
    """The file of a record; where there is one, only what the note says differently is changed. Raises: StateError."""
    name = f"{FOLDER}/{slug}.md"
    old = Document.parse(before, name) if before is not None else None
    fields = {"name": one_line(note.name), "description": shortened(note.description or note.text)}
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
    if evidence or (old is not None and "evidence" in old.fields):
        data = Document.parse(data, name).set_field("evidence", [str(each) for each in evidence])
    return data if old is not None else data + body.encode("utf-8", "replace")


def slugs(name: str) -> Iterator[str]:
    """File names for a record, without ``.md``, the readable one first: portable, and the same every time."""
    words = re.sub(r"[\W_]+", "-", unicodedata.normalize("NFC", name).casefold()).strip("-")
    while len(words.encode()) > _SLUG_BYTES:
        words = words[:-1].rstrip("-")
    digest = hashlib.sha256(identity(name).encode()).hexdigest()
    if words and not _RESERVED.fullmatch(words):
        yield words
    yield from (f"{words or 'note'}-{digest[:length]}" for length in (6, 12, 24))


def identity(name: str) -> str:
    """What two names have in common that mean one record: case, blanks and the form of accents do not count."""
    return squeezed(unicodedata.normalize("NFKC", storable(name)))


def words_of(text: str) -> list[str]:
    """Words for searching; of scripts without blanks each character is one."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return _WORD.findall(plain.casefold())


def squeezed(text: str) -> str:
    """``text`` in small letters, with one blank for all that stands between its words."""
    return " ".join(text.casefold().split())


def one_line(text: str) -> str:
    return " ".join(text.split())


def shortened(text: str) -> str:
    """``text`` as a description: one line, cut where it is too long."""
    return cut(one_line(text), _DESCRIPTION_CHARS)


def cut(text: str, most: int) -> str:
    """At most so many characters of a text, cut between words: half of a secret would not be known for one."""
    if len(text) <= most:
        return text
    at = most - 2
    while at and text[at - 1 : at + 1].isascii() and not text[at - 1].isspace():
        at -= 1
    return f"{text[:at].rstrip()} …".lstrip()


def _evidence(document: Document) -> Iterator[Evidence]:
    for text in document.strings("evidence")[:_MOST_EVIDENCE]:
        found = Evidence.parse(text)
        if found is None:
            mend = 'write "path", or "path:first-last hash"'
            document.complain("evidence", f'"{shortened(text)}" names no file', mend)
        else:
            yield found
