"""Compile a request: a pure function of the snapshot, the conversation, the pinned prefix and the mode.

No file, clock or environment is read here. The result holds the blocks that the transcript must
take in first (a new prefix, state events), so that the record and the request are one thing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime

from tinyclaw.context.clearing import WaterMarks, clear_block
from tinyclaw.context.collection import Collected, collect, fit
from tinyclaw.context.events import state_events
from tinyclaw.context.manifest import Entry, Manifest
from tinyclaw.context.source import Limits, Piece, Source, SourceContext
from tinyclaw.context.tokens import Estimator
from tinyclaw.context.wire import describe
from tinyclaw.errors import PromptTooLong
from tinyclaw.state.snapshot import Snapshot
from tinyclaw.state.transcript.fold import Conversation, Message, canonical
from tinyclaw.state.transcript.grammar import Block
from tinyclaw.state.transcript.prefixes import Prefix, PrefixBlock
from tinyclaw.state.transcript.statements import Statement
from tinyclaw.types import Json, Mode, Request, ToolSpec

CACHE_SECONDS = 3600
"""After this the provider's cache has surely expired, and a new prefix costs nothing extra."""
LEAST_OUTPUT_TOKENS = 1024
_MARK: Json = {"cache_control": {"type": "ephemeral"}}


@dataclass(frozen=True)
class Target:
    """The model that a request is for, its window and its longest answer in tokens, and fixed parameters."""

    model: str
    window_tokens: int
    max_tokens: int
    chars_per_token: float
    params: Json


@dataclass(frozen=True)
class Inputs:
    """Everything that a compile depends on. ``prefix`` is the pinned one, None when there is none that can be read.

    ``changed_during`` names live files that changed while a command of ours ran. ``now`` is an
    RFC 3339 time. Without ``marks`` nothing is cleared. ``may_exceed``: make the request even if it does not fit.
    """

    snapshot: Snapshot
    conversation: Conversation
    prefix: Prefix | None
    sources: Sequence[Source]
    tools: Sequence[ToolSpec]
    prompts: Callable[[str], str]
    target: Target
    limits: Limits
    mode: Mode
    now: str
    marks: WaterMarks | None = None
    may_exceed: bool = False
    changed_during: frozenset[str] = frozenset()


@dataclass(frozen=True)
class WorkingSet:
    """A request that is ready to be sent, and what has to be written down before it is.

    ``blocks`` go into the transcript first. ``notes`` are for the person: repairs, cuts, sources that
    were left out. ``sha256`` is the request's digest without cache marks. ``messages`` are those of the request.
    """

    blocks: tuple[Block, ...]
    prefix: Prefix
    request: Request
    manifest: Manifest
    notes: tuple[str, ...]
    sha256: str
    messages: tuple[Message, ...]

    def with_max_tokens(self, tokens: int) -> WorkingSet:
        """The same request with another limit on its answer."""
        request = replace(self.request, max_tokens=tokens)
        return replace(self, request=request, sha256=digest(request, self.prefix, self.messages))


def compile_request(inputs: Inputs) -> WorkingSet:
    """The next request.

    Raises: StateError when a required source has nothing to say, PromptTooLong when what must be in
        does not fit the window; it names the largest blocks.
    """
    collected = _collected(inputs)
    prefix, reason = inputs.prefix, _new_prefix_reason(inputs, collected)
    blocks: list[Block] = []
    if reason or prefix is None:
        prefix = _make_prefix(inputs, collected)
        blocks.append(Block("prefix", {"hash": prefix.hash, "reason": reason, "at": inputs.now}))
    estimator = _calibrated(inputs)
    blocks += state_events(inputs.conversation, prefix, collected, inputs.changed_during, estimator)
    conversation = inputs.conversation.extended(blocks)
    sent = conversation.messages(inputs.target.model)
    if inputs.marks is not None:
        tokens = estimator.tokens(prefix.length + sum(message.length for message in sent.messages))
        if cleared := clear_block(conversation, sent.messages, tokens, inputs.marks, estimator):
            blocks.append(cleared)
            conversation = conversation.extended([cleared])
            sent = conversation.messages(inputs.target.model)
    request, manifest = _assemble(inputs, prefix, sent.messages, collected, conversation)
    notes = tuple(f"{entry.file or name}: {entry.note}" for name, entry in manifest.entries.items() if entry.note)
    sha256 = digest(request, prefix, sent.messages)
    return WorkingSet(tuple(blocks), prefix, request, manifest, (*notes, *sent.notes), sha256, sent.messages)


def rebuild_request(conversation: Conversation, prefix: Prefix, record: Block) -> Request:
    """The request that ``record`` announced, from the conversation as it stood then: equal as JSON to what was sent."""
    facts = record.attrs
    model = str(facts.get("model", ""))
    params = facts.get("params")
    max_tokens = facts.get("max_tokens")
    return _request(
        model,
        max_tokens if isinstance(max_tokens, int) else 0,
        prefix,
        conversation.messages(model).messages,
        params if isinstance(params, dict) else {},
        conversation,
    )


