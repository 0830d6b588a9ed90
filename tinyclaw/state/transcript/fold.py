"""The conversation is a fold over the transcript's blocks; whatever people wrote, it can be sent.

Nothing is formatted or decided here that a block does not record: clears, compactions, rewinds,
prefixes and statements are applied, never recomputed. What cannot be sent as it stands is repaired
on the way out (see ``messages``), and each repair is said: ``Sent.notes``. Invariant: roles
alternate, and the first message is the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from tinyclaw.state.transcript.block import OUTSIDE, Block
from tinyclaw.state.transcript.content import call_of
from tinyclaw.state.transcript.messages import (
    INTERRUPTED,
    TAKEN_OUT,
    Group,
    ImageLoader,
    Message,
    assistant_message,
    call_ids,
    canonical,
    user_message,
)
from tinyclaw.state.transcript.statements import RECORDS, Statement, stated_text
from tinyclaw.types import Json, Role, Spent, ToolUse, Usage

__all__ = [
    "INTERRUPTED",
    "TAKEN_OUT",
    "Conversation",
    "Group",
    "ImageLoader",
    "Message",
    "Permission",
    "Sent",
    "canonical",
    "conversation_of",
    "cost_of",
    "merge_manifest",
    "spent_in",
    "usage_of",
]

_USER_KINDS = frozenset({"tool_result", "image", "state"})
_MESSAGE_KINDS = frozenset({"text", "thinking", "tool_use", "raw"}) | _USER_KINDS


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


@dataclass(frozen=True)
class _Compaction:
    """A summary in the place of all messages before number ``keep``, and what it replaced."""

    keep: int
    group: Group
    replaced: tuple[Group, ...]
    unstated: tuple[tuple[str, Statement], ...]


@dataclass
class Conversation:
    """The state of a session, grown block by block. ``extended`` gives a copy that shares what is done.

    Attributes:
        prefix: hash of the pinned prefix, or "" before the first request.
        statements: the newest statement of each file outside the prefix, by path.
        last: the greatest message number so far; ``requests`` the greatest request number.
        usage: the last reply's tokens; ``spent`` the sum over all requests, ``turn_spent`` that of the
            turn that is not ended.
        model: whom the last request was for, or "".
        is_compacted: a summary was made since the prefix was.
        cleared: the marker in the place of each cleared result, by call; ``newly_cleared``: since the last request.
        idle: no turn is running: what stands outside blocks now is the person's next message.
    """

    load_image: ImageLoader = lambda path, sha256: None
    groups: list[Group] = field(default_factory=list)
    prefix: str = ""
    model: str = ""
    statements: dict[str, Statement] = field(default_factory=dict)
    permissions: dict[str, Permission] = field(default_factory=dict)
    last: int = 0
    requests: int = 0
    manifest: Json = field(default_factory=dict)
    usage: Usage | None = None
    spent: Spent = field(default_factory=Spent)
    turn_spent: Spent = field(default_factory=Spent)
    usage_request: int = 0
    stop_reason: str = ""
    is_compacted: bool = False
    idle: bool = True
    turn: int = 0
    length: int = 0
    notes: list[str] = field(default_factory=list)
    cleared: dict[str, str] = field(default_factory=dict)
    newly_cleared: frozenset[str] = frozenset()
    left_out: set[int] = field(default_factory=set)
    _order: int = 0
    _turn_order: int = 0
    _stated: list[tuple[str, Statement]] = field(default_factory=list)
    _compactions: list[_Compaction] = field(default_factory=list)
    _memo: dict[tuple[Any, ...], Message] = field(default_factory=dict)

    def extended(self, blocks: Iterable[Block]) -> Conversation:
        """This conversation with ``blocks`` behind it; this one stays as it is."""
        copy = replace(
            self,
            groups=list(self.groups),
            statements=dict(self.statements),
            permissions=dict(self.permissions),
            cleared=dict(self.cleared),
            left_out=set(self.left_out),
            notes=list(self.notes),
            _stated=list(self._stated),
            _compactions=list(self._compactions),
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
        elif take := _RECORDS.get(block.kind):
            take(self, block)

    # Content of messages

    def _take_content(self, block: Block) -> None:
        is_users = block.kind in _USER_KINDS or (block.kind == "text" and block.attrs.get("role") == "user")
        number = _number(block, "m")
        if number is None:
            self.notes.append(f"line {block.line}: this {block.kind} has no message number; it joins the one before")
            number = self.last or 1
        elif number > self.last + 1:
            gap = (
                f"message {number - 1} is"
                if number == self.last + 2
                else f"messages {self.last + 1} to {number - 1} are"
            )
            self.notes.append(f"line {block.line}: {gap} missing before this one")
        self._put(block, number, "user" if is_users else "assistant")
        if self.turn not in self.left_out:
            self._note_statements(block, number)
        self.length += sum(map(len, block.parts))

    def _put(self, block: Block, number: int, role: Role) -> None:
        self.idle = self.idle and block.kind == OUTSIDE
        if block.box is False:
            self.left_out.add(self.turn)
            self._forget_statements(lambda said: said.order > self._turn_order)
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

    # Statements of files

    def _note_statements(self, block: Block, number: int) -> None:
        if block.kind == "state":
            self._take_state(block, number)
        elif block.kind == "tool_result":
            self._take_revisions(block, number)

    def _take_state(self, block: Block, number: int) -> None:
        path = str(block.attrs.get("path", ""))
        if path == RECORDS:
            return
        is_diff = block.attrs.get("how") == "diff"
        before = self.statements.get(path) if is_diff else None
        text = stated_text(block, before.text if before else None)
        is_known = text is not None or not is_diff
        revision = str(block.attrs.get("rev", "")) if is_known else ""  # a diff of what is not there states nothing
        since = before.since if before else 0 if is_diff else number
        self._state(path, Statement(revision, text, number, self._order, self.length, since))

    def _take_revisions(self, block: Block, number: int) -> None:
        revisions = block.attrs.get("revisions")
        states = block.attrs.get("states")
        for path, revision in _mapping(revisions).items():
            if isinstance(states, list) and path in states:
                before = self.statements.get(path)
                since = before.since if before else number
                self._state(path, Statement(str(revision), None, number, self._order, self.length, since))

    def _state(self, path: str, said: Statement) -> None:
        self._stated.append((path, said))
        self.statements[path] = said

    def _forget_statements(self, is_gone: Callable[[Statement], bool]) -> tuple[tuple[str, Statement], ...]:
        """Let older statements stand again where newer ones are no longer in the conversation; gives what went."""
        gone = tuple(entry for entry in self._stated if is_gone(entry[1]))
        self._stated = [entry for entry in self._stated if not is_gone(entry[1])]
        self.statements = dict(self._stated)
        return gone

    # Records

    def _take_prefix(self, block: Block) -> None:
        self.prefix = str(block.attrs.get("hash", ""))
        self.is_compacted = False

    def _take_request(self, block: Block) -> None:
        self.requests = max(self.requests, _number(block, "n") or 0)
        self._spend(block)
        self.newly_cleared = frozenset()
        self.model = str(block.attrs.get("model", ""))
        self.manifest = merge_manifest(self.manifest, _mapping(block.attrs.get("manifest")))

    def _take_reply(self, block: Block) -> None:
        self.usage = usage_of(block)
        self.usage_request = _number(block, "n") or 0
        self._spend(block)
        self.stop_reason = str(block.attrs.get("stop", ""))

    def _take_side(self, block: Block) -> None:
        self._spend(block)

    def _spend(self, block: Block) -> None:
        spent = spent_in(block)
        self.spent += spent
        if not self.idle:
            self.turn_spent += spent

    def _take_clear(self, block: Block) -> None:
        markers = {call: str(marker) for call, marker in _mapping(block.attrs.get("results")).items()}
        self.newly_cleared |= markers.keys() - self.cleared.keys()
        self.cleared.update(markers)

    def _take_compact(self, block: Block) -> None:
        keep = _number(block, "keep")
        if not block.text.strip() or not any(group.number == keep for group in self.groups):
            self.notes.append(f"line {block.line}: this summary names no message that is there; it is void")
            return
        assert keep is not None
        replaced = tuple(group for group in self.groups if group.number < keep)
        unstated = self._forget_statements(lambda said: said.since < keep)
        self.groups = [group for group in self.groups if group.number >= keep]
        self._compactions.append(_Compaction(keep, Group(0, "user", -1, (block,)), replaced, unstated))
        self.is_compacted = True

    def _rewind(self, first: int) -> None:
        """Take the messages from number ``first`` on out; a summary that speaks of them goes with them."""
        while self._compactions and self._compactions[-1].keep > first:
            undone = self._compactions.pop()
            self.groups = [*undone.replaced, *self.groups]
            self._stated = [*undone.unstated, *self._stated]
        self.groups = [group for group in self.groups if group.number < first]
        self._forget_statements(lambda said: said.message >= first)

    def _take_event(self, block: Block) -> None:
        what = block.attrs.get("what")
        if what == "rewind" and (first := _number(block, "m")) is not None:
            self._rewind(first)
        elif what == "permission":
            call = str(block.attrs.get("id", ""))
            self.permissions[call] = Permission(call, True if block.box else None)
        elif what == "answer":
            call = str(block.attrs.get("id", ""))
            allowed = {"allow": True, "deny": False}.get(str(block.attrs.get("answer")))
            self.permissions[call] = Permission(call, allowed, started=block.attrs.get("started") is True)

    def _take_turn_end(self, block: Block) -> None:
        self.idle = True
        self.turn_spent = Spent()
        self.turn += 1
        self._turn_order = self._order

    # What is sent

    @property
    def live_groups(self) -> list[Group]:
        """The groups that are in the conversation: those of turns whose box is ticked."""
        if not self.left_out:
            return self.groups
        return [group for group in self.groups if group.turn not in self.left_out]

    @property
    def running_groups(self) -> list[Group]:
        """The groups of the turn that runs, those included that a summary stands for; none between turns."""
        replaced = (group for made in self._compactions for group in made.replaced)
        return [group for group in (*replaced, *self.groups) if group.turn == self.turn]

    @property
    def summary(self) -> Block | None:
        """The summary that stands for the messages before the kept ones, if there is one."""
        return self._compactions[-1].group.blocks[0] if self._compactions else None

    @property
    def touched(self) -> tuple[str, ...]:
        """The folders that calls have touched, first touched first; also those of which only a summary is left."""
        summarized = (group for each in self._compactions for group in each.replaced)
        groups = (group for group in (*summarized, *self.groups) if group.turn not in self.left_out)
        return tuple(dict.fromkeys(folder for group in groups for folder in group.folders if folder))

    @property
    def pending_calls(self) -> tuple[ToolUse, ...]:
        """The calls of the last message that no result answers yet, in order."""
        groups = self.live_groups
        last = max((index for index, group in enumerate(groups) if group.role == "assistant"), default=0)
        calls = [call_of(block) for group in groups[last:] for block in group.blocks if block.kind == "tool_use"]
        if not calls:
            return ()
        results = (block for group in groups[last:] for block in group.blocks if block.kind == "tool_result")
        closed = {str(block.attrs.get("id") or "") for block in results} | set(call_ids(groups[:last]))
        return tuple({call.id: call for call in calls if call.id not in closed}.values())

    @property
    def asked_calls(self) -> tuple[ToolUse, ...]:
        """The pending calls that wait for a permission, or that were given one and are not begun."""
        known = self.permissions
        return tuple(call for call in self.pending_calls if call.id in known and not known[call.id].started)

    @property
    def revisions(self) -> dict[str, str]:
        """Which revision of which file the conversation shows to the model now, by path: the newest of each."""
        return {path: rev for message in self.messages("").messages for path, rev in message.shown.items()}

    @property
    def awaits_reply(self) -> bool:
        """Whether the last thing in the conversation is the user's: text, state or results."""
        groups = self.live_groups
        if not groups or groups[-1].role == "assistant" or self.pending_calls:
            return False
        return any(block.kind == "tool_result" or block.text.strip() for block in groups[-1].blocks)

    def messages(self, model: str) -> Sent:
        """The messages as ``model`` would get them; thinking that another model signed is left out."""
        sent: list[Message] = []
        notes: list[str] = []
        used: set[str] = set()
        for role, run in groupby(self._runs(), key=lambda group: group.role):
            groups = tuple(run)
            if sent and sent[-1].wire["role"] == role:  # nothing of what stood between them can be sent
                merged = sent.pop()
                used.difference_update(call.id for call in merged.calls)
                groups = (*merged.groups, *groups)
            if role == "assistant":
                message = self._assistant(groups, model, used)
            else:
                message = self._user(groups, sent[-1].calls if sent else ())
            if message.is_empty:
                notes += message.notes
                continue
            sent.append(message)
            used.update(call.id for call in message.calls)
        if sent and sent[0].wire["role"] == "assistant":
            note = "the conversation began with the model; a placeholder stands before it"
            sent.insert(0, Message.of("user", [{"type": "text", "text": TAKEN_OUT}], notes=(note,)))
        if sent and sent[-1].calls:
            sent.append(self._user((), sent[-1].calls))
        return Sent(tuple(sent), (*notes, *(note for message in sent for note in message.notes)))

    def _runs(self) -> Iterator[Group]:
        if self._compactions:
            yield self._compactions[-1].group
        yield from self.live_groups

    def _assistant(self, groups: tuple[Group, ...], model: str, used: set[str]) -> Message:
        taken = frozenset(used.intersection(call_ids(groups)))
        key = (groups, model, taken)
        if key not in self._memo:
            self._memo[key] = assistant_message(groups, model, taken)
        return self._memo[key]

    def _user(self, groups: tuple[Group, ...], calls: tuple[ToolUse, ...]) -> Message:
        markers = tuple((call.id, self.cleared[call.id]) for call in calls if call.id in self.cleared)
        key = (groups, tuple((call.id, call.name) for call in calls), markers)
        if key not in self._memo:
            self._memo[key] = user_message(groups, calls, dict(markers), self.load_image)
        return self._memo[key]


