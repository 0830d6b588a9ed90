"""Show what the next request holds, block by block.

Each block with its file, lines, revision and tokens, and what was cut or left out and why. ID is a
session; by default it is the last one or, where there is none yet, one that would begin now.
"""

from __future__ import annotations

import json
import shutil

import click

from tinyclaw.cli._here import workspace_option


@click.command(help=__doc__)
@click.argument("session", metavar="[ID]", required=False)
@click.option("--json", "as_json", is_flag=True, help="The manifest as one JSON object.")
@workspace_option
def command(session: str | None, as_json: bool, directory: str | None) -> int:
    from tinyclaw.cli._reading import next_request
    from tinyclaw.commands._manifest import manifest_text

    found = next_request(directory, session)
    working = found.working
    if as_json:
        facts = {"session": found.session.id if found.session else None, "model": working.request.model}
        click.echo(json.dumps({**facts, **working.manifest.scaled().to_json()}, ensure_ascii=False, indent=2))
        return 0
    whose = f"session {found.session.id}" if found.session else "a new session"
    click.echo(f"The next request of {whose}:\n")
    click.echo(manifest_text(working.manifest, working.request, shutil.get_terminal_size((120, 24)).columns))
    return 0
