"""HTTP/1.1 with keep-alive: routes, plain answers, and chunked event streams that may break off."""

from __future__ import annotations

import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from socketserver import TCPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests.messages_api.steps import ERROR_TYPES, Fault, Refusal, Reply, fault
from tests.messages_api.stream import event, pieces, stream_events

if TYPE_CHECKING:
    from tests.messages_api.server import Exchange, MessagesApi

Json = dict[str, Any]


class Listener(ThreadingHTTPServer):
    """Serves one ``MessagesApi`` from its own threads until ``close``."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, api: MessagesApi, prefix: str, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.api = api
        self.prefix = prefix
        self.closing = threading.Event()
        self.request_numbers = count(1)
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()  # guards _connections
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def server_bind(self) -> None:
        """As the base class, but without asking the name server for the host's name."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def track(self, connection: socket.socket, *, open: bool) -> None:
        with self._lock:
            (self._connections.add if open else self._connections.discard)(connection)

    def close(self) -> None:
        self.closing.set()
        self.shutdown()
        self.server_close()
        with self._lock:
            for connection in self._connections:
                break_off(connection)


class Handler(BaseHTTPRequestHandler):
    """One connection; the API decides, this writes."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Listener

    def setup(self) -> None:
        super().setup()
        self.server.track(self.connection, open=True)

    def finish(self) -> None:
        self.server.track(self.connection, open=False)
        super().finish()

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:  # a client that goes away is its own business
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the test sees requests in the API object."""

    def do_POST(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        raw = self.rfile.read(length)
        if len(raw) < length:
            raise ConnectionError("the client has left in the middle of its request")
        received = time.monotonic()
        try:
            self._route(self.command, urlsplit(self.path).path, raw, received)
        except Refusal as refusal:
            self.server.api.note_refused(refusal.fault, raw)
            self._fault(refusal.fault)

    def _route(self, method: str, path: str, raw: bytes, received: float) -> None:
        api, route = self.server.api, (method, path.removeprefix(self.server.prefix))
        under_prefix = path.startswith(self.server.prefix)
        if under_prefix and route == ("POST", "/v1/messages"):
            self._create(path, raw, received)
        elif under_prefix and route == ("POST", "/v1/messages/count_tokens"):
            self._json(200, api.count(self.headers, raw))
        elif under_prefix and route == ("GET", "/v1/models"):
            api.authorize(self.headers)
            self._json(200, model_list(api.models))
        else:
            raise Refusal(fault(404, f"Not found: {method} {path}"))

    def _create(self, path: str, raw: bytes, received: float) -> None:
        exchange, step, message = self.server.api.create(path, self.headers, raw, received)
        try:
            self._deliver(exchange, step, message)
        except ConnectionError:
            self.server.api.note_disconnected(exchange)
            self.close_connection = True

    def _deliver(self, exchange: Exchange, step: Reply | Fault, message: Json) -> None:
        if isinstance(step, Fault):
            self._fault(step, exchange)
            return
        self._wait(step.first_byte_seconds)
        if exchange.body.get("stream"):
            self._stream(exchange, step, message)
        elif step.error:
            kind, text = step.error
            self._fault(fault(_STATUSES.get(kind, 500), text, type=kind), exchange)
        else:
            self._json(200, message, exchange=exchange, complete=not step.is_cut)

    def _stream(self, exchange: Exchange, step: Reply, message: Json) -> None:
        self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        chunks = delivered_chunks(step, message)
        for chunk in chunks[:-1]:
            self._chunk(chunk)
            self._wait(step.between_seconds)
        self.server.api.note_sent(exchange)
        breaks = step.is_cut and not step.error
        self._chunk(chunks[-1] if chunks else b"", last=not breaks)
        if breaks:
            self._break_off()

    def _wait(self, seconds: float) -> None:
        if seconds and self.server.closing.wait(seconds):
            raise ConnectionAbortedError("the server closes")

    def _chunk(self, data: bytes, *, last: bool = False) -> None:
        framed = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
        self.wfile.write(framed + (b"0\r\n\r\n" if last else b""))

    def _fault(self, answer: Fault, exchange: Exchange | None = None) -> None:
        body = {"type": "error", "error": {"type": answer.type, "message": answer.message}}
        self._json(answer.status, body, headers=dict(answer.headers), exchange=exchange)

    def _json(
        self,
        status: int,
        value: Json,
        *,
        headers: dict[str, str] | None = None,
        exchange: Exchange | None = None,
        complete: bool = True,
    ) -> None:
        data = json.dumps(value, ensure_ascii=False).encode()
        self._head(status, {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})})
        if exchange:
            self.server.api.note_sent(exchange)
        self.wfile.write(data if complete else data[: len(data) // 2])
        if not complete:
            self._break_off()

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("request-id", f"req_{next(self.server.request_numbers):06}")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _break_off(self) -> None:
        self.close_connection = True
        break_off(self.connection)


_STATUSES = {kind: status for status, kind in ERROR_TYPES.items()}


def delivered_chunks(step: Reply, message: Json) -> list[bytes]:
    """What of the message's stream goes out, in the pieces in which it is written."""
    events = stream_events(message)[: step.after_events]
    if step.error:
        kind, text = step.error
        events.append(event("error", error={"type": kind, "message": text}))
    if step.between_seconds:
        return events
    return list(pieces(b"".join(events)[: step.after_bytes]))


def model_list(models: Any) -> Json:
    """The answer to GET /v1/models, on one page."""
    data = [
        {
            "type": "model",
            "id": name,
            "display_name": name,
            "created_at": "2026-10-01T00:00:00Z",
            "lifecycle": "active",
            "max_input_tokens": window,
            "max_tokens": output,
        }
        for name, (window, output) in models.items()
    ]
    ids = [model["id"] for model in data] or [None]
    return {"data": data, "has_more": False, "first_id": ids[0], "last_id": ids[-1]}


def break_off(connection: socket.socket) -> None:
    """Close a connection in both directions, also when the other side was quicker."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
