"""What happens in a turn, as values: the only output of the loop.

Terminal, ``stream-json``, editors and tests all read this one stream. ``to_json`` gives the public
form: ``type`` is the class name in snake case, the other keys are the fields.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from typing import Literal

from tinyclaw.types import Json, Retrying, TextDelta, ThinkingDelta, Usage

EndReason = Literal["done", "interrupted", "paused", "limit", "refused", "error"]


@dataclass(frozen=True)
class SessionStarted:
    """A session is open. ``transcript`` is its file, relative to the workspace."""

    session: str
    transcript: str
    model: str
    resumed: bool


@dataclass(frozen=True)
class FileStated:
    """The conversation was told what a live file says now (``how``: whole, diff or gone)."""

    path: str
    how: str
    by: str


@dataclass(frozen=True)
class RequestStarted:
    """Request ``number`` is on its way; ``manifest`` says what is in it."""

    number: int
    tokens: int
    manifest: Json


@dataclass(frozen=True)
class ReplyReceived:
    """The whole message of the model is in the transcript. ``text`` is its prose."""

    number: int
    text: str
    stop_reason: str
    usage: Usage
    milliseconds: int
    cost_usd: float | None = None


@dataclass(frozen=True)
class ToolStarted:
    """A call begins. ``headline`` is the call in one line."""

    id: str
    name: str
    headline: str
    input: Json = field(default_factory=dict)


@dataclass(frozen=True)
class ToolProgress:
    """Output of a running call, as it comes."""

    id: str
    text: str


@dataclass(frozen=True)
class ToolFinished:
    """A call's result is in the transcript. ``text`` is what the model gets."""

    id: str
    name: str
    headline: str
    text: str
    is_error: bool
    summary: str
    milliseconds: int


@dataclass(frozen=True)
class PermissionAsked:
    """A call waits for the person; with nobody to ask, the turn pauses. ``detail``: what it would do, for people."""

    id: str
    name: str
    headline: str
    reason: str
    detail: str = ""


@dataclass(frozen=True)
class ConversationSummarized:
    """A summary of ``length`` characters stands for the messages before number ``keep``.

    ``before``: the tokens that the next request would have had.
    """

    keep: int
    before: int
    length: int

    def __str__(self) -> str:
        return f"summarized in {self.length:,} characters what came before message {self.keep}"


@dataclass(frozen=True)
class ResultsCleared:
    """``count`` old results gave way to markers; a request of ``before`` tokens has ``after`` now."""

    count: int
    before: int
    after: int

    def __str__(self) -> str:
        results = f"{self.count} old result{'s' if self.count != 1 else ''}"
        return f"cleared {results} to save room: about {self.before:,} tokens, now {self.after:,}"


@dataclass(frozen=True)
class Notice:
    """Something the person should know: a repair, a cut, a warning."""

    text: str


@dataclass(frozen=True)
class TurnEnded:
    """The turn is over. ``text`` is the answer, or what went wrong when ``reason`` is not ``done``.

    ``requests``, ``usage`` and ``cost_usd`` include what was asked beside the conversation.
    """

    reason: EndReason
    text: str
    requests: int
    usage: Usage
    cost_usd: float | None = None


Event = (
    SessionStarted
    | FileStated
    | RequestStarted
    | TextDelta
    | ThinkingDelta
    | Retrying
    | ReplyReceived
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | PermissionAsked
    | ConversationSummarized
    | ResultsCleared
    | Notice
    | TurnEnded
)


def to_json(event: Event) -> Json:
    """The event as one JSON object."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()
    return {"type": name, **dataclasses.asdict(event)}
