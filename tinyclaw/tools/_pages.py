"""One page of a text file, read as a stream: a file of any size costs the memory of its page.

A line ends at LF (CRLF too); that is how editors, grep and sed count.
"""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol

from tinyclaw.tools._text import Encoding, guess_encoding, shown
from tinyclaw.types import Interrupt

PAGE_LINES = 2_000
PAGE_BYTES = 50_000
LINE_CHARACTERS = 2_000
CHUNK_BYTES = 1 << 20


@dataclass
class Page:
    """Lines ``first`` to ``last`` of ``total``, and the revision of the whole file.

    ``cut`` holds the real length of every line that was cut, by its number.
    """

    first: int
    lines: list[str] = field(default_factory=list)
    total: int = 0
    cut: dict[int, int] = field(default_factory=dict)
    encoding: Encoding = field(default_factory=Encoding)
    revision: str = ""
    ends_with_break: bool = True

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1


def read_page(file: BinaryIO, first: int, limit: int, interrupt: Interrupt) -> Page:
    """Up to ``limit`` lines from line ``first`` on, within ``PAGE_BYTES``.

    Raises: Interrupted between two chunks of the file.
    """
    head = file.read(CHUNK_BYTES)
    encoding = guess_encoding(head, whole=len(head) < CHUNK_BYTES)
    page = Page(first, encoding=encoding)
    digest = hashlib.sha256()
    collector = _Collector(page, min(limit, PAGE_LINES))
    for text in _decoded(_chunks(head, file, digest, interrupt), encoding):
        collector.feed(text)
    collector.finish()
    page.revision = digest.hexdigest()[:16]
    return page


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


def _chunks(head: bytes, file: BinaryIO, digest: _Digest, interrupt: Interrupt) -> Iterator[bytes]:
    chunk = head
    while chunk:
        interrupt.check()
        digest.update(chunk)
        yield chunk
        chunk = file.read(CHUNK_BYTES)


def _decoded(chunks: Iterator[bytes], encoding: Encoding) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding.name)("replace")
    skip = len(encoding.bom)
    for chunk in chunks:
        yield decoder.decode(chunk[skip:])
        skip = 0
    yield decoder.decode(b"", final=True)


class _Collector:
    """Takes text in pieces of any size and keeps the wanted lines, each cut at its limit."""

    def __init__(self, page: Page, limit: int) -> None:
        self._page = page
        self._limit = limit
        self._left_bytes = PAGE_BYTES
        self._number = 1
        self._line = ""
        self._length = 0

    def feed(self, text: str) -> None:
        breaks = text.count("\n")
        if not self._wants(self._number, self._number + breaks):
            self._number += breaks
            self._line, self._length = "", len(text) - text.rfind("\n") - 1 + (0 if breaks else self._length)
            return
        *whole, rest = text.split("\n")
        for piece in whole:
            self._extend(piece)
            self._end_line()
        self._extend(rest)

    def finish(self) -> None:
        self._page.ends_with_break = not self._length
        self._page.total = self._number - (not self._length)
        if self._length:
            self._end_line()

    def _wants(self, first: int, last: int) -> bool:
        return self._limit > 0 and first < self._page.first + self._limit and last >= self._page.first

    def _extend(self, piece: str) -> None:
        self._line += piece[: max(0, LINE_CHARACTERS + 1 - len(self._line))]
        self._length += len(piece)

    def _end_line(self) -> None:
        if self._wants(self._number, self._number):
            self._keep()
        self._number += 1
        self._line, self._length = "", 0

    def _keep(self) -> None:
        length = self._length - self._line.endswith("\r")
        line = shown(self._line.removesuffix("\r"))
        if length > LINE_CHARACTERS:
            line = f"{line[:LINE_CHARACTERS]}… [cut: {LINE_CHARACTERS:,} of {length:,} characters]"
        size = len(line.encode()) + 1
        if size > self._left_bytes:
            self._limit = 0
            return
        if length > LINE_CHARACTERS:
            self._page.cut[self._number] = length
        self._left_bytes -= size
        self._page.lines.append(line)
