"""Run one turn, to the model's own stop.

PROMPT is what you want done; "-" reads it from standard input, and text that is piped in beside a
PROMPT is put behind it. Without a PROMPT, --resume goes on with what is pending in that session or
what you have written below its last turn.

Exit codes: 0 answered, 1 failed, 2 usage, 3 paused for your permission, 4 a limit was reached,
130 interrupted.
"""

from __future__ import annotations

from typing import get_args

import click

from tinyclaw.cli._here import workspace_option
from tinyclaw.model.base import start_import
from tinyclaw.types import Mode, PermissionMode


@click.command(help=__doc__)
@click.argument("words", metavar="[PROMPT|-]", nargs=-1)
@click.option("-m", "--model", metavar="NAME", help="Model to ask, or replay:FILE to play a recorded session.")
@click.option("--strict", is_flag=True, help="With replay:FILE, end at the first request that differs.")
@workspace_option
@click.option("--resume", metavar="ID|last", help="Go on with a session.")
@click.option("--mode", type=click.Choice(get_args(Mode)), help="plan: look and plan, change nothing.")
@click.option("--permission-mode", type=click.Choice(get_args(PermissionMode)), help="What runs without asking you.")
@click.option("--max-requests", type=click.IntRange(min=1), metavar="N", help="End the turn after N requests.")
@click.option(
    "--max-cost", type=click.FloatRange(min=0, min_open=True), metavar="USD", help="End it before it costs more."
)
@click.option("--output-format", type=click.Choice(["text", "json", "stream-json"]), default="text", show_default=True)
def command(
    words: tuple[str, ...],
    model: str | None,
    strict: bool,
    directory: str | None,
    resume: str | None,
    mode: str | None,
    permission_mode: str | None,
    max_requests: int | None,
    max_cost: float | None,
    output_format: str,
) -> int:
    if not (model or "").startswith("replay:"):
        start_import()
    from tinyclaw.cli._once import run_once
    from tinyclaw.cli._opening import Choices

    choices = Choices(directory, model, strict, resume, mode, permission_mode, max_requests, max_cost)
    return run_once(choices, " ".join(words) if words else None, output_format)
