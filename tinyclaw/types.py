"""Values that every layer shares: content blocks, messages, requests, replies.

They are frozen and equal when their contents are equal; they know nothing of files. ``to_wire``
gives the JSON form of the Messages API (https://docs.claude.com/en/api/messages), which is the
only place where that form is made. ``extra`` keeps fields that we do not know.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tinyclaw.errors import Interrupted

Json = dict[str, Any]
Role = Literal["user", "assistant"]
Effect = Literal["read", "state", "write", "execute"]
Domain = Literal["local", "delegated"]
Mode = Literal["default", "plan"]
PermissionMode = Literal["read-only", "ask", "accept-edits", "auto"]

NO_OUTPUT = "(no output)"
"""Stands for an empty tool result: the API refuses blank text."""


@dataclass(frozen=True)
class Text:
    """Prose of either side."""

    text: str
    extra: Json = field(default_factory=dict)

    def to_wire(self) -> Json:
        return {"type": "text", "text": self.text, **self.extra}


@dataclass(frozen=True)
class Thinking:
    """Signed reasoning. It goes back unchanged, to the same model, or not at all."""

    thinking: str
    signature: str
    extra: Json = field(default_factory=dict)

    def to_wire(self) -> Json:
        return {"type": "thinking", "thinking": self.thinking, "signature": self.signature, **self.extra}


@dataclass(frozen=True)
class ToolUse:
    """A call that the model asks for."""

    id: str
    name: str
    input: Json
    extra: Json = field(default_factory=dict)

    def to_wire(self) -> Json:
        return {"type": "tool_use", "id": self.id, "name": self.name, "input": self.input, **self.extra}


@dataclass(frozen=True)
class Image:
    """A picture inside a tool result: base64 text and its media type (image/png, jpeg, gif, webp)."""

    media_type: str
    data: str

    def to_wire(self) -> Json:
        return {"type": "image", "source": {"type": "base64", "media_type": self.media_type, "data": self.data}}


@dataclass(frozen=True)
class ToolResult:
    """The one answer to a call. Blank text becomes ``NO_OUTPUT`` on the wire."""

    tool_use_id: str
    text: str
    is_error: bool = False
    images: tuple[Image, ...] = ()

    def to_wire(self) -> Json:
        text = self.text if self.text.strip() else NO_OUTPUT
        content: Any = text
        if self.images:
            content = [{"type": "text", "text": text}, *(image.to_wire() for image in self.images)]
        wire: Json = {"type": "tool_result", "tool_use_id": self.tool_use_id, "content": content}
        if self.is_error:
            wire["is_error"] = True
        return wire


@dataclass(frozen=True)
class Raw:
    """A block of a type that we do not know, kept as the API sent it."""

    data: Json

    def to_wire(self) -> Json:
        return dict(self.data)


Content = Text | Thinking | ToolUse | ToolResult | Image | Raw


@dataclass(frozen=True)
class Usage:
    """Tokens of one reply, as the provider reports them. ``input`` excludes what the cache served or stored."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def prompt(self) -> int:
        """All tokens of the request, however they were billed."""
        return self.input + self.cache_read + self.cache_write

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )


@dataclass(frozen=True)
class Spent:
    """What requests used together: their number, those beside the conversation included, tokens, US dollars.

    ``unpriced``: so many of the replies came from a model whose price was not known.
    """

    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    dollars: float = 0.0
    unpriced: int = 0

    @property
    def cost_usd(self) -> float | None:
        """US dollars to a millionth of a cent; None where they are not known."""
        return None if self.unpriced else round(self.dollars, 8)

    def __add__(self, other: Spent) -> Spent:
        usage, dollars = self.usage + other.usage, self.dollars + other.dollars
        return Spent(self.requests + other.requests, usage, dollars, self.unpriced + other.unpriced)


@dataclass(frozen=True)
class ToolSpec:
    """What the model is told of a tool. ``schema`` is a JSON schema of type object."""

    name: str
    description: str
    schema: Json

    def to_wire(self) -> Json:
        return {"name": self.name, "description": self.description, "input_schema": self.schema}


