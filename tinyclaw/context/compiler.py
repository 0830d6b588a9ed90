"""Compile a request: a pure function of the snapshot, the conversation, the pinned prefix and the mode.

No file, clock or environment is read here. The result holds the blocks that the transcript must
take in first (a new prefix, state events), so that the record and the request are one thing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from tinyclaw.context.manifest import Entry, Manifest
from tinyclaw.context.source import Limits, Piece, Source, SourceContext
from tinyclaw.context.tokens import Estimator
from tinyclaw.errors import PromptTooLong, StateError
from tinyclaw.state.files import ABSENT
from tinyclaw.state.snapshot import Snapshot
from tinyclaw.state.transcript.fold import Conversation, Message, canonical
from tinyclaw.state.transcript.grammar import Block
from tinyclaw.state.transcript.prefixes import Prefix, PrefixBlock
from tinyclaw.state.transcript.statements import By, Statement, state_block
from tinyclaw.types import Json, Mode, Request, ToolSpec

RESTATE_TOKENS = 30_000
"""What an event said further back than this is said again in whole."""
CACHE_SECONDS = 3600
"""After this the provider's cache has surely expired, and a new prefix costs nothing extra."""
_LEAST_OUTPUT_TOKENS = 1024
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
    RFC 3339 time.
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
    changed_during: frozenset[str] = frozenset()


@dataclass(frozen=True)
class WorkingSet:
    """A request that is ready to be sent, and what has to be written down before it is.

    ``blocks`` go into the transcript first. ``notes`` are for the person: repairs, cuts, sources that
    were left out. ``sha256`` is the request's digest without cache marks.
    """

    blocks: tuple[Block, ...]
    prefix: Prefix
    request: Request
    manifest: Manifest
    notes: tuple[str, ...]
    sha256: str


def compile_request(inputs: Inputs) -> WorkingSet:
    """The next request.

    Raises: StateError when a required source has nothing to say, PromptTooLong when what must be in
        does not fit the window; it names the largest blocks.
    """
    pieces, omitted = _collect(inputs)
    estimator = Estimator.calibrated(
        inputs.target.chars_per_token, inputs.conversation.usage, inputs.conversation.manifest
    )
    prefix, reason = inputs.prefix, _new_prefix_reason(inputs)
    blocks: list[Block] = []
    if reason or prefix is None:
        prefix, left_out = _make_prefix(inputs, pieces, estimator)
        omitted |= left_out
        blocks.append(Block("prefix", {"hash": prefix.hash, "reason": reason or "start", "at": inputs.now}))
    blocks += _state_events(inputs, prefix, pieces, estimator, pinned_now=bool(blocks))
    conversation = inputs.conversation.extended(blocks)
    sent = conversation.messages(inputs.target.model)
    request, manifest = _assemble(inputs, prefix, sent.messages, pieces, omitted, estimator)
    notes = tuple(f"{entry.file or name}: {entry.note}" for name, entry in manifest.entries.items() if entry.note)
    return WorkingSet(tuple(blocks), prefix, request, manifest, (*notes, *sent.notes), digest(request, sent.messages))


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
    )


