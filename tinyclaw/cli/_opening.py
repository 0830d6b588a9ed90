"""What the person chose on the command line, as the options of a session."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tinyclaw.agent.session import AskPerson
from tinyclaw.agent.start import Options
from tinyclaw.cli._crash import describe
from tinyclaw.cli._here import here, now
from tinyclaw.errors import UsageError
from tinyclaw.types import Interrupt


@dataclass(frozen=True)
class Choices:
    """The options of the command line that shape a session; None where the settings decide."""

    directory: str | None = None
    model: str | None = None
    strict: bool = False
    resume: str | None = None
    mode: str | None = None
    permission_mode: str | None = None
    max_requests: int | None = None
    max_cost: float | None = None

    def options(self, *, interrupt: Interrupt, ask: AskPerson | None, title: str = "") -> Options:
        """The options to open a session with.

        Raises: UsageError when the workspace is no folder, or the model has no name.
        """
        if self.model is not None and not self.model.strip():
            raise UsageError("the model has no name; give one: -m NAME")
        flags = {
            "model": self.model,
            "mode": self.mode,
            "permission_mode": self.permission_mode,
            "max_requests": self.max_requests,
            "max_cost": self.max_cost,
        }
        return Options(
            workspace=here(self.directory),
            environment=os.environ,
            clock=now,
            flags={name: str(value) for name, value in flags.items() if value is not None},
            resume=self.resume,
            title=title,
            ask=ask,
            report=describe,
            interrupt=interrupt,
            strict=self.strict,
        )
