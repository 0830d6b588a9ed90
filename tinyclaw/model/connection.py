"""The way to the Messages API: who we are, where it is, and connections that can be broken off.

An SDK client serves one request at a time and is kept for the next one, so that each request knows its
socket: shutting that down is the only thing that ends a read that blocks in another thread.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from tinyclaw.errors import ModelError
from tinyclaw.model.base import finish_import
from tinyclaw.model.faults import kind_of

if TYPE_CHECKING:
    import httpx2

DEFAULT_BASE_URL = "https://api.anthropic.com"
_PATH = "/v1/messages"
_OWN_PATH = re.compile(r"(/v1(/messages)?)?/*$")
_MODELS_PATH = "/v1/models?limit=1000"
_CONNECT_SECONDS = 15.0
_LIST_SECONDS = 5.0


@dataclass(frozen=True)
class Credential:
    """The key (ANTHROPIC_API_KEY) or token (ANTHROPIC_AUTH_TOKEN) that requests carry."""

    secret: str = field(repr=False)
    is_token: bool = False


@dataclass(frozen=True)
class Endpoint:
    """A server that speaks the Messages API, and its idle connections. Threads may share one.

    ``base_url`` is everything before ``/v1/messages``, without a slash at its end.
    ``idle_seconds`` is how long the server may send nothing, not even a ping, while we wait for it.
    ``now`` gives seconds since the epoch.
    """

    base_url: str
    credential: Credential
    idle_seconds: float = 120.0
    now: Callable[[], float] = time.time
    _idle: list[Connection] = field(default_factory=list, repr=False, compare=False)
    _making: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    """Held while a connection is made: a request that comes meanwhile waits for it rather than make another."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], *, idle_seconds: float = 120.0) -> Endpoint:
        """Read ANTHROPIC_API_KEY, else ANTHROPIC_AUTH_TOKEN, and ANTHROPIC_BASE_URL from a mapping.

        Raises: ModelError when there is no usable key or address. Nothing is imported or sent.
        """
        base_url = base_url_of(environment.get("ANTHROPIC_BASE_URL", ""))
        return cls(base_url, _credential(environment), idle_seconds)

    @property
    def url(self) -> str:
        """Where requests go, fit to be shown."""
        return self.server + _PATH

    @property
    def server(self) -> str:
        """The base URL without a user name or password."""
        return _without_user(self.base_url)

    def models(self) -> object | None:
        """The server's list of models as plain JSON; None when it gives none. Waits up to some seconds."""
        connection = self.take()
        try:
            return connection.models()
        except Exception as error:  # a server need not know the question
            if kind_of(error) is None:
                raise
            return None
        finally:
            self.give_back(connection)

    def warm(self) -> None:
        """Make the first connection's client in the background, which takes 0.1 s after the SDK's import."""
        threading.Thread(target=self._make_first, name="warm up", daemon=True).start()

    def take(self) -> Connection:
        """An idle connection, or a new one. Waits for the SDK's import."""
        with self._making:
            return self._idle.pop() if self._idle else Connection(self)

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next request, unless it was broken off."""
        if connection.is_aborted:
            connection.close()
        else:
            self._idle.append(connection)

    def _make_first(self) -> None:
        with self._making, contextlib.suppress(ImportError):  # raised again, and reported, by the first request
            if not self._idle:
                self._idle.append(Connection(self))


def base_url_of(text: str) -> str:
    """The base to which ``/v1/messages`` is added, however much of that the text already holds.

    Raises: ModelError when it is no http or https address.
    """
    if not text.strip():
        return DEFAULT_BASE_URL
    url = _OWN_PATH.sub("", text.strip())
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_address = False
    if not is_address:
        shown = re.sub(r"//[^/]*@", "//", text)
        raise ModelError(f"ANTHROPIC_BASE_URL is {shown!r}; it must look like {DEFAULT_BASE_URL}", kind="invalid")
    return url


def server_of(environment: Mapping[str, str]) -> str:
    """The server that ``Endpoint.from_environment`` would speak to; "" where its address is none."""
    try:
        return _without_user(base_url_of(environment.get("ANTHROPIC_BASE_URL", "")))
    except ModelError:
        return ""


def _without_user(base_url: str) -> str:
    scheme, netloc, path, _, _ = urlsplit(base_url)
    return urlunsplit((scheme, netloc.rpartition("@")[2], path, "", ""))


def _credential(environment: Mapping[str, str]) -> Credential:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        secret = environment.get(name, "").strip()
        if not secret:
            continue
        if not (secret.isascii() and secret.isprintable()):
            raise ModelError(f"{name} holds a character that no key has; copy the key again", kind="auth")
        return Credential(secret, is_token=name == "ANTHROPIC_AUTH_TOKEN")
    raise ModelError("no key: set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN (`tinyclaw demo` needs none)", kind="auth")


class Connection:
    """One SDK client with at most one request under way."""

    def __init__(self, endpoint: Endpoint) -> None:
        sdk = finish_import()
        secret, is_token = endpoint.credential.secret, endpoint.credential.is_token
        self._socket: socket.socket | None = None
        self.is_aborted = False
        self._stream_class = sdk.Stream[object]
        self._client = sdk.Anthropic(
            api_key=None if is_token else secret,
            auth_token=secret if is_token else None,
            base_url=endpoint.base_url,
            timeout=sdk.Timeout(endpoint.idle_seconds, connect=min(_CONNECT_SECONDS, endpoint.idle_seconds)),
            max_retries=0,
            default_headers=_gateway_headers(endpoint),
            open_telemetry=False,
            http_client=sdk.DefaultHttpxClient(event_hooks={"request": [self._watch]}),
        )

    def events(self, body: bytes) -> Iterator[object]:
        """Send a JSON body and yield the data of each event, as plain JSON values; pings are left out.

        ``client.post`` is the SDK's public door for bodies made elsewhere; ``messages.create`` would walk
        through what is already valid once more, about 2 ms for 200 messages.

        Raises: what the SDK and its transport raise.
        """
        with self._client.post(
            _PATH, cast_to=object, content=body, stream=True, stream_cls=self._stream_class
        ) as stream:
            yield from stream

    def models(self) -> object:
        """The server's list of models, as plain JSON. Raises: what the SDK and its transport raise."""
        return self._client.get(_MODELS_PATH, cast_to=object, options={"timeout": _LIST_SECONDS})

    def abort(self) -> None:
        """End the request under way at once, from any thread; the connection is of no further use."""
        self.is_aborted = True
        self._shut_down()

    def close(self) -> None:
        self._client.close()

    def _watch(self, request: httpx2.Request) -> None:
        request.extensions["trace"] = self._note_socket

    def _note_socket(self, event: str, info: Mapping[str, Any]) -> None:
        """Remember the socket that a request travels on. https://www.encode.io/httpcore/extensions/#trace"""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._socket = info["return_value"].get_extra_info("socket")
            if self.is_aborted:
                self._shut_down()

    def _shut_down(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                # SSLSocket.shutdown would also drop the TLS state under the thread that is reading.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def _gateway_headers(endpoint: Endpoint) -> dict[str, str]:
    """The SDK sends a key as ``Authorization: Bearer``; many gateways still look for it in ``x-api-key``."""
    if endpoint.credential.is_token or endpoint.base_url == DEFAULT_BASE_URL:
        return {}
    return {"X-Api-Key": endpoint.credential.secret}
