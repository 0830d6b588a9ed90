"""Format 1: blocks to lines and lines to blocks, at any byte offset, whatever people did to the file.

A block is an opener (an optional heading, then ``<!-- tc:KIND {json} -->`` to the line's end), a
body, and the line ``<!-- tc:end -->``; without a body it is one line that ends in ``/-->``.
``parse`` indexes openers only; a body is decoded when it is asked for. Invariants:
``parse(render(blocks)) == blocks``, and for every file that we wrote ``render(parse(file)) == file``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tinyclaw.state.transcript.bodies import read_body, to_json, write_body
from tinyclaw.types import Diagnostic, Json

FORMAT = 1
OUTSIDE = "outside"
"""Kind of the text between blocks, which is the person's."""
DAMAGED = "damaged"
"""Kind of a stretch that begins like a block and is none; it is never sent, always said."""

_FENCED = frozenset({"tool_use", "tool_result", "raw", "tools"})
_BOXES = {"text": "in the conversation", "event": "allow"}
_END = b"<!-- tc:end -->"
_OPENER = re.compile(
    r"(?:(?P<heading>#{2,6} [^<\\\x00-\x1f\x7f]*?) ?)?"
    r"<!-- tc:(?P<kind>[a-z_]+) (?P<attrs>\{.*\}) (?P<empty>/?)-->[ \t]*"
)
_LOOKS_LIKE_OPENER = re.compile(r"(?m)^(?:#{1,6} [^<\\\n]*)?<!-- tc:")
_HEADING_BEGUN = re.compile(r"#{1,6}(?: |$)")
_BOX = re.compile(r"- \[(?P<mark>[ xX])\] (?P<label>in the conversation|allow)[ \t]*")
_NOT_IN_HEADINGS = re.compile(r"[<\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_CODE_SUFFIX = re.compile(r"[A-Za-z0-9]{1,12}")


def heading(level: int, words: str) -> str:
    """A heading: ``level`` hashes, and ``words`` without what a heading may not hold, cut at 80 characters."""
    clean = " ".join(_NOT_IN_HEADINGS.sub(" ", words).split())
    return f"{'#' * level} {clean if len(clean) <= 80 else clean[:79] + '…'}"


class Block:
    """One block: ``kind``, ``attrs`` (the opener's JSON), ``heading``, ``box`` and ``parts``.

    ``parts`` are the body's texts: none without a body, one for most kinds, and for a call its JSON
    followed by its long arguments. ``box`` is the person's checkbox below the opener, if the block
    has one. A block is immutable; one that was read decodes its body at the first use of ``parts``.
    """

    __slots__ = ("_body", "_parts", "attrs", "box", "heading", "kind", "line", "torn")

    def __init__(
        self,
        kind: str,
        attrs: Json | None = None,
        *parts: str,
        heading: str = "",
        box: bool | None = None,
        line: int = 0,
        body: bytes | None = None,
    ) -> None:
        self.kind = kind
        self.attrs: Json = attrs or {}
        self.heading = heading
        self.box = box
        self.line = line
        self._body = body
        self._parts: tuple[str, ...] | None = None if body is not None else parts

    @property
    def parts(self) -> tuple[str, ...]:
        if self._parts is None:
            assert self._body is not None
            text = self._body.decode("utf-8", "replace").replace("\r\n", "\n")
            encoded = self.attrs.get("enc") == "json"
            self._parts = read_body(text, encoded=encoded, fenced=self.kind in _FENCED)
        return self._parts

    @property
    def text(self) -> str:
        """The body's first part, or nothing."""
        return self.parts[0] if self.parts else ""

    @property
    def facts(self) -> Json:
        """The attributes without what only says how the body is written."""
        return {name: value for name, value in self.attrs.items() if name != "enc"}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Block):
            return NotImplemented
        return (self.kind, self.facts, self.heading, self.box, self.parts) == (
            other.kind,
            other.facts,
            other.heading,
            other.box,
            other.parts,
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.heading, to_json(self.facts)))

    def __repr__(self) -> str:
        return f"Block({self.kind!r}, {self.facts!r}, {self.parts!r}, heading={self.heading!r}, box={self.box!r})"


@dataclass(frozen=True)
class Parsed:
    """A file's header fields, its blocks in order, what is wrong with it, and whether its end is torn.

    ``torn_at`` is the byte offset where an unfinished last block begins, or None.
    """

    header: dict[str, str]
    blocks: tuple[Block, ...]
    diagnostics: tuple[Diagnostic, ...]
    torn_at: int | None
    crlf: bool


def render(blocks: Iterable[Block]) -> str:
    """The blocks as they stand in a file, each followed by a blank line."""
    return "".join(render_block(block) for block in blocks)


def render_block(block: Block) -> str:
    """One block as text that ends in a blank line."""
    if block.kind in (OUTSIDE, DAMAGED):
        return block.text
    attrs = block.facts
    prefix = f"{block.heading} " if block.heading else ""
    if not block.parts:
        return f"{prefix}<!-- tc:{block.kind} {to_json(attrs)} /-->\n\n"
    body, encoded = write_body(block.parts, _languages(block))
    if encoded:
        attrs = {**attrs, "enc": "json"}
    box = "" if block.box is None else f"- [{'x' if block.box else ' '}] {_BOXES[block.kind]}\n"
    return f"{prefix}<!-- tc:{block.kind} {to_json(attrs)} -->\n{box}\n{body}\n\n<!-- tc:end -->\n\n"


