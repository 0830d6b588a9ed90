"""Load a skill: its text and its files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from tinyclaw.errors import StateError, ToolError
from tinyclaw.state.files import FileRead, read
from tinyclaw.state.skills import Skill
from tinyclaw.state.snapshot import MAX_STATE_BYTES
from tinyclaw.tools._base import ToolContext, tool
from tinyclaw.tools._pages import PAGE_BYTES
from tinyclaw.tools._skills import found, place_of, resources
from tinyclaw.tools._text import decode, describe_binary, is_binary
from tinyclaw.tools._text import shown as text_shown
from tinyclaw.types import ToolOutput
from tinyclaw.width import one_line


@tool(effect="read")
def load_skill(
    ctx: ToolContext,
    name: Annotated[str, "as the catalog has it"],
    file: Annotated[str, "one of its files, to read that"] = "",
) -> ToolOutput:
    """Load a skill before you do what it is for. What it allows holds until this turn ends."""
    skill = found(ctx, name)
    folder = place_of(ctx, skill)
    if file.strip():
        return _file(ctx, skill, folder, file.strip())
    there = _read(folder / skill.path.rpartition("/")[2])
    if not skill.private and there.revision == skill.revision:
        ctx.ledger.note(skill.path, there)
    text = "\n".join([*_head(ctx, skill, folder), "", skill.body])
    return _output(skill, text, skill.path, {skill.path: skill.revision})


def _head(ctx: ToolContext, skill: Skill, folder: Path) -> Iterator[str]:
    place = str(folder) if skill.private else skill.folder
    yield f"Skill {skill.name} ({one_line(skill.path)})"
    yield f"Its folder is {one_line(place)}; paths in its text are relative to that."
    files, is_cut = resources(folder)
    if files:
        more = ", and more" if is_cut else ""
        yield f"Files (load_skill with file reads one): {', '.join(map(one_line, files))}{more}"
    if skill.allowed is not None:
        allowed = ", ".join(skill.allowed) or "no tool"
        yield f"Until this turn ends it allows, besides load_skill, only: {ctx.mask(one_line(allowed))}"


def _file(ctx: ToolContext, skill: Skill, folder: Path, name: str) -> ToolOutput:
    """One file of the skill. Raises: ToolError."""
    shown = f"{skill.folder}/{name}"
    path = folder / name
    if "\0" in name or Path(name).is_absolute() or not Path(os.path.realpath(path)).is_relative_to(folder):
        raise ToolError(f"{name!r} leads out of the folder of the skill {skill.name}; only files in it can be loaded.")
    there = _read(path)
    if there.data is None:
        files = ", ".join(map(one_line, resources(folder)[0]))
        raise ToolError(f"the skill {skill.name} has no file {name!r}; it has {files or 'none'}.")
    if is_binary(there.data):
        raise ToolError(f"{one_line(shown)}: {describe_binary(there.data)}. It cannot be shown as text; use bash.")
    inside = Path(os.path.realpath(path))
    if not skill.private:
        ctx.ledger.note(ctx.workspace.relative(inside), there)
    known = {} if skill.private else {ctx.workspace.relative(inside): there.revision}
    return _output(skill, ctx.mask(text_shown(decode(there.data).text)), shown, known)


def _read(path: Path) -> FileRead:
    try:
        return read(path, limit_bytes=MAX_STATE_BYTES)
    except StateError as error:
        raise ToolError(str(error)) from error


def _output(skill: Skill, text: str, shown: str, revisions: dict[str, str]) -> ToolOutput:
    return ToolOutput(
        text,
        revisions=revisions,
        paged=len(text.encode("utf-8", "replace")) <= PAGE_BYTES,
        summary=one_line(shown),
        skill=skill.path,
        allowed=skill.allowed,
    )
