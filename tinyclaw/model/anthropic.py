"""The Messages API through the ``anthropic`` SDK: stream, interrupt, retry.

The SDK waits in a thread of its own, which hands over events through a queue. So the caller notices an
interrupt within ``_POLL_SECONDS`` whatever the network does: the import, the connect, the wait for the
first byte, the stream.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from tinyclaw.errors import Interrupted, ModelError
from tinyclaw.model.assembly import Assembly
from tinyclaw.model.connection import Connection, Endpoint
from tinyclaw.model.faults import Place, to_model_error
from tinyclaw.model.retry import RetryPolicy, retrying
from tinyclaw.types import Interrupt, Json, ModelEvent, Request

_POLL_SECONDS = 0.03
_DRAIN_SECONDS = 0.05


class AnthropicModel:
    """A model behind an ``Endpoint``. Threads may share one.

    ``name`` is what requests are made for; a request may name another model of the same server.
    """

    def __init__(self, name: str, endpoint: Endpoint, retry: RetryPolicy | None = None) -> None:
        self.name = name
        self._endpoint = endpoint
        self._retry = retry or RetryPolicy()
        self._encoder = _Encoder()

    def stream(self, request: Request, interrupt: Interrupt) -> Iterator[ModelEvent]:
        """See ``Model.stream``. ``request`` goes out as it is, with ``stream`` set."""
        body, taken = self._encoder.encode(request)
        return retrying(lambda: self._attempt(request.model, body, taken, interrupt), self._retry, interrupt)

    def _attempt(self, model: str, body: bytes, taken: tuple[str, ...], interrupt: Interrupt) -> Iterator[ModelEvent]:
        interrupt.check()
        assembly = Assembly(model, taken)
        call = _Call(self._endpoint, model, body)
        try:
            for event in call.events(interrupt):
                delta = assembly.add(event)
                if delta is not None:
                    yield delta
                if assembly.is_complete:
                    break
            reply = assembly.reply()
        except (ModelError, Interrupted) as error:
            error.lost = assembly.lost
            raise
        finally:
            call.end(whole=assembly.is_complete)
        yield reply


class _Call:
    """One HTTP request in a thread of its own."""

    def __init__(self, endpoint: Endpoint, model: str, body: bytes) -> None:
        self._endpoint = endpoint
        self._place = Place(endpoint.url, model, endpoint.credential.secret)
        self._body = body
        self._items: queue.SimpleQueue[object] = queue.SimpleQueue()  # events, then an exception or None
        self._holding = threading.Lock()  # what _connection names is ours, and not yet lent to another request
        self._connection: Connection | None = None
        self._is_abandoned = False
        self._thread = threading.Thread(target=self._run, name="messages api", daemon=True)
        self._thread.start()

    def events(self, interrupt: Interrupt) -> Iterator[object]:
        """The events as they arrive.

        Raises:
            ModelError: the request failed.
            Interrupted: the person interrupted.
        """
        while True:
            interrupt.check()
            try:
                item = self._items.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                continue
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item

    def end(self, *, whole: bool) -> None:
        """Break off what is still under way. A whole message's connection is left to be used again."""
        if whole:
            self._thread.join(_DRAIN_SECONDS)
            return
        with self._holding:
            self._is_abandoned = True
            if self._connection is not None:
                self._connection.abort()

    def _run(self) -> None:
        try:
            connection = self._endpoint.take()
            try:
                self._hold(connection)
                for event in connection.events(self._body):
                    self._items.put(event)
            finally:
                self._hold(None)
                self._endpoint.give_back(connection)
            self._items.put(None)
        except BaseException as error:  # the thread boundary: raised again where somebody waits for it
            self._items.put(to_model_error(error, self._place, self._endpoint.now()) or error)

    def _hold(self, connection: Connection | None) -> None:
        with self._holding:
            self._connection = connection
            if self._is_abandoned and connection is not None:
                connection.abort()


class _Encoded(NamedTuple):
    """A message, its JSON, and the ids of the calls in it. It is held here, so that its ``id()`` stays its own."""

    message: Json
    data: bytes
    calls: tuple[str, ...]

    @classmethod
    def of(cls, message: Json) -> _Encoded:
        content = message.get("content")
        blocks: list[Json] = content if isinstance(content, list) else []
        calls = tuple(block["id"] for block in blocks if block.get("type") == "tool_use")
        return cls(message, _encode(message), calls)


class _Encoder:
    """Makes bodies. A session sends the same things again and again, so each is encoded once and kept.

    Messages are known by identity: what makes requests never changes one that it has handed out.
    """

    def __init__(self) -> None:
        self._head: tuple[Json, bytes] = ({}, b"{}")
        self._known: dict[int, _Encoded] = {}

    def encode(self, request: Request) -> tuple[bytes, tuple[str, ...]]:
        """The body, and the ids of all calls in it.

        Raises: ModelError when the request holds what JSON cannot.
        """
        head = {**request.to_wire(), "stream": True}
        encoded = [self._known.get(id(message)) or _Encoded.of(message) for message in head.pop("messages")]
        self._known = {id(each.message): each for each in encoded}
        if head != self._head[0]:
            self._head = (head, _encode(head))
        messages = b",".join(each.data for each in encoded)
        body = b"".join((self._head[1][:-1], b',"messages":[', messages, b"]}"))
        return body, tuple(chain.from_iterable(each.calls for each in encoded))


def _encode(value: Json) -> bytes:
    """Compact JSON. Halves of surrogate pairs, which no UTF-8 text has, become question marks."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise ModelError(f"the request is not JSON: {error}", kind="invalid") from error
    return text.encode("utf-8", "replace")
