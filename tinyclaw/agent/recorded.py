"""Sessions as they were recorded, read without being opened: nothing is locked, repaired or written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tinyclaw.context.compiler import digest, rebuild_request
from tinyclaw.context.manifest import Manifest
from tinyclaw.errors import StateError, UsageError
from tinyclaw.state.files import read
from tinyclaw.state.transcript.fold import Conversation, ImageLoader, conversation_of, usage_of
from tinyclaw.state.transcript.grammar import Block, Parsed, parse
from tinyclaw.state.transcript.prefixes import PrefixStore
from tinyclaw.types import Request, Usage


@dataclass(frozen=True)
class Rebuilt:
    """A past request. ``is_exact`` says that its hash is the recorded one.

    ``usage`` is what the reply reported, None when there was no reply.
    """

    request: Request
    is_exact: bool
    manifest: Manifest
    usage: Usage | None


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
        places = {block.attrs.get("n"): at for at, block in enumerate(self.blocks) if block.kind == "request"}
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
        same = digest(request, prefix, conversation.messages(request.model).messages) == record.attrs.get("sha256")
        manifest = Manifest.from_json(conversation.extended([record]).manifest)
        return Rebuilt(request, same, manifest, self._usage(number))

    def changes(self, first: int, second: int) -> list[str]:
        """The files that were told to have changed between two requests, and who changed them."""
        places = [at for at, block in enumerate(self.blocks) if block.attrs.get("n") in (first, second)]
        told = self.blocks[min(places, default=0) : max(places, default=0)]
        states = (block.attrs for block in told if block.kind == "state")
        return [f"{facts.get('path')}: {facts.get('how')}, changed {facts.get('by')}" for facts in states]

    def _usage(self, number: int) -> Usage | None:
        for block in self.blocks:
            if block.kind == "reply" and block.attrs.get("n") == number:
                return usage_of(block)
        return None


def _known(numbers: list[object]) -> str:
    if not numbers:
        return "holds no requests yet"
    return f"holds requests {numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"holds request {numbers[0]}"
