"""List, show, add, forget, search and check what is remembered.

A record is a file of .memory/; edit it in any editor. NAME is its name, or its file's.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tinyclaw.cli._here import here, workspace_option

if TYPE_CHECKING:
    from tinyclaw.state.memory.record import Head, Record
    from tinyclaw.state.memory.store import Memory

_MOST = 100
_TYPES = ("user", "feedback", "project", "reference")


@click.group(help=__doc__)
def command() -> None:
    pass


@command.command(name="list")
@workspace_option
def list_(directory: str | None) -> int:
    """One line a record: its type, when it was updated, its name and what it is about."""
    heads = list(_memory(directory).heads())
    _show_all(heads)
    return 0


@command.command()
@click.argument("text", metavar="TEXT")
@workspace_option
def search(text: str, directory: str | None) -> int:
    """The records that have any of these words, the likeliest first. Exit code 1 when there is none."""
    heads, count = _memory(directory).search(text, _MOST)
    _show_all(heads)
    if count > len(heads):
        click.echo(f"and {count - len(heads):,} more; give more words", err=True)
    return 0 if heads else 1


@command.command()
@click.argument("name", metavar="NAME")
@workspace_option
def show(name: str, directory: str | None) -> int:
    """Print a record; its file and facts go to stderr."""
    from tinyclaw.width import harmless

    record = _found(_memory(directory), name)
    facts = f"{record.path}: {record.type}, updated {record.updated or 'at an unknown time'}"
    click.echo(harmless(f"{facts}{f', from {record.source}' if record.source else ''}"), err=True)
    click.echo(harmless(record.text))
    return 0


@command.command()
@click.argument("name", metavar="NAME")
@click.argument("text", metavar="TEXT|-")
@click.option("--type", "kind", type=click.Choice(_TYPES), default="project", show_default=True)
@workspace_option
def add(name: str, text: str, kind: str, directory: str | None) -> int:
    """Remember TEXT ("-" reads it from standard input) under NAME. A record that is there is not changed."""
    from typing import cast

    from tinyclaw.cli._piped import read_piped
    from tinyclaw.errors import UsageError
    from tinyclaw.state.memory.record import Note, RecordType

    memory = _memory(directory)
    note = Note(name, cast("RecordType", kind), read_piped() if text == "-" else text, source="the person")
    saved = memory.save(note, lambda path: None)
    if saved.how == "kept":
        raise UsageError(f"{saved.path} says something else under that name; edit it in an editor")
    memory.write_index()
    click.echo(f"{saved.path}: {'remembered' if saved.how == 'new' else 'says this already'}", err=True)
    return 0


@command.command()
@click.argument("name", metavar="NAME")
@workspace_option
def forget(name: str, directory: str | None) -> int:
    """Take a record out; its file is kept in .memory/.archive/."""
    memory = _memory(directory)
    record = _found(memory, name)
    place = memory.forget(record)
    memory.write_index()
    click.echo(f"{record.path}: forgotten; its file is {place}", err=True)
    return 0


@command.command()
@workspace_option
def check(directory: str | None) -> int:
    """What is wrong with the records, each with its mend; the index is made anew where it is out of date."""
    from tinyclaw.width import harmless

    memory = _memory(directory)
    if memory.refresh_index():
        click.echo("MEMORY.md was out of date; it is made anew", err=True)
    problems = memory.problems()
    for problem in problems:
        click.echo(harmless(f"- [ ] {problem}"))
    if not problems:
        click.echo("all records are well", err=True)
    return 1 if problems else 0


def _memory(directory: str | None) -> Memory:
    import os

    from tinyclaw.cli._here import now
    from tinyclaw.stamp import stamp
    from tinyclaw.state.memory.store import Memory
    from tinyclaw.state.redaction import Masker

    return Memory.of(here(directory), lambda: stamp(now()), Masker(os.environ).mask)


def _found(memory: Memory, name: str) -> Record:
    """Raises: UsageError when there is no such record."""
    from tinyclaw.errors import UsageError

    record = memory.find(name)
    if record is None:
        raise UsageError(f"no record is called {name!r}; see: tinyclaw memory list")
    return record


def _show_all(records: Sequence[Head]) -> None:
    from tinyclaw.width import one_line, table

    rows = [
        (each.type, one_line(each.updated)[:10], one_line(each.name), one_line(each.description)) for each in records
    ]
    for line in table(rows, shutil.get_terminal_size((120, 24)).columns):
        click.echo(line.rstrip())
    if not records:
        click.echo("there is no such record", err=True)
