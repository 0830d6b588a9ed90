"""Follow imports from file to file: each file once, to a depth, inside its own tree, and no more than can be read."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from tinyclaw.state.imports import Import
from tinyclaw.state.workspace import OUTPUTS, OWN_FOLDER, TRANSCRIPTS, Workspace
from tinyclaw.types import Diagnostic

if TYPE_CHECKING:
    from tinyclaw.state.snapshot import StateFile

MAX_DEPTH = 5
MAX_IMPORTS = 100
"""So many names are looked up for one snapshot, whether they are there or not; each costs a stat."""
MAX_BYTES = 1 << 20
"""What imported files may hold together; the prompt has room for much less."""
_CLOSED = frozenset({".git", TRANSCRIPTS, OUTPUTS, OWN_FOLDER})
_TOO_MANY = f"and what follows is not read: at most {MAX_IMPORTS} imports with {MAX_BYTES:,} bytes are read in all"
_AS_TEXT = "correct it, or write it in backticks if it is no import"


class Importing:
    """The imports of one snapshot.

    ``read`` gives the file at a path, None where there is none. ``stated`` are the real places of files that enter the
    prompt by themselves: importing those says nothing new. ``is_ignored`` says of a file of the workspace whether git
    ignores it.

    Attributes:
        importers: who imported a file, by path.
        faults: imports that are left out, and why.
    """

    def __init__(
        self,
        workspace: Workspace,
        read: Callable[[Path, bool], StateFile | None],
        stated: Iterable[str],
        is_ignored: Callable[[StateFile], bool],
    ) -> None:
        self.importers: dict[str, str] = {}
        self.faults: list[Diagnostic] = []
        self._workspace = workspace
        self._read = read
        self._places = set(stated)
        self._is_ignored = is_ignored
        self._left = MAX_IMPORTS
        self._left_bytes = MAX_BYTES

    def claim(self, file: StateFile) -> bool:
        """Whether this is the first file of its place."""
        is_first = file.place not in self._places
        self._places.add(file.place)
        return is_first

    def of(self, file: StateFile, depth: int = 1) -> Iterator[StateFile]:
        """What ``file`` imports, each file after those that it imports itself."""
        for each in file.imports:
            top = self._workspace.user_dir if file.private else self._workspace.root
            path = _path(top, file.path, each.name, is_private=file.private)
            if path is not None and str(path) in self._places:
                continue
            if self._left <= 0 or self._left_bytes <= 0:
                self.faults.append(Diagnostic(file.path, each.line, f"@{each.name} {_TOO_MANY}", "import less"))
                return
            self._left -= 1
            found = self._follow(file, each, path, depth)
            if found is not None:
                self.importers[found.path] = file.path
                yield from self.of(found, depth + 1)
                yield found

    def _follow(self, file: StateFile, what: Import, path: Path | None, depth: int) -> StateFile | None:
        """The file that an import brings in; None when it brings in nothing new, or nothing that can be read."""
        found = self._read(path, file.private) if path is not None and depth <= MAX_DEPTH else None
        if fault := self._fault(path, depth, found):
            if what.is_sure or found is not None:
                self.faults.append(Diagnostic(file.path, what.line, f"@{what.name} {fault}", _AS_TEXT))
            return None
        if found is None or not self.claim(found):
            return None
        self._left_bytes -= found.size
        return found

    def _fault(self, path: Path | None, depth: int, found: StateFile | None) -> str:
        """Why what was ``found`` is not imported, "" when it is."""
        if path is None:
            return "is outside of the folder that imports may come from, and is not read"
        if depth > MAX_DEPTH:
            return f"is not read: imports are followed {MAX_DEPTH} files deep"
        if found is None:
            return "is not there"
        if found.problem is not None and not found.text:
            return found.problem.message.removesuffix("; move it away")
        if found.private:
            return ""
        if _CLOSED & set(Path(found.place).relative_to(self._workspace.root).parts):
            return "lies in a folder of git's or tinyclaw's own, and is not read"
        return "is ignored by git, and is not read" if self._is_ignored(found) else ""


@lru_cache(maxsize=1024)
def _path(top: Path, importer: str, name: str, *, is_private: bool) -> Path | None:
    """What a name means, from the folder of the file that has it; None when that is outside of ``top``.

    ``top`` is the workspace or, for a file of the user level, the user-level folder, which ``~/`` names in both.
    """
    folder = PurePosixPath(importer.removeprefix("~/") if is_private else importer).parent
    if name.startswith("~/"):
        folder, name = PurePosixPath(), name[2:] if is_private else ".."
    place = Path(posixpath.normpath(posixpath.join(str(top), str(folder), name)))
    return place if place.is_relative_to(top) else None
