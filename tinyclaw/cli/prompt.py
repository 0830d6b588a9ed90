"""Show a request as JSON: tools, system and messages, exactly as they are sent.

ID is a session, the last one by default. With --request N it is the one that was sent, rebuilt from
the transcript and its prefix file and checked against the hash that was recorded then (exit code 1 when the
conversation was edited since); without it, the
next one as it would be sent now.
"""

from __future__ import annotations

import json

import click

from tinyclaw.cli._here import here, workspace_option


@click.command(help=__doc__)
@click.argument("session", metavar="[ID]", required=False)
@click.option("--request", "number", type=click.IntRange(min=1), metavar="N", help="The request that was sent Nth.")
@workspace_option
def command(session: str | None, number: int | None, directory: str | None) -> int:
    from tinyclaw.cli._reading import next_request, recorded_request

    is_exact = True
    if number is None:
        request = next_request(directory, session).working.request
    else:
        rebuilt = recorded_request(here(directory), session or "last", number)
        request = rebuilt.request
        is_exact = rebuilt.is_exact
        if not is_exact:
            click.echo(
                "tinyclaw: the conversation was edited since; this is what its blocks give now, not what was sent",
                err=True,
            )
    click.echo(json.dumps(request.to_wire(), ensure_ascii=False, indent=2))
    return 0 if is_exact else 1
