"""A long result is cut to its head and tail; the whole of it goes to ``.task_outputs/``.

A quarter of what is shown is the head (a command's banner, a compiler's first error), three quarters
the tail, where exit status, summary and root cause stand. Together they are half the limit: a result
just over it would otherwise go on costing as much as before, in every request that follows.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tinyclaw.errors import StateError

if TYPE_CHECKING:
    from tinyclaw.state.outputs import OutputRef, Outputs, OutputWriter

LIMIT_CHARS = 16_000

_BYTES_PER_CHAR = 4


def bound(text: str, outputs: Outputs, tool: str, limit: int = LIMIT_CHARS) -> str:
    """``text``, masked already, if it has at most ``limit`` characters; otherwise head, marker and tail.

    Never raises: where the whole cannot be stored, the marker says so.
    """
    if len(text) <= limit:
        return text
    try:
        way_back = _way_back(outputs.put(tool, text))
    except StateError as error:
        way_back = _lost(error)
    return _shorten(text, text, _size(text), _count_lines(text), way_back, limit)


class Collected:
    """Text that arrives in pieces, bounded as by ``bound`` without ever being in memory as a whole.

    A long text is shown as its masked file has it: a secret that the cut divides would not be recognised.
    """

    def __init__(self, outputs: Outputs, root: Path, tool: str, limit: int = LIMIT_CHARS) -> None:
        self._outputs = outputs
        self._root = root
        self._tool = tool
        self._limit = limit
        self._head = self._tail = ""
        self._bytes = self._breaks = 0
        self._stack = ExitStack()
        self._writer: OutputWriter | None = None
        self._failure: StateError | None = None

    def write(self, text: str) -> None:
        """Take a piece. Never raises: where a disk refuses, head and tail are kept and the result says so."""
        was_long = self._is_long
        self._bytes += _size(text)
        self._breaks += text.count("\n")
        if not was_long:
            self._head += text
            text = self._head
        self._tail = (self._tail + text)[-self._limit :]
        if self._is_long and self._failure is None:
            self._store(text)

    def finish(self) -> str:
        """The text, or its head and tail; nothing can be written afterwards."""
        if not self._is_long:
            return self._head
        try:
            self._stack.close()
            if self._writer is not None and self._failure is None:
                return self._from_file(self._writer.ref)
        except (StateError, OSError) as error:
            self._failure = StateError(str(error))
        assert self._failure is not None
        return _shorten(self._head, self._tail, self._bytes, self._breaks + 1, _lost(self._failure), self._limit)

    @property
    def _is_long(self) -> bool:
        return len(self._head) > self._limit

    def _store(self, text: str) -> None:
        try:
            if self._writer is None:
                self._writer = self._stack.enter_context(self._outputs.writer(self._tool))
            self._writer.write(text)
        except StateError as error:
            self._failure = error

    def _from_file(self, ref: OutputRef) -> str:
        with (self._root / ref.path).open("rb") as file:
            head = file.read(self._limit * _BYTES_PER_CHAR)
            file.seek(max(0, ref.bytes - self._limit * _BYTES_PER_CHAR))
            tail = file.read()
        return _shorten(_text(head), _text(tail), ref.bytes, ref.lines, _way_back(ref), self._limit)


def _shorten(head: str, tail: str, size: int, lines: int, way_back: str, limit: int) -> str:
    """Head and tail of a text of ``size`` bytes, of which ``head`` and ``tail`` are at least what is shown."""
    shown_chars = limit // 2
    head = _cut_end(head[: shown_chars // 4])
    cut = tail[-(shown_chars - shown_chars // 4) :]
    tail = _cut_start(cut)
    first, last = head.count("\n") + 1, lines - _count_lines(tail) + (tail == cut)
    between = f"lines {first:,} to {last:,} of {lines:,}" if last > first else f"within line {first:,}"
    left_out = size - _size(head) - _size(tail)
    break_before = "" if head.endswith("\n") else "\n"
    return f"{head}{break_before}[… {left_out:,} of {size:,} bytes left out here, {between}. {way_back}]\n{tail}"


def _cut_end(text: str) -> str:
    """Up to the last line border, unless that would cost more than half."""
    end = text.rfind("\n") + 1
    return text[:end] if end * 2 > len(text) else text


def _cut_start(text: str) -> str:
    start = text.find("\n") + 1
    return text[start:] if start * 2 < len(text) else text


def _way_back(ref: OutputRef) -> str:
    return f"All of it is in {ref.path}: read it with an offset, or grep in it …"


def _lost(error: StateError) -> str:
    return f"It could not be kept: {error} …"


def _size(text: str) -> int:
    return len(text.encode("utf-8", errors="replace"))


def _count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def _text(data: bytes) -> str:
    """Characters that the ends of ``data`` divide are far outside what is shown."""
    return data.decode("utf-8", errors="replace")
