"""Show what a request holds: by default the next one.

The window as a bar by kind of content; each part with its tokens, share, cost, file, lines and revision,
and whether the provider's cache holds it; what was cut or left out and why. ID is a session; by default it
is the last one or, where there is none yet, one that would begin now. --request N shows the Nth request as
it was sent, --diff N M what changed between two.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import click

from tinyclaw.cli._here import here, workspace_option

if TYPE_CHECKING:
    from tinyclaw.agent.recorded import Rebuilt
    from tinyclaw.agent.view import View


@click.command(help=__doc__)
@click.argument("session", metavar="[ID]", required=False)
@click.option("--request", "number", type=click.IntRange(min=1), metavar="N", help="The request that was sent Nth.")
@click.option("--diff", type=click.IntRange(min=1), nargs=2, metavar="N M", help="What changed between two requests.")
@click.option("--json", "as_json", is_flag=True, help="The manifest as one JSON object.")
@workspace_option
def command(
    session: str | None, number: int | None, diff: tuple[int, int] | None, as_json: bool, directory: str | None
) -> int:
    from tinyclaw.cli._reading import next_request, past_view, recorded_request, recording
    from tinyclaw.commands._manifest import difference_text, manifest_text

    if diff is not None and (as_json or number is not None):
        raise click.UsageError("--diff stands alone: give it without --request and --json")
    if diff is not None:
        first, second = (recorded_request(here(directory), session or "last", each) for each in diff)
        click.echo(difference_text(past_view(directory, first), past_view(directory, second)))
        for change in recording(here(directory), session or "last").changes(*diff):
            click.echo(change)
        return 0
    if number is not None:
        past = recorded_request(here(directory), session or "last", number)
        name = recording(here(directory), session or "last").session
        head = _past_head(past, number, name)
        view = past_view(directory, past)
        if not past.is_exact:
            click.echo("tinyclaw: the conversation was edited since; its parts are shown as they are now", err=True)
    else:
        found = next_request(directory, session)
        view = found.view
        name = found.session.id if found.session else ""
        head = f"The next request of {f'session {name}' if name else 'a new session'}:"
    if as_json:
        click.echo(json.dumps(_json(view, name), ensure_ascii=False, indent=2))
        return 0
    click.echo(f"{head}\n")
    click.echo(manifest_text(view, shutil.get_terminal_size((120, 24)).columns))
    return 0


def _past_head(past: Rebuilt, number: int, session: str) -> str:
    """What a request used and cost and, where the cache no longer fitted it, why."""
    from tinyclaw.amounts import dollars, usage_words
    from tinyclaw.cli._session_text import again_words
    from tinyclaw.state.transcript.fold import cost_of, usage_of

    facts = [f"Request {number} of session {session}: no reply"]
    if past.reply is not None:
        cost = cost_of(past.reply)
        price = "its cost is not known" if cost is None else dollars(cost)
        facts = [f"Request {number} of session {session}: {usage_words(usage_of(past.reply))} · {price}"]
    if again := again_words(past.record, past.reply):
        facts.append(f"Sent again of the request before: {again}")
    return "\n".join(facts)


def _json(view: View, session: str) -> dict[str, object]:
    """The manifest, and what its parts cost."""
    parts = [
        {
            "part": part.name,
            "kind": part.kind,
            "tokens": part.tokens,
            "cached": part.cached,
            "cost_usd": view.cost_usd(part.tokens, part.cached),
        }
        for part in view.parts
    ]
    return {
        "session": session or None,
        "model": view.request.model,
        "window": view.window_tokens,
        "cached": view.cached_tokens,
        "cost_usd": view.cost_usd(view.manifest.tokens, view.cached_tokens),
        **view.manifest.scaled().to_json(),
        "parts": parts,
    }