def digest(request: Request, prefix: Prefix, messages: Sequence[Message]) -> str:
    """SHA-256 over the hashes of the request's parts: equal requests have equal digests, marks do not count."""
    head = canonical([request.model, request.max_tokens, request.params])
    parts = [hashlib.sha256(head).hexdigest(), prefix.hash, *(message.digest for message in messages)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


# The prefix


def _collected(inputs: Inputs) -> Collected:
    """What the sources say; half of the window's free part is theirs and the tools', the rest is the conversation's."""
    context = SourceContext(inputs.snapshot, inputs.limits, inputs.mode, inputs.prompts)
    estimator = _steady(inputs.target)
    pinned, tools = inputs.prefix, tuple(spec.to_wire() for spec in inputs.tools)
    length = pinned.tools_length if pinned and pinned.tools == tools else len(canonical(tools))
    room = (inputs.target.window_tokens - inputs.target.max_tokens) // 2 - estimator.tokens(length)
    return fit(collect(inputs.sources, context), max(0, room), estimator)


def _new_prefix_reason(inputs: Inputs, collected: Collected) -> str:
    """Why a new prefix is made now, or "" when the pinned one stands.

    What came from the user level must not enter the transcript, which people commit, so its change is
    no event.
    """
    prefix = inputs.prefix
    if prefix is None:
        return "missing" if inputs.conversation.prefix else "start"
    if prefix.tools != tuple(spec.to_wire() for spec in inputs.tools):
        return "tools"
    if inputs.conversation.is_compacted:
        return "compaction"
    if _seconds_between(str(inputs.conversation.manifest.get("at", "")), inputs.now) > CACHE_SECONDS:
        return "expired"
    pinned = {block.path: block.revision for block in prefix.blocks if block.private}
    private = {piece.path: piece.revision for _, piece in collected.parts if piece.private}
    known = {path: revision for path, revision in pinned.items() if path not in collected.unknown}
    return "private" if private != known else ""


def _seconds_between(earlier: str, later: str) -> float:
    try:
        return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
    except (ValueError, TypeError):
        return 0.0


def _make_prefix(inputs: Inputs, collected: Collected) -> Prefix:
    pieces = [piece for source, piece in collected.parts if source.placement == "prefix"]
    return Prefix(
        tuple(spec.to_wire() for spec in inputs.tools),
        tuple(PrefixBlock(each.id, each.text.strip(), each.path, each.revision, each.private) for each in pieces),
    )


# The request


def _assemble(
    inputs: Inputs, prefix: Prefix, messages: Sequence[Message], collected: Collected, conversation: Conversation
) -> tuple[Request, Manifest]:
    target, estimator = inputs.target, _calibrated(inputs)
    talk = sum(message.length for message in messages)
    tokens = estimator.tokens(prefix.length + talk)
    room = target.window_tokens - tokens
    if room < LEAST_OUTPUT_TOKENS and not inputs.may_exceed:
        raise PromptTooLong(_too_long(tokens, target.window_tokens, _largest(prefix, messages, estimator)))
    entries = _entries(inputs, prefix, collected, conversation)
    entries["conversation"] = Entry("conversation", _steady(target).tokens(talk))
    max_tokens = min(target.max_tokens, max(room, LEAST_OUTPUT_TOKENS))
    manifest = Manifest(entries, tokens, prefix.length + talk, estimator.corrected)
    return _request(target.model, max_tokens, prefix, messages, target.params, conversation), manifest


def _calibrated(inputs: Inputs) -> Estimator:
    """Corrected by the last request, if this model answered it: other usage says nothing about its size."""
    conversation = inputs.conversation
    is_told = conversation.usage_request == conversation.requests and conversation.model == inputs.target.model
    usage = conversation.usage if is_told else None
    return Estimator.calibrated(inputs.target.chars_per_token, usage, conversation.manifest)


def _steady(target: Target) -> Estimator:
    """The uncorrected ratio: what did not change must neither differ from the last manifest nor fall in and out."""
    return Estimator(target.chars_per_token)


def _request(
    model: str, max_tokens: int, prefix: Prefix, messages: Sequence[Message], params: Json, conversation: Conversation
) -> Request:
    settled = _settled(messages, conversation)
    return Request(
        model=model,
        max_tokens=max_tokens,
        tools=prefix.tools,
        system=_marked_system(prefix, {-1} if settled else {0, -1}),
        messages=_marked_messages(messages, settled),
        params=params,
    )


def _settled(messages: Sequence[Message], conversation: Conversation) -> list[int]:
    """Where the cleared part ends, as indices of messages, the last place first; none where nothing is cleared.

    Up to there nothing is cleared any more. If it has just grown, the place where it ended before comes second.
    """
    cleared, fresh = conversation.cleared, conversation.newly_cleared
    places = [_last_of(messages, cleared)] if cleared else []
    places += [_last_of(messages, cleared.keys() - fresh)] if fresh else []
    return [place for place in places if place]


def _last_of(messages: Sequence[Message], calls: Container[str]) -> int:
    """The index of the last message that answers one of ``calls``; 0 when none does."""
    for at in range(len(messages) - 1, 0, -1):
        if any(call.id in calls for call in messages[at - 1].calls):
            return at
    return 0


def _marked_system(prefix: Prefix, ends: Set[int]) -> tuple[Json, ...]:
    """Cache marks at the end of tools and base prompt, and at the end of the prefix; the API takes four in all."""
    system = list(prefix.system)
    for index in {end % len(system) for end in ends} if system else ():
        system[index] = {**system[index], **_MARK}
    return tuple(system)


def _marked_messages(messages: Sequence[Message], settled: Sequence[int]) -> tuple[Json, ...]:
    """Cache marks at the ends of the two newest user messages, and where the cleared part ends.

    The second newest one stands exactly where the last request wrote its cache, however many blocks the
    reply between them had; a lookup walks back only 20 blocks. Where the cleared part ends the next clear begins:
    the request that clears more finds the cache there, and not at the message before the newest, which stands
    behind what has changed.
    """
    wires = [message.wire for message in messages]
    ends = [index for index, wire in enumerate(wires) if wire["role"] == "user"]
    newest = ends[-1:] if len(settled) > 1 else ends[-2:]
    for index in {*newest, *settled}:
        *rest, last = wires[index]["content"]
        wires[index] = {**wires[index], "content": [*rest, {**last, **_MARK}]}
    return tuple(wires)


def _entries(inputs: Inputs, prefix: Prefix, collected: Collected, conversation: Conversation) -> dict[str, Entry]:
    """What the prefix holds, what was stated beside it, and what is left out, each with its place in the files."""
    estimator = _steady(inputs.target)
    pieces = {piece.id: piece for _, piece in collected.parts}
    recorded = inputs.conversation.manifest.get("blocks", {})
    entries = {"tools": Entry("tools", estimator.tokens(prefix.tools_length))}
    for block in prefix.blocks:
        lines, note = _pinned_facts(block, pieces.get(block.id), recorded.get(block.id, {}))
        entries[block.id] = Entry("prefix", estimator.tokens(len(block.text)), block.path, lines, block.revision, note)
    pinned = {(block.id, block.revision) for block in prefix.blocks}
    for source, piece in collected.parts:
        if source.placement == "event" or (piece.path and (piece.id, piece.revision) not in pinned):
            name = piece.id if piece.id not in entries else f"{piece.id} (changed)"
            tokens = estimator.tokens(len(piece.text))
            entry = Entry("event", tokens, piece.path, piece.lines, piece.revision, piece.note)
            entries[name] = _as_stated(entry, piece, conversation.statements.get(piece.path), recorded.get(name, {}))
    return entries | collected.left_out


def _pinned_facts(block: PrefixBlock, piece: Piece | None, recorded: Json) -> tuple[str, str]:
    """Lines and note of a pinned block: of its file as it is, or as it was when the block was made.

    The same revision may be cut elsewhere now, where other files share its room; what is pinned stands.
    """
    is_same = piece is not None and piece.revision == block.revision
    if piece is not None and is_same and piece.text.strip() == block.text:
        return piece.lines, piece.note
    if recorded.get("rev", "") != block.revision:
        return (piece.lines, piece.note) if piece is not None and is_same else ("", "")
    return str(recorded.get("lines", "")), str(recorded.get("note", "")) if is_same else ""


def _as_stated(entry: Entry, piece: Piece, said: Statement | None, recorded: Json) -> Entry:
    """The entry of a file, or the recorded one where this revision was stated with another cut."""
    is_other = said is not None and said.revision == piece.revision and said.text not in (None, piece.text.strip())
    return Entry.from_json(recorded) if is_other and recorded.get("rev") == piece.revision else entry


def _largest(prefix: Prefix, messages: Sequence[Message], estimator: Estimator) -> list[str]:
    """The three largest blocks of a request and their tokens, in words."""
    sizes = [(prefix.tools_length, "the tools")]
    sizes += [(len(block.text), block.path or f"the prompt's part {block.id}") for block in prefix.blocks]
    for message in messages:
        for block in message.wire["content"]:
            sizes.append((len(canonical(block)), f"{describe(block)} in message {message.number}"))
    largest = sorted(sizes, key=lambda size: -size[0])[:3]
    return [f"{name} ({estimator.tokens(length):,})" for length, name in largest]


def _too_long(tokens: int, window: int, largest: list[str]) -> str:
    return (
        f"the request would take about {tokens:,} tokens, and the model's window is {window:,}. "
        f"The largest parts: {'; '.join(largest)}. Shorten them, take turns out of the conversation by unticking "
        "their boxes, or start a new session"
    )
