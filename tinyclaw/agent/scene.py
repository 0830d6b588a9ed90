"""A request together with everything it was made from, so that people can ask where a part of it comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tinyclaw.context.manifest import Manifest
from tinyclaw.errors import StateError
from tinyclaw.state.files import read
from tinyclaw.state.snapshot import Snapshot, StateFile
from tinyclaw.state.transcript.fold import Conversation, Message
from tinyclaw.state.transcript.grammar import Block
from tinyclaw.state.transcript.prefixes import Prefix, PrefixStore
from tinyclaw.state.workspace import Workspace

_MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Scene:
    """A request and everything it was made from.

    ``blocks`` are the transcript's, of which those before index ``end`` came before the request. ``conversation`` is
    the fold over these and over what the request itself adds. ``snapshot``: what the live files say now.
    ``is_exact``: the transcript still says what was sent.
    """

    workspace: Workspace
    transcript: str
    blocks: Sequence[Block]
    end: int
    conversation: Conversation
    prefix: Prefix
    messages: tuple[Message, ...]
    manifest: Manifest
    snapshot: Snapshot
    prefixes: PrefixStore
    is_exact: bool = True

    def since(self, block: Block) -> int | None:
        """The first request that came behind a block of the transcript."""
        at = self._places.get(id(block), len(self.blocks))
        numbers = (each.attrs.get("n") for each in self.blocks[at : self.end + 1] if each.kind == "request")
        return next((number for number in numbers if isinstance(number, int)), None)

    @property
    def files(self) -> Sequence[StateFile]:
        """The live files, as they are now."""
        return list(self.snapshot.files(*self.snapshot.found))

    @cached_property
    def shown(self) -> Sequence[Block]:
        """The transcript's blocks that the request's messages were made of."""
        return [block for message in self.messages for group in message.groups for block in group.blocks]

    @cached_property
    def _places(self) -> dict[int, int]:
        return {id(block): place for place, block in enumerate(self.blocks)}

    def since_prefix(self, holds: Callable[[Prefix], bool]) -> int | None:
        """The request from which on every prefix, up to the request's own, had what ``holds`` looks for."""
        first: int | None = None
        is_held = False
        for block in self.blocks[: self.end + 1]:
            if block.kind == "prefix":
                prefix = self.prefixes.load(str(block.attrs.get("hash", "")))
                is_held = prefix is not None and holds(prefix)
                first = first if is_held else None
            elif block.kind == "request" and is_held and first is None:
                first = block.attrs.get("n")
        return first

    def place(self, block: Block) -> str:
        """The transcript's file and the line where the block begins."""
        return f"{self.transcript}:{block.line}" if block.line else self.transcript

    def line(self, block: Block | None) -> str:
        """The same for one who knows which transcript is meant."""
        return f"line {block.line} of the transcript" if block is not None and block.line else "not written down yet"

    def line_in(self, path: str, text: str) -> str:
        """``path:line`` of the first line of ``text`` in a file as it is now; the path alone where it is not there."""
        wanted = text.strip("\n").split("\n", 1)[0]
        found = next((line for line, said in enumerate(self._text(path).split("\n"), 1) if wanted in said), 0)
        return f"{path}:{found}" if found else path

    def _text(self, path: str) -> str:
        live = next((file.text for file in self.files if file.path == path), None)
        if live is not None:
            return live
        try:
            data = read(self.workspace.resolve(path), limit_bytes=_MAX_BYTES).data
        except StateError:
            return ""
        return (data or b"").decode("utf-8", "replace")
