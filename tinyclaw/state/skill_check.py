"""The strict rules for skills: what the reference validator of the Agent Skills spec refuses, this refuses, too.

See https://agentskills.io/specification and https://pypi.org/project/skills-ref. ``state.skills`` loads leniently.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tinyclaw.errors import StateError
from tinyclaw.state.documents import StrictHead, read_strictly
from tinyclaw.state.files import read, revision_of
from tinyclaw.state.skills import FILE_NAMES, Skill, listed, name_faults, normal, skill_folders, skill_of
from tinyclaw.state.snapshot import MAX_STATE_BYTES, StateFile
from tinyclaw.state.workspace import Workspace
from tinyclaw.types import Diagnostic
from tinyclaw.width import one_line

MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500
FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")


class Verdict(NamedTuple):
    """What is wrong with a skill, and what is right but may not mean what its author thinks.

    ``skill`` is the skill as it is loaded, where nothing is wrong.
    """

    faults: tuple[Diagnostic, ...]
    notes: tuple[Diagnostic, ...] = ()
    skill: Skill | None = None


def validate(folder: Path, shown: str = "", within: Path | None = None) -> Verdict:
    """Check the skill in ``folder``, which is called ``shown`` in what is said. Never raises for a bad skill.

    A link that leads out of ``within`` is not followed.
    """
    shown = one_line(shown or str(folder))
    try:
        if not folder.exists() and not folder.is_symlink():
            return _refused(shown, "is not there", "give the folder of a skill")
        if not folder.is_dir():
            return _refused(shown, "is no folder", "give the folder of a skill, in which SKILL.md lies")
        path = next((folder / name for name in FILE_NAMES if (folder / name).exists()), None)
    except OSError as error:
        return _refused(shown, f"cannot be looked into ({error.strerror})", "give yourself the right to it")
    if path is None:
        return _refused(shown, "has no SKILL.md", "write one, with a name and a description")
    name = f"{shown}/{path.name}"
    if within is not None and not Path(os.path.realpath(path)).is_relative_to(within):
        return _refused(name, "is a link out of the workspace and is not followed", "put the skill here")
    try:
        data = read(path, limit_bytes=MAX_STATE_BYTES).data or b""
    except StateError as error:
        return _refused(name, str(error).removeprefix(f"{path}: "), "")
    head = read_strictly(data, name)
    faults = [*head.faults] or [*_fields(head, name), *_name(head, name, folder.name), *_texts(head, name)]
    if faults:
        return Verdict(tuple(sorted(faults, key=lambda fault: fault.line or 0)), head.notes)
    text = data.decode().replace("\r\n", "\n").replace("\r", "\n")
    loaded = skill_of(StateFile(name, text, revision_of(data)))
    return Verdict((), (*head.notes, *loaded.diagnostics), loaded)


def validate_named(folder: Path, shown: str) -> Iterator[Verdict]:
    """Check the skill in ``folder`` or, where it is none, each skill in the folders that lie in it."""
    below = [] if _is_skill(folder) else [path for path in listed(folder) if _is_skill(path)]
    for path in below:
        yield validate(path, f"{shown}/{path.name}", Path(os.path.realpath(folder)))
    if not below:
        yield validate(folder, shown)


def _is_skill(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in FILE_NAMES)


def validate_all(workspace: Workspace) -> Iterator[Verdict]:
    """Check every folder in which a skill is looked for, the nearest first."""
    for path, shown in skill_folders(workspace):
        is_private = path.is_relative_to(workspace.user_dir)
        yield validate(path, shown, None if is_private else workspace.root)


def _refused(place: str, message: str, mend: str) -> Verdict:
    return Verdict((Diagnostic(place, None, message, mend),))


def _fields(head: StrictHead, name: str) -> list[Diagnostic]:
    message, mend = "is no field of the spec", f"put it under metadata; the fields are {', '.join(FIELDS)}"
    unknown = [field for field in head.fields if field not in FIELDS]
    return [Diagnostic(name, head.field_lines[field], f'"{one_line(field)}" {message}', mend) for field in unknown]


def _name(head: StrictHead, name: str, folder: str) -> list[Diagnostic]:
    written, line = head.fields.get("name"), head.field_lines.get("name")
    if not isinstance(written, str) or not written.strip():
        return [_missing(head, name, "name")]
    wanted = normal(written)
    mend = "use lower-case letters, digits and single hyphens"
    faults = [Diagnostic(name, line, f'the name "{one_line(wanted)}" {fault}', mend) for fault in name_faults(wanted)]
    if normal(folder) != wanted or folder != folder.strip():
        message = f'is called "{one_line(wanted)}" and its folder "{one_line(folder)}"'
        faults.append(Diagnostic(name, line, message, "give both the same name"))
    return faults


def _texts(head: StrictHead, name: str) -> list[Diagnostic]:
    description, compatibility = head.fields.get("description"), head.fields.get("compatibility", "")
    faults = []
    if not isinstance(description, str) or not description.strip():
        faults.append(_missing(head, name, "description"))
    elif len(description) > MAX_DESCRIPTION:
        faults.append(_too_long(head, name, "description", description, MAX_DESCRIPTION))
    if not isinstance(compatibility, str):
        line = head.field_lines.get("compatibility")
        faults.append(Diagnostic(name, line, '"compatibility" is not text', 'write "compatibility: text"'))
    elif len(compatibility) > MAX_COMPATIBILITY:
        faults.append(_too_long(head, name, "compatibility", compatibility, MAX_COMPATIBILITY))
    return faults


def _missing(head: StrictHead, name: str, field: str) -> Diagnostic:
    what = "is empty or not text" if field in head.fields else "is missing"
    return Diagnostic(name, head.field_lines.get(field, 1), f'"{field}" {what}', f'write "{field}: …"')


def _too_long(head: StrictHead, name: str, field: str, text: str, limit: int) -> Diagnostic:
    message = f'"{field}" has {len(text):,} characters, the limit is {limit:,}'
    return Diagnostic(name, head.field_lines.get(field), message, "shorten it")
