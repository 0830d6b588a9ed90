"""Sessions as they were recorded, read without being opened: nothing is locked, repaired or written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tinyclaw.context.compiler import digest, rebuild_request
from tinyclaw.context.manifest import Manifest
from tinyclaw.context.reuse import HELD_SECONDS, Sent
from tinyclaw.errors import StateError, UsageError
from tinyclaw.state.files import read
from tinyclaw.state.transcript.fold import Conversation, ImageLoader, Message, conversation_of, usage_of
from tinyclaw.state.transcript.grammar import Block, Parsed, parse
from tinyclaw.state.transcript.prefixes import Prefix, PrefixStore
from tinyclaw.types import Request
from tinyclaw.width import one_line


@dataclass(frozen=True)
class Rebuilt:
    """A past request. ``is_exact`` says that its hash is the recorded one.

    ``record`` is its own, the recording's block at index ``place``; ``reply`` is that of its answer, None when there
    was none. ``conversation`` is the fold over the blocks before it, ``messages`` what that gave.
    """

    request: Request
    is_exact: bool
    manifest: Manifest
    prefix: Prefix
    conversation: Conversation
    messages: tuple[Message, ...]
    place: int
    record: Block
    reply: Block | None

    @property
    def cached_tokens(self) -> int:
        """What the provider's cache served of it or, without an answer, should have held."""
        held = self.record.attrs.get("held")
        return usage_of(self.reply).cache_read if self.reply else held if isinstance(held, int) else 0


@dataclass(frozen=True)
class Recording:
    """A transcript's file as it stands."""

    path: Path
    parsed: Parsed
    load_image: ImageLoader

    @classmethod
    def read(cls, path: Path, load_image: ImageLoader) -> Recording:
        """Raises: StateError when the file cannot be read."""
        data = read(path).data
        if data is None:
            raise StateError(f"{path}: is gone")
        return cls(path, parse(data, path.name), load_image)

    @property
    def session(self) -> str:
        """The session's id, or the file's name where it has none."""
        return self.parsed.header.get("session") or self.path.stem

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self.parsed.blocks

    def conversation(self) -> Conversation:
        """The fold over all of it."""
        return conversation_of(self.blocks, self.load_image)

    def request(self, number: int, prefixes: PrefixStore) -> Rebuilt:
        """Request ``number`` as it was sent, out of the blocks before its record and the pinned prefix.

        Raises: UsageError when there is no such request; StateError when its prefix file is gone.
        """
        places = {
            count: at
            for at, block in enumerate(self.blocks)
            if block.kind == "request" and isinstance(count := block.attrs.get("n"), int)
        }
        if number not in places:
            raise UsageError(f"{self.path.name} {_known(list(places))}; there is no request {number}")
        record = self.blocks[places[number]]
        conversation = conversation_of(self.blocks[: places[number]], self.load_image)
        prefix = prefixes.load(conversation.prefix)
        if prefix is None:
            raise StateError(
                f"{prefixes.folder / conversation.prefix}.md: the prefix of request {number} is gone or was changed; "
                "restore the file, from git for example"
            )
        request = rebuild_request(conversation, prefix, record)
        messages = conversation.messages(request.model).messages
        return Rebuilt(
            request,
            is_exact=digest(request, prefix, messages) == record.attrs.get("sha256"),
            manifest=Manifest.from_json(conversation.extended([record]).manifest),
            prefix=prefix,
            conversation=conversation,
            messages=messages,
            place=places[number],
            record=record,
            reply=self._reply(number),
        )

    def changes(self, first: int, second: int) -> list[str]:
        """What was done to the conversation between two requests: files told, results cleared, summaries, prefixes."""
        places = [at for at, each in enumerate(self.blocks) if each.kind == "request" and _n(each) in (first, second)]
        between = self.blocks[min(places, default=0) : max(places, default=0)]
        return [change for block in between if (change := _change(block))]

    def _reply(self, number: int) -> Block | None:
        return next((each for each in self.blocks if each.kind == "reply" and each.attrs.get("n") == number), None)


def last_sent(
    blocks: Sequence[Block], conversation: Conversation, prefixes: PrefixStore, load_image: ImageLoader, now: datetime
) -> Sent | None:
    """The last request of a session, as far as the provider's cache may still hold it; None when it cannot be rebuilt.

    ``conversation`` is the fold over all ``blocks``. A request that is too old is not rebuilt, only dated.
    """
    manifest = Manifest.from_json(conversation.manifest)
    at = _time(conversation.manifest.get("at"))
    place = max((index for index, block in enumerate(blocks) if block.kind == "request"), default=-1)
    if at is None or place < 0:
        return None
    is_held = (now - at).total_seconds() <= HELD_SECONDS
    then = conversation_of(blocks[:place], load_image) if is_held else conversation
    prefix = prefixes.load(then.prefix)
    if prefix is None:
        return None
    model = conversation.model
    messages = then.messages(model).messages if is_held else ()
    record = blocks[place]
    is_edited = is_held and _digest(then, prefix, record) != record.attrs.get("sha256")
    return Sent(model, prefix, () if is_edited else messages, manifest.tokens, manifest.chars, at, is_edited=is_edited)


def _digest(conversation: Conversation, prefix: Prefix, record: Block) -> str:
    """The digest of the request of ``record``, by what the blocks before it say now."""
    request = rebuild_request(conversation, prefix, record)
    return digest(request, prefix, conversation.messages(request.model).messages)


def _n(block: Block) -> object:
    return block.attrs.get("n")


def _change(block: Block) -> str:
    """What a block did to the conversation, in words; "" for one that only goes on with it."""
    facts = block.attrs
    if block.kind == "state":
        who = "not changed, only told again" if facts.get("by") == "now" else f"changed {facts.get('by')}"
        return one_line(f"told: {facts.get('path')}: {facts.get('how')}, {who}")
    if block.kind == "clear":
        results = facts.get("results")
        return f"cleared: {len(results) if isinstance(results, dict) else 0} old results"
    if block.kind == "compact":
        return one_line(f"summarized: all that came before message {facts.get('keep')}")
    if block.kind == "prefix":
        return one_line(f"a new prefix was made: {facts.get('reason')}")
    return "taken out: the messages from a rewind on" if facts.get("what") == "rewind" else ""


def _time(text: object) -> datetime | None:
    """The moment that an RFC 3339 text with a time zone names."""
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return at if at.tzinfo else None


def _known(numbers: list[int]) -> str:
    if not numbers:
        return "holds no requests yet"
    return f"holds requests {numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"holds request {numbers[0]}"
