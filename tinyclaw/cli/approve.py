"""Allow what a paused session asks for.

ID is a session, the last one by default. Ticking the box below the question in the transcript does
the same. Afterwards `tinyclaw run --resume ID` goes on.
"""

from __future__ import annotations

import click

from tinyclaw.cli._here import here, now, workspace_option


@click.command(help=__doc__)
@click.argument("session", metavar="[ID]", default="last")
@workspace_option
def command(session: str, directory: str | None) -> int:
    from tinyclaw.agent.approval import approve
    from tinyclaw.width import harmless

    approved = approve(here(directory), session, now())
    for question in approved.questions:
        click.echo(f"allowed: {harmless(question)}", err=True)
    click.echo(f"Go on with: tinyclaw run --resume {approved.session}", err=True)
    return 0
