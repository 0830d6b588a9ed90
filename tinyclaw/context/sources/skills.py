"""The catalog of skills: one line a skill, by name and description (https://agentskills.io/specification).

A skill that is found twice is taken from the nearest place. One whose frontmatter is broken is
listed with what can be read of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from tinyclaw.context.source import Piece, SourceContext, source
from tinyclaw.state.documents import Document
from tinyclaw.state.files import revision_of
from tinyclaw.state.snapshot import StateFile

_PATTERNS = ("skills/*/SKILL.md", ".agents/skills/*/SKILL.md", ".claude/skills/*/SKILL.md", "user:skills/*/SKILL.md")
_MAX_DESCRIPTION = 300


@source(placement="prefix", priority=30, watches=_PATTERNS, order=30)
def skills(context: SourceContext) -> Iterator[Piece]:
    """The catalog of skills."""
    found: dict[str, str] = {}
    private = False
    for file in context.snapshot.files(*_PATTERNS):
        name, line = _entry(file)
        private = private or (name not in found and file.private)
        found.setdefault(name, line)
    if found:
        yield _catalog([found[name] for name in sorted(found)], context.limits.catalog_bytes, private)


def _catalog(lines: list[str], limit_bytes: int, private: bool) -> Piece:
    shown: list[str] = []
    used = 0
    for line in lines:
        used += len(line.encode()) + 1
        if used > limit_bytes:
            break
        shown.append(line)
    left_out = len(lines) - len(shown)
    note = f"{left_out} of {len(lines)} skills do not fit" if left_out else ""
    more = [f"[{note}; list the skill folders to see them]"] if left_out else []
    heading = "# Skills\n\nRead a skill's SKILL.md before you do what it is for.\n"
    text = "\n".join([heading, *shown, *more])
    return Piece("skills", text, "(skills)", revision_of(text.encode()), note=note, private=private)


@lru_cache(maxsize=4096)
def _entry(file: StateFile) -> tuple[str, str]:
    """The skill's name and its line in the catalog."""
    folder = file.path.split("/")[-2]
    document = Document.parse(file.text.encode(), file.path)
    name = document.fields.get("name")
    name = name if isinstance(name, str) and name.strip() else folder
    description = document.fields.get("description")
    words = " ".join(description.split()) if isinstance(description, str) else ""
    if len(words) > _MAX_DESCRIPTION:
        words = words[: _MAX_DESCRIPTION - 1] + "…"
    return name, f"- {name} ({file.path}): {words or 'no description; see the file'}"
