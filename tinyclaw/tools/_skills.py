"""What a skill gives and what it restricts: its files, and which calls its ``allowed-tools`` let through.

An entry is the name of a tool, or that of bash with the words that a command must be or begin with: ``Bash(git:*)``.
Whatever is more than one simple command, and whatever is not understood, is not let through.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tinyclaw.errors import ToolError
from tinyclaw.state.skills import FILE_NAMES, Catalog, Skill, find_skills
from tinyclaw.tools._base import ToolContext
from tinyclaw.types import Diagnostic
from tinyclaw.width import one_line

LOAD_SKILL = "load_skill"
_NEAR = 5
_NEAR_CHARS = 120
_MOST_FILES = 50
_MOST_LOOKED_AT = 2_000
_MOST_LEVELS = 4
_ENTRY = re.compile(r"([^()]+)(?:\(([^()]*)\))?")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[.*\])?\+?=")
_MORE_THAN_WORDS = frozenset(";&|<>()$`")


def found(ctx: ToolContext, name: str) -> Skill:
    """The skill of that name. Raises: ToolError that names those which come near, or says why it cannot be read."""
    catalog = find_skills(ctx.workspace, ctx.mask)
    skill = catalog.find(name)
    if skill is None:
        raise ToolError(f"no skill is called {name!r}. {_near(catalog, name)}")
    if skill.problem is not None:
        raise ToolError(f"the skill {skill.name} cannot be read: {skill.problem}")
    return skill


def _near(catalog: Catalog, name: str) -> str:
    lines = []
    for skill in catalog.near(name):
        words = skill.description
        lines.append(f"- {skill.name}: {words if len(words) <= _NEAR_CHARS else words[: _NEAR_CHARS - 1] + '…'}")
    if not lines:
        names = ", ".join(skill.name for skill in catalog.skills[:_NEAR])
        return f"There are {len(catalog.skills)} skills{f', {names} among them' if names else ''}."
    more = f"\n({len(lines) - _NEAR} more; give other words)" if len(lines) > _NEAR else ""
    return "Near it are:\n" + "\n".join(lines[:_NEAR]) + more


def place_of(ctx: ToolContext, skill: Skill) -> Path:
    """The skill's folder on disk, links resolved."""
    top = ctx.workspace.user_dir if skill.private else ctx.workspace.root
    return Path(os.path.realpath(top / skill.folder.removeprefix("~/")))


def resources(folder: Path) -> tuple[list[str], bool]:
    """The files beside SKILL.md, and whether there may be more. Hidden files and links that lead out are left out."""
    files: list[str] = []
    looked_at = 0
    for at, below, names in os.walk(folder):
        level = len(Path(at).relative_to(folder).parts)
        below[:] = sorted(name for name in below if not name.startswith(".")) if level < _MOST_LEVELS else []
        for name in sorted(names):
            path = Path(at) / name
            if name.startswith(".") or (level == 0 and name in FILE_NAMES):
                continue
            if Path(os.path.realpath(path)).is_relative_to(folder):
                files.append(path.relative_to(folder).as_posix())
        looked_at += len(names) + len(below)
        if looked_at > _MOST_LOOKED_AT or len(files) > _MOST_FILES:
            return files[:_MOST_FILES], True
    return files, False


# What is let through


def allows(entries: Iterable[str], name: str, arguments: Mapping[str, Any]) -> bool:
    """Whether one of the entries of ``allowed-tools`` lets this call through."""
    return name == LOAD_SKILL or any(_lets_through(entry, name, arguments) for entry in entries)


def has_pattern(entries: Iterable[str], name: str) -> bool:
    """Whether one of the entries allows the tool of that name for some of its calls only."""
    parts = filter(None, map(_ENTRY.fullmatch, entries))
    return any(each[1].casefold() == name.casefold() and each[2] not in (None, "*") for each in parts)


def foreign_tools(skill: Skill, known: Iterable[str]) -> Diagnostic | None:
    """A note about entries of ``allowed-tools`` that name none of the ``known`` tools; they let nothing through."""
    ours = {name.casefold() for name in known}
    names = dict.fromkeys(entry.partition("(")[0] for entry in skill.allowed or ())
    foreign = [one_line(name)[:_NEAR_CHARS] for name in names if name.casefold() not in ours]
    if not foreign:
        return None
    message = f"allows {'a tool that is' if len(foreign) == 1 else 'tools that are'} not here: {', '.join(foreign)}"
    return Diagnostic(one_line(skill.path), None, message, "correct it where a tool of tinyclaw's is meant")


def _lets_through(entry: str, name: str, arguments: Mapping[str, Any]) -> bool:
    parts = _ENTRY.fullmatch(entry)
    if parts is None or parts[1].casefold() != name.casefold() or not _is_understood(parts[1], parts[2]):
        return False
    if parts[2] in (None, "*"):
        return True
    command = arguments.get("command")
    words = simple_command(command) if isinstance(command, str) else None
    wanted = _words(parts[2])
    return words is not None and (words[: len(wanted)] == wanted if parts[2].endswith("*") else words == wanted)


def _is_understood(name: str, pattern: str | None) -> bool:
    if pattern in (None, "*"):
        return True
    words = _words(pattern)
    return name.casefold() == "bash" and bool(words) and not any("*" in word for word in words)


def _words(pattern: str) -> list[str]:
    """The words before ``:*`` or `` *`` at the end of a pattern; all of them where it has no such end."""
    return (pattern[:-2] if pattern.endswith((":*", " *")) else pattern).split()


def simple_command(command: str) -> list[str] | None:
    """The words of ``command`` if it is one simple command and nothing more; None in case of doubt.

    Then it has no separator, pipe, redirection, substitution, variable, line break or assignment.
    """
    quote = ""
    chars = iter(command)
    for char in chars:
        if char != "\t" and not char.isprintable():
            return None
        if char == "\\" and quote != "'":
            if not next(chars, "").isprintable():
                return None
        elif quote:
            if quote == '"' and char in "$`":
                return None
            quote = "" if char == quote else quote
        elif char in _MORE_THAN_WORDS:
            return None
        elif char in "'\"":
            quote = char
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    return words if words and not _ASSIGNMENT.match(words[0]) else None
