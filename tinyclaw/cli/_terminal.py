"""One output stream: whether it is a terminal, whether it takes colour, how wide it is."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Literal

Look = Literal["dim", "bold", "green", "red", "yellow"]
_CODES: dict[Look, str] = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}


@dataclass(frozen=True)
class Terminal:
    """A stream and what it can show.

    Its cursor ``can_move`` on a terminal whose TERM is not dumb; colour needs that and no NO_COLOR
    (https://no-color.org).
    """

    stream: IO[str]
    is_terminal: bool
    can_move: bool
    has_colour: bool

    @classmethod
    def of(cls, stream: IO[str], environment: Mapping[str, str]) -> Terminal:
        """What ``stream`` is, judged for itself alone."""
        is_terminal = stream.isatty()
        can_move = is_terminal and environment.get("TERM", "dumb") not in ("", "dumb")
        return cls(stream, is_terminal, can_move, can_move and not environment.get("NO_COLOR"))

    @property
    def columns(self) -> int:
        """The width now; 80 where nobody knows."""
        return max(shutil.get_terminal_size().columns, 1)

    def styled(self, text: str, look: Look) -> str:
        """``text`` in that look, or as it is where there is no colour."""
        return f"\x1b[{_CODES[look]}m{text}\x1b[0m" if self.has_colour and text else text

    def write(self, text: str) -> None:
        """Show at once. Raises: BrokenPipeError when the reader has left."""
        self.stream.write(text)
        self.stream.flush()


def standard_terminals() -> tuple[Terminal, Terminal]:
    """Standard output and standard error."""
    return Terminal.of(sys.stdout, os.environ), Terminal.of(sys.stderr, os.environ)
