"""From blocks to the messages that are sent: one message out of neighbouring groups, repaired where it must be.

The rules are those of the Messages API (https://docs.claude.com/en/api/messages): every call is
answered by one result in the next user message, results stand first, ids are unique, no text is
blank, thinking goes back signed, unchanged and never behind anything else, or not at all.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tinyclaw.state.transcript.block import OUTSIDE, Block
from tinyclaw.state.transcript.content import arguments_of, call_of, raw_of, text_of, thinking_of
from tinyclaw.types import Image, Json, Role, ToolResult, ToolUse

INTERRUPTED = "Interrupted before it finished; the outcome is unknown. Look at the real state before you do it again."
TAKEN_OUT = "(What stood here in the conversation was taken out.)"

ImageLoader = Callable[[str, str], str | None]
"""Path and hash of a stored picture to its base64 text, or None when it is gone or changed."""

_SAID = frozenset({"text", "compact", OUTSIDE})
_THINKING = frozenset({"thinking", "redacted_thinking"})
_OF_THE_API = frozenset({"text", "thinking", "tool_use", "tool_result", "image", "document", "search_result"})
"""Types that have a kind of their own, or a place in user messages only: no ``raw`` block holds them."""
_PICTURES = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
"""How the base64 text of each type that the API takes begins."""


def canonical(value: Any) -> bytes:
    """JSON bytes that are equal exactly when the values are."""
    return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode()


@dataclass(frozen=True, eq=False)
class Group:
    """The blocks of one message number and role, compared by identity."""

    number: int
    role: Role
    turn: int
    blocks: tuple[Block, ...]

    @cached_property
    def call_ids(self) -> tuple[str, ...]:
        """The ids of the calls, as they are sent."""
        return tuple(_call_id(block) for block in self.blocks if block.kind == "tool_use")

    @cached_property
    def folders(self) -> tuple[str, ...]:
        """The folders that the calls answered here have touched, from the root."""
        return tuple(dict.fromkeys(folder for block in self.blocks for folder in _folders(block)))


@dataclass(frozen=True, eq=False)
class Message:
    """One message in wire form with what is derived from it once: its hash, its length, its calls.

    ``groups`` are what it was made of, ``notes`` what had to be repaired. ``shown`` says which revision of
    which file it shows, by path.
    """

    wire: Json
    digest: str
    length: int
    calls: tuple[ToolUse, ...] = ()
    notes: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    shown: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, role: Role, content: list[Json], **derived: Any) -> Message:
        wire: Json = {"role": role, "content": content}
        data = canonical(wire)
        if b"\\ud" in data:  # characters beyond the first 65,536, which are fine, or halves of them, which are not
            wire = _scrubbed(wire)
            data = canonical(wire)
        return cls(wire, hashlib.sha256(data).hexdigest(), len(data), **derived)

    @property
    def number(self) -> int:
        """The number that its first block has in the transcript; 0 for a message that stands in none."""
        return self.groups[0].number if self.groups else 0

    @property
    def is_empty(self) -> bool:
        return not self.wire["content"]


def call_ids(groups: Iterable[Group]) -> Iterator[str]:
    """The ids of the calls in ``groups``, as they are sent."""
    for group in groups:
        yield from group.call_ids


def _folders(result: Block) -> Iterator[str]:
    """Where in the workspace a call looked or worked; nowhere when it failed."""
    if result.kind != "tool_result" or result.attrs.get("is_error") is True:
        return
    revisions, folder = result.attrs.get("revisions"), result.attrs.get("folder")
    for path in revisions if isinstance(revisions, dict) else ():
        if not path.startswith("~/"):
            yield path.rpartition("/")[0]
    if isinstance(folder, str):
        yield folder


def assistant_message(groups: tuple[Group, ...], model: str, taken: frozenset[str]) -> Message:
    """The model's message. A call whose id is in ``taken``, or came before in it, is left out."""
    content: list[Json] = []
    calls: dict[str, ToolUse] = {}
    notes: list[str] = []
    for block in (block for group in groups for block in group.blocks):
        if block.kind == "tool_use":
            call = _call(block)
            if call.id in taken or call.id in calls:
                notes.append(f"line {block.line}: a second call has the id {call.id}; the first one counts")
                continue
            if arguments_of(block) is None:
                notes.append(f"line {block.line}: the arguments of this call are no JSON object; it is sent without")
            calls[call.id] = call
            content.append(call.to_wire())
        elif block.kind in ("thinking", "raw"):
            if (wire := _sealed(block, model, content)) is not None:
                content.append(wire)
            else:
                notes.append(
                    f"line {block.line}: {block.kind} that was edited, moved or made by another model is left out"
                )
        elif block.text.strip():
            content.append(text_of(block).to_wire())
    return Message.of("assistant", content, calls=tuple(calls.values()), notes=tuple(notes), groups=groups)


