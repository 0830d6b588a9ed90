"""The console entry. It imports next to nothing, so that Ctrl-C at any moment ends without a traceback."""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, NoReturn

_GC_ALLOCATIONS = 100_000
"""An import makes objects that stay. Looking among them for garbage every 700 would take a tenth of the start."""


def main() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    gc.set_threshold(_GC_ALLOCATIONS, 20, 20)
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # while there is nothing to close yet
    sys.unraisablehook = _unraisable
    _open_standard_streams()
    from tinyclaw.cli._group import FAILED, INTERRUPTED, run

    try:
        signal.signal(signal.SIGINT, handler)
        code = run(sys.argv[1:])
        _flush()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done
    except KeyboardInterrupt:
        code = INTERRUPTED
    except OSError:  # whoever read our output has left
        code = FAILED
    _leave(code)


def _unraisable(lost: sys.UnraisableHookArgs) -> None:
    """A Ctrl-C that came in a callback of the interpreter, as while a module is imported, ends us all the same."""
    if isinstance(lost.exc_value, KeyboardInterrupt):
        os._exit(130)
    sys.__unraisablehook__(lost)


def _open_standard_streams() -> None:
    """Streams that exist and can carry any text; a closed one would let a file take its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):
        stream: IO[str] | None = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def _leave(code: int) -> NoReturn:
    """End without the interpreter's own end, which would kill a thread in the middle of the SDK's import."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError, ValueError):
        _flush()
    os._exit(code)
