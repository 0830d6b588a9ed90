"""Reads one message from a terminal: a line to edit, in which a paste of many lines stays one message.

The terminal's own line mode would cut lines at 4,096 characters and take each pasted line for an
Enter, so keys are read one by one. Bracketed pastes (ESC [ 200 ~ to ESC [ 201 ~) are taken whole;
where a terminal does not mark them, lines that come in one burst are one message too.
"""

from __future__ import annotations

import codecs
import os
import re
import select
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tinyclaw.cli._terminal import Terminal
from tinyclaw.width import cut, width

BURST_SECONDS = 0.03
"""A person's next key is not faster than this; a paste's next byte is."""
_IDLE_SECONDS = 0.25
_SHOWN_CHARS = 400
_PASTE_ON, _PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
_PASTE_START, _PASTE_END = "\x1b[200~", "\x1b[201~"
_KEY = re.compile(
    r"(?P<text>(?:[^\x00-\x1f\x7f]|[\r\n\t](?=.))+)"  # a line end with more behind it is no Enter
    r"|\x1b(?:\[[0-9;?]*[@-~]|O[A-Za-z]|[^\[O])|.",
    re.DOTALL,
)
_INCOMPLETE = re.compile(r"\x1b(?:[\[O][0-9;?]*)?\Z")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_ESCAPES = re.compile("\x1b(?:\\[[0-9;?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\^_])")

_LEFT, _RIGHT, _UP, _DOWN = ("\x1b[D", "\x1bOD"), ("\x1b[C", "\x1bOC"), ("\x1b[A", "\x1bOA"), ("\x1b[B", "\x1bOB")
_HOME = ("\x01", "\x1b[H", "\x1bOH", "\x1b[1~")
_LAST = ("\x05", "\x1b[F", "\x1bOF", "\x1b[4~")


class EndOfInput(Exception):
    """The person pressed Ctrl-D on an empty line, or the terminal has gone."""


@dataclass
class Editor:
    """The line being edited on the terminal behind file descriptor 0; it is shown on ``screen``.

    ``idle`` is asked a few times a second while nothing is typed; what it returns is shown above the line.
    ``stop`` is asked as often; once it says True, the input has ended.
    """

    screen: Terminal
    idle: Callable[[], str] = lambda: ""
    stop: Callable[[], bool] = lambda: False
    history: list[str] = field(default_factory=list)
    _text: str = ""
    _at: int = 0
    _place: int = 0
    _row: int = 0
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    def read(self, prompt: str) -> str:
        """One message, ``\\n`` between its lines, without controls. A dumb terminal edits its lines itself.

        Raises: EndOfInput; KeyboardInterrupt for Ctrl-C, which takes back what was typed.
        """
        if not self.screen.can_move:
            return _plain_line(self.screen, prompt)
        self._text, self._at, self._row = "", 0, 0
        self._place = len(self.history)
        with _keys(self.screen):
            self._draw(prompt)
            try:
                while not self._edit(prompt):
                    pass
            finally:
                self._at = len(self._text)
                self._draw(prompt)
                self.screen.write("\r\n")
        if self._text.strip() and self.history[-1:] != [self._text]:
            self.history.append(self._text)
        return self._text

    def _edit(self, prompt: str) -> bool:
        """Take what was typed next; True when the message is complete."""
        typed = self._next_input(prompt)
        while _INCOMPLETE.search(typed) and self._has_more():
            typed += self._read()
        while typed:
            key = _KEY.match(typed)
            assert key is not None
            typed = typed[key.end() :]
            if key[0] == _PASTE_START:
                typed = self._take_paste(typed)
            elif key["text"]:
                self._insert(clean(key["text"]))
            elif key[0] in "\r\n":
                if not self._has_more():
                    return True
                self._insert("\n")
            else:
                self._press(key[0])
        self._draw(prompt)
        return False

    def _take_paste(self, typed: str) -> str:
        """Read on to the paste's end and take it in; returns what was typed behind it."""
        while _PASTE_END not in typed:
            if not self._has_more(seconds=1.0):
                break  # its end is lost
            typed += self._read()
        pasted, _, behind = typed.partition(_PASTE_END)
        self._insert(clean(pasted))
        return behind

    def _press(self, key: str) -> None:
        before, behind = self._text[: self._at], self._text[self._at :]
        if key == "\x04" and not self._text:
            raise EndOfInput
        if key in ("\x7f", "\x08"):
            self._set(before[:-1], behind)
        elif key in ("\x04", "\x1b[3~"):
            self._set(before, behind[1:])
        elif key == "\x15":
            self._set("", behind)
        elif key == "\x0b":
            self._set(before, "")
        elif key == "\x17":
            self._set(before[: before.rstrip().rfind(" ") + 1], behind)
        elif key in _LEFT:
            self._at = max(self._at - 1, 0)
        elif key in _RIGHT:
            self._at = min(self._at + 1, len(self._text))
        elif key in _HOME:
            self._at = 0
        elif key in _LAST:
            self._at = len(self._text)
        elif key in _UP or key in _DOWN:
            self._recall(-1 if key in _UP else 1)
        elif key == "\t":
            self._insert(key)

    def _recall(self, step: int) -> None:
        self._place = min(max(self._place + step, 0), len(self.history))
        self._set(self.history[self._place] if self._place < len(self.history) else "", "")

    def _insert(self, text: str) -> None:
        self._set(self._text[: self._at] + text, self._text[self._at :])

    def _set(self, before: str, behind: str) -> None:
        self._text, self._at = before + behind, len(before)

    # Input

    def _next_input(self, prompt: str) -> str:
        while not self._has_more(seconds=_IDLE_SECONDS):
            if self.stop():
                raise EndOfInput
            if said := self.idle():
                self._erase()
                self.screen.write(said + "\r\n")
                self._draw(prompt)
        return self._read()

    def _has_more(self, *, seconds: float = BURST_SECONDS) -> bool:
        return bool(select.select([0], [], [], seconds)[0])

    def _read(self) -> str:
        try:
            data = os.read(0, 65_536)
        except OSError as error:  # the terminal has gone
            raise EndOfInput from error
        if not data:
            raise EndOfInput
        return self._decoder.decode(data)

    # The screen

    def _draw(self, prompt: str) -> None:
        """Show the line again, with the cursor in its place; a long text is shown by its end."""
        columns = self.screen.columns
        before, behind = _shown(self._text[: self._at], from_end=True), _shown(self._text[self._at :])
        self._erase()
        self.screen.write(prompt + before + behind + (" \b" if not behind else ""))
        rows = width(prompt + before + behind) // columns
        self._row, column = divmod(width(prompt + before), columns)
        up = rows - self._row
        self.screen.write((f"\x1b[{up}A" if up else "") + "\r" + (f"\x1b[{column}C" if column else ""))

    def _erase(self) -> None:
        self.screen.write((f"\x1b[{self._row}A" if self._row else "") + "\r\x1b[J")
        self._row = 0


