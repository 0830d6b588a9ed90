"""What only the command line may look at: the environment, the clock, the working directory."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from tinyclaw.state.workspace import Workspace

NO_HOME = Path("/nonexistent/tinyclaw")
"""The user-level folder of somebody without a home: nothing is there and nothing can be put there."""


def now() -> datetime:
    """The time now, in UTC."""
    return datetime.now(UTC)


def user_dir() -> Path:
    """The platform's config folder for tinyclaw."""
    from platformdirs import user_config_path

    try:
        path = user_config_path("tinyclaw", appauthor=False)
    except (RuntimeError, KeyError):  # no home, and no entry in the password file
        return NO_HOME
    return path if path.is_absolute() else NO_HOME


def here(directory: str | None) -> Workspace:
    """The workspace around ``directory``, or where the shell stands.

    Raises: StateError when that is no folder.
    """
    from_group = click.get_current_context().find_root().params.get("directory")
    return Workspace.find(Path(directory or from_group or _shell_folder()), user_dir())


def workspace_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``-C/--workspace DIR``, as the parameter ``directory``."""
    return click.option(
        "-C", "--workspace", "directory", metavar="DIR", help="Work in DIR instead of the current folder."
    )(function)


def _shell_folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # it was deleted; its name makes the better message
        return os.environ.get("PWD", ".")
