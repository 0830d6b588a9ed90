"""What a record about code rests on: files of the workspace, or lines of them, with a hash of what they said.

A record whose evidence says something else now may be wrong; one whose evidence is gone most likely is. Lines that
have only moved still hold.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tinyclaw.errors import StateError
from tinyclaw.state.files import read
from tinyclaw.state.workspace import INSTRUCTIONS, OUTPUTS, OWN_FOLDER, PLAN, TODO, TRANSCRIPTS

Standing = Literal["holds", "changed", "missing"]

_MOST = 6
_MAX_BYTES = 1 << 20
_DIGEST_CHARS = 12
_LINES = re.compile(r"([1-9]\d{0,8})(?:-([1-9]\d{0,8}))?")
_DIGEST = re.compile(r"[0-9a-f]{8,64}")
_MAX_CHARS = 500
_PATH = re.compile(
    r"(?<![\w/@.:-])(?P<path>(?:\./)?\.?[\w-][\w.-]*(?:/[\w.-]+)*)(?::(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?)?"
)
_NAME = re.compile(r"`([A-Za-z_]\w{2,})(?:\(\))?`")
_DEFINES = re.compile(
    r"\b(?:def|class|fn|func|function|const|let|var|type|interface|struct|enum|trait|module|macro|define|static)\b"
)
_CLOSES = re.compile(r"\s*(?:[}\])]|end\b)")
_MOST_LINES = 100
_MOST_COMPARED = 300_000
"""Lines that are hashed to find some that have moved; more than so many are looked for in their own place alone."""
_LIVING = (".git", ".memory", OWN_FOLDER, OUTPUTS, TRANSCRIPTS, PLAN, TODO, INSTRUCTIONS, "CLAUDE.md")
"""What changes with every session is no evidence of anything."""


@dataclass(frozen=True)
class Evidence:
    """A file, or its lines from ``first`` to ``last`` (0: all of it), and a hash of what they said.

    Without a hash it only has to be there.
    """

    path: str
    first: int = 0
    last: int = 0
    digest: str = ""

    @classmethod
    def parse(cls, text: str) -> Evidence | None:
        """Read ``path``, ``path:line`` or ``path:first-last``, with the hash behind it; None where it is none.

        A path has no colon.
        """
        text = text.strip()[:_MAX_CHARS]
        place, _, last = text.rpartition(" ")
        place, digest = (place.strip(), last) if _DIGEST.fullmatch(last) else (text, "")
        path, colon, lines = place.partition(":")
        found = _LINES.fullmatch(lines)
        if not path or (colon and found is None):
            return None
        first = int(found[1]) if found else 0
        return cls(path, first, max(first, int(found[2] or 0)) if found else 0, digest)

    def __str__(self) -> str:
        return f"{self.place} {self.digest}".strip()

    @property
    def place(self) -> str:
        """The file, and the lines as far as only some are meant."""
        if not self.first:
            return self.path
        return f"{self.path}:{self.first}" + (f"-{self.last}" if self.last > self.first else "")

    def standing(self, root: Path) -> Standing:
        """Whether the workspace still says what it said."""
        file = _file(root, self.path)
        if file is None:
            return "missing"
        text = _text(file) if self.digest else None
        if text is None:
            return "holds"
        lines = [line.strip() for line in text.split("\n")]
        if not self.first:
            return "holds" if _digest(lines).startswith(self.digest) else "changed"
        count = self.last - self.first + 1
        elsewhere = range(len(lines) - count + 1) if count * len(lines) <= _MOST_COMPARED else ()
        is_there = any(_digest(lines[at : at + count]).startswith(self.digest) for at in (self.first - 1, *elsewhere))
        return "holds" if is_there else "changed"

    def renewed(self, root: Path) -> Evidence:
        """The same of what the workspace says now; itself where there is nothing to read."""
        file = _file(root, self.path)
        text = _text(file) if file else None
        return self if text is None else _pinned(self.path, text, self.first, self.last)


def doubt(standing: Standing, place: str) -> str:
    """What is doubtful, as a clause; "" where all holds."""
    return {"changed": f"{place} changed since", "missing": f"{place} is gone"}.get(standing, "")


class Standings:
    """How what records rest on stands now; a file is read again only where its signature says so."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[Evidence, tuple[object, Standing]] = {}

    def doubts(self, evidence: Sequence[Evidence]) -> tuple[Standing, str]:
        """The worst standing, and where: what changed or is gone."""
        found: dict[Standing, list[str]] = {}
        for each in evidence:
            found.setdefault(self._standing(each), []).append(each.place)
        worst: Standing = "missing" if "missing" in found else "changed" if "changed" in found else "holds"
        return worst, ", ".join(found.get(worst, []))

    def look(self, path: str) -> object:
        """The signature of a file of the workspace; None where there is none."""
        try:
            status = (self._root / path).stat()
        except (OSError, ValueError):
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def _standing(self, evidence: Evidence) -> Standing:
        look = self.look(evidence.path)
        known = self._known.get(evidence)
        if known is None or known[0] != look:
            known = self._known[evidence] = (look, evidence.standing(self._root))
        return known[1]