SidePurpose = Literal["summary", "selection", "extraction", "consolidation"]


@dataclass(frozen=True)
class Request:
    """One call to the model, in wire form: exactly what is sent, cache marks included.

    ``params`` are top-level fields beside ``model``, ``max_tokens``, ``tools``, ``system`` and
    ``messages`` (``thinking``, for example). ``purpose``: what a call beside the conversation is for; it is not
    sent.
    """

    model: str
    max_tokens: int
    tools: tuple[Json, ...]
    system: tuple[Json, ...]
    messages: tuple[Json, ...]
    params: Json = field(default_factory=dict)
    purpose: SidePurpose | None = None

    def to_wire(self) -> Json:
        wire: Json = {"model": self.model, "max_tokens": self.max_tokens, "messages": list(self.messages)}
        if self.system:
            wire["system"] = list(self.system)
        if self.tools:
            wire["tools"] = list(self.tools)
        return {**wire, **self.params}


@dataclass(frozen=True)
class Reply:
    """One complete message of the model. A reply that was cut never becomes a ``Reply``.

    ``stop_reason`` is the API's own word (end_turn, max_tokens, stop_sequence, tool_use, pause_turn,
    refusal, model_context_window_exceeded). Tool ids are distinct and non-empty.
    """

    content: tuple[Content, ...]
    stop_reason: str
    usage: Usage
    model: str
    extra: Json = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "\n\n".join(block.text for block in self.content if isinstance(block, Text) and block.text.strip())

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolUse))


@dataclass(frozen=True)
class TextDelta:
    """A piece of the answer as it arrives. For showing only; the transcript takes the whole message."""

    text: str


@dataclass(frozen=True)
class ThinkingDelta:
    """A piece of the model's reasoning as it arrives."""

    text: str


@dataclass(frozen=True)
class Retrying:
    """A request failed and is sent again after ``delay_seconds``; deltas shown so far are void.

    ``lost``: the tokens of the answer that broke off, which are billed, if one had begun.
    """

    reason: str
    delay_seconds: float
    attempt: int
    lost: Usage | None = None


ModelEvent = TextDelta | ThinkingDelta | Retrying | Reply


@dataclass(frozen=True)
class Diagnostic:
    """A fault that was lived with: where it is, what it is, how to mend it.

    ``str()`` gives ``file:line: message; mend``.
    """

    path: str
    line: int | None
    message: str
    mend: str = ""

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.message}" + (f"; {self.mend}" if self.mend else "")


@dataclass(frozen=True)
class ToolOutput:
    """What a tool returns when a plain string is not enough.

    ``revisions`` maps workspace paths to the revision that the model knows after this result; for
    PLAN.md and TODO.md that makes the result the statement of the file. ``paged`` results are
    already bounded by the tool and are never offloaded again. ``summary`` is one line for the
    terminal. ``folder`` is the one that the call looked into or worked in, from the root ("" for the root): what
    its instructions say is told before the next request. The folders of ``revisions`` need not be named. ``shown`` maps
    paths to revisions that the model knows if it gets all of the text. ``skill`` is the SKILL.md of the skill that the
    call made active, ``allowed`` what that allowed as it was read: None where it restricts nothing.
    """

    text: str
    is_error: bool = False
    revisions: Mapping[str, str] = field(default_factory=dict)
    images: tuple[Image, ...] = ()
    paged: bool = False
    summary: str = ""
    folder: str = ""
    shown: Mapping[str, str] = field(default_factory=dict)
    skill: str = ""
    allowed: tuple[str, ...] | None = None


class Interrupt:
    """The person's wish to stop, as a flag that blocking code waits on or checks.

    A signal handler or another thread sets it; nothing raises out of the middle of a write.
    """

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def clear(self) -> None:
        self._event.clear()

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep up to ``seconds``; True as soon as the person interrupts."""
        return self._event.wait(seconds)

    def check(self) -> None:
        """Raises: Interrupted if the person has interrupted."""
        if self.is_set():
            raise Interrupted("interrupted")
