"""Allow what a paused session asks for, or refuse it.

ID is a session, the last one by default. `tinyclaw sessions show ID` shows what it asks for. Ticking
the box below the question in the transcript allows it too. Afterwards `tinyclaw run --resume ID` goes on.
"""

from __future__ import annotations

import click

from tinyclaw.cli._here import here, now, workspace_option


@click.command(help=__doc__)
@click.argument("session", metavar="[ID]", default="last")
@click.option("--deny", is_flag=True, help="Refuse it: the call is not made, and the model is told.")
@workspace_option
def command(session: str, deny: bool, directory: str | None) -> int:
    from tinyclaw.agent.approval import answer
    from tinyclaw.width import harmless

    answered = answer(here(directory), session, now(), allow=not deny)
    for question in answered.questions:
        click.echo(f"{'refused' if deny else 'allowed'}: {harmless(question)}", err=True)
    click.echo(f"Go on with: tinyclaw run --resume {answered.session}", err=True)
    return 0
