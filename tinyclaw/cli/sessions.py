"""List, show and search the workspace's sessions."""

from __future__ import annotations

import json
import shutil

import click

from tinyclaw.cli._here import here, workspace_option


@click.group(help=__doc__)
def command() -> None:
    pass


@command.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@workspace_option
def list_(as_json: bool, directory: str | None) -> int:
    """One line a session, the newest last: its id, which begins with date and time in UTC, size, state and title."""
    from tinyclaw.state.transcript.sessions import how_it_stands, list_sessions
    from tinyclaw.state.workspace import TRANSCRIPTS
    from tinyclaw.width import one_line, table

    workspace = here(directory)
    found = list_sessions(workspace.root / TRANSCRIPTS)
    if as_json:
        for session in found:
            path = workspace.relative(session.path)
            facts = {"session": session.id, "title": session.title, "created": session.created, "transcript": path}
            click.echo(json.dumps({**facts, "state": how_it_stands(session)}))
        return 0
    if not found:
        click.echo('No sessions yet; start one with: tinyclaw run "…"', err=True)
        return 0
    rows = [
        (
            one_line(session.id),
            f"{max(session.size // 1024, 1):,} KB",
            one_line(how_it_stands(session)),
            one_line(session.title),
        )
        for session in found
    ]
    for line in table(rows, shutil.get_terminal_size((120, 24)).columns, right=(1,)):
        click.echo(line)
    return 0


@command.command()
@click.argument("session", metavar="[ID]", default="last")
@click.option("--requests", "by_request", is_flag=True, help="A line a request: tokens, cost, what was sent again.")
@workspace_option
def show(session: str, by_request: bool, directory: str | None) -> int:
    """What a session was about: its turns, requests, tokens and cost, and what it waits for."""
    from tinyclaw.cli._reading import recording
    from tinyclaw.cli._session_text import requests_text, session_text

    workspace = here(directory)
    found = recording(workspace, session)
    click.echo(session_text(found, workspace.relative(found.path), is_detailed=by_request))
    if by_request:
        click.echo(f"\n{requests_text(found.blocks, shutil.get_terminal_size((120, 24)).columns)}")
    for diagnostic in found.parsed.diagnostics:
        click.echo(str(diagnostic), err=True)
    return 0


@command.command()
@click.argument("text", metavar="TEXT")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Most lines to show.")
@workspace_option
def search(text: str, limit: int, directory: str | None) -> int:
    """Find TEXT in what was said, called and answered in all sessions, and in the outputs kept beside them.

    Gives file, line and text; case does not matter. Exit code 1 when there is nothing.
    """
    from tinyclaw.tools._sessions import search_sessions
    from tinyclaw.types import Interrupt
    from tinyclaw.width import harmless

    if not text.strip() or "\n" in text:
        raise click.UsageError("the text is part of one line, and not blank")
    found = search_sessions(here(directory).root, text, limit, Interrupt())
    for line in found.lines:
        click.echo(harmless(line))
    if found.more:
        click.echo(f"the first {limit} lines are shown; give more of the text, or --limit", err=True)
    return 0 if found.lines else 1
