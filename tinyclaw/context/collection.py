"""Ask every source for its pieces, and leave out by priority what there is no room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tinyclaw.context.manifest import Entry
from tinyclaw.context.source import Piece, Source, SourceContext
from tinyclaw.context.tokens import Estimator
from tinyclaw.errors import StateError

LEFT_OUT = "left-out"
"""Revision of the marker that stands for a file without room, so that the file is stated when there is some."""


class Part(NamedTuple):
    """A piece and the source that made it."""

    source: Source
    piece: Piece

    @property
    def priority(self) -> int:
        return self.source.priority if self.piece.priority is None else self.piece.priority

    @property
    def is_required(self) -> bool:
        return self.source.required if self.piece.required is None else self.piece.required


@dataclass(frozen=True)
class Collected:
    """What the sources say now.

    ``left_out`` holds the manifest's entries of pieces and sources that are not in, by id. Of the files in
    ``unknown`` nothing can be said now, because their source failed or has no room: what was said last stands.
    """

    parts: tuple[Part, ...]
    left_out: dict[str, Entry]
    unknown: frozenset[str] = frozenset()


def collect(sources: Sequence[Source], context: SourceContext) -> Collected:
    """The pieces of all sources, in order.

    Raises: StateError when a required source, or a required piece, fails or has nothing to say.
    """
    parts: list[Part] = []
    failed: dict[str, Entry] = {}
    unknown: set[str] = set()
    for source in sources:
        try:
            pieces = source.pieces(context)
        except (StateError, OSError) as error:
            if source.required:
                raise StateError(f"the prompt's part {source.name} cannot be made: {error}") from error
            failed[source.name] = Entry("out", 0, note=f"left out: {error}")
            unknown |= {f"({source.name})", *(file.path for file in context.snapshot.files(*source.watches))}
            continue
        if source.required and not pieces:
            raise StateError(f"the prompt's part {source.name} has nothing to say, and no request goes without it")
        for part in (Part(source, piece) for piece in pieces):
            unknown.update(part.piece.unsaid)
            if part.piece.text.strip():
                parts.append(part)
            elif part.is_required:
                raise StateError(f"the prompt's part {part.piece.id} cannot be made: {part.piece.note}")
            else:
                failed[part.piece.id] = Entry("out", 0, part.piece.path, note=part.piece.note)
    return Collected(tuple(parts), failed, frozenset(unknown))


def fit(collected: Collected, room_tokens: int, estimator: Estimator) -> Collected:
    """The same with the optional pieces that exceed ``room_tokens`` left out, lowest priority and farthest first.

    For a file a marker stays, so that the model knows of it and no older statement of it counts.
    """
    parts = list(collected.parts)
    left_out = dict(collected.left_out)
    used = sum(estimator.tokens(len(part.piece.text)) for part in parts)
    for part in sorted(collected.parts, key=lambda part: part.priority):
        piece = part.piece
        tokens = estimator.tokens(len(piece.text))
        marker = replace(piece, text=_marker(piece, tokens), revision=LEFT_OUT)
        saved = tokens - (estimator.tokens(len(marker.text)) if piece.path else 0)
        if used <= room_tokens or part.is_required or saved <= 0:
            continue
        note = (
            f"left out: it takes about {tokens:,} tokens, all files together may take {room_tokens:,}, "
            "and it has the lowest priority"
        )
        left_out[piece.id] = Entry("out", tokens, piece.path, piece.lines, piece.revision, note)
        at = parts.index(part)
        parts[at : at + 1] = [Part(part.source, marker)] if piece.path else []
        used -= saved
    return replace(collected, parts=tuple(parts), left_out=left_out)


def _marker(piece: Piece, tokens: int) -> str:
    name = piece.path.strip("()")
    return f"[{name}: left out for want of room (about {tokens:,} tokens). Look it up when you need it.]"