def _plain_line(screen: Terminal, prompt: str) -> str:
    screen.write(prompt)
    line = b""
    while not line.endswith(b"\n"):
        data = os.read(0, 65_536)
        if not data:
            raise EndOfInput
        line += data
    return clean(line.decode("utf-8", "replace")).removesuffix("\n")


def clean(text: str) -> str:
    """``text`` as a message may hold it: one kind of line end, no escape sequences, no controls."""
    return _CONTROLS.sub("", _ESCAPES.sub("", re.sub("\r\n?", "\n", text)))


def _shown(text: str, *, from_end: bool = False) -> str:
    text = text.replace("\n", "↵ ").replace("\t", " ")
    if len(text) <= _SHOWN_CHARS:
        return text
    gap = f"[{len(text) - _SHOWN_CHARS:,} more characters]"
    return gap + text[-_SHOWN_CHARS:] if from_end else cut(text, _SHOWN_CHARS) + gap


@contextmanager
def _keys(screen: Terminal) -> Iterator[None]:
    """The terminal gives key by key, does not echo, and marks pastes; afterwards it is as it was."""
    try:
        before = termios.tcgetattr(0)
    except termios.error as error:
        raise EndOfInput from error
    wanted = termios.tcgetattr(0)
    wanted[0] &= ~(termios.ICRNL | termios.INLCR | termios.IXON)
    wanted[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
    wanted[6][termios.VMIN], wanted[6][termios.VTIME] = 1, 0
    wanted[6][termios.VSUSP] = wanted[6][termios.VQUIT] = b"\0"  # they would leave the terminal as it is now
    try:
        termios.tcsetattr(0, termios.TCSADRAIN, wanted)
        screen.write(_PASTE_ON)
        yield
    finally:
        screen.write(_PASTE_OFF)
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def forget_typed() -> None:
    """Throw away what was typed ahead, so that it cannot answer a question that it was not meant for."""
    termios.tcflush(0, termios.TCIFLUSH)