def evidence_in(text: str, root: Path) -> list[Evidence]:
    """The files of the workspace that a text names, as they are now.

    A file is pinned by the lines that are given with it (``src/a.py:10-12``), else by the lines where it defines the
    names that the text has in backticks, with what belongs to the definition, else as a whole.
    """
    names = list(dict.fromkeys(_NAME.findall(text)))
    found: dict[tuple[str, int], Evidence] = {}
    for match in _PATH.finditer(text):
        path = match["path"].rstrip(".").removeprefix("./")
        if not _may_be_file(path):
            continue
        file = _file(root, path)
        content = _text(file) if file else None
        if content is not None:
            first = int(match["first"] or 0)
            for each in _pins(path, content, first, int(match["last"] or first), names):
                found.setdefault((each.path, each.first), each)
    return list(found.values())[:_MOST]


def _may_be_file(path: str) -> bool:
    parts = path.split("/")
    is_word = len(parts) == 1 and "." not in path and not path[0].isupper()  # but Makefile is one
    return not is_word and parts[0] not in _LIVING and parts[-1] not in _LIVING


def _pins(path: str, content: str, first: int, last: int, names: Sequence[str]) -> Iterator[Evidence]:
    lines = content.split("\n")
    if 0 < first <= last <= len(lines):
        yield _pinned(path, content, first, last)
        return
    places = [place for name in names if (place := _defined(lines, name))]
    yield from (_pinned(path, content, *place) for place in places)
    if not places:
        yield _pinned(path, content, 0, 0)


def _defined(lines: Sequence[str], name: str) -> tuple[int, int] | None:
    """The first and last line of what defines a name, else the first line that has it; None when there is none."""
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    having = [number for number, line in enumerate(lines, start=1) if word.search(line)]
    defining = next((number for number in having if _DEFINES.search(lines[number - 1].partition(name)[0])), 0)
    if defining:
        return defining, _end(lines, defining)
    return (having[0], having[0]) if having else None


def _end(lines: Sequence[str], first: int) -> int:
    """The last line of what begins in line ``first``: what is indented below it, and a line that closes it."""
    depth, last = _depth(lines[first - 1]), first
    for number, line in enumerate(lines[first:], start=first + 1):
        if line.strip() and _depth(line) <= depth:
            return number if _CLOSES.match(line) else last
        if number - first >= _MOST_LINES:
            return last
        last = number if line.strip() else last
    return last


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _pinned(path: str, content: str, first: int, last: int) -> Evidence:
    lines = content.split("\n")
    said = lines[first - 1 : last] if first else lines
    return Evidence(path, first, last, _digest(said)[:_DIGEST_CHARS])


def _digest(lines: Sequence[str]) -> str:
    """Indentation and blanks at a line's end do not count: a formatter changes no fact."""
    return hashlib.sha256("\n".join(line.strip() for line in lines).encode()).hexdigest()


def _file(root: Path, path: str) -> Path | None:
    """A regular file in the workspace; None where there is none. No link is followed out of it."""
    try:
        real = Path(os.path.realpath(root / path))
        return real if real.is_relative_to(os.path.realpath(root)) and real.is_file() else None
    except (OSError, ValueError):  # no name that a file can have
        return None


def _text(file: Path) -> str | None:
    """None where it cannot be read, or is too large to be."""
    try:
        data = read(file, limit_bytes=_MAX_BYTES).data
    except StateError:
        return None
    return None if data is None else data.decode("utf-8", "replace").replace("\r\n", "\n")
