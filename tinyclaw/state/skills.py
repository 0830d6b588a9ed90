"""Skills by the Agent Skills spec (https://agentskills.io/specification): folders with a SKILL.md.

They are loaded leniently: what can be read of a skill is used, and what is wrong with it is said once. Only what
restricts fails closed: ``allowed-tools`` that cannot be understood allow nothing. A skill's identity is its name, which
is never used as a path; of several with one name the nearest counts. ``skill_check`` has the strict rules.
"""

from __future__ import annotations

import os
import re
import time
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

from tinyclaw.state._allowed_tools import allowed_tools
from tinyclaw.state.documents import Document
from tinyclaw.state.live import LiveFiles
from tinyclaw.state.snapshot import CHAIN, MAX_STATE_BYTES, USER, Snapshot, SnapshotReader, StateFile
from tinyclaw.state.workspace import Workspace
from tinyclaw.types import Diagnostic
from tinyclaw.width import one_line

PLACES = ("skills", ".agents/skills", ".claude/skills")
"""The folders of skills in each folder from the root to where we work, in the order in which they count."""
FILE_NAMES = ("SKILL.md", "skill.md")
MAX_NAME = 64

_FOLDERS = (*(CHAIN + place for place in PLACES), f"{USER}skills")
_SKILLS = tuple(f"{folder}/*/{'|'.join(FILE_NAMES)}" for folder in _FOLDERS)
_MISPLACED = tuple(folder + "/" + f"|{folder.rpartition(':')[2]}/".join(FILE_NAMES) for folder in _FOLDERS)
PATTERNS = (*_SKILLS, *_MISPLACED)
"""What a snapshot must hold for ``catalog_of``."""

_MOST_FOUND = 10_000
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Skill:
    """A skill as its file says. ``path`` is that of SKILL.md as people write it: from the root, or ``~/…``.

    ``allowed`` are the entries of ``allowed-tools``: None where the skill restricts nothing, empty where no tool is
    allowed. ``problem`` says why the file cannot be read at all.
    """

    name: str
    description: str
    path: str
    body: str
    private: bool = False
    revision: str = ""
    allowed: tuple[str, ...] | None = None
    problem: Diagnostic | None = None
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def folder(self) -> str:
        """Its folder, written as ``path`` is."""
        return self.path.rpartition("/")[0]


@dataclass(frozen=True, eq=False)
class Catalog:
    """The skills of a workspace, the nearest first and each name once; ``hidden`` have a name that a nearer one has.

    ``collisions`` say which, ``misplaced`` what looks like a skill and is none. ``unread``: so many more are there.
    Compared by identity.
    """

    skills: tuple[Skill, ...] = ()
    hidden: tuple[Skill, ...] = ()
    collisions: tuple[Diagnostic, ...] = ()
    misplaced: tuple[Diagnostic, ...] = ()
    unread: int = 0
    _named: dict[str, Skill] = field(default_factory=dict, repr=False)

    @property
    def faults(self) -> tuple[Diagnostic, ...]:
        """Everything that is wrong."""
        own = (problem for skill in (*self.skills, *self.hidden) for problem in skill.diagnostics)
        return (*own, *self.collisions, *self.misplaced)

    def find(self, name: str) -> Skill | None:
        """The skill of that name, in whatever case."""
        return self._named.get(_identity(name))

    def near(self, text: str) -> Iterator[Skill]:
        """The skills whose names are like ``text`` or that have one of its words, the likeliest first."""
        wanted, words = _identity(text), set(_WORD.findall(text.casefold()))
        alike = get_close_matches(wanted, self._named, n=5)
        scores = {
            skill.name: len(words & set(_WORD.findall(f"{skill.name} {skill.description}".casefold())))
            for skill in self.skills
        }
        seen: set[str] = set()
        by_words = sorted((skill for skill in self.skills if scores[skill.name]), key=lambda skill: -scores[skill.name])
        for skill in [*(self._named[name] for name in alike), *by_words]:
            if skill.name not in seen:
                seen.add(skill.name)
                yield skill


def find_skills(workspace: Workspace, mask: Callable[[str], str]) -> Catalog:
    """All skills that are there now. Reads every one of them: not for the path of a request."""
    live = LiveFiles(time.time, lambda seconds: None, limit_bytes=MAX_STATE_BYTES)
    reader = SnapshotReader(workspace, live, mask, PATTERNS, time.time, max_records=_MOST_FOUND)
    catalog = catalog_of(reader.take({}))
    dangling = tuple(fault for path, shown in skill_folders(workspace) for fault in _dangling(path, shown))
    return replace(catalog, misplaced=(*catalog.misplaced, *dangling))


def skill_folders(workspace: Workspace) -> Iterator[tuple[Path, str]]:
    """Every folder, or link, in which a skill is looked for, nearest first, and how it is called."""
    for base in reversed(workspace.chain()):
        for place in PLACES:
            yield from ((path, workspace.relative(path)) for path in listed(base / place))
    for path in listed(workspace.user_dir / "skills"):
        yield path, f"~/{path.relative_to(workspace.user_dir).as_posix()}"


def listed(place: Path) -> list[Path]:
    """The folders in ``place``, and the links, by name; hidden ones left out."""
    try:
        with os.scandir(place) as entries:
            names = sorted(each.name for each in entries if each.is_dir(follow_symlinks=False) or each.is_symlink())
    except OSError:
        return []
    return [place / name for name in names if not name.startswith(".")]


