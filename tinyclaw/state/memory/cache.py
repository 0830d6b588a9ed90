"""What the records' files say, kept in SQLite so that ten thousand of them need not be read to find one.

Nothing here is a source of anything: the file lies at user level, is made of the records alone, takes every change of
theirs in before it answers, and may be deleted at any time. Secrets in their texts do not enter it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar, cast

from tinyclaw.state.memory.evidence import Evidence
from tinyclaw.state.memory.folder import Look
from tinyclaw.state.memory.record import TYPES, Head, Hits, Record, RecordType, identity, words_of

_VERSION = 2
_WAIT_SECONDS = 5.0
_RACY_NS = 2_000_000_000
"""A file that changed within this time of our look may change again and show the same times."""
_MOST_WORDS = 32
_MOST_PAIRED = 8
_FEW = 2
_SEVERAL = 10
_COMMON = 5
"""A word that more than one in so many records have says little of what is meant."""
_TIME = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*"
_LEAST_LETTERS = 3
_ENGLISH = """
about after again all also and any are back been before but can could did does done each for from get had has have how
into its just let like make more most new not now off one only other our out over please same say see should some such
take than that the their them then there these they this those too use very want was way were what when where which who
why will with work would yes you your
"""
_SAY_LITTLE = frozenset(_ENGLISH.split())
"""English words that stand in any request; where there are few records, their number tells nothing."""

_COLUMNS = ("slug", "name", "description", "type", "created", "updated", "source", "evidence", "is_named")
_HEAD = ", ".join(f"records.{name}" for name in _COLUMNS)
_SCHEMA = f"""
CREATE TABLE records (
    id INTEGER PRIMARY KEY, slug TEXT UNIQUE, changed INTEGER, size INTEGER, inode INTEGER, is_record INTEGER,
    identity TEXT, file_identity TEXT, name TEXT, description TEXT, type TEXT, rank INTEGER, created TEXT,
    updated TEXT, source TEXT, evidence TEXT, is_named INTEGER
);
CREATE TABLE seen (digest TEXT);
INSERT INTO seen VALUES ('');
CREATE INDEX by_identity ON records (identity);
CREATE INDEX by_file_identity ON records (file_identity);
CREATE INDEX by_rank ON records (rank, updated DESC, slug);
CREATE VIRTUAL TABLE words USING fts5 (name, description, text, tokenize = "unicode61 remove_diacritics 0");
CREATE VIRTUAL TABLE counts USING fts5vocab (words, row);
PRAGMA user_version = {_VERSION};
"""


def _distinct(text: str) -> list[str]:
    return list(dict.fromkeys(words_of(text)))[:_MOST_WORDS]


def _says_something(word: str) -> bool:
    return word not in _SAY_LITTLE and (not word.isascii() or word.isdigit() or len(word) >= _LEAST_LETTERS)


def _count(db: sqlite3.Connection, word: str) -> int:
    """How many records have a word."""
    row = db.execute("SELECT doc FROM counts WHERE term = ?", (word,)).fetchone()
    return int(row[0]) if row else 0


def _matches(db: sqlite3.Connection, query: str) -> int:
    return int(db.execute("SELECT count(*) FROM words WHERE words MATCH ?", (query,)).fetchone()[0])


def _hash(look: Look) -> int:
    """The same in every process, as that of a text is not; a new name is a change of the file, too."""
    return hash(look[1:])


Answer = TypeVar("Answer")


class RecordCache:
    """The heads and words of one workspace's records. Threads may share one.

    ``path`` is its file, None to keep it in the process; where it cannot be used that is done, too. ``mask`` hides
    secrets, ``now_ns`` is the clock of the file system.
    """

    def __init__(self, path: Path | None, mask: Callable[[str], str], now_ns: Callable[[], int]) -> None:
        self._path = path
        self._mask = mask
        self._now_ns = now_ns
        self._lock = threading.RLock()
        """Guards that a connection is used by one thread at a time, and answers for the entries that it took in."""
        self._db: sqlite3.Connection | None = None
        self._source: tuple[Set[Look], Callable[[str], Record | None]] | None = None

    def update(self, looks: Set[Look], parse: Callable[[str], Record | None]) -> None:
        """Take in what changed: ``looks`` are those of all files there are; ``parse`` reads one by its slug."""
        with self._lock:
            self._source = (looks, parse)
            self._safely(lambda db: self._update(db, looks, parse))

    def ranked(self, start: int, most: int | None) -> list[Head]:
        """``most`` heads from number ``start`` on: about the person first, then about how they work, newest first."""
        query = f"SELECT {_HEAD} FROM records WHERE is_record ORDER BY rank, updated DESC, slug LIMIT ? OFFSET ?"
        values = (-1 if most is None else most, start)
        return self._safely(lambda db: list(map(_head, db.execute(query, values))))

    def alike(self, name: str) -> list[str]:
        """The slugs of the records that have that name, or whose files do."""
        wanted = identity(self._mask(name))
        query = "SELECT slug FROM records WHERE identity = ? OR file_identity = ? ORDER BY slug"
        return self._safely(lambda db: [slug for (slug,) in db.execute(query, (wanted, wanted))])

    def count_since(self, created: str) -> int:
        """How many records were made after that time, as far as they say when."""
        query = f"SELECT count(*) FROM records WHERE is_record AND created > ? AND created GLOB '{_TIME}'"
        return self._safely(lambda db: int(db.execute(query, (created,)).fetchone()[0]))

    def search(self, text: str, most: int) -> Hits:
        """The records that have any word of ``text``, ranked by BM25: a name counts most, then a description."""
        return self._found(" OR ".join(f'"{word}"' for word in _distinct(text)), most)

    def likely(self, text: str, most: int) -> list[Head]:
        """The records that a text seems to be about: they have a word of it that few have, or two that tell much."""

        def query(db: sqlite3.Connection) -> str:
            words = [word for word in _distinct(text) if _says_something(word)][:_MOST_PAIRED]
            total = db.execute("SELECT count(*) FROM records WHERE is_record").fetchone()[0]
            rare = [word for word in words if 0 < _count(db, word) <= max(_FEW, total // _COMMON)]
            pairs = (f'("{first}" AND "{second}")' for first, second in combinations(words, 2))
            telling = (pair for pair in pairs if _matches(db, pair) <= max(_SEVERAL, total // _COMMON))
            return " OR ".join([*(f'"{word}"' for word in rare), *telling])

        return self._found(self._safely(query), most).heads

    def _found(self, query: str, most: int) -> Hits:
        if not query:
            return Hits([], 0)
        hits = (
            f"SELECT {_HEAD} FROM words JOIN records ON records.id = words.rowid WHERE words MATCH ? "
            "ORDER BY bm25(words, 4.0, 2.0, 1.0), slug LIMIT ?"
        )
        count = "SELECT count(*) FROM words WHERE words MATCH ?"

        def ask(db: sqlite3.Connection) -> Hits:
            return Hits(list(map(_head, db.execute(hits, (query, most)))), db.execute(count, (query,)).fetchone()[0])

        return self._safely(ask)

    def close(self) -> None:
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def _safely(self, ask: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """The answer of the database; of one that is made anew in the process where that one is damaged or busy."""
        with self._lock:
            try:
                return ask(self._connection())
            except sqlite3.Error as error:
                self._give_up(is_damaged=not isinstance(error, sqlite3.OperationalError))
            if self._source is not None:
                self._update(self._connection(), *self._source)
            return ask(self._connection())

    def _update(self, db: sqlite3.Connection, looks: Set[Look], parse: Callable[[str], Record | None]) -> None:
        digest = sum(map(_hash, looks))
        if db.execute("SELECT digest FROM seen").fetchone() == (str(digest),):
            return
        known = set(db.execute("SELECT slug, changed, size, inode FROM records"))
        changed = looks - known
        gone = [(slug,) for slug in {look[0] for look in known - looks} - {look.slug for look in changed}]
        is_proof = all(not self._is_racy(look) for look in changed)
        with db:
            db.execute("UPDATE seen SET digest = ?", (str(digest) if is_proof else "",))
            db.executemany("DELETE FROM words WHERE rowid = (SELECT id FROM records WHERE slug = ?)", gone)
            db.executemany("DELETE FROM records WHERE slug = ?", gone)
            for look in sorted(changed):
                self._put(db, look, parse(look.slug))

    def _put(self, db: sqlite3.Connection, look: Look, record: Record | None) -> None:
        slug, changed, size, inode = look
        row = {"slug": slug, "changed": 0 if self._is_racy(look) else changed, "size": size, "inode": inode}
        row["is_record"] = record is not None
        texts: list[str] = []
        if record is not None:
            texts = [self._mask(text) for text in (record.name, record.description, record.text)]
            evidence = "\n".join(map(str, record.evidence))
            facts = [self._mask(text) for text in (record.created, record.updated, record.source, evidence)]
            row |= _row(record, texts, facts)
        marks = ", ".join("?" * len(row))
        db.execute("DELETE FROM words WHERE rowid = (SELECT id FROM records WHERE slug = ?)", (slug,))
        cursor = db.execute(
            f"INSERT OR REPLACE INTO records ({', '.join(row)}) VALUES ({marks})",
            tuple(row.values()),
        )
        if texts:
            values = (cursor.lastrowid, *(" ".join(words_of(text)) for text in texts))
            db.execute("INSERT INTO words (rowid, name, description, text) VALUES (?, ?, ?, ?)", values)

    def _is_racy(self, look: Look) -> bool:
        return self._now_ns() - look.changed_ns < _RACY_NS

    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = self._opened()
        return self._db

    def _opened(self) -> sqlite3.Connection:
        if self._path is not None:
            with suppress(OSError, sqlite3.Error):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._path.touch(mode=0o600)
                return _open(str(self._path))
            with suppress(OSError, sqlite3.Error):  # it is damaged, or of another version
                self._path.unlink(missing_ok=True)
                self._path.touch(mode=0o600)
                return _open(str(self._path))
        return _open(":memory:")

    def _give_up(self, *, is_damaged: bool) -> None:
        """Go on in the process alone; a damaged file goes away, and is made anew by the next process."""
        self.close()
        if is_damaged and self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
        self._path = None


def _open(name: str) -> sqlite3.Connection:
    """Raises: sqlite3.Error when it is no such file, or one of another version."""
    db = sqlite3.connect(name, timeout=_WAIT_SECONDS, check_same_thread=False)
    try:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            with db:
                db.execute("BEGIN IMMEDIATE")
                if db.execute("PRAGMA user_version").fetchone()[0] == 0:  # nobody else has made it meanwhile
                    for statement in _SCHEMA.split(";"):
                        db.execute(statement)
        elif version != _VERSION:
            raise sqlite3.DatabaseError(f"{name}: is of version {version}")
    except sqlite3.Error:
        db.close()
        raise
    return db


def _row(record: Record, texts: Sequence[str], facts: Sequence[str]) -> dict[str, Any]:
    """The columns of a record; ``texts`` are its name and description, ``facts`` the rest, with secrets masked."""
    return {
        "identity": identity(texts[0]) if record.is_named else "",
        "file_identity": identity(record.slug),
        "name": texts[0],
        "description": texts[1],
        "type": record.type,
        "rank": TYPES.index(record.type),
        "created": facts[0],
        "updated": facts[1],
        "source": facts[2],
        "evidence": facts[3],
        "is_named": record.is_named,
    }


def _head(row: Sequence[Any]) -> Head:
    slug, name, description, kind, created, updated, source, evidence, is_named = row
    found = filter(None, map(Evidence.parse, evidence.split("\n"))) if evidence else ()
    return Head(slug, name, description, cast(RecordType, kind), created, updated, source, tuple(found), bool(is_named))
