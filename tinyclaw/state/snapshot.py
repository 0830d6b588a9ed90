"""What the files say at one moment: every outside input of one compile, read once.

A pattern names what a source wants to see: ``PLAN.md`` (a file at the root), ``user:AGENTS.md`` (at
the user level), ``chain:AGENTS.md|CLAUDE.md`` (in each folder from the root to where we work, the
first name that is there), ``nested:AGENTS.md|CLAUDE.md`` (the same in each folder below the root that the agent has
touched), ``notes/*.md`` or ``chain:skills/*/SKILL.md`` (a folder of records, of which no more than ``MAX_RECORDS`` are
read). With ``@`` before a pattern come the files that its files import, each before its importer, and no file twice.
What a touch or an import would bring in and git ignores is left out.
Nothing here is proportional to the workspace: only the named files and folders are looked at, and a file that has not
changed costs one stat.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import filterfalse, islice
from operator import attrgetter
from pathlib import Path

from tinyclaw.errors import StateError
from tinyclaw.state._importing import Importing
from tinyclaw.state._reading import Signature
from tinyclaw.state.files import FileRead
from tinyclaw.state.imports import Import, find_imports
from tinyclaw.state.live import RACY_SECONDS, LiveFiles, is_racy
from tinyclaw.state.nested import Ignored, IgnoreFiles, NestedFolders, ways_to
from tinyclaw.state.workspace import Workspace
from tinyclaw.types import Diagnostic

UNREADABLE = "unreadable"
MAX_STATE_BYTES = 1 << 20
MAX_RECORDS = 200
"""An edit in place shows in no folder's times, so each record costs a stat per compile; a catalog holds no more."""
USER = "user:"
CHAIN = "chain:"
NESTED = "nested:"
IMPORTS = "@"


@dataclass(frozen=True, eq=False)
class StateFile:
    """A file as it was read: decoded leniently, without BOM and carriage returns, secrets masked.

    Compared by identity: a reader gives the same object for as long as the file stands.

    ``path`` is as people write it: relative to the root, or ``~/…`` for the user level. ``text`` is
    empty when ``problem`` says why the file cannot be read. ``size`` is in bytes on disk. ``place`` is the real path on
    this machine, equal for two links to one file; it is shown to nobody.
    """

    path: str
    text: str
    revision: str
    size: int = 0
    private: bool = False
    problem: Diagnostic | None = None
    place: str = ""

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """What the text imports, whether it is there or not."""
        return find_imports(self.text)