def user_message(
    groups: tuple[Group, ...], calls: tuple[ToolUse, ...], markers: dict[str, str], load_image: ImageLoader
) -> Message:
    """The user's message: one result for each of ``calls``, then states, then text.

    ``markers`` stand for results that were cleared, by call id.
    """
    blocks = [block for group in groups for block in group.blocks]
    given, notes = _given_results(blocks, {call.id for call in calls})
    results = []
    shown: dict[str, str] = {}
    for call in calls:
        found = given.get(call.id)
        if found is None:
            notes.append(f"the call {call.id} ({call.name}) has no result; it counts as interrupted")
            results.append(ToolResult(call.id, INTERRUPTED, is_error=True).to_wire())
        elif call.id in markers:
            results.append(ToolResult(call.id, markers[call.id]).to_wire())
        else:
            results.append(_result_wire(found, call.id, blocks, load_image))
            shown |= _revisions(found)
    states = [block.text for block in blocks if block.kind == "state"]
    for block in blocks:
        if block.kind == "state":
            shown |= _revisions(block)
            shown |= {str(block.attrs.get("path")): str(block.attrs.get("rev"))} if _is_whole(block) else {}
    said = [block.text.strip() if block.kind == OUTSIDE else block.text for block in blocks if block.kind in _SAID]
    texts = [{"type": "text", "text": text} for text in (*states, *said) if text.strip()]
    return Message.of("user", results + texts, notes=tuple(notes), groups=groups, shown=shown)


def _revisions(result: Block) -> dict[str, str]:
    revisions = result.attrs.get("revisions")
    if not isinstance(revisions, dict) or not result.text.strip() or result.attrs.get("same_as"):
        return {}
    return {path: str(revision) for path, revision in revisions.items()}


def _is_whole(state: Block) -> bool:
    return state.attrs.get("cut") is not True


def _scrubbed(wire: Json) -> Json:
    """``wire`` without half surrogates, which UTF-8 cannot carry."""
    text = json.dumps(wire, ensure_ascii=False)
    scrubbed: Json = json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return scrubbed


def _safe(value: object, other: str) -> str:
    """``value`` as the API wants ids and names: letters, digits, ``_`` and ``-``."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", str(value or ""))[:128] or other


def _call_id(block: Block) -> str:
    return _safe(block.attrs.get("id"), "call")


def _call(block: Block) -> ToolUse:
    call = call_of(block)
    return ToolUse(_call_id(block), _safe(call.name, "unknown"), call.input, call.extra)


def _sealed(block: Block, model: str, before: list[Json]) -> Json | None:
    """What only the model can have made, if it is still as it was made; thinking only where the API takes it."""
    made = thinking_of(block) if block.kind == "thinking" else raw_of(block)
    wire = made.to_wire() if made else {}
    kind = wire.get("type")
    if made is None or (block.kind == "raw" and kind in _OF_THE_API):
        return None
    stands_first = not before or before[0]["type"] in _THINKING
    return wire if kind not in _THINKING or (stands_first and block.attrs.get("model") == model) else None


def _given_results(blocks: list[Block], known: set[str]) -> tuple[dict[str, Block], list[str]]:
    """The first result of each known call, and what had to be left out."""
    given: dict[str, Block] = {}
    notes: list[str] = []
    for block in blocks:
        if block.kind != "tool_result":
            continue
        call = _call_id(block)
        if call not in known or call in given:
            notes.append(f"line {block.line}: this result answers no call of the message before it; it is left out")
        else:
            given[call] = block
    return given, notes


def _result_wire(block: Block, call: str, blocks: list[Block], load_image: ImageLoader) -> Json:
    text = block.text
    images = []
    for picture in blocks:
        if picture.kind == "image" and _call_id(picture) == call:
            path = str(picture.attrs.get("file", ""))
            data = load_image(path, str(picture.attrs.get("sha256", ""))) or ""
            kind = next((kind for begin, kind in _PICTURES.items() if data.startswith(begin)), None)
            if kind is None:
                text += f"\n(the picture {path} is gone or changed and is left out)"
            else:
                images.append(Image(kind, data))
    return ToolResult(call, text, block.attrs.get("is_error") is True, tuple(images)).to_wire()
