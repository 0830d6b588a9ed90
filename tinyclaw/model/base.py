"""What a model is to the rest of the program, and the early start of the slow SDK import."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Protocol

from tinyclaw.types import Interrupt, ModelEvent, Request


class Model(Protocol):
    """Something that answers a request with one message."""

    @property
    def name(self) -> str:
        """The id that requests are made for unless they name another, as the API knows it."""

    def stream(self, request: Request, interrupt: Interrupt) -> Iterator[ModelEvent]:
        """Ask for one message; the last item is the complete ``Reply``, and there is exactly one.

        Deltas before it are for showing only and are void after a ``Retrying``. A stream that was cut,
        that carried an error, or whose tool arguments are not complete JSON objects never becomes a reply.
        Leaving the iterator early closes the connection.

        Raises:
            PromptTooLong: the request does not fit the model's window.
            ModelError: there is no usable reply, retries included.
            Interrupted: ``interrupt`` was set before the reply was complete.
        """


_importing: threading.Thread | None = None


def start_import() -> None:
    """Begin to import the SDK in the background; later calls do nothing.

    The import takes about two seconds, so whatever will call a model does this first and reads its
    workspace meanwhile.
    """
    global _importing
    if _importing is None:
        _importing = threading.Thread(target=_import_quietly, name="import anthropic", daemon=True)
        _importing.start()


def finish_import() -> ModuleType:
    """The ``anthropic`` module, as soon as it is there.

    Joining the thread, rather than importing beside it, keeps the import lock's deadlock avoidance from
    handing out a half-made package.
    """
    start_import()
    if _importing is not None:
        _importing.join()
    import anthropic

    return anthropic


def _import_quietly() -> None:
    """Import with the collector at rest: what an import makes stays, and looking through it is a tenth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        with contextlib.suppress(ImportError):  # raised again, and reported, by finish_import
            import anthropic  # noqa: F401
    finally:
        gc.freeze()
        if collects:
            gc.enable()