@dataclass(frozen=True)
class Snapshot:
    """The files that each pattern found, in order, and named facts that are no files.

    ``unread`` says how many records of a pattern's folder, or how many touched folders, were left unread. ``importers``
    says which file imported a file, by path; ``import_faults`` what was not imported and why.
    """

    found: Mapping[str, tuple[StateFile, ...]]
    facts: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, int] = field(default_factory=dict)
    importers: Mapping[str, str] = field(default_factory=dict)
    import_faults: tuple[Diagnostic, ...] = ()

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
        max_records: int = MAX_RECORDS,
    ) -> None:
        self._workspace = workspace
        self._now = now
        self._live = live
        self._mask = mask
        self._nested = NestedFolders(workspace)
        self._ignore_files = IgnoreFiles(workspace.root, now)
        self._patterns = {pattern: _Pattern.of(pattern, workspace, max_records) for pattern in patterns}
        self._decoded: dict[bool, dict[Path, tuple[FileRead, StateFile | None]]] = {False: {}, True: {}}

    def take(self, facts: Mapping[str, str], touched: tuple[str, ...] = ()) -> Snapshot:
        """Read what changed since the last snapshot; what is proven unchanged costs one stat.

        ``touched`` are the folders that the agent has touched, from the root, in the order of its first touch.
        """
        return self._taken(list(self._patterns), touched, facts)

    def take_documents(self, touched: tuple[str, ...] = ()) -> Snapshot:
        """What the single files say now: no facts, and no folders of records, which cost a stat for each record."""
        single = [name for name, pattern in self._patterns.items() if not pattern.folders]
        return self._taken(single, touched, {})

    def file(self, shown: str) -> StateFile | None:
        """The file that is called ``shown``, as ``StateFile.path`` has it, as it stands now; None when it is absent.

        What leads out of where it is looked for counts as absent.
        """
        private = shown.startswith("~/")
        name = Path(shown.removeprefix("~/"))
        if name.is_absolute() or ".." in name.parts:
            return None
        return self._file((self._workspace.user_dir if private else self._workspace.root) / name, private)

    def wrote(self, path: str, revision: str) -> None:
        """Tell of an own write to a workspace file, so that the next snapshot does not wait for it to stand still."""
        self._live.wrote(self._workspace.root / path, revision)

    def _taken(self, names: Sequence[str], touched: tuple[str, ...], facts: Mapping[str, str]) -> Snapshot:
        ignored = self._ignore_files.look()
        found = {name: tuple(self._find(name, touched, ignored)) for name in names}
        unread = {name: self._patterns[name].unread for name in names}
        importing = Importing(self._workspace, self._file, self._stated(found), self._is_ignored(ignored))
        following = [each for each in names if each.startswith(IMPORTS)]
        for pattern in following:
            if not _is_nested(pattern):  # claimed first: what the agent's ways bring in later changes nothing before
                found[pattern] = tuple(filter(importing.claim, found[pattern]))
        for pattern in following:
            found[pattern] = tuple(self._with_imports(pattern, found[pattern], importing))
            if _is_nested(pattern):
                unread[pattern] = ways_to(touched).more
        return Snapshot(found, facts, unread, importing.importers, tuple(importing.faults))

    def _with_imports(self, pattern: str, files: Iterable[StateFile], importing: Importing) -> Iterator[StateFile]:
        for file in files:
            if not _is_nested(pattern) or importing.claim(file):
                yield from importing.of(file)
                yield file

    def _stated(self, found: Mapping[str, tuple[StateFile, ...]]) -> Iterator[str]:
        """The places of single files that other patterns name, also where there is no file now."""
        for pattern in found:
            if "*" not in pattern and not pattern.startswith((IMPORTS, USER, CHAIN, NESTED)):
                yield str(self._workspace.root / pattern)
                yield from (file.place for file in found[pattern])

    def _is_ignored(self, ignored: Ignored) -> Callable[[StateFile], bool]:
        """Asks whether git ignores a file of the workspace, or the place to which it leads."""

        def is_ignored(file: StateFile) -> bool:
            return ignored.has(file.path) or ignored.has(self._workspace.relative(Path(file.place)))

        return is_ignored

    def _find(self, name: str, touched: tuple[str, ...], ignored: Ignored) -> Iterator[StateFile]:
        pattern = self._patterns[name]
        for folder in pattern.folders:
            yield from self._records(folder, pattern.private)
        for paths in pattern.paths:
            yield from islice(self._files(paths, pattern.private), 1)
        is_ignored = self._is_ignored(ignored)
        for place in self._nested.of(touched, ignored) if _is_nested(name) else ():
            files = self._files(_named(place, name.partition(":")[2]), pattern.private)
            yield from islice(filterfalse(is_ignored, files), 1)

    def _records(self, folder: _Folder, private: bool) -> Sequence[StateFile]:
        """The files of a folder of records. There may be hundreds, so what stands costs a stat each and no more."""
        now = self._now()
        looks = folder.looks(now)
        if looks != folder.proven:
            found = [self._file(path, private) for path in folder.paths]
            folder.files = [file for file in found if file is not None]
            is_proof = all(_is_proof(look, file, now) for look, file in zip(looks, found, strict=True))
            folder.proven = looks if is_proof and looks == folder.looks(now) else None
        return folder.files

    def _file(self, path: Path, private: bool) -> StateFile | None:
        return next(self._files([path], private), None)

    def _files(self, paths: Iterable[Path], private: bool) -> Iterator[StateFile]:
        decoded = self._decoded[private]
        for path in paths:
            try:
                read = self._live.read(path)
            except StateError as error:
                yield self._unusable(path, private, str(error).removeprefix(f"{path}: "))
                continue
            known = decoded.get(path)
            if known is None or known[0] is not read:
                known = decoded[path] = (read, self._decode(read, private, known[1] if known else None))
            if known[1] is not None:
                yield known[1]

    def _decode(self, read: FileRead, private: bool, known: StateFile | None) -> StateFile | None:
        """The file that was read; None when it is absent, ``known`` when that is still what it says."""
        if read.data is None:
            return None
        place = os.path.realpath(read.path)
        if not private and not Path(place).is_relative_to(self._workspace.root):
            return self._unusable(read.path, private, "is a link out of the workspace and is not followed")
        if known is not None and (known.revision, known.place) == (read.revision, place):
            return known
        shown = self._shown(read.path, private)
        text, problem = _text_of(read.data, shown)
        text = self._mask(text.replace("\r\n", "\n").replace("\r", "\n"))
        return StateFile(shown, text, read.revision, len(read.data), private, problem, place)

    def _unusable(self, path: Path, private: bool, message: str) -> StateFile:
        shown = self._shown(path, private)
        problem = Diagnostic(shown, None, message)
        return StateFile(shown, "", UNREADABLE, private=private, problem=problem, place=str(path))

    def _shown(self, path: Path, private: bool) -> str:
        if private:
            return f"~/{path.relative_to(self._workspace.user_dir).as_posix()}"
        return self._workspace.relative(path)


@lru_cache(maxsize=1024)
def _named(folder: Path, names: str) -> list[Path]:
    return [folder / name for name in names.split("|")]


def _is_nested(pattern: str) -> bool:
    return pattern.startswith(IMPORTS + NESTED)


