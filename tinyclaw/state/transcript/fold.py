"""The conversation is a fold over the transcript's blocks; whatever people wrote, it can be sent.

Nothing is formatted or decided here that a block does not record: clears, compactions, rewinds,
prefixes and statements are applied, never recomputed. What cannot be sent as it stands is repaired
on the way out, and each repair is said: ``Sent.notes``. The rules that the result obeys are those
of the Messages API (https://docs.claude.com/en/api/messages): roles alternate, the first message is
the user's, every call is answered by one result in the next user message, results stand first, ids
are unique, no text is blank, thinking goes back signed, unchanged and first, or not at all.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from tinyclaw.state.transcript.content import call_of, raw_of, text_of, thinking_of
from tinyclaw.state.transcript.grammar import DAMAGED, OUTSIDE, Block
from tinyclaw.state.transcript.statements import Statement, stated_text
from tinyclaw.types import Image, Json, Role, ToolResult, ToolUse, Usage

INTERRUPTED = "Interrupted before it finished; the outcome is unknown. Look at the real state before you do it again."
TAKEN_OUT = "(What stood here in the conversation was taken out.)"

ImageLoader = Callable[[str, str], str | None]
"""Path and hash of a stored picture to its base64 text, or None when it is gone or changed."""

_USER_KINDS = frozenset({"tool_result", "image", "state"})
_SAID = frozenset({"text", "compact", OUTSIDE})
_MESSAGE_KINDS = frozenset({"text", "thinking", "tool_use", "raw"}) | _USER_KINDS


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


@dataclass(frozen=True, eq=False)
class Message:
    """One message in wire form with what is derived from it once: its hash, its length, its calls."""

    wire: Json
    digest: str
    length: int
    calls: tuple[ToolUse, ...]
    notes: tuple[str, ...]
    number: int


@dataclass(frozen=True)
class Sent:
    """What would be sent now, without cache marks, and what was repaired to make it so."""

    messages: tuple[Message, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Permission:
    """A question to the person that stands in the transcript: its call, and the answer if there is one.

    ``started`` says that the call was begun after the answer, so that without a result its outcome is unknown.
    """

    call: str
    allowed: bool | None
    started: bool = False


@dataclass
class Conversation:
    """The state of a session, grown block by block. ``extended`` gives a copy that shares what is done.

    Attributes:
        prefix: hash of the pinned prefix, or "" before the first request; ``prefix_order`` is its place.
        statements: the newest statement of each file outside the prefix, by path.
        last: the greatest message number so far; ``requests`` the greatest request number.
        usage: the last reply's tokens; ``spent`` the sum over all replies.
        idle: no turn is running: what stands outside blocks now is the person's next message.
        revisions: what the model knows of files it has read or written, by path.
    """

    load_image: ImageLoader = lambda path, sha256: None
    groups: list[Group] = field(default_factory=list)
    prefix: str = ""
    prefix_order: int = -1
    prefix_at: str = ""
    statements: dict[str, Statement] = field(default_factory=dict)
    revisions: dict[str, str] = field(default_factory=dict)
    permissions: dict[str, Permission] = field(default_factory=dict)
    last: int = 0
    requests: int = 0
    manifest: Json = field(default_factory=dict)
    usage: Usage | None = None
    spent: Usage = field(default_factory=Usage)
    usage_request: int = 0
    stop_reason: str = ""
    idle: bool = True
    turn: int = 0
    length: int = 0
    notes: list[str] = field(default_factory=list)
    cleared: dict[str, str] = field(default_factory=dict)
    left_out: set[int] = field(default_factory=set)
    summary: Block | None = None
    _order: int = 0
    _memo: dict[tuple[Any, ...], Message] = field(default_factory=dict)

    def extended(self, blocks: Iterable[Block]) -> Conversation:
        """This conversation with ``blocks`` behind it; this one stays as it is."""
        copy = replace(
            self,
            groups=list(self.groups),
            statements=dict(self.statements),
            revisions=dict(self.revisions),
            permissions=dict(self.permissions),
            cleared=dict(self.cleared),
            left_out=set(self.left_out),
            notes=list(self.notes),
        )
        for block in blocks:
            copy.append(block)
        return copy

    def append(self, block: Block) -> None:
        """Take the next block in."""
        self._order += 1
        if block.kind in _MESSAGE_KINDS:
            self._take_content(block)
        elif block.kind == OUTSIDE:
            self._take_outside(block)
        elif block.kind == DAMAGED:
            self.notes.append(f"line {block.line}: a damaged block is left out")
        elif handler := getattr(self, f"_take_{block.kind}", None):
            handler(block)

    # Content of messages

    def _take_content(self, block: Block) -> None:
        role: Role = "user" if block.kind in _USER_KINDS or block.attrs.get("role") == "user" else "assistant"
        number = _number(block, "m")
        if number is None:
            self.notes.append(f"line {block.line}: this {block.kind} has no message number; it joins the one before")
            number = self.last or 1
        self._put(block, number, role)
        if block.kind == "state":
            self._take_state(block, number)
        elif block.kind == "tool_result":
            self._take_revisions(block, number)
        self.length += sum(map(len, block.parts))

    def _put(self, block: Block, number: int, role: Role) -> None:
        self.idle = self.idle and block.kind == OUTSIDE
        if block.box is False:
            self.left_out.add(self.turn)
        latest = self.groups[-1] if self.groups else None
        if latest and (latest.number, latest.role, latest.turn) == (number, role, self.turn):
            self.groups[-1] = replace(latest, blocks=(*latest.blocks, block))
        else:
            self.groups.append(Group(number, role, self.turn, (block,)))
        self.last = max(self.last, number)

    def _take_outside(self, block: Block) -> None:
        if self.idle:
            self._put(block, self.last + 1, "user")
        else:
            self.notes.append(f"line {block.line}: text between blocks of a turn is kept as a note and not sent")

    def _take_state(self, block: Block, number: int) -> None:
        if self.turn in self.left_out:
            return
        path = str(block.attrs.get("path", ""))
        before = self.statements.get(path)
        text = stated_text(block, before.text if before else None)
        is_known = text is not None or block.attrs.get("how") != "diff"
        revision = str(block.attrs.get("rev", "")) if is_known else ""  # a diff of what is not there states nothing
        self.statements[path] = Statement(revision, text, number, self._order, self.length)

    def _take_revisions(self, block: Block, number: int) -> None:
        revisions = block.attrs.get("revisions")
        states = block.attrs.get("states")
        for path, revision in revisions.items() if isinstance(revisions, dict) else ():
            self.revisions[str(path)] = str(revision)
            if isinstance(states, list) and path in states:
                self.statements[str(path)] = Statement(str(revision), None, number, self._order, self.length)

    # Records

    def _take_prefix(self, block: Block) -> None:
        self.prefix = str(block.attrs.get("hash", ""))
        self.prefix_at = str(block.attrs.get("at", ""))
        self.prefix_order = self._order

    def _take_request(self, block: Block) -> None:
        self.requests = max(self.requests, _number(block, "n") or 0)
        change = block.attrs.get("manifest")
        if isinstance(change, dict):
            self.manifest = merge_manifest(self.manifest, change)

    def _take_reply(self, block: Block) -> None:
        tokens = [_number(block, name) or 0 for name in ("in", "out", "cache_read", "cache_write")]
        self.usage = Usage(*tokens)
        self.usage_request = _number(block, "n") or 0
        self.spent += self.usage
        self.stop_reason = str(block.attrs.get("stop", ""))

    def _take_side(self, block: Block) -> None:
        self.spent += Usage(*(_number(block, name) or 0 for name in ("in", "out", "cache_read", "cache_write")))

    def _take_clear(self, block: Block) -> None:
        results = block.attrs.get("results")
        if isinstance(results, dict):
            self.cleared.update({str(key): str(marker) for key, marker in results.items()})

    def _take_compact(self, block: Block) -> None:
        keep = _number(block, "keep")
        if not block.text.strip() or not any(group.number == keep for group in self.groups):
            self.notes.append(f"line {block.line}: this summary names no message that is there; it is void")
            return
        assert keep is not None
        self.groups = [group for group in self.groups if group.number >= keep]
        self.statements = {path: said for path, said in self.statements.items() if said.message >= keep}
        self.summary = block

    def _take_event(self, block: Block) -> None:
        what = block.attrs.get("what")
        if what == "rewind" and (first := _number(block, "m")) is not None:
            self.groups = [group for group in self.groups if group.number < first]
            self.statements = {path: said for path, said in self.statements.items() if said.message < first}
        elif what == "permission":
            call = str(block.attrs.get("id", ""))
            self.permissions[call] = Permission(call, True if block.box else None)
        elif what == "answer":
            call = str(block.attrs.get("id", ""))
            allowed = block.attrs.get("answer") == "allow"
            self.permissions[call] = Permission(call, allowed, started=block.attrs.get("started") is True)

    def _take_turn_end(self, block: Block) -> None:
        self.idle = True
        self.turn += 1

    # What is sent

    @property
    def live_groups(self) -> list[Group]:
        """The groups that are in the conversation: those of turns whose box is ticked."""
        if not self.left_out:
            return self.groups
        return [group for group in self.groups if group.turn not in self.left_out]

    @property
    def pending_calls(self) -> tuple[ToolUse, ...]:
        """The calls of the last message that no result answers yet, in order."""
        answered: set[str] = set()
        for group in reversed(self.live_groups):
            if group.role == "assistant":
                calls = (call_of(block) for block in group.blocks if block.kind == "tool_use")
                return tuple(call for call in calls if call.id not in answered)
            answered |= {str(block.attrs.get("id")) for block in group.blocks if block.kind == "tool_result"}
        return ()

    @property
    def awaits_reply(self) -> bool:
        """Whether the last thing in the conversation is the user's: text, state or results."""
        groups = self.live_groups
        return bool(groups) and groups[-1].role == "user" and not self.pending_calls

    def messages(self, model: str) -> Sent:
        """The messages as ``model`` would get them; thinking that another model signed is left out."""
        sent: list[Message] = []
        notes: list[str] = []
        seen: set[str] = set()
        for role, run in groupby(self._runs(), key=lambda group: group.role):
            groups = tuple(run)
            calls = sent[-1].calls if sent else ()
            if role == "assistant":
                if calls:
                    sent.append(self._answers(calls))
                elif not sent or sent[-1].wire["role"] == "assistant":
                    sent.append(_message("user", [{"type": "text", "text": TAKEN_OUT}], (), (), 0))
                message = self._assistant(groups, model, seen)
                seen.update(call.id for call in message.calls)
            else:
                message = self._user(groups, calls)
            notes += message.notes
            if message.wire["content"]:
                sent.append(message)
        if sent and sent[-1].calls:
            sent.append(self._answers(sent[-1].calls))
        return Sent(tuple(sent), tuple(notes))

    def _runs(self) -> Iterator[Group]:
        if self.summary is not None:
            yield Group(0, "user", -1, (self.summary,))
        yield from self.live_groups

    def _assistant(self, groups: tuple[Group, ...], model: str, seen: set[str]) -> Message:
        key = (groups, model)
        known = self._memo.get(key)
        if known is not None and seen.isdisjoint(call.id for call in known.calls):
            return known
        made = _assistant_message(groups, model, seen)
        self._memo[key] = made
        return made

    def _user(self, groups: tuple[Group, ...], calls: tuple[ToolUse, ...]) -> Message:
        markers = tuple((call.id, self.cleared[call.id]) for call in calls if call.id in self.cleared)
        key = (groups, tuple(call.id for call in calls), markers)
        if key not in self._memo:
            self._memo[key] = _user_message(groups, calls, dict(markers), self.load_image)
        return self._memo[key]

    def _answers(self, calls: tuple[ToolUse, ...]) -> Message:
        return _user_message((), calls, {}, self.load_image)