def digest(request: Request, messages: Sequence[Message]) -> str:
    """SHA-256 over the hashes of the request's parts: equal requests have equal digests, marks do not count."""
    head = [
        request.model,
        request.max_tokens,
        request.params,
        request.tools,
        [block["text"] for block in request.system],
    ]
    parts = [hashlib.sha256(canonical(head)).hexdigest(), *(message.digest for message in messages)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


# Collecting


def _collect(inputs: Inputs) -> tuple[list[tuple[Source, Piece]], dict[str, Entry]]:
    context = SourceContext(inputs.snapshot, inputs.limits, inputs.mode, inputs.prompts)
    collected: list[tuple[Source, Piece]] = []
    omitted: dict[str, Entry] = {}
    for source in inputs.sources:
        try:
            pieces = source.pieces(context)
        except (StateError, OSError) as error:
            if source.required:
                raise StateError(f"the prompt's part {source.name} cannot be made: {error}") from error
            omitted[source.name] = Entry("out", 0, note=f"left out: {error}")
            continue
        if source.required and not pieces:
            raise StateError(f"the prompt's part {source.name} is empty; restore templates/prompts/{source.name}.md")
        collected += [(source, piece) for piece in pieces]
    return collected, omitted


# The prefix


def _new_prefix_reason(inputs: Inputs) -> str:
    """Why a new prefix is made now, or "" when the pinned one stands (design: idea 4)."""
    if inputs.prefix is None:
        return "missing" if inputs.conversation.prefix else "start"
    if inputs.prefix.tools != tuple(spec.to_wire() for spec in inputs.tools):
        return "tools"
    if _seconds_between(str(inputs.conversation.manifest.get("at", "")), inputs.now) > CACHE_SECONDS:
        return "expired"
    return ""


def _seconds_between(earlier: str, later: str) -> float:
    try:
        return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
    except (ValueError, TypeError):
        return 0.0


def _make_prefix(
    inputs: Inputs, pieces: list[tuple[Source, Piece]], estimator: Estimator
) -> tuple[Prefix, dict[str, Entry]]:
    """The prefix from today's files; optional pieces fall out by priority where it would take over half the room."""
    room = (inputs.target.window_tokens - inputs.target.max_tokens) // 2
    chosen = [(source, piece) for source, piece in pieces if source.placement == "prefix"]
    tools = tuple(spec.to_wire() for spec in inputs.tools)
    used = estimator.tokens(len(canonical(tools)) + sum(len(piece.text) for _, piece in chosen))
    omitted: dict[str, Entry] = {}
    for source, piece in sorted(chosen, key=lambda each: each[0].priority):
        if used <= room or source.required:
            continue
        tokens = estimator.tokens(len(piece.text))
        note = f"left out: the fixed part would take {used:,} of {room:,} tokens, and this has the lowest priority"
        omitted[piece.id] = Entry("out", tokens, piece.path, piece.lines, piece.revision, note)
        chosen.remove((source, piece))
        used -= tokens
    blocks = (PrefixBlock(p.id, p.text.strip(), p.path, p.revision, p.private) for _, p in chosen)
    return Prefix(tools, tuple(blocks)), omitted


# State events


def _state_events(
    inputs: Inputs, prefix: Prefix, pieces: list[tuple[Source, Piece]], estimator: Estimator, *, pinned_now: bool
) -> Iterator[Block]:
    """One event for each live file whose revision is not the one that the conversation stated last."""
    conversation = inputs.conversation
    number = conversation.last if conversation.awaits_reply else conversation.last + 1
    live = {piece.path: piece for _, piece in pieces if piece.path}
    for path in dict.fromkeys(
        [*live, *(block.path for block in prefix.blocks if block.path), *conversation.statements]
    ):
        piece = live.get(path)
        revision = piece.revision if piece else ABSENT
        said = _last_statement(conversation, prefix, path, pinned_now=pinned_now)
        if said is None or said.revision != revision:
            if piece is None and said is None:
                continue
            by: By = "during" if path in inputs.changed_during else "outside"
            text = piece.text.strip() if piece else None
            yield state_block(path, revision, by, text, said.text if said else None, number)
        elif piece and said.order >= 0 and estimator.tokens(conversation.length - said.length) > RESTATE_TOKENS:
            yield state_block(path, revision, "outside", piece.text.strip(), None, number)


def _last_statement(conversation: Conversation, prefix: Prefix, path: str, *, pinned_now: bool) -> Statement | None:
    said = conversation.statements.get(path)
    pinned = prefix.stated(path)
    if pinned is None or (said is not None and not pinned_now and said.order > conversation.prefix_order):
        return said
    return Statement(pinned.revision, pinned.text, 0, -1, 0)


# The request


def _assemble(
    inputs: Inputs,
    prefix: Prefix,
    messages: Sequence[Message],
    pieces: list[tuple[Source, Piece]],
    omitted: dict[str, Entry],
    estimator: Estimator,
) -> tuple[Request, Manifest]:
    target = inputs.target
    talk = sum(message.length for message in messages)
    tokens = estimator.tokens(prefix.length + talk)
    # Entries keep the uncorrected ratio: what did not change must not differ from the last manifest.
    steady = Estimator(target.chars_per_token)
    entries = {**_entries(inputs, prefix, pieces, steady), **omitted}
    entries["conversation"] = Entry("conversation", steady.tokens(talk))
    manifest = Manifest(entries, tokens, prefix.length + talk, estimator.corrected)
    room = target.window_tokens - tokens
    if room < _LEAST_OUTPUT_TOKENS:
        raise PromptTooLong(_too_long(tokens, target.window_tokens, entries))
    max_tokens = min(target.max_tokens, room)
    return _request(target.model, max_tokens, prefix, messages, target.params), manifest


def _request(model: str, max_tokens: int, prefix: Prefix, messages: Sequence[Message], params: Json) -> Request:
    return Request(
        model=model,
        max_tokens=max_tokens,
        tools=prefix.tools,
        system=_marked_system(prefix),
        messages=_marked_messages(messages),
        params=params,
    )


def _marked_system(prefix: Prefix) -> tuple[Json, ...]:
    """Cache marks at the end of tools and base prompt, and at the end of the prefix."""
    system = list(prefix.system)
    for index in {0, len(system) - 1} if system else ():
        system[index] = {**system[index], **_MARK}
    return tuple(system)


def _marked_messages(messages: Sequence[Message]) -> tuple[Json, ...]:
    """Cache marks at the ends of the two newest user messages.

    The second one stands exactly where the last request wrote its cache, however many blocks the
    reply between them had; a lookup walks back only 20 blocks.
    """
    wires = [message.wire for message in messages]
    ends = [index for index, wire in enumerate(wires) if wire["role"] == "user"][-2:]
    for index in ends:
        *rest, last = wires[index]["content"]
        wires[index] = {**wires[index], "content": [*rest, {**last, **_MARK}]}
    return tuple(wires)


def _entries(
    inputs: Inputs, prefix: Prefix, pieces: list[tuple[Source, Piece]], estimator: Estimator
) -> dict[str, Entry]:
    now = {piece.id: piece for _, piece in pieces}
    entries = {"tools": Entry("tools", estimator.tokens(len(canonical(prefix.tools))))}
    for block in prefix.blocks:
        piece = now.get(block.id)
        same = piece is not None and piece.revision == block.revision
        lines, note = (piece.lines, piece.note) if piece is not None and same else ("", "")
        entries[block.id] = Entry("prefix", estimator.tokens(len(block.text)), block.path, lines, block.revision, note)
    pinned = {(block.path, block.revision) for block in prefix.blocks}
    for source, piece in pieces:
        if source.placement == "event" or (piece.path and (piece.path, piece.revision) not in pinned):
            name = piece.id if source.placement == "event" else f"{piece.id} (changed)"
            tokens = estimator.tokens(len(piece.text))
            entries[name] = Entry("event", tokens, piece.path, piece.lines, piece.revision, piece.note)
    return entries


def _too_long(tokens: int, window: int, entries: dict[str, Entry]) -> str:
    largest = sorted(entries.items(), key=lambda each: -each[1].tokens)[:3]
    names = ", ".join(f"{entry.file or name} ({entry.tokens:,})" for name, entry in largest)
    return (
        f"the request would take about {tokens:,} tokens, and the model's window is {window:,}. "
        f"The largest parts: {names}. Shorten them, take turns out of the conversation by unticking their boxes, "
        "or start a new session"
    )
