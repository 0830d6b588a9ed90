"""Show the whole thing on an example, without a key and without a model.

A small project with a failing test is copied to a temporary folder (or to FOLDER) and a recorded
session is played on it: the model's replies come from the record; every file that is read, every edit
and every test run is real. Half way somebody edits PLAN.md, and the next request carries it.
"""

from __future__ import annotations

import click


@click.command(help=__doc__)
@click.argument("folder", metavar="[FOLDER]", required=False, type=click.Path())
def command(folder: str | None) -> int:
    from tinyclaw.cli._demonstration import demonstrate

    return demonstrate(folder)