def conversation_of(blocks: Iterable[Block], load_image: ImageLoader = lambda path, sha256: None) -> Conversation:
    """The fold over ``blocks``."""
    conversation = Conversation(load_image=load_image)
    for block in blocks:
        conversation.append(block)
    return conversation


def merge_manifest(manifest: Json, change: Json) -> Json:
    """A manifest after a recorded difference: ``set`` adds or replaces entries, ``drop`` takes them out."""
    blocks = {**manifest.get("blocks", {}), **(change.get("set") or {})}
    gone = set(change.get("drop") or ())
    rest = {key: value for key, value in change.items() if key not in ("set", "drop")}
    return {**rest, "blocks": {key: entry for key, entry in blocks.items() if key not in gone}}


def _number(block: Block, name: str) -> int | None:
    value = block.attrs.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _message(
    role: Role, content: list[Json], calls: tuple[ToolUse, ...], notes: tuple[str, ...], number: int
) -> Message:
    wire = _scrubbed({"role": role, "content": content})
    data = canonical(wire)
    return Message(wire, hashlib.sha256(data).hexdigest(), len(data), calls, notes, number)


def _scrubbed(wire: Json) -> Json:
    """``wire`` without half surrogates, which UTF-8 cannot carry."""
    text = json.dumps(wire, ensure_ascii=False)
    if re.search("[\ud800-\udfff]", text):
        scrubbed: Json = json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
        return scrubbed
    return wire