def conversation_of(blocks: Iterable[Block], load_image: ImageLoader = lambda path, sha256: None) -> Conversation:
    """The fold over ``blocks``."""
    conversation = Conversation(load_image=load_image)
    for block in blocks:
        conversation.append(block)
    return conversation


def usage_of(block: Block) -> Usage:
    """The tokens that a ``reply`` or ``side`` record reports."""
    return Usage(*(_number(block, name) or 0 for name in ("in", "out", "cache_read", "cache_write")))


def cost_of(block: Block) -> float | None:
    """What a ``reply`` or ``side`` record says that it cost, in US dollars; None where that was not known."""
    cost = block.attrs.get("cost_usd")
    is_cost = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < float("inf")
    return float(cost) if is_cost else None  # type: ignore[arg-type]


def spent_in(block: Block) -> Spent:
    """What a record says was used: a ``request`` that it was made, a ``reply`` what it took, a ``side`` both.

    A try that was lost is one of a request that counts already.
    """
    if block.kind not in ("request", "reply", "side"):
        return Spent()
    made = Spent(requests=block.kind == "request" or (block.kind == "side" and block.attrs.get("what") != "lost"))
    if block.kind == "request":
        return made
    cost = cost_of(block)
    return made + Spent(0, usage_of(block), cost or 0.0, unpriced=cost is None)


def merge_manifest(manifest: Json, change: Json) -> Json:
    """A manifest after a recorded difference: ``set`` adds or replaces entries, ``drop`` takes them out."""
    known = {**_mapping(manifest.get("blocks")), **_mapping(change.get("set"))}
    blocks = {key: entry for key, entry in known.items() if isinstance(entry, dict)}
    dropped = change.get("drop")
    gone = dropped if isinstance(dropped, list) else []
    rest = {key: value for key, value in change.items() if key not in ("set", "drop")}
    return {**rest, "blocks": {key: entry for key, entry in blocks.items() if key not in gone}}


_RECORDS: dict[str, Callable[[Conversation, Block], None]] = {
    "clear": Conversation._take_clear,
    "compact": Conversation._take_compact,
    "event": Conversation._take_event,
    "prefix": Conversation._take_prefix,
    "reply": Conversation._take_reply,
    "request": Conversation._take_request,
    "side": Conversation._take_side,
    "turn_end": Conversation._take_turn_end,
}


def _mapping(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _number(block: Block, name: str) -> int | None:
    value = block.attrs.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
