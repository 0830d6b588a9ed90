"""Tell why a text is in a request, or a file is not.

TEXT is a text, or the path of a file; ID a session, the last one by default. What is in the request is told
by file and line, and since which request; of what is not in it, what became of it or why it never came in.
Without --request the next request is meant. Exit code 1 when it is not in.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from tinyclaw.cli._here import workspace_option

if TYPE_CHECKING:
    from tinyclaw.agent.why import Trace

_MOST = 20


@click.command(help=__doc__)
@click.argument("text", metavar="TEXT")
@click.argument("session", metavar="[ID]", required=False)
@click.option("--request", "number", type=click.IntRange(min=1), metavar="N", help="The request that was sent Nth.")
@workspace_option
def command(text: str, session: str | None, number: int | None, directory: str | None) -> int:
    from tinyclaw.agent.absence import file_absence, file_named, file_traces, text_absence
    from tinyclaw.agent.why import traces
    from tinyclaw.cli._reading import scene
    from tinyclaw.width import harmless

    if not text.strip():
        raise click.UsageError("the text is blank; give one, or the path of a file")
    name, found = scene(directory, session, number)
    within: list[Trace]
    if file := file_named(found, text):
        within, reasons = file_traces(found, file), partial(file_absence, found, file)
    else:
        within, reasons = traces(found, text), partial(text_absence, found, text)
    lines = [f"{file or repr(text)} is {'' if within else 'not '}in {name}" + (":" if within else ", because:")]
    lines += [line for trace in within[:_MOST] for line in _told(trace)]
    if len(within) > _MOST:
        lines.append(f"  … and {len(within) - _MOST} more places")
    if not within:
        lines += [f"  {reason}" for reason in reasons()]
        mentions = traces(found, text) if file else []
        lines += ["Its name is in:", *(line for trace in mentions[:3] for line in _told(trace))] if mentions else []
    if found.transcript:
        lines.append(f"The transcript is {found.transcript}")
    if not found.is_exact:
        click.echo("tinyclaw: the conversation was edited since; this is how it stands now", err=True)
    click.echo(harmless("\n".join(lines)))
    return 0 if within else 1


def _told(trace: Trace) -> list[str]:
    since = "not sent yet" if trace.since is None else f"since request {trace.since}"
    return [f"  {trace.place}  {trace.what}; {since}", *([f"      {trace.line}"] if trace.line else [])]
