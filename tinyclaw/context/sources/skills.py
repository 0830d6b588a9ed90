"""The catalog of skills: one line a skill, by name and description (https://agentskills.io/specification).

A skill that is found twice is taken from the nearest place. One whose frontmatter is broken is
listed with what can be read of it. What is wrong is said to the person.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tinyclaw.context.source import Piece, SourceContext, source
from tinyclaw.state.documents import Document
from tinyclaw.state.files import revision_of
from tinyclaw.state.snapshot import StateFile

_PATTERNS = ("skills/*/SKILL.md", ".agents/skills/*/SKILL.md", ".claude/skills/*/SKILL.md", "user:skills/*/SKILL.md")
_MAX_DESCRIPTION = 300
_MAX_FAULTS = 3
_HEADING = "# Skills\n\nRead a skill's SKILL.md before you do what it is for.\n"


@dataclass(frozen=True)
class _Skill:
    """A skill's name, its line in the catalog, and what is wrong with it, if anything."""

    name: str
    line: str
    fault: str = ""


@source(placement="prefix", priority=30, watches=_PATTERNS, order=30)
def skills(context: SourceContext) -> Iterator[Piece]:
    """The catalog of skills."""
    files = tuple(context.snapshot.files(*_PATTERNS))
    unread = sum(context.snapshot.unread.get(pattern, 0) for pattern in _PATTERNS)
    if files:
        yield _catalog(files, unread, context.limits.catalog_bytes)


@lru_cache(maxsize=8)
def _catalog(files: tuple[StateFile, ...], unread: int, limit_bytes: int) -> Piece:
    found: dict[str, _Skill] = {}
    faults: list[str] = []
    for file in files:
        skill = _skill(file)
        if skill.name in found:
            faults.append(f"{file.path}: is hidden by the nearer skill of the same name, {skill.name}")
            continue
        found[skill.name] = skill
        faults += [skill.fault] if skill.fault else []
    lines = [found[name].line for name in sorted(found)]
    shown = _fitting(lines, limit_bytes - len(_HEADING))
    hidden = len(lines) - len(shown) + unread
    left_out = [f"{hidden} of {len(lines) + unread} skills do not fit here"] if hidden else []
    more = [f"[{left_out[0]}; list the skill folders to see them.]"] if left_out else []
    text = "\n".join([_HEADING, *shown, *more])
    private = any(file.private for file in files)
    note = "; ".join([*left_out, *_shortened(faults)])
    return Piece("skills", text, "(skills)", revision_of(text.encode()), note=note, private=private)


def _fitting(lines: list[str], room_bytes: int) -> list[str]:
    for index, line in enumerate(lines):
        room_bytes -= len(line.encode()) + 1
        if room_bytes < 0:
            return lines[:index]
    return lines


def _shortened(faults: list[str]) -> list[str]:
    hidden = len(faults) - _MAX_FAULTS
    return faults if hidden <= 0 else [*faults[:_MAX_FAULTS], f"and {hidden} more; tinyclaw doctor lists them"]


@lru_cache(maxsize=4096)
def _skill(file: StateFile) -> _Skill:
    folder = file.path.split("/")[-2]
    if file.problem is not None and not file.text:
        return _Skill(folder, f"- {folder} ({file.path}): {file.problem.message}", str(file.problem))
    document = Document.parse(file.text.encode(), file.path)
    name = document.string("name", folder)
    words = " ".join(document.string("description").split())
    faults = [str(problem) for problem in document.diagnostics]
    if not words:
        faults.append(f"{file.path}: has no description")
    if len(words) > _MAX_DESCRIPTION:
        words = words[: _MAX_DESCRIPTION - 1] + "…"
    line = f"- {' '.join(name.split())} ({file.path}): {words or 'no description; see the file'}"
    return _Skill(name, line, faults[0] if faults else "")
