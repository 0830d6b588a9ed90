"""A slash command is one function: its name is what is typed, its docstring is what ``/help`` shows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tinyclaw._discover import import_modules
from tinyclaw.agent.session import Session
from tinyclaw.agent.start import Options
from tinyclaw.errors import TinyclawError


class LeavePrompt(TinyclawError):
    """The person wants to end the prompt."""


@dataclass(frozen=True)
class CommandContext:
    """What a command may use. There is no session before the first text of the person.

    ``options`` are those that a session would be opened with; ``columns`` is the terminal's width.
    """

    options: Options
    session: Session | None = None
    commands: Mapping[str, Command] = field(default_factory=dict)
    columns: int = 80


@dataclass(frozen=True)
class Command:
    """A function from the context and the text behind the command's name to the text to show.

    It may raise TinyclawError, which is shown, and LeavePrompt.
    """

    function: Callable[[CommandContext, str], str]

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def summary(self) -> str:
        """One line for ``/help``."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    def run(self, context: CommandContext, arguments: str) -> str:
        return self.function(context, arguments)


def command(function: Callable[[CommandContext, str], str]) -> Command:
    """Declare a slash command."""
    return Command(function)


def load_commands() -> dict[str, Command]:
    """Every command of the package by name.

    Raises: TinyclawError naming the file of a module that defines no command of its name.
    """
    import tinyclaw.commands as package

    found: dict[str, Command] = {}
    for name, module in import_modules(package).items():
        candidate = getattr(module, name, None)
        if not isinstance(candidate, Command):
            raise TinyclawError(f"{module.__file__} defines no command called {name}")
        found[name] = candidate
    return found