def parse(data: bytes, name: str) -> Parsed:
    """Index a transcript. Never raises: what is no block is the person's text, or damage that is said.

    Args:
        data: the file's bytes, cut or edited in any way.
        name: how to call the file in diagnostics.
    """
    header, start = _read_header(data)
    reader = _Reader(data, name)
    blocks = tuple(reader.blocks(start))
    return Parsed(header, blocks, tuple(reader.diagnostics), reader.torn_at, b"\r\n" in data[: start or 200])


class _Reader:
    def __init__(self, data: bytes, name: str) -> None:
        self.data = data
        self.name = name
        self.diagnostics: list[Diagnostic] = []
        self.torn_at: int | None = None
        self._counted = (0, 1)

    def blocks(self, position: int) -> Iterator[Block]:
        marks = list(self._marks(position))
        for index, (start, end, found) in enumerate(marks):
            yield from self._outside(position, start, before=found)
            position = end
            if found is None or found["kind"] == "end":
                continue
            limit = marks[index + 1][0] if index + 1 < len(marks) else len(self.data)
            closing = marks[index + 1][2] if index + 1 < len(marks) else None
            block, position = self._block(start, end, limit, found, closing, last=index + 1 == len(marks))
            if block is not None:
                yield block
        yield from self._outside(position, len(self.data), before=None)

    def _marks(self, position: int) -> Iterator[tuple[int, int, Any]]:
        """Start, end and match of every line that is an opener or an end, in order."""
        while (hit := self.data.find(b"<!-- tc:", position)) >= 0:
            start = max(self.data.rfind(b"\n", position, hit), self.data.rfind(b"\0", position, hit)) + 1 or position
            end = self.data.find(b"\n", hit)
            end = len(self.data) if end < 0 else end + 1
            position = end
            line = self.data[start:end].decode("utf-8", "replace").rstrip("\r\n")
            if line.rstrip() == _END.decode():
                yield start, end, {"kind": "end"}
            elif (found := _OPENER.fullmatch(line)) and (attrs := _attrs(found["attrs"])) is not None:
                yield start, end, {**found.groupdict(), "attrs": attrs}
            elif _LOOKS_LIKE_OPENER.match(line) and end < len(self.data):
                self._say(
                    start,
                    "this line begins like a block's opener and is none",
                    "mend its JSON, or put a backslash before it",
                )

    def _block(
        self, start: int, end: int, limit: int, found: Json, closing: Json | None, *, last: bool
    ) -> tuple[Block | None, int]:
        attrs, kind = found["attrs"], str(found["kind"])
        line = self._line(start)
        words = found["heading"] or ""
        if found["empty"]:
            return Block(kind, attrs, heading=words, line=line), end
        ended = closing is not None and closing["kind"] == "end"
        if not ended and (last or (closing or {}).get("kind") == "torn" or b"\0" in self.data[end:limit]):
            return self._torn(start, limit, last), limit
        body = self.data[end:limit]
        if not ended:
            body = body.rstrip(b"\r\n")
        box, body = _take_box(body) if kind in _BOXES else (None, body)
        return Block(kind, attrs, heading=words, box=box, line=line, body=body), limit

    def _torn(self, start: int, limit: int, last: bool) -> Block:
        if last:
            self.torn_at = start
        else:
            self._say(start, "this block was cut off and is left out", "delete it, or end it with <!-- tc:end -->")
        return Block(DAMAGED, {}, self.data[start:limit].decode("utf-8", "replace"), line=self._line(start))

    def _outside(self, start: int, end: int, before: Json | None) -> Iterator[Block]:
        text = self.data[start:end].decode("utf-8", "replace")
        if not text.strip():
            return
        line = self._line(start) + len(text) - len(text.lstrip("\n"))
        text = text.removeprefix("\r").removeprefix("\n")
        torn = end == len(self.data) and _begins_an_opener(text)
        damaged = torn or "\0" in text or _LOOKS_LIKE_OPENER.search(text) or (before or {}).get("kind") == "torn"
        if torn:
            self.torn_at = start
        elif "\0" in text:
            self._say(start, "bytes are lost here (NUL)", "the blocks before and after it are kept")
        yield Block(DAMAGED if damaged else OUTSIDE, {}, text, line=line)

    def _line(self, offset: int) -> int:
        known, line = self._counted
        line += self.data.count(b"\n", known, offset) if offset >= known else -self.data.count(b"\n", offset, known)
        self._counted = (offset, line)
        return line

    def _say(self, offset: int, message: str, mend: str) -> None:
        self.diagnostics.append(Diagnostic(self.name, self._line(offset), message, mend))


def _begins_an_opener(text: str) -> bool:
    """Whether a file's last text is an opener that was cut off. What a person writes there ends its line."""
    line = text.lstrip("\n")
    if _LOOKS_LIKE_OPENER.match(line):
        return True
    return "\n" not in line and (_HEADING_BEGUN.match(line) is not None or "<!-- tc:".startswith(line))


def _take_box(body: bytes) -> tuple[bool | None, bytes]:
    first, separator, rest = body.partition(b"\n")
    found = _BOX.fullmatch(first.decode("utf-8", "replace").rstrip("\r"))
    return (found["mark"] != " ", separator + rest) if found else (None, body)


def _attrs(text: str) -> Json | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _languages(block: Block) -> Sequence[str] | None:
    if block.kind not in _FENCED:
        return None
    first = "text" if block.kind == "tool_result" else "json"
    return [first, *(_language(block) for _ in block.parts[1:])]


def _language(block: Block) -> str:
    """The info string for a call's long arguments: the suffix of the file that the call is about."""
    try:
        path = json.loads(block.parts[0]).get("path", "")
    except (ValueError, AttributeError):
        return "text"
    suffix = path.rpartition(".")[2] if isinstance(path, str) and "." in path else ""
    return suffix if _CODE_SUFFIX.fullmatch(suffix) else "text"
