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
    memory = _memory(directory)
    _show_all(memory, memory.heads())
    return 0


@command.command()
@click.argument("text", metavar="TEXT")
@workspace_option
def search(text: str, directory: str | None) -> int:
    """The records that have any of these words, the likeliest first. Exit code 1 when there is none."""
    memory = _memory(directory)
    heads, count = memory.search(text, _MOST)
    _show_all(memory, heads)
    if count > len(heads):
        click.echo(f"and {count - len(heads):,} more; give more words", err=True)
    return 0 if heads else 1


@command.command()
@click.argument("name", metavar="NAME")
@workspace_option
def show(name: str, directory: str | None) -> int:
    """Print a record; its file and facts go to stderr."""
    from tinyclaw.state.memory.evidence import doubt
    from tinyclaw.width import harmless

    memory = _memory(directory)
    record = _found(memory, name)
    facts = f"{record.path}: {record.type}, updated {record.updated or 'at an unknown time'}"
    source = f", from {record.source}" if record.source else ""
    said = doubt(*memory.doubts(record))
    click.echo(harmless(f"{facts}{source}{f'; stale: {said}' if said else ''}"), err=True)
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
    if memory.holds_secret(f"{note.name}\n{note.text}"):
        raise UsageError(
            "this holds a secret, and notes are shown to the model and committed; remember where it is kept"
        )
    saved = memory.save(note, lambda path: None)
    if saved.how == "kept":
        raise UsageError(f"{saved.path} says something else under that name; edit it in an editor")
    memory.index.write()
    click.echo(f"{saved.path}: {'remembered' if saved.how == 'new' else 'says this already'}", err=True)
    return 0


@command.command()
@click.argument("name", metavar="NAME")
@workspace_option
def forget(name: str, directory: str | None) -> int:
    """Take a record out; its file is kept in .memory/.archive/."""
    memory = _memory(directory)
    if memory.find(name) is None and (place := memory.files.forgotten(name)):
        click.echo(f"{name}: is forgotten already; its file is {place}", err=True)
        return 0
    record = _found(memory, name)
    place = memory.forget(record)
    memory.index.write()
    click.echo(f"{record.path}: forgotten; its file is {place}", err=True)
    return 0


@command.command()
@click.argument("name", metavar="NAME")
@workspace_option
def verify(name: str, directory: str | None) -> int:
    """Say that a record still holds: what it rests on is taken as it is now."""
    from tinyclaw.errors import UsageError
    from tinyclaw.state.memory.evidence import doubt

    memory = _memory(directory)
    record = _found(memory, name)
    if not memory.renew(record):
        raise UsageError(f"{record.path}: rests on no file; add evidence: to its head, as path or path:first-last")
    if (standing := memory.doubts(_found(memory, name)))[0] != "holds":
        memory.index.write()
        raise UsageError(f"{record.path}: {doubt(*standing)}; correct its evidence:")
    memory.index.write()
    click.echo(f"{record.path}: holds, by the files as they are now", err=True)
    return 0


@command.command()
@workspace_option
def consolidate(directory: str | None) -> int:
    """Ask the small model what to merge or drop; what it proposes waits in .memory/PROPOSAL.md for you."""
    from tinyclaw.cli._consolidate import propose

    return propose(directory)


@command.command()
@workspace_option
def accept(directory: str | None) -> int:
    """Carry out .memory/PROPOSAL.md as it stands; what it merges or drops is kept in .memory/.archive/."""
    from tinyclaw.errors import UsageError
    from tinyclaw.state.memory import proposal
    from tinyclaw.width import harmless

    memory = _memory(directory)
    if not proposal.is_waiting(memory):
        raise UsageError("no proposal waits; tinyclaw memory consolidate makes one")
    left_out = 0
    try:
        for outcome in proposal.accept(memory):
            click.echo(harmless(outcome.text), err=True)
            left_out += not outcome.is_done
    finally:
        memory.index.write()
    if left_out:
        click.echo(f"{proposal.PATH}: what was left out waits there", err=True)
    return 1 if left_out else 0


@command.command()
@workspace_option
def reject(directory: str | None) -> int:
    """Put .memory/PROPOSAL.md away without doing anything of it."""
    from tinyclaw.errors import UsageError
    from tinyclaw.state.memory import proposal

    memory = _memory(directory)
    if not proposal.is_waiting(memory):
        raise UsageError("no proposal waits; tinyclaw memory consolidate makes one")
    click.echo(f"{proposal.PATH}: put away as {proposal.put_away(memory)}", err=True)
    return 0


@command.command()
@workspace_option
def check(directory: str | None) -> int:
    """Broken, stale, duplicate, contradictory and unused records as a task list, each with its mend.

    The index is made anew where it is out of date. Exit code 1 when there is something to do.
    """
    from tinyclaw.cli._here import now
    from tinyclaw.state.memory.check import check as check_memory
    from tinyclaw.state.workspace import TRANSCRIPTS
    from tinyclaw.width import harmless

    memory = _memory(directory)
    if memory.index.refresh():
        click.echo("MEMORY.md was out of date; it is made anew", err=True)
    problems = list(check_memory(memory, here(directory).root / TRANSCRIPTS, now()))
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


def _show_all(memory: Memory, records: Sequence[Head]) -> None:
    from tinyclaw.state.memory.evidence import doubt
    from tinyclaw.width import one_line, table

    rows = []
    for each in records:
        said = doubt(*memory.doubts(each))
        about = f"({said}) {each.description}" if said else each.description
        rows.append((each.type, one_line(each.updated)[:10], one_line(each.name), one_line(about)))
    for line in table(rows, shutil.get_terminal_size((120, 24)).columns):
        click.echo(line.rstrip())
    if not records:
        click.echo("there is no such record", err=True)
