"""What a terminal would show of a command's bytes: no escape codes, no overwritten progress, no controls.

The time is linear and the memory bounded whatever arrives. Carriage return, backspace, "erase in line"
and "to column 1" act within a line, which may be as wide as it likes; all other codes (colours, titles, cursor
movements) are dropped.
"""

from __future__ import annotations

import codecs
import re

_TOKEN = re.compile(
    r"(?P<text>[^\x00-\x08\x0a-\x1f\x7f-\x9f]+)"
    r"|\x1b\[(?P<csi>[0-?]*[ -/]*[@-~])"
    r"|(?P<other>\x1b(?:[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-OQ-WYZ\\`-~]))"
    r"|(?P<control>.)",
    re.DOTALL,
)
_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?)\Z")
_SPECIAL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STRANGE = re.compile("[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd]")
_STRANGE_AT_LEAST = 8
_ESCAPE_CHARS = 4_096
_LINE_CHARS = 65_536


class Terminal:
    """Takes bytes as they come and gives whole lines of plain text; ``close`` gives the unfinished one.

    A line longer than 64 Ki characters is given in parts, which later codes no longer change.

    Attributes:
        binary: more than a tenth of what came is control characters or no UTF-8, so it is no text.
    """

    def __init__(self) -> None:
        self.binary = False
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._seen = self._strange = 0
        self._incomplete_escape = ""
        self._cells: list[str] = []
        self._column = 0
        self._shown: list[str] = []

    def feed(self, data: bytes) -> str:
        """The text that ``data`` completes, possibly none."""
        text = self._decoder.decode(data)
        self._judge(text)
        text = self._incomplete_escape + text
        end = _complete(text)
        self._incomplete_escape = text[end:]
        self._show(text[:end])
        return self._take_shown()

    def close(self) -> str:
        """The last line, if no line break ended it."""
        self._show(self._incomplete_escape + self._decoder.decode(b"", final=True))
        self._end_line()
        return self._take_shown()

    def _judge(self, text: str) -> None:
        self._seen += len(text)
        self._strange += len(_STRANGE.findall(text))
        self.binary = self.binary or (self._strange >= _STRANGE_AT_LEAST and self._strange * 10 > self._seen)

    def _show(self, text: str) -> None:
        if _SPECIAL.search(text):
            for token in _TOKEN.finditer(text):
                self._act(token)
            return
        first, line_break, rest = text.partition("\n")
        self._print(first)
        if line_break:
            end = rest.rfind("\n") + 1
            self._end_line("\n" + rest[:end])
            self._print(rest[end:])

    def _act(self, token: re.Match[str]) -> None:
        match token.lastgroup, token[0]:
            case "text", text:
                self._print(text)
            case "csi", _:
                self._control_line(token["csi"])
            case "control", "\n":
                self._end_line("\n")
            case "control", "\r":
                self._column = 0
            case "control", "\b":
                self._column = max(0, self._column - 1)

    def _print(self, text: str) -> None:
        end = self._column + len(text)
        self._cells[self._column : end] = text
        self._column = end
        if len(self._cells) > _LINE_CHARS and end == len(self._cells):
            self._end_line()

    def _control_line(self, code: str) -> None:
        if code in ("K", "0K"):
            del self._cells[self._column :]
        elif code == "2K":
            self._cells = [" "] * self._column
        elif code in ("G", "1G"):
            self._column = 0

    def _end_line(self, line_break: str = "") -> None:
        self._shown += ("".join(self._cells), line_break)
        self._cells = []
        self._column = 0

    def _take_shown(self) -> str:
        shown, self._shown = "".join(self._shown), []
        return shown


def _complete(text: str) -> int:
    """Where an escape code begins that the next piece may complete; the end of ``text`` when there is none."""
    begun = _BEGUN.search(text, max(0, len(text) - _ESCAPE_CHARS))
    return begun.start() if begun else len(text)
