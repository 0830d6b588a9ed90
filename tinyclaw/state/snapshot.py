"""What the files say at one moment: every outside input of one compile, read once.

A pattern names what a source wants to see: ``PLAN.md`` (a file at the root), ``user:AGENTS.md`` (at
the user level), ``chain:AGENTS.md|CLAUDE.md`` (in each folder from the root to where we work, the
first name that is there) or ``skills/*/SKILL.md`` (a folder of records). Nothing here is
proportional to the workspace: only the named files and folders are looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tinyclaw.errors import StateError
from tinyclaw.state.files import ABSENT, FileRead
from tinyclaw.state.live import LiveFiles
from tinyclaw.state.workspace import Workspace
from tinyclaw.types import Diagnostic

UNREADABLE = "unreadable"
MAX_STATE_BYTES = 1 << 20
USER = "user:"
CHAIN = "chain:"


@dataclass(frozen=True)
class StateFile:
    """A file as it was read: decoded leniently, without BOM and carriage returns, secrets masked.

    ``path`` is as people write it: relative to the root, or ``~/…`` for the user level. ``text`` is
    empty when ``problem`` says why the file cannot be read. ``size`` is in bytes on disk.
    """

    path: str
    text: str
    revision: str
    size: int = 0
    private: bool = False
    problem: Diagnostic | None = None


@dataclass(frozen=True)
class Snapshot:
    """The files that each pattern found, in order, and named facts that are no files."""

    found: Mapping[str, tuple[StateFile, ...]]
    facts: Mapping[str, str] = field(default_factory=dict)

    def files(self, *patterns: str) -> Iterator[StateFile]:
        """The files of the given patterns, in their order."""
        for pattern in patterns:
            yield from self.found.get(pattern, ())

    def file(self, pattern: str) -> StateFile | None:
        """The one file of a pattern, or None when it is absent."""
        return next(self.files(pattern), None)


class SnapshotReader:
    """Takes snapshots of one workspace; keeps what was decoded for as long as its revision stands."""

    def __init__(
        self,
        workspace: Workspace,
        live: LiveFiles,
        mask: Callable[[str], str],
        patterns: Iterable[str],
        now: Callable[[], float],
    ) -> None:
        self._workspace = workspace
        self._now = now
        self._live = live
        self._mask = mask
        self._patterns = tuple(patterns)
        self._decoded: dict[str, StateFile] = {}
        self._records: dict[str, _Records] = {}

    def take(self, facts: Mapping[str, str]) -> Snapshot:
        """Read what changed since the last snapshot; what is proven unchanged costs one stat."""
        return Snapshot({pattern: tuple(self._find(pattern)) for pattern in self._patterns}, facts)

    def wrote(self, path: str, revision: str) -> None:
        """Tell of an own write to a workspace file, so that the next snapshot does not wait for it to stand still."""
        self._live.wrote(self._workspace.root / path, revision)

    def _find(self, pattern: str) -> Iterator[StateFile]:
        if pattern.startswith(CHAIN):
            for folder in self._workspace.chain():
                yield from self._first(folder, pattern.removeprefix(CHAIN).split("|"))
        elif "*" in pattern:
            for path in self._record_paths(pattern):
                yield from self._file(path, self._display(path))
        elif pattern.startswith(USER):
            name = pattern.removeprefix(USER)
            yield from self._file(self._workspace.user_dir / name, f"~/{name}", private=True)
        else:
            yield from self._file(self._workspace.root / pattern, pattern)

    def _first(self, folder: Path, names: list[str]) -> Iterator[StateFile]:
        for name in names:
            path = folder / name
            found = list(self._file(path, self._display(path)))
            if found:
                yield from found
                return

    def _record_paths(self, pattern: str) -> tuple[Path, ...]:
        if pattern not in self._records:
            top, _, rest = pattern.partition("*")
            private = top.startswith(USER)
            folder = self._workspace.user_dir if private else self._workspace.root
            self._records[pattern] = _Records(folder / top.removeprefix(USER), rest.lstrip("/"))
        return self._records[pattern].paths(self._now())

    def _display(self, path: Path) -> str:
        if path.is_relative_to(self._workspace.root):
            return self._workspace.relative(path)
        return f"~/{path.relative_to(self._workspace.user_dir).as_posix()}"

    def _file(self, path: Path, shown: str, *, private: bool = False) -> Iterator[StateFile]:
        private = private or shown.startswith("~/")
        try:
            read = self._live.read(path)
            if read.data is not None and not private and not _inside(path, self._workspace.root):
                raise StateError(f"{shown} is a link out of the workspace and is not followed")
        except StateError as error:
            problem = Diagnostic(shown, None, str(error))
            yield StateFile(shown, "", UNREADABLE, private=private, problem=problem)
            return
        if read.revision != ABSENT:
            yield self._decode(read, shown, private)

    def _decode(self, read: FileRead, shown: str, private: bool) -> StateFile:
        known = self._decoded.get(shown)
        if known is None or known.revision != read.revision:
            known = self._decoded[shown] = self._fresh(read, shown, private)
        return known

    def _fresh(self, read: FileRead, shown: str, private: bool) -> StateFile:
        data = read.data or b""
        size = len(data)
        if size > MAX_STATE_BYTES:
            problem = Diagnostic(
                shown, None, f"is {size:,} bytes; at most {MAX_STATE_BYTES:,} are read", "make it shorter"
            )
            return StateFile(shown, "", read.revision, size, private, problem)
        if b"\0" in data:
            line = data[: data.index(b"\0")].count(b"\n") + 1
            problem = Diagnostic(shown, line, "holds NUL bytes and is no text", "save it as UTF-8")
            return StateFile(shown, "", read.revision, size, private, problem)
        try:
            text, problem_found = data.decode("utf-8-sig"), None
        except UnicodeDecodeError as error:
            text = data.decode("utf-8-sig", "replace")
            line = data[: error.start].count(b"\n") + 1
            problem_found = Diagnostic(
                shown, line, "is not UTF-8; the bytes that are not are shown as \ufffd", "save it as UTF-8"
            )
        text = self._mask(text.replace("\r\n", "\n").replace("\r", "\n"))
        return StateFile(shown, text, read.revision, size, private, problem_found)


class _Records:
    """The files ``<folder>/*/<name>``: listed again only when the folder's own times say so."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._listed: tuple[int, int] | None = None
        self._paths: tuple[Path, ...] = ()

    def paths(self, now: float) -> tuple[Path, ...]:
        try:
            status = self._folder.stat()
        except OSError:
            return ()
        # A folder's time is coarse: one that changed within two seconds of the listing is listed again.
        times = (status.st_ino, status.st_mtime_ns)
        if times != self._listed:
            self._paths = self._list()
            self._listed = times if now - status.st_mtime > 2 else None
        return self._paths

    def _list(self) -> tuple[Path, ...]:
        try:
            with os.scandir(self._folder) as entries:
                names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
        except OSError:
            return ()
        return tuple(self._folder / name / self._name for name in names)


def _inside(path: Path, root: Path) -> bool:
    return not path.is_symlink() or Path(os.path.realpath(path)).is_relative_to(root)
