"""What the records' files say, kept in SQLite so that ten thousand of them need not be read to find one.

Nothing here is a source of anything: the file lies at user level, is made of the records alone, takes every change of
theirs in before it answers, and may be deleted at any time. Secrets do not enter it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from tinyclaw.state.memory.evidence import Evidence
from tinyclaw.state.memory.folder import Look
from tinyclaw.state.memory.record import TYPES, Head, Hits, Record, RecordType, identity, words_of

_VERSION = 1
_WAIT_SECONDS = 5.0
_RACY_NS = 2_000_000_000
"""A file that changed within this time of our look may change again and show the same times."""
_MOST_WORDS = 32
_COMMON = 5
"""A word that more than one in so many records have says little of what is meant."""
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


def _hash(look: Look) -> int:
    """The same in every process, as that of a text is not; a new name is a change of the file, too."""
    return hash(look[1:])


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

    def update(self, looks: Set[Look], parse: Callable[[str], Record | None]) -> None:
        """Take in what changed: ``looks`` are those of all files there are; ``parse`` reads one by its slug."""
        with self._lock:
            try:
                self._update(self._connection(), looks, parse)
            except sqlite3.Error:
                self._give_up()
                self._update(self._connection(), looks, parse)

    def ranked(self, start: int, most: int | None) -> list[Head]:
        """``most`` heads from number ``start`` on: about the person first, then about how they work, newest first."""
        with self._lock:
            query = f"SELECT {_HEAD} FROM records WHERE is_record ORDER BY rank, updated DESC, slug LIMIT ? OFFSET ?"
            return list(map(_head, self._connection().execute(query, (-1 if most is None else most, start))))

    def alike(self, name: str) -> list[str]:
        """The slugs of the records that have that name, or whose files do."""
        with self._lock:
            wanted = identity(self._mask(name))
            query = "SELECT slug FROM records WHERE identity = ? OR file_identity = ? ORDER BY slug"
            return [slug for (slug,) in self._connection().execute(query, (wanted, wanted))]

    def count_since(self, created: str) -> int:
        """How many records were made after that time."""
        with self._lock:
            query = "SELECT count(*) FROM records WHERE is_record AND created > ?"
            return int(self._connection().execute(query, (created,)).fetchone()[0])

    def search(self, text: str, most: int, *, rare: bool = False) -> Hits:
        """The records that have any word of ``text``, ranked by BM25: a name counts most, then a description.

        ``rare``: words that many records have are not looked for.
        """
        with self._lock:
            db = self._connection()
            words = list(dict.fromkeys(words_of(text)))[:_MOST_WORDS]
            if rare:
                words = self._rare(db, words)
            if not words:
                return Hits([], 0)
            query = " OR ".join(f'"{word}"' for word in words)
            found = db.execute(
                f"SELECT {_HEAD} FROM words JOIN records ON records.id = words.rowid WHERE words MATCH ? "
                "ORDER BY bm25(words, 4.0, 2.0, 1.0), slug LIMIT ?",
                (query, most),
            )
            heads = [_head(row) for row in found]
            count = db.execute("SELECT count(*) FROM words WHERE words MATCH ?", (query,)).fetchone()[0]
            return Hits(heads, int(count))

    def close(self) -> None:
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def _rare(self, db: sqlite3.Connection, words: Sequence[str]) -> list[str]:
        total = db.execute("SELECT count(*) FROM records WHERE is_record").fetchone()[0]
        limit = max(1, total // _COMMON)
        kept = []
        for word in words:
            if word in _SAY_LITTLE or (word.isascii() and len(word) < _LEAST_LETTERS):
                continue
            row = db.execute("SELECT doc FROM counts WHERE term = ?", (word,)).fetchone()
            if row is not None and row[0] <= limit:
                kept.append(word)
        return kept

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
            row |= _row(record, texts, self._mask("\n".join(map(str, record.evidence))))
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

    def _give_up(self) -> None:
        """Go on in the process alone."""
        self.close()
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


def _row(record: Record, texts: Sequence[str], evidence: str) -> dict[str, Any]:
    """The columns of a record; ``texts`` are its name and description with secrets masked."""
    return {
        "identity": identity(texts[0]) if record.is_named else "",
        "file_identity": identity(record.slug),
        "name": texts[0],
        "description": texts[1],
        "type": record.type,
        "rank": TYPES.index(record.type),
        "created": record.created,
        "updated": record.updated,
        "source": record.source,
        "evidence": evidence,
        "is_named": record.is_named,
    }


def _head(row: Sequence[Any]) -> Head:
    slug, name, description, kind, created, updated, source, evidence, is_named = row
    found = filter(None, map(Evidence.parse, evidence.split("\n"))) if evidence else ()
    return Head(slug, name, description, cast(RecordType, kind), created, updated, source, tuple(found), bool(is_named))
