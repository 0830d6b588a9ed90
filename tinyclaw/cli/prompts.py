"""List, show and replace the prompts that tinyclaw uses.

Each is a Markdown file. One of the same name in the `prompts` folder of your user level takes its place; `eject` lays
the shipped one there, for you to edit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tinyclaw.cli._here import workspace_option

if TYPE_CHECKING:
    from pathlib import Path


@click.group(help=__doc__)
def command() -> None:
    pass


@command.command(name="list")
@workspace_option
def list_(directory: str | None) -> int:
    """One line a prompt: its name, and the file that counts."""
    from tinyclaw.cli._here import here, user_dir
    from tinyclaw.prompts import prompt_path, unused_prompts
    from tinyclaw.state.workspace import OWN_FOLDER
    from tinyclaw.width import harmless

    names = _names()
    for name in names:
        path = prompt_path(user_dir(), name)
        click.echo(
            harmless(f"{name:<{max(map(len, names))}}  {'yours' if path != _shipped(name) else 'shipped'}  {path}")
        )
    for note in unused_prompts(here(directory).root / OWN_FOLDER):
        click.echo(harmless(note), err=True)
    return 0


@command.command()
@click.argument("name", metavar="NAME")
def show(name: str) -> int:
    """Print a prompt as it is used."""
    from tinyclaw.cli._here import user_dir
    from tinyclaw.prompts import prompt_loader
    from tinyclaw.width import harmless

    _check(name)
    click.echo(harmless(prompt_loader(user_dir())(name).rstrip("\n")))
    return 0


@command.command()
@click.argument("name", metavar="NAME")
def eject(name: str) -> int:
    """Copy the shipped prompt to your user level, where it counts from then on; never over one that is there."""
    from tinyclaw.cli._here import user_dir
    from tinyclaw.errors import StateError, UsageError

    _check(name)
    path = user_dir() / "prompts" / f"{name}.md"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(_shipped(name).read_text(encoding="utf-8"))
    except FileExistsError:
        raise UsageError(f"{path}: is there already; edit it, or delete it to have the shipped one") from None
    except OSError as error:
        raise StateError(f"{path}: cannot be written ({error.strerror})") from error
    click.echo(f"{path}: yours to edit; delete it to have the shipped one again", err=True)
    return 0


def _shipped(name: str) -> Path:
    from tinyclaw.templates import template_path

    return template_path(f"prompts/{name}.md")


def _names() -> list[str]:
    return sorted(path.stem for path in _shipped("base").parent.glob("*.md"))


def _check(name: str) -> None:
    """Raises: UsageError when there is no prompt of that name."""
    from tinyclaw.errors import UsageError

    if name not in _names():
        raise UsageError(f"there is no prompt {name!r}; there are: {', '.join(_names())}")
