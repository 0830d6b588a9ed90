"""The server: what is asked, what is answered, and what a test can see of it."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from email.message import Message as Headers
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.messages_api.cache import CHARS_PER_TOKEN, Prompt, PromptCache, measure
from tests.messages_api.listener import Listener
from tests.messages_api.request import Received
from tests.messages_api.rules import first_fault
from tests.messages_api.signatures import Signatures, sign
from tests.messages_api.steps import Fault, Json, Refusal, Reply, Script, Step, fault, message_of, too_long

MAXIMUM_BODY_BYTES = 32 * 1024 * 1024
MODELS = {
    "claude-opus-5-5": (1_000_000, 128_000),
    "claude-sonnet-5-5": (1_000_000, 128_000),
    "claude-haiku-5-5": (200_000, 64_000),
}
"""Input and output limits that ``GET /v1/models`` reports by default; made up for the simulation."""


@dataclass
class Exchange:
    """One accepted request and its answer. ``disconnected``: the client left before the answer was out.

    ``received`` and ``sent`` are ``time.monotonic()`` when the body had been read whole and just before the last
    bytes of the answer left; ``sent`` and ``usage`` are None until then, ``usage`` also after a fault.
    """

    path: str
    headers: Headers
    body: Json
    received: float
    sent: float | None = None
    usage: Json | None = None
    disconnected: bool = False

    @property
    def server_seconds(self) -> float:
        """The time that the server took for itself, waits of a slow step included."""
        return (self.sent or self.received) - self.received


@dataclass(frozen=True)
class Refused:
    """A request that got no step: it broke a rule, or the script had none left."""

    status: int
    message: str
    body: Any


class MessagesApi:
    """A Messages API on a free port of 127.0.0.1, from construction until ``close``.

    Args:
        script: steps, one for each accepted request to /v1/messages, or a function from body to step.
        window_tokens: refuse longer prompts with "prompt is too long".
        known_thinking: pairs of thinking and signature to accept beside what this server signs.
        clock: seconds, for the expiry of the prompt cache.
        models: id to (input, output) limits, for GET /v1/models.
        prefix: path under which the API lives, such as "/gw/anthropic".
        port: 0 for a free one.
        log: folder that gets each accepted body as NNN.json, each refusal as refused-NNN.json, and a line of
            usage and times for each answer in exchanges.jsonl.
    """

    def __init__(
        self,
        script: Script = (),
        *,
        window_tokens: int | None = None,
        known_thinking: Iterable[tuple[str, str]] = (),
        clock: Callable[[], float] = time.monotonic,
        models: Mapping[str, tuple[int, int]] = MODELS,
        prefix: str = "",
        port: int = 0,
        log: Path | None = None,
    ) -> None:
        self.models = models
        self._window_tokens = window_tokens
        self._signatures = Signatures(known_thinking)
        self._cache = PromptCache(clock)
        self._log = log
        self._changed = threading.Condition()
        self._start(script)
        self._listener = Listener(self, prefix, port)
        self.url = f"http://127.0.0.1:{self._listener.server_port}{prefix}"

    def __enter__(self) -> MessagesApi:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening and break every open connection."""
        self._listener.close()

    def reset(self, script: Script) -> None:
        """Begin a new script and forget what was seen. The prompt cache and issued signatures stay, as at the API."""
        with self._changed:
            self._start(script)

    @property
    def requests(self) -> list[Json]:
        """The bodies of the accepted requests to /v1/messages, in order; do not change them, they share blocks."""
        return [exchange.body for exchange in self.exchanges]

    @property
    def headers(self) -> list[Headers]:
        """The headers of the accepted requests; look-up ignores case."""
        return [exchange.headers for exchange in self.exchanges]

    @property
    def usages(self) -> list[Json]:
        """What was reported for each request that got a reply, cut ones included."""
        return [exchange.usage for exchange in self.exchanges if exchange.usage is not None]

    @property
    def times(self) -> list[tuple[float, float]]:
        """(received, sent) of each answered request; see ``Exchange``."""
        return [(exchange.received, exchange.sent) for exchange in self.exchanges if exchange.sent is not None]

    @property
    def steps_left(self) -> int:
        """How many steps of the script were not taken; 0 for a function."""
        return len(self._steps)

    def wait_for(self, count: int, timeout_seconds: float = 10.0) -> None:
        """Return once ``count`` requests have been accepted.

        Raises:
            TimeoutError: they have not, in time; the text says what was seen.
        """
        try:
            self.wait_until(lambda: len(self.exchanges) >= count, timeout_seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{len(self.exchanges)} of {count} requests arrived; refused: {self.refused}") from error

    def wait_until(self, holds: Callable[[], bool], timeout_seconds: float = 10.0) -> None:
        """Return once ``holds()``, asked at each request, answer, refusal and lost client. Raises: TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(holds, timeout_seconds):
                raise TimeoutError(f"not within {timeout_seconds} s")

    def create(self, path: str, headers: Headers, raw: bytes, received: float) -> tuple[Exchange, Step, Json]:
        """Judge a request to /v1/messages: the exchange, the step, and the message of a reply.

        Raises:
            Refusal: with what to answer instead.
        """
        body, prompt = self._accepted(headers, raw)
        with self._changed:
            step = self._next_step(body)
            exchange = Exchange(path, headers, self._sharing_blocks(body, prompt), received)
            self.exchanges.append(exchange)
            number = len(self.exchanges)
            self._changed.notify_all()
        self._write(f"{number:03}.json", raw)
        if isinstance(step, Fault):
            return exchange, step, {}
        message = message_of(step, model=body["model"], sign=sign)
        self._signatures.note(body["model"], message["content"])
        message["usage"] = exchange.usage = self._usage(step, message, prompt)
        return exchange, step, message

    def count(self, headers: Headers, raw: bytes) -> Json:
        """The answer to /v1/messages/count_tokens. Raises: Refusal."""
        _, prompt = self._accepted(headers, raw, counting=True)
        return {"input_tokens": prompt.tokens}

    def authorize(self, headers: Headers) -> None:
        """Raises: Refusal for a request without a version or a key."""
        bearer = headers.get("authorization", "").removeprefix("Bearer ").strip()
        if not (bearer or headers.get("x-api-key")):
            raise Refusal(fault(401, "x-api-key header is required"))
        if not headers.get("anthropic-version"):
            raise Refusal(fault(400, "anthropic-version: header is required"))

    def note_sent(self, exchange: Exchange) -> None:
        """Called just before the last bytes of an answer leave."""
        with self._changed:
            exchange.sent = time.monotonic()
            self._changed.notify_all()
            if self._log:
                line = {"usage": exchange.usage, "received": exchange.received, "sent": exchange.sent}
                with (self._log / "exchanges.jsonl").open("a") as file:
                    file.write(json.dumps(line) + "\n")

    def note_disconnected(self, exchange: Exchange) -> None:
        """Called when the client, or ``close``, ended the connection before the answer was out."""
        with self._changed:
            exchange.disconnected = True
            self._changed.notify_all()

    def note_refused(self, answer: Fault, raw: bytes) -> None:
        try:
            body = json.loads(raw)
        except ValueError:
            body = raw.decode(errors="replace")
        with self._changed:
            self.refused.append(Refused(answer.status, answer.message, body))
            self._changed.notify_all()
            name = f"refused-{len(self.refused):03}.json"
        refusal = {"status": answer.status, "message": answer.message, "body": body}
        self._write(name, json.dumps(refusal).encode())

    def _start(self, script: Script) -> None:
        self._script = script if callable(script) else None
        self._steps = [] if callable(script) else list(script)
        self._blocks: dict[bytes, Json] = {}
        self.exchanges: list[Exchange] = []
        self.refused: list[Refused] = []

    def _accepted(self, headers: Headers, raw: bytes, *, counting: bool = False) -> tuple[Json, Prompt]:
        self.authorize(headers)
        body = _parsed(raw)
        message = first_fault(Received(body, counting, self._signatures.knows))
        if message:
            raise Refusal(fault(400, message))
        prompt = measure(body)
        if self._window_tokens is not None and prompt.tokens > self._window_tokens and not counting:
            raise Refusal(too_long(prompt.tokens, self._window_tokens))
        return body, prompt

    def _next_step(self, body: Json) -> Step:
        if not self._script and not self._steps:
            raise Refusal(fault(500, f"the script has no step for request {len(self.exchanges) + 1}"))
        step = self._script or self._steps.pop(0)
        if not callable(step):
            return step
        try:
            return step(body)
        except Exception as error:  # a script is a test's own code: what it raises must reach the test
            raise Refusal(fault(500, f"the script raised {type(error).__name__}: {error}")) from error

    def _usage(self, step: Reply, message: Json, prompt: Prompt) -> Json:
        written = json.dumps(message["content"], ensure_ascii=False)
        output = {"output_tokens": max(1, len(written) // CHARS_PER_TOKEN)}
        return {**self._cache.account(prompt), **output, **step.usage}

    def _sharing_blocks(self, body: Json, prompt: Prompt) -> Json:
        """The body with blocks of earlier, equal prefixes in place of its own: memory grows with what is new."""
        marked = {mark.position for mark in prompt.marks}
        position = len(prompt.digests)
        for message in reversed(body["messages"]):
            content = message["content"]
            if isinstance(content, str):
                position -= 1
                continue
            for index in reversed(range(len(content))):
                position -= 1
                if position not in marked:
                    content[index] = self._blocks.setdefault(prompt.digests[position], content[index])
        return body

    def _write(self, name: str, data: bytes) -> None:
        if self._log:
            (self._log / name).write_bytes(data)


def _parsed(raw: bytes) -> Json:
    if len(raw) > MAXIMUM_BODY_BYTES:
        raise Refusal(fault(413, "Request exceeds the maximum size"))
    try:
        body = json.loads(raw, parse_constant=_no_constant)
    except ValueError as error:
        raise Refusal(fault(400, f"The request body is not valid JSON: {error}")) from error
    if not isinstance(body, dict):
        raise Refusal(fault(400, "The request body is not a JSON object"))
    if re.search(rb"\\u[dD][89a-fA-F]", raw):
        _no_lone_surrogate(body)
    return body


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def _no_lone_surrogate(body: Json) -> None:
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        message = f"The request body is not valid JSON: no low surrogate in string: char {error.start}"
        raise Refusal(fault(400, message)) from error