def _dangling(folder: Path, shown: str) -> Iterator[Diagnostic]:
    names = {folder: shown, **{folder / name: f"{shown}/{name}" for name in FILE_NAMES}}
    for path, name in names.items():
        if path.is_symlink() and not os.path.lexists(os.path.realpath(path)):
            yield Diagnostic(one_line(name), None, "is a link that leads nowhere", "mend or delete the link")


def catalog_of(snapshot: Snapshot) -> Catalog:
    """The skills among the files of a snapshot that was taken with ``PATTERNS``. Pure."""
    unread = sum(snapshot.unread.get(pattern, 0) for pattern in _SKILLS)
    files = {file.path: file for file in snapshot.files(*_SKILLS)}
    return _catalog(tuple(files.values()), tuple(snapshot.files(*_MISPLACED)), unread)


@lru_cache(maxsize=8)
def _catalog(files: tuple[StateFile, ...], misplaced: tuple[StateFile, ...], unread: int) -> Catalog:
    named: dict[str, Skill] = {}
    hidden: list[Skill] = []
    collisions: list[Diagnostic] = []
    for skill in sorted(map(skill_of, files), key=_rank):
        first = named.setdefault(_identity(skill.name), skill)
        if first is not skill:
            hidden.append(skill)
            message = f'is hidden by {one_line(first.path)}, which has the same name, "{first.name}", and comes first'
            collisions.append(Diagnostic(one_line(skill.path), None, message, "give one another name"))
    return Catalog(
        skills=tuple(named.values()),
        hidden=tuple(hidden),
        collisions=tuple(collisions),
        misplaced=tuple(map(_misplaced, misplaced)),
        unread=unread,
        _named=named,
    )


def _misplaced(file: StateFile) -> Diagnostic:
    place = one_line(file.path.rpartition("/")[0])
    message = "is in no folder of its own, so it is no skill"
    return Diagnostic(one_line(file.path), None, message, f"move it to {place}/NAME/SKILL.md")


@lru_cache(maxsize=4096)
def skill_of(file: StateFile) -> Skill:
    """The skill in a file. What is wrong with it stands in its ``diagnostics``."""
    folder = one_line(file.path.split("/")[-2])
    if file.problem is not None and not file.text:
        problem = replace(file.problem, path=one_line(file.path))
        return Skill(folder, "", file.path, "", file.private, file.revision, (), problem, (problem,))
    document = Document.parse(file.text.encode(), one_line(file.path))
    allowed = allowed_tools(document)
    if document.fields:
        name = _name(document, folder)
        if "description" not in document.fields:
            document.complain("description", "has no description", 'write "description: …" into its frontmatter')
    else:
        name = folder
        if not document.diagnostics:
            mend = "begin the file with ---, name: and description: lines, and another ---"
            document.diagnostics.append(Diagnostic(document.name, 1, "has no frontmatter", mend))
    description = " ".join(document.string("description").split())
    return Skill(
        name=name,
        description=description,
        path=file.path,
        body=document.body.strip("\n"),
        private=file.private,
        revision=file.revision,
        allowed=allowed,
        diagnostics=(*([file.problem] if file.problem else []), *document.diagnostics),
    )


def name_faults(name: str) -> list[str]:
    """Everything in which ``name`` breaks the spec's rules for names, as clauses."""
    faults = []
    if len(name) > MAX_NAME:
        faults.append(f"has {len(name)} characters, the limit is {MAX_NAME}")
    if name != name.lower():
        faults.append("is not in lower case")
    if name.startswith("-") or name.endswith("-"):
        faults.append("begins or ends with a hyphen")
    if "--" in name:
        faults.append("has two hyphens side by side")
    if not all(char.isalnum() or char == "-" for char in name):
        faults.append("has other characters than letters, digits and hyphens")
    return faults


def normal(name: str) -> str:
    """A name as names are compared."""
    return unicodedata.normalize("NFKC", name.strip())


def _identity(name: str) -> str:
    return normal(name).casefold()


def _rank(skill: Skill) -> tuple[bool, int, int]:
    """The nearer folder first, then the places in their order, the user level last; otherwise as they were found."""
    parent = skill.path.rsplit("/", 2)[0]
    place = max((place for place in PLACES if f"/{parent}".endswith(f"/{place}")), key=len, default="")
    base = parent.removesuffix(place).rstrip("/")
    return skill.private, -len(base.split("/")) if base else 0, PLACES.index(place) if place else len(PLACES)


def _name(document: Document, folder: str) -> str:
    """The name in the header where it may be one, otherwise the folder's."""
    written = document.string("name")
    if not written:
        if "name" not in document.fields:
            document.complain("name", "has no name, so its folder's counts", f'write "name: {folder}"')
        return folder
    name = normal(written)
    if faults := name_faults(name):
        shown = one_line(written)
        shown = shown if len(shown) <= MAX_NAME else f"{shown[:MAX_NAME]}…"
        mend = "use lower-case letters, digits and single hyphens"
        document.complain("name", f'the name "{shown}" {faults[0]}, so the folder\'s counts, "{folder}"', mend)
        return folder
    if name != normal(folder):
        document.complain("name", f'is called "{name}" and its folder "{folder}"', "give both the same name")
    return name
