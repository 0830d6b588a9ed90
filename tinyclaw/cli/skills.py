"""List the skills that the agent can load, and check them by the Agent Skills spec.

A skill is a folder with a SKILL.md (https://agentskills.io/specification) in `skills/`, `.agents/skills/` or
`.claude/skills/`, of the repository or of a folder between it and where you stand, or in `skills/` at user level.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tinyclaw.cli._here import here, workspace_option

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tinyclaw.state.skill_check import Verdict
    from tinyclaw.state.skills import Catalog, Skill
    from tinyclaw.state.workspace import Workspace
    from tinyclaw.types import Diagnostic


@click.group(help=__doc__)
def command() -> None:
    pass


@command.command(name="list")
@workspace_option
def list_(directory: str | None) -> int:
    """One line a skill: its name, its folder and what it is for. What is wrong goes to stderr."""
    from tinyclaw.width import one_line, table

    catalog = _catalog(here(directory))
    skills = sorted(catalog.skills, key=lambda skill: skill.name)
    rows = [(skill.name, one_line(skill.folder), one_line(skill.description)) for skill in skills]
    for line in table(rows, shutil.get_terminal_size((120, 24)).columns):
        click.echo(line.rstrip())
    if not rows:
        click.echo("there is no skill", err=True)
    _say([*catalog.faults, *_foreign(catalog.skills)])
    return 0


@command.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@workspace_option
def check(paths: tuple[str, ...], directory: str | None) -> int:
    """What the spec says is wrong with the skills in these folders, or in all, each with its mend.

    A folder is that of a skill, or one in which folders of skills lie.

    As strict as the spec's reference validator; a skill that fails may be loaded all the same. What is right but may
    not mean what you think goes to stderr. Exit code 1 when anything is wrong.
    """
    from itertools import chain

    from tinyclaw.state.skill_check import validate_all
    from tinyclaw.state.skills import Catalog
    from tinyclaw.width import one_line

    workspace = here(directory)
    verdicts = list(chain.from_iterable(map(_verdicts, paths)) if paths else validate_all(workspace))
    catalog = Catalog() if paths else _catalog(workspace)
    faults = [*(fault for verdict in verdicts for fault in verdict.faults), *catalog.misplaced]
    for fault in faults:
        click.echo(one_line(str(fault)))
    notes = [note for verdict in verdicts for note in verdict.notes]
    _say([*notes, *_foreign(verdict.skill for verdict in verdicts if verdict.skill), *catalog.collisions])
    if not faults:
        click.echo(f"{len(verdicts)} skill{'' if len(verdicts) == 1 else 's'} checked, all well", err=True)
    return 1 if faults else 0


def _verdicts(path: str) -> Iterator[Verdict]:
    """Of a skill that is named by its folder or its SKILL.md, or of those in a folder of such folders."""
    from tinyclaw.state.skill_check import validate_named
    from tinyclaw.state.skills import FILE_NAMES

    named = Path(path)
    folder = named.parent if named.name in FILE_NAMES else named
    return validate_named(folder if folder.name not in ("", "..") else folder.resolve(), str(folder))


def _foreign(skills: Iterable[Skill]) -> Iterator[Diagnostic]:
    from tinyclaw.tools._base import load_tools
    from tinyclaw.tools._skills import foreign_tools

    tools = load_tools().tools
    return filter(None, (foreign_tools(skill, tools) for skill in skills))


def _catalog(workspace: Workspace) -> Catalog:
    import os

    from tinyclaw.state.redaction import Masker
    from tinyclaw.state.skills import find_skills

    return find_skills(workspace, Masker(os.environ).mask)


def _say(faults: Iterable[Diagnostic]) -> None:
    from tinyclaw.width import one_line

    for fault in faults:
        click.echo(one_line(str(fault)), err=True)
