"""Steps of a script: what the server does with one request.

A step is a value; ``cut``, ``error_event`` and ``slow`` take a reply and give a changed one, so they
combine: ``slow(cut(reply("..."), after_events=3), first_byte_seconds=1)``. Where a step is expected, a
function of the request's body that returns a step will do too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

Json = dict[str, Any]
Tool = tuple[str, Json] | tuple[str, Json, str]

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""https://platform.claude.com/docs/en/api/errors; every other 5xx is an api_error."""


@dataclass(frozen=True)
class Reply:
    """One message of the model and the way it is delivered.

    ``after_events`` and ``after_bytes`` end the delivery early: with the ``error`` event, or, without one,
    by closing the connection. Negative counts are counted from the end.
    """

    blocks: tuple[Json, ...]
    stop_reason: str
    stop_sequence: str | None = None
    usage: Mapping[str, int] = field(default_factory=dict)
    after_events: int | None = None
    after_bytes: int | None = None
    error: tuple[str, str] | None = None
    first_byte_seconds: float = 0.0
    between_seconds: float = 0.0

    @property
    def is_cut(self) -> bool:
        return self.after_events is not None or self.after_bytes is not None


@dataclass(frozen=True)
class Fault:
    """An HTTP error in the API's shape."""

    status: int
    type: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusal(Exception):
    """Carries the fault to answer with instead of a step."""

    def __init__(self, answer: Fault) -> None:
        super().__init__(answer.message)
        self.fault = answer


Step = Reply | Fault
ScriptedStep = Step | Callable[[Json], Step]
Script = Sequence[ScriptedStep] | Callable[[Json], Step]


def reply(
    text: str | None = None,
    *,
    tools: Sequence[Tool] = (),
    thinking: str | None = None,
    stop_reason: str | None = None,
    stop_sequence: str | None = None,
    usage: Mapping[str, int] | None = None,
    blocks: Sequence[Json] | None = None,
) -> Reply:
    """A message: thinking, then text, then calls; or exactly ``blocks``.

    A tool is ``(name, input)`` or ``(name, input, id)``; without an id, or with a raw block that has no ``id``
    key, each delivery gets an id of its own. Thinking without a signature is signed when it is sent.
    ``stop_reason`` is tool_use when there is a call, otherwise end_turn. ``usage`` replaces single
    figures of the computed one.
    """
    content = list(blocks) if blocks is not None else _content(text, tools, thinking)
    derived = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
    return Reply(tuple(content), stop_reason or derived, stop_sequence, usage or {})


def fault(status: int, message: str = "", *, headers: Mapping[str, str] | None = None, type: str = "") -> Fault:
    """An HTTP error, for example ``fault(429, headers={"retry-after": "2"})``."""
    kind = type or ERROR_TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    return Fault(status, kind, message or f"scripted {kind}", headers or {})


def too_long(tokens: int, maximum: int) -> Fault:
    """The refusal of a prompt that exceeds the model's window."""
    return fault(400, f"prompt is too long: {tokens} tokens > {maximum} maximum")


def cut(of: Reply, *, after_events: int | None = None, after_bytes: int | None = None) -> Reply:
    """The reply until the connection breaks, after so many events or bytes of its stream.

    ``after_events=-3`` leaves out the last three: the last block is complete, but never closed.
    """
    if (after_events is None) == (after_bytes is None):
        raise ValueError("cut takes either after_events or after_bytes")
    return replace(of, after_events=after_events, after_bytes=after_bytes)


def error_event(
    kind: str = "overloaded_error", message: str = "Overloaded", *, of: Reply | None = None, after_events: int = 1
) -> Reply:
    """The first events of a reply, then an ``error`` event in the stream, which ends there."""
    return replace(of or reply("Never seen whole."), after_events=after_events, error=(kind, message))


def slow(of: Reply, *, first_byte_seconds: float = 0.0, between_seconds: float = 0.0) -> Reply:
    """The reply with a wait before its headers and between its events."""
    return replace(of, first_byte_seconds=first_byte_seconds, between_seconds=between_seconds)


def message_of(step: Reply, *, model: str, sign: Callable[[str, str], str]) -> Json:
    """The API's message for a step, with the ids and signatures that the step leaves open; usage is not in it yet."""
    return {
        "id": f"msg_{uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [_completed(block, model, sign) for block in step.blocks],
        "stop_reason": step.stop_reason,
        "stop_sequence": step.stop_sequence,
    }


def step_from_json(value: Any) -> Step:
    """A step as a script file writes it: ``"text"`` or ``{"NAME": {arguments}}`` with the name of a function above.

    Raises:
        ValueError: no such step, or arguments that it does not take.
    """
    if isinstance(value, str):
        return reply(value)
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError(f"a step is a text or an object with one key of {', '.join(_STEPS)}: {value!r}")
    [(name, arguments)] = value.items()
    if name not in _STEPS or not isinstance(arguments, dict):
        raise ValueError(f"no step {name!r}; one of {', '.join(_STEPS)} with an object of arguments")
    arguments = {key: step_from_json(item) if key == "of" else item for key, item in arguments.items()}
    try:
        return _STEPS[name](**arguments)
    except TypeError as error:
        raise ValueError(f"step {name!r}: {error}") from error


_STEPS: dict[str, Callable[..., Step]] = {
    "reply": reply,
    "fault": fault,
    "too_long": too_long,
    "cut": cut,
    "error_event": error_event,
    "slow": slow,
}


def _content(text: str | None, tools: Sequence[Tool], thinking: str | None) -> list[Json]:
    content: list[Json] = []
    if thinking is not None:
        content.append({"type": "thinking", "thinking": thinking})
    if text is not None:
        content.append({"type": "text", "text": text})
    for name, arguments, *ids in tools:
        content.append({"type": "tool_use", "name": name, "input": arguments} | ({"id": ids[0]} if ids else {}))
    return content


def _completed(block: Json, model: str, sign: Callable[[str, str], str]) -> Json:
    if block["type"] == "tool_use" and "id" not in block:
        return {"type": "tool_use", "id": f"toolu_{uuid4().hex[:24]}", **block}
    if block["type"] == "thinking" and "signature" not in block:
        return {**block, "signature": sign(model, block["thinking"])}
    return dict(block)