def _text_of(data: bytes, path: str) -> tuple[str, Diagnostic | None]:
    """The text of a file, "" when it is none, and what is wrong with it."""
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        return "", Diagnostic(path, line, "holds NUL bytes and is no text", "save it as UTF-8")
    try:
        return data.decode("utf-8-sig"), None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = "is not UTF-8; the bytes that are not are shown as \ufffd"
        return data.decode("utf-8-sig", "replace"), Diagnostic(path, line, message, "save it as UTF-8")


_LOOK_AT = attrgetter("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")
_Look = tuple[int, ...] | None
"""A signature as a plain tuple, made without a step of Python: hundreds of them are made before each request.

None for what is absent, empty for what cannot be looked at.
"""


class _Folder:
    """The files ``<folder>/*<ending>``: listed again only when the folder's own times say so.

    ``ending`` is ``.md``, or ``/SKILL.md|skill.md`` for a folder for each record, in which the first name that is
    there counts. ``files`` are what was read when the looks at ``paths`` were ``proven``.
    """

    def __init__(self, folder: Path, ending: str, most: int) -> None:
        self.paths: list[Path] = []
        self.unread = 0
        self.files: list[StateFile] = []
        self.proven: list[_Look] | None = None
        self._folder = folder
        self._most = most
        self._has_folders = ending.startswith("/")
        self._ending, *self._others = ending.split("|")
        self._listed: tuple[int, int] | None = None
        self._names: list[str] = []

    def looks(self, now: float) -> list[_Look]:
        """What a stat says of the first records by name."""
        self._list(now)
        try:
            return list(map(_LOOK_AT, map(os.stat, self._names)))
        except (OSError, ValueError):
            self._choose()
            return [_look(name) for name in self._names]

    def _list(self, now: float) -> None:
        """Hidden folders hold no records."""
        try:
            status = self._folder.stat()
            times = (status.st_ino, status.st_mtime_ns)
            if times == self._listed:
                return
            with os.scandir(self._folder) as entries:
                names = sorted(self._record(entry.name) for entry in entries if self._is_record(entry))
        except OSError:
            names, self._listed = [], None
        else:
            # A folder's time is coarse: after a change within these seconds it is listed again.
            self._listed = times if now - status.st_mtime > RACY_SECONDS else None
        self._take([self._folder / each for each in names[: self._most]])
        self.unread = len(names) - len(self.paths)

    def _take(self, paths: list[Path]) -> None:
        if paths != self.paths:
            self.paths, self._names, self.proven = paths, list(map(str, paths)), None

    def _choose(self) -> None:
        """Take another of the record's names where the first is not there."""
        if self._others:
            self._take([self._chosen(path.parent) for path in self.paths])

    def _chosen(self, folder: Path) -> Path:
        first = folder / self._ending[1:]
        others = (folder / name for name in self._others)
        if _look(str(first)) is not None:
            return first
        return next((path for path in others if _look(str(path)) is not None), first)

    def _is_record(self, entry: os.DirEntry[str]) -> bool:
        if entry.name.startswith("."):
            return False
        if self._has_folders:
            return entry.is_symlink() or entry.is_dir(follow_symlinks=False)
        return entry.name.endswith(self._ending)

    def _record(self, entry: str) -> str:
        return entry + self._ending if self._has_folders else entry


@dataclass(frozen=True)
class _Pattern:
    """Where files are looked for: in folders of records, or as the first of each tuple of paths that is there."""

    private: bool
    folders: tuple[_Folder, ...]
    paths: tuple[tuple[Path, ...], ...]

    @classmethod
    def of(cls, pattern: str, workspace: Workspace, max_records: int) -> _Pattern:
        pattern = pattern.removeprefix(IMPORTS)
        if pattern.startswith(NESTED):  # where to look is told with each snapshot
            return cls(False, (), ())
        private = pattern.startswith(USER)
        names = pattern.removeprefix(USER).removeprefix(CHAIN)
        root = workspace.user_dir if private else workspace.root
        tops = workspace.chain() if pattern.startswith(CHAIN) else (root,)
        if "*" not in names:
            return cls(private, (), tuple(tuple(top / name for name in names.split("|")) for top in tops))
        folder, _, ending = names.partition("*")
        return cls(private, tuple(_Folder(top / folder, ending, max_records) for top in tops), ())

    @property
    def unread(self) -> int:
        return sum(folder.unread for folder in self.folders)


def _look(name: str) -> _Look:
    try:
        look: _Look = _LOOK_AT(os.stat(name))  # noqa: PTH116 (a Path costs as much again)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return ()
    return look


def _is_proof(look: _Look, file: StateFile | None, now: float) -> bool:
    """Whether ``file`` is what is there for as long as ``look`` stays equal."""
    if not look or file is None:
        return look is None and file is None
    return file.problem is None and not is_racy(Signature(*look), now)
