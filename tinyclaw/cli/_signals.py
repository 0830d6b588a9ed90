"""Signals: the first Ctrl-C asks the running turn to stop, a second within a second ends the program.

A handler only sets a flag, so that nothing is torn in the middle of a write; the transcript says
what was interrupted. Once the person insists, the session is left as a crash would leave it, which
resumes. SIGTERM and SIGHUP interrupt too, and the program ends after the turn has been closed.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from tinyclaw.types import Interrupt

INSIST_SECONDS = 1.0
EXIT_INTERRUPTED = 130


class Signals:
    """Handlers for one process. Make it in the main thread.

    Attributes:
        interrupt: set while a turn runs and the person, or the system, wants it to stop.
        must_end: the program is to end as soon as the turn is closed.
    """

    def __init__(self) -> None:
        self.interrupt = Interrupt()
        self.must_end = False
        self._in_turn = False
        self._last = float("-inf")
        handlers = {signal.SIGINT: self._on_interrupt, signal.SIGTERM: self._on_end, signal.SIGHUP: self._on_end}
        for number, handler in handlers.items():
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                signal.signal(number, handler)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """While a turn runs signals are wishes; outside one, Ctrl-C raises KeyboardInterrupt at once."""
        self.interrupt.clear()
        self._in_turn = True
        try:
            yield
        finally:
            self._in_turn = False
            self.interrupt.clear()

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        insists = time.monotonic() - self._last < INSIST_SECONDS
        self._last = time.monotonic()
        if insists:
            _end()
        if not self._in_turn:
            raise KeyboardInterrupt
        self.interrupt.set()

    def _on_end(self, number: int, frame: FrameType | None) -> None:
        if not self._in_turn or self.must_end:
            _end()
        self.must_end = True
        self.interrupt.set()


def _end() -> NoReturn:
    raise SystemExit(EXIT_INTERRUPTED)
