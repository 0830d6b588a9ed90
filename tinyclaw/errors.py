"""The exception tree. Each error knows who reads it.

::

    TinyclawError
    ├── UsageError            a command or setting that cannot mean anything (exit code 2)
    ├── StateError            a file of the workspace cannot be used as it is
    │   ├── FileChanged       somebody saved the file between our read and our write
    │   ├── Locked            another process holds the session
    │   └── NewerFormat       written by a later tinyclaw; opened read-only
    ├── ModelError            the Messages API, or the way to it, failed
    │   └── PromptTooLong     the request does not fit the model's window
    ├── ReplayError           the recorded transcript cannot go on playing the model
    ├── LimitReached          the next request would pass a limit that the person has set
    ├── ToolError             the model reads it: what failed, the likely cause, the next action
    └── Interrupted           the person stopped what was running

``StateError`` and ``ModelError`` are for the person, ``ToolError`` is for the model. Anything
outside the tree is a bug: ``cli`` shows one line and writes the traceback to a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tinyclaw.types import Usage

ModelErrorKind = Literal[
    "auth", "billing", "connection", "cut", "invalid", "not_found", "overloaded", "rate_limit", "server", "timeout"
]


class TinyclawError(Exception):
    """Base of every error that tinyclaw raises on purpose. ``str()`` is a sentence for its reader."""


class UsageError(TinyclawError):
    """The command line, a setting or the environment asks for something that does not exist."""


class StateError(TinyclawError):
    """A workspace file is unreadable, damaged or in the way. The text names file, line and mend."""


class FileChanged(StateError):
    """A write was refused because the file is not what it was when it was read.

    Attributes:
        diff: what the person changed, as a unified diff of the text we had read (may be empty for binary data).
        revision: the revision that is on disk now.
    """

    def __init__(self, message: str, *, diff: str = "", revision: str = "") -> None:
        super().__init__(message)
        self.diff = diff
        self.revision = revision


class Locked(StateError):
    """Another process has the session open; the text says which."""


class NewerFormat(StateError):
    """The transcript's format number is greater than ours: it is read, never appended to."""


class ModelError(TinyclawError):
    """A request got no usable reply, retries included.

    Attributes:
        kind: closed set of causes, for exit messages and for deciding on a retry.
        retry_after_seconds: what the server asked us to wait, if it said.
        status: the HTTP status, if there was one.
        lost: the tokens of an answer that had begun and broke off; None where none had begun.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ModelErrorKind,
        status: int | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: ModelErrorKind = kind
        self.lost: Usage | None = None
        self.status = status
        self.retry_after_seconds = retry_after_seconds


class PromptTooLong(ModelError):
    """The provider, or our own budget, says that the request exceeds the window."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message, kind="invalid", status=status)


class ReplayError(TinyclawError):
    """A replayed transcript ran dry, or ``--strict`` met the first request that differs."""


class LimitReached(TinyclawError):
    """The person's limit on requests or cost; raised before the request that would pass it."""


class ToolError(TinyclawError):
    """A tool call failed in a way that the model can act on."""


class Interrupted(TinyclawError):
    """The person interrupted; raised at the next safe point, never between a write and its record.

    Attributes:
        lost: as that of ``ModelError``.
    """

    lost: Usage | None = None