def _safe(text: str, other: str) -> str:
    """``text`` as the API wants ids and names: letters, digits, ``_`` and ``-``."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", text)[:128] or other


def _assistant_message(groups: tuple[Group, ...], model: str, seen: set[str]) -> Message:
    content: list[Json] = []
    calls: list[ToolUse] = []
    notes: list[str] = []
    for block in (block for group in groups for block in group.blocks):
        if block.kind == "tool_use":
            call = call_of(block)
            call = replace(call, id=_safe(call.id, "call"), name=_safe(call.name, "unknown"))
            if call.id in seen or any(call.id == other.id for other in calls):
                notes.append(f"line {block.line}: a second call has the id {call.id}; the first one counts")
                continue
            calls.append(call)
            content.append(call.to_wire())
        elif block.kind == "thinking":
            if (wire := _thinking_wire(block, model, first=all("thinking" in w["type"] for w in content))) is not None:
                content.append(wire)
            else:
                notes.append(
                    f"line {block.line}: thinking that was edited, moved or signed by another model is left out"
                )
        elif block.kind == "raw":
            raw = raw_of(block)
            if raw is not None and (block.attrs.get("model") == model or "thinking" not in raw.data["type"]):
                content.append(raw.to_wire())
        elif block.text.strip():
            content.append(text_of(block).to_wire())
    return _message("assistant", content, tuple(calls), tuple(notes), groups[0].number)


def _thinking_wire(block: Block, model: str, *, first: bool) -> Json | None:
    thinking = thinking_of(block)
    if thinking is None or not first or block.attrs.get("model") != model:
        return None
    return thinking.to_wire()


def _user_message(
    groups: tuple[Group, ...], calls: tuple[ToolUse, ...], markers: dict[str, str], load_image: ImageLoader
) -> Message:
    blocks = [block for group in groups for block in group.blocks]
    results, notes = _results(blocks, calls, markers, load_image)
    states = [block.text for block in blocks if block.kind == "state"]
    said = [block.text.strip() if block.kind == OUTSIDE else block.text for block in blocks if block.kind in _SAID]
    texts = [{"type": "text", "text": text} for text in (*states, *said) if text.strip()]
    return _message("user", results + texts, (), tuple(notes), groups[0].number if groups else 0)


def _results(
    blocks: list[Block], calls: tuple[ToolUse, ...], markers: dict[str, str], load_image: ImageLoader
) -> tuple[list[Json], list[str]]:
    """The results in call order, one for each call, and what had to be said."""
    given: dict[str, Block] = {}
    notes: list[str] = []
    known = {call.id for call in calls}
    for block in blocks:
        if block.kind != "tool_result":
            continue
        call = _safe(str(block.attrs.get("id") or ""), "call")
        if call not in known or call in given:
            notes.append(f"line {block.line}: this result answers no call of the message before it; it is left out")
        else:
            given[call] = block
    wires = []
    for call_use in calls:
        found = given.get(call_use.id)
        if found is None:
            notes.append(f"the call {call_use.id} ({call_use.name}) has no result; it counts as interrupted")
            wires.append(ToolResult(call_use.id, INTERRUPTED, is_error=True).to_wire())
        elif call_use.id in markers:
            wires.append(ToolResult(call_use.id, markers[call_use.id]).to_wire())
        else:
            wires.append(_result_wire(found, call_use.id, blocks, load_image))
    return wires, notes


def _result_wire(block: Block, call: str, blocks: list[Block], load_image: ImageLoader) -> Json:
    text = block.text
    images = []
    for picture in blocks:
        if picture.kind == "image" and picture.attrs.get("id") == block.attrs.get("id"):
            path = str(picture.attrs.get("file", ""))
            data = load_image(path, str(picture.attrs.get("sha256", "")))
            if data is None:
                text += f"\n(the picture {path} is gone or changed and is left out)"
            else:
                images.append(Image(str(picture.attrs.get("media_type", "image/png")), data))
    return ToolResult(call, text, block.attrs.get("is_error") is True, tuple(images)).to_wire()
