"""Text on standard input that is no terminal: a prompt, or what belongs to one."""

from __future__ import annotations

import os
import select
import stat

FIRST_BYTE_SECONDS = 0.3
"""An open pipe that nobody writes to must not hold a prompt that was given otherwise."""

_CHUNK_BYTES = 65_536
_TICK_SECONDS = 0.2


def read_piped() -> str:
    """All text up to the end of standard input; nothing when it is a terminal."""
    return "" if _is_terminal() else _decode(_read_all())


def read_waiting() -> str:
    """As ``read_piped``, but nothing when no byte comes soon."""
    if _is_terminal() or not _comes_soon():
        return ""
    return _decode(_read_all())


def joined(prompt: str, piped: str) -> str:
    """The prompt with what was piped behind it."""
    return "\n\n".join(part for part in (prompt.strip(), piped.strip("\r\n")) if part.strip())


def _is_terminal() -> bool:
    return os.isatty(0)


def _comes_soon() -> bool:
    if stat.S_ISREG(os.fstat(0).st_mode):
        return True
    ready, _, _ = select.select([0], [], [], FIRST_BYTE_SECONDS)
    return bool(ready)


def _read_all() -> bytes:
    """Never blocks for long, since Python acts on a signal that comes between two reads only when the next one ends."""
    pieces = []
    try:
        while True:
            if select.select([0], [], [], _TICK_SECONDS)[0]:
                pieces.append(os.read(0, _CHUNK_BYTES))
                if not pieces[-1]:
                    break
    except OSError:  # a folder, or a terminal that has gone
        return b""
    return b"".join(pieces)


def _decode(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
