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

from tinyclaw.state.transcript.block import DAMAGED, FENCED, OUTSIDE, Block, heading
from tinyclaw.state.transcript.bodies import MARK, to_json, write_body
from tinyclaw.state.transcript.header import read_header, render_header
from tinyclaw.types import Diagnostic, Json

__all__ = ["DAMAGED", "FORMAT", "OUTSIDE", "Block", "Parsed", "heading", "parse", "render", "render_header"]

FORMAT = 1

_BOXES = {"text": "in the conversation", "event": "allow"}
_MARK = MARK.encode()
_END = "<!-- tc:end -->"
_RESERVED = frozenset({"end", OUTSIDE, DAMAGED})
_OPENER = re.compile(
    r"(?:(?P<heading>#{2,6} [^<\\\x00-\x1f\x7f]*?) ?)?"
    r"<!-- tc:(?P<kind>[a-z_]+) (?P<attrs>\{.*\}) (?P<empty>/?)-->[ \t]*"
)
_LOOKS_LIKE_OPENER = re.compile(r"(?m)^(?:#{1,6} [^<\\\n]*)?<!-- tc:")
_HEADING_BEGUN = re.compile(r"#{1,6}(?: |$)")
_BOX = re.compile(r"- \[(?P<mark>[ xX])\] (?P<label>in the conversation|allow)[ \t]*")
_CODE_SUFFIX = re.compile(r"[A-Za-z0-9]{1,12}")


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
        return block.text if block.text.endswith("\n") else f"{block.text}\n\n"
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
    header = read_header(data)
    reader = _Reader(data, name)
    blocks = tuple(reader.blocks(header.end))
    if not header.is_closed:
        reader.say(0, "the header is not closed", "put a line --- behind its last field")
    torn_at = reader.torn_at if header.torn_at is None else header.torn_at
    crlf = b"\r\n" in data[: header.end or 200]
    return Parsed(header.fields, blocks, tuple(reader.diagnostics), torn_at, crlf)


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
            yield from self._outside(position, start, before=found["kind"])
            position = end
            if found["kind"] != "end":
                limit, _, closing = marks[index + 1] if index + 1 < len(marks) else (len(self.data), 0, None)
                block, position = self._block(start, end, limit, found, closing["kind"] if closing else "")
                yield block
        yield from self._outside(position, len(self.data), before="")

    def _marks(self, position: int) -> Iterator[tuple[int, int, Any]]:
        """Start, end and match of every line that is an opener or an end, in order. Lost bytes end a line as well."""
        while (hit := self.data.find(_MARK, position)) >= 0:
            start = max(self.data.rfind(b"\n", position, hit), self.data.rfind(b"\0", position, hit)) + 1 or position
            end = self.data.find(b"\n", hit)
            end = len(self.data) if end < 0 else end + 1
            position = end
            line = self.data[start:end].decode("utf-8", "replace").rstrip("\r\n")
            if line.rstrip() == _END:
                yield start, end, {"kind": "end"}
            elif (found := _opener(line)) is not None:
                yield start, end, found
            elif _LOOKS_LIKE_OPENER.match(line) and end < len(self.data):
                self.say(
                    start,
                    "this line begins like a block's opener and is none",
                    "mend its JSON, or put a backslash before it",
                )

    def _block(self, start: int, end: int, limit: int, found: Json, closing: str) -> tuple[Block, int]:
        """The block that ``found`` opens, and the offset behind it.

        ``closing`` is the kind of the mark at ``limit``, "" at the file's end.
        """
        attrs, kind, words, line = found["attrs"], found["kind"], found["heading"] or "", self._line(start)
        if found["empty"]:
            return Block(kind, attrs, heading=words, line=line), end
        body = self.data[end:limit]
        if b"\0" in body:
            self.say(start, "bytes of this block are lost (NUL); it is left out", "the blocks around it are kept")
            return self._damaged(start, limit), limit
        if closing in ("", "torn"):
            self.torn_at = self.torn_at if closing else start
            return self._damaged(start, limit), limit
        if closing != "end":
            body = body.rstrip(b"\r\n")
        box, body = _take_box(body) if kind in _BOXES else (None, body)
        return Block(kind, attrs, heading=words, box=box, line=line, body=body), limit

    def _damaged(self, start: int, end: int) -> Block:
        text = self.data[start:end].decode("utf-8", "surrogateescape")
        return Block(DAMAGED, {}, text, line=self._line(start))

    def _outside(self, start: int, end: int, before: str) -> Iterator[Block]:
        """What stands before a mark of kind ``before``: the person's text, but for lost bytes and a cut-off opener."""
        start += 2 if self.data.startswith(b"\r\n", start) else self.data.startswith(b"\n", start)
        text = self.data[start:end]
        if not text.strip():
            return
        if b"\0" in text:
            self.say(start, "bytes are lost here (NUL)", "the blocks before and after it are kept")
            yield self._damaged(start, end)
            return
        cut = start + text.rstrip().rfind(b"\n") + 1
        is_torn = end == len(self.data) and _begins_an_opener(self.data[cut:end])
        if is_torn:
            self.torn_at = cut
        elif before != "torn":
            cut = end
        yield from self._said(start, cut)
        if cut < end:
            yield self._damaged(cut, end)

    def _said(self, start: int, end: int) -> Iterator[Block]:
        text = self.data[start:end].decode("utf-8", "replace").replace("\r\n", "\n")
        if _LOOKS_LIKE_OPENER.search(text):
            yield self._damaged(start, end)
        elif text.strip():
            line = self._line(start) + len(text) - len(text.lstrip("\n"))
            yield Block(OUTSIDE, {}, text, line=line)

    def _line(self, offset: int) -> int:
        known, line = self._counted
        line += self.data.count(b"\n", known, offset) if offset >= known else -self.data.count(b"\n", offset, known)
        self._counted = (offset, line)
        return line

    def say(self, offset: int, message: str, mend: str) -> None:
        self.diagnostics.append(Diagnostic(self.name, self._line(offset), message, mend))


def _opener(line: str) -> Json | None:
    """What an opener says: heading, kind, attrs and empty; None when the line is none."""
    found = _OPENER.fullmatch(line)
    attrs = _attrs(found["attrs"]) if found and found["kind"] not in _RESERVED else None
    return None if found is None or attrs is None else {**found.groupdict(), "attrs": attrs}


def _begins_an_opener(line: bytes) -> bool:
    """Whether a file's last line is an opener that was cut off. What a person writes there ends its line."""
    text = line.decode("utf-8", "replace")
    could_be = _HEADING_BEGUN.match(text) is not None or text.startswith(MARK) or MARK.startswith(text)
    return could_be and "\n" not in text


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
    if block.kind not in FENCED:
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
