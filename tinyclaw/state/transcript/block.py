"""The block: what a transcript consists of, and what every part of it passes around."""

from __future__ import annotations

import re

from tinyclaw.state.transcript.bodies import read_body, to_json
from tinyclaw.types import Json

OUTSIDE = "outside"
"""Kind of the text between blocks, which is the person's."""
DAMAGED = "damaged"
"""Kind of a stretch that begins like a block and is none; it is never sent, always said."""
FENCED = frozenset({"tool_use", "tool_result", "raw", "tools"})
"""Kinds whose bodies are fences."""

_NOT_IN_HEADINGS = re.compile(r"[<\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


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

    __slots__ = ("_body", "_parts", "attrs", "box", "heading", "kind", "line")

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
            self._parts = read_body(text, encoded=encoded, fenced=self.kind in FENCED)
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
