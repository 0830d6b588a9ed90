"""Show what a request holds, block by block: by default the next one.

Each block with its file, lines, revision and tokens, what the conversation is made of, and what was
cut or left out and why. ID is a session; by default it is the last one or, where there is none yet, one
that would begin now. --request N shows the Nth request as it was sent, --diff N M what changed between two.
"""

from __future__ import annotations

import json
import shutil

import click

from tinyclaw.cli._here import here, workspace_option


@click.command(help=__doc__)
@click.argument("session", metavar="[ID]", required=False)
@click.option("--request", "number", type=click.IntRange(min=1), metavar="N", help="The request that was sent Nth.")
@click.option("--diff", type=click.IntRange(min=1), nargs=2, metavar="N M", help="What changed between two requests.")
@click.option("--json", "as_json", is_flag=True, help="The manifest as one JSON object.")
@workspace_option
def command(
    session: str | None, number: int | None, diff: tuple[int, int] | None, as_json: bool, directory: str | None
) -> int:
    from tinyclaw.amounts import usage_words
    from tinyclaw.cli._reading import next_request, recorded_request, recording
    from tinyclaw.commands._manifest import difference_text, manifest_text

    if diff is not None and (as_json or number is not None):
        raise click.UsageError("--diff stands alone: give it without --request and --json")
    if diff is not None:
        first, second = (recorded_request(here(directory), session or "last", each).manifest for each in diff)
        click.echo(difference_text(first, second))
        for change in recording(here(directory), session or "last").changes(*diff):
            click.echo(f"told: {change}")
        return 0
    if number is not None:
        past = recorded_request(here(directory), session or "last", number)
        manifest, request = past.manifest, past.request
        name = recording(here(directory), session or "last").session
        head = f"Request {number} of session {name}" + (f": {usage_words(past.usage)}" if past.usage else ": no reply")
        if not past.is_exact:
            click.echo("tinyclaw: the conversation was edited since; its parts are shown as they are now", err=True)
    else:
        found = next_request(directory, session)
        manifest, request = found.working.manifest, found.working.request
        name = found.session.id if found.session else ""
        head = f"The next request of {f'session {name}' if name else 'a new session'}:"
    if as_json:
        facts = {"session": name or None, "model": request.model}
        click.echo(json.dumps({**facts, **manifest.scaled().to_json()}, ensure_ascii=False, indent=2))
        return 0
    click.echo(f"{head}\n")
    click.echo(manifest_text(manifest, request, shutil.get_terminal_size((120, 24)).columns))
    return 0
