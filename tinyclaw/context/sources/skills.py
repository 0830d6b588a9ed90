"""The catalog of skills: one line a skill, by name and description (https://agentskills.io/specification).

What is wrong with skills is said to the person. Where the catalog has more than its bytes, descriptions are shortened
before skills fall out, and of skills the farthest go first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from tinyclaw.context.source import Piece, SourceContext, source
from tinyclaw.state.files import revision_of
from tinyclaw.state.skills import PATTERNS, Catalog, Skill, catalog_of
from tinyclaw.types import Diagnostic

_DESCRIPTIONS = (1024, 512, 256, 120, 60)
"""Characters of a description, in steps: one skill more shall not change the line of every other."""
_MAX_FAULTS = 3
_HEADING = "# Skills\n\nBefore you do what a skill is for, call load_skill with its name and follow it.\n"


@source(placement="prefix", priority=30, watches=PATTERNS, order=30)
def skills(context: SourceContext) -> Iterator[Piece]:
    """The catalog of skills."""
    catalog = catalog_of(context.snapshot)
    if catalog.skills or catalog.faults:
        yield _piece(catalog, context.limits.catalog_bytes)


@lru_cache(maxsize=8)
def _piece(catalog: Catalog, limit_bytes: int) -> Piece:
    shown, chars = _fitting(catalog.skills, limit_bytes - len(_HEADING))
    count = len(catalog.skills) + catalog.unread
    hidden = count - len(shown)
    more = [f"[{hidden} of {count} skills do not fit here; load_skill with a word finds them.]"] if hidden else []
    lines = [_line(skill, chars) for skill in sorted(shown, key=lambda skill: skill.name)]
    text = "\n".join([_HEADING, *lines, *more]) if count else ""
    left_out = [f"{hidden} of {count} skills do not fit here; see: tinyclaw skills list"] if hidden else []
    note = "; ".join([*left_out, *_shortened(catalog.faults)])
    private = any(skill.private for skill in shown)
    return Piece("skills", text, "(skills)", revision_of(text.encode()), note=note, private=private)


def _fitting(skills: Sequence[Skill], room_bytes: int) -> tuple[Sequence[Skill], int]:
    """As many of the skills, nearest first, as there is room for, and how long their descriptions may be."""
    sizes: list[int] = []
    for chars in _DESCRIPTIONS:
        sizes = [len(_line(skill, chars).encode()) + 1 for skill in skills]
        if sum(sizes) <= room_bytes:
            return skills, chars
    for index, size in enumerate(sizes):
        room_bytes -= size
        if room_bytes < 0:
            return skills[:index], chars
    return skills, chars


def _line(skill: Skill, chars: int) -> str:
    words = skill.description or "no description; load it to see"
    if skill.problem is not None:
        words = f"cannot be used: {skill.problem}"
    return f"- {skill.name}: {words if len(words) <= chars else words[: chars - 1] + '…'}"


def _shortened(faults: Sequence[Diagnostic]) -> list[str]:
    hidden = len(faults) - _MAX_FAULTS
    said = list(map(str, faults[:_MAX_FAULTS]))
    return said if hidden <= 0 else [*said, f"and {hidden} more; tinyclaw doctor lists them"]
