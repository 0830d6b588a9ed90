"""The files of .memory/ and its archive. No link is followed: what a tool may write without a question must not be a
name for something else.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tinyclaw.errors import FileChanged, StateError
from tinyclaw.state.files import read
from tinyclaw.state.memory.record import FOLDER, INDEX, PROPOSAL, Record, identity, slugs
from tinyclaw.types import Diagnostic
from tinyclaw.width import one_line

ARCHIVE = ".archive"
MAX_BYTES = 1 << 20
"""Of a file: what is larger is no note."""
_NO_RECORDS = (INDEX, PROPOSAL)
_TRIES = 100


class Look(NamedTuple):
    """A record's file by its slug: when it was changed last, by the clock of the file system, its size and inode."""

    slug: str
    changed_ns: int
    size: int
    inode: int


class Folder:
    """The folder of a workspace's memory. ``now`` gives an RFC 3339 time."""

    def __init__(self, root: Path, now: Callable[[], str]) -> None:
        self.root = root
        self.path = root / FOLDER
        self._now = now

    def own(self, name: str) -> Path:
        """The path of a file in the folder, if no link is on the way to it: a link may lead anywhere.

        Raises: StateError.
        """
        path = self.path / name
        if os.path.realpath(path) != os.path.join(os.path.realpath(self.root), path.relative_to(self.root)):  # noqa: PTH118
            raise StateError(f"{path}: is reached by a link, and the memory follows none; put the file itself there")
        return path

    def record(self, slug: str) -> Record | None:
        """The record in that file; None where there is none that can be read."""
        try:
            there = read(self.own(f"{slug}.md"), limit_bytes=MAX_BYTES)
        except StateError:
            return None
        return Record.parse(there.data, slug, there.revision) if there.data is not None else None

    def look(self) -> object:
        """How the folder itself looks; another when a file came or went, or was put in the place of another."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns

    def looks(self) -> set[Look]:
        """The files of records. A link is none, nor is what has a name that is no text."""
        return set(self._looks())

    @property
    def has_records(self) -> bool:
        return any(True for _ in self._looks())

    def _looks(self) -> Iterator[Look]:
        with suppress(OSError), os.scandir(self.path) as listed:
            for each in listed:
                name = each.name
                if name[-3:] == ".md" and name[0] != "." and name not in _NO_RECORDS and _is_text(name):
                    status = each.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        yield Look(name[:-3], status.st_ctime_ns, status.st_size, status.st_ino)

    def faults(self) -> list[Diagnostic]:
        """Broken heads, a name that two have, files that lead out or cannot be read."""
        return list(self._faults())

    # The archive

    def archive(self, name: str, revision: str | None = None) -> str:
        """Move a file into the archive, and give its place there.

        Raises: StateError; FileChanged where its revision is not the one that is given: then it stays.
        """
        path = self.own(name)

        def move(place: Path) -> None:
            place.open("xb").close()
            try:
                path.replace(place)  # whatever stands there by then
            except OSError:
                place.unlink()
                raise

        shown = self._into_archive(path, move)
        place = self.root / shown
        if revision is not None and read(place, limit_bytes=MAX_BYTES).revision != revision:
            with suppress(FileExistsError):
                os.link(place, path)
                place.unlink()
            raise FileChanged(f"{path}: changed meanwhile, and stays", diff="", revision="")
        return shown

    def keep_copy(self, name: str) -> str:
        """Copy a file into the archive before it is changed, and give its place there. Raises: StateError."""
        path = self.own(name)
        data = read(path, limit_bytes=MAX_BYTES).data or b""

        def copy(place: Path) -> None:
            with place.open("xb") as file:
                file.write(data)

        return self._into_archive(path, copy)

    def archived(self, begin: str) -> list[str]:
        """The names in the archive that begin so, the newest first."""
        try:
            names = [path.name for path in self.own(ARCHIVE).iterdir()]
        except (OSError, StateError):
            return []
        return sorted((name for name in names if name.startswith(begin) and name.endswith(".md")), reverse=True)

    def forgotten(self, name: str) -> str:
        """The newest place in the archive of a record that had that name, or whose file did; "" where there is none."""
        plain = name.removesuffix(".md")
        for begin in dict.fromkeys((*slugs(plain), plain)):
            for each in self.archived(f"{begin}-"):
                record = self.record(f"{ARCHIVE}/{each[:-3]}")
                slug = re.sub(r"-\d{14}(-\d+)?\.md$", "", each)
                if record is not None and identity(plain) in (identity(record.name), identity(slug)):
                    return f"{FOLDER}/{ARCHIVE}/{each}"
        return ""

    def _faults(self) -> Iterator[Diagnostic]:
        names: dict[str, Record] = {}
        for path in sorted(self.path.glob("*.md")) if self.path.is_dir() else ():
            shown = f"{FOLDER}/{path.name}"
            if path.name in _NO_RECORDS or path.name.startswith("."):
                continue
            if not _is_text(path.name):
                shown = one_line(shown.encode("utf-8", "replace").decode())
                yield Diagnostic(shown, None, "has a name that is no plain text in UTF-8", "give it another one")
                continue
            try:
                data = read(self.own(path.name), limit_bytes=MAX_BYTES).data
            except StateError as error:
                yield Diagnostic(shown, None, str(error).removeprefix(f"{path}: "))
                continue
            record = Record.parse(data or b"", path.stem)
            yield from record.diagnostics
            first = names.setdefault(identity(record.name), record)
            if first is not record:
                message = f"has the same name as {first.path}"
                yield Diagnostic(shown, None, message, "merge them, or give one another name")

    def _into_archive(self, path: Path, put: Callable[[Path], None]) -> str:
        """``put`` takes no name that is taken. Raises: StateError."""
        archive = self.own(ARCHIVE)
        name = path.stem.lower() if path.name in _NO_RECORDS else path.stem
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


def _is_text(name: str) -> bool:
    """Whether a file's name is UTF-8 without controls; Python shows other bytes as half surrogates."""
    return name.isprintable() or not any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in name)
