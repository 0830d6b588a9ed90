"""Lay the workspace's files, where there are none.

AGENTS.md, PLAN.md, TODO.md, .memory/MEMORY.md and .tinyclaw/SETTINGS.md are made where they are
missing, and .gitignore and .gitattributes get the lines that tinyclaw's own files need. Nothing that
is there is written over, and doing it twice changes nothing.
"""

from __future__ import annotations

import click

from tinyclaw.cli._here import here, workspace_option


@click.command(help=__doc__)
@click.option("--git", is_flag=True, help="Make it a git repository first, if it is in none.")
@workspace_option
def command(git: bool, directory: str | None) -> int:
    from tinyclaw.state.scaffold import lay, make_repository
    from tinyclaw.templates import template_text

    workspace = here(directory)
    if git and make_repository(workspace.root):
        click.echo(f".git: made in {workspace.root}", err=True)
    told = lay(workspace.root, lambda name: template_text(f"workspace/{name}"))
    if told:
        click.echo(f"in {workspace.root}:", err=True)
    for line in told or [f"nothing to do: every file is there in {workspace.root}"]:
        click.echo(line, err=True)
    if told:
        click.echo('Next: say in AGENTS.md what the code does not, then: tinyclaw run "…"', err=True)
    return 0
