"""Show PLAN.md, or approve it.

An approved plan is what lets a session leave plan mode. Writing `status: approved` into PLAN.md by
hand does the same; no tool can.
"""

from __future__ import annotations

import click

from tinyclaw.cli._here import here, workspace_option


@click.group(help=__doc__)
def command() -> None:
    pass


@command.command()
@workspace_option
def show(directory: str | None) -> int:
    """Print the plan as it stands; its status goes to stderr."""
    from tinyclaw.state.files import read
    from tinyclaw.state.plan import Plan
    from tinyclaw.state.workspace import PLAN
    from tinyclaw.width import harmless

    path = here(directory).root / PLAN
    data = read(path).data
    if data is None:
        click.echo(f"tinyclaw: there is no {PLAN}; make one with: tinyclaw init", err=True)
        return 1
    plan = Plan.parse(data, PLAN)
    for diagnostic in plan.diagnostics:
        click.echo(str(diagnostic), err=True)
    click.echo(f"status: {plan.status}{f', goal: {harmless(plan.goal)}' if plan.goal else ''}", err=True)
    click.echo(harmless(plan.body.strip("\n")))
    return 0


@command.command()
@workspace_option
def approve(directory: str | None) -> int:
    """Set `status: approved` in PLAN.md; every other byte stays."""
    from tinyclaw.errors import UsageError
    from tinyclaw.state.files import read, write
    from tinyclaw.state.plan import Plan
    from tinyclaw.state.workspace import PLAN

    path = here(directory).root / PLAN
    there = read(path)
    if there.data is None:
        raise UsageError(f"there is no {PLAN} to approve; have one made: tinyclaw run --mode plan …")
    plan = Plan.parse(there.data, PLAN)
    for diagnostic in plan.diagnostics:
        click.echo(str(diagnostic), err=True)
    write(path, plan.set_status("approved"), base=there)
    click.echo(f"{PLAN}: {'was approved already' if plan.status == 'approved' else 'approved'}", err=True)
    return 0
