"""Check every state file, and what a run needs besides.

One line a fault: file, line, what is wrong, how to mend it. Exit code 1 when there is any.
"""

from __future__ import annotations

import os

import click

from tinyclaw.cli._here import here, workspace_option


@click.command(help=__doc__)
@workspace_option
def command(directory: str | None) -> int:
    from tinyclaw.agent.doctor import examine
    from tinyclaw.width import one_line

    workspace = here(directory)
    faults = examine(workspace, os.environ)
    for fault in faults:
        click.echo(one_line(str(fault)))
    count = f"{len(faults)} fault{'s' if len(faults) != 1 else ''}" if faults else "all is well"
    click.echo(f"{count} in {workspace.root}", err=True)
    return 1 if faults else 0
