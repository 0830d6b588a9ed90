"""The pinned part of the requests, once per distinct content: ``.transcripts/prefixes/<hash>.md``.

A prefix is what the provider's cache holds for a whole session: the tools and the system blocks.
What came from the user level is private: its text lies in the user's own folder under its hash, and
the workspace's file, which people commit, names only that hash.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tinyclaw.errors import StateError
from tinyclaw.state._reading import Signature, signature
from tinyclaw.state.files import read, write
from tinyclaw.state.transcript.bodies import to_json
from tinyclaw.state.transcript.content import text_hash
from tinyclaw.state.transcript.fold import canonical
from tinyclaw.state.transcript.grammar import Block, heading, parse, render, render_header
from tinyclaw.types import Json

FOLDER = "prefixes"


@dataclass(frozen=True)
class PrefixBlock:
    """One system block: which source made it, from which file at which revision, and its text.

    ``private`` marks text from the user level.
    """

    id: str
    text: str
    path: str = ""
    revision: str = ""
    private: bool = False


@dataclass(frozen=True)
class Prefix:
    """Tools in wire form and system blocks, in order."""

    tools: tuple[Json, ...]
    blocks: tuple[PrefixBlock, ...]

    @cached_property
    def hash(self) -> str:
        """Sixteen hex digits that are equal exactly when tools and system are."""
        return hashlib.sha256(canonical([self.tools, [block.text for block in self.blocks]])).hexdigest()[:16]

    @cached_property
    def tools_length(self) -> int:
        """Characters of the tools as JSON."""
        return len(canonical(self.tools))

    @property
    def system(self) -> tuple[Json, ...]:
        """The system blocks in wire form, without cache marks."""
        return tuple({"type": "text", "text": block.text} for block in self.blocks)

    @cached_property
    def length(self) -> int:
        """Characters of the whole prefix as JSON."""
        return len(canonical([self.tools, self.system]))

    def stated(self, path: str) -> PrefixBlock | None:
        """The block that states the live file ``path``, if the prefix holds it."""
        return next((block for block in self.blocks if block.path == path), None)


class PrefixStore:
    """Reads and writes prefix files of one workspace; ``user_folder`` holds the private texts."""

    def __init__(self, transcripts: Path, user_folder: Path) -> None:
        self.folder = transcripts / FOLDER
        self.user_folder = user_folder / FOLDER
        self._loaded: dict[str, Prefix] = {}
        self._saved: dict[Path, Signature | None] = {}
        """The files as they were when they were last known to be whole."""

    def save(self, prefix: Prefix) -> None:
        """Write the prefix where it is not there yet.

        Raises: StateError when the folder cannot be written.
        """
        self._loaded[prefix.hash] = prefix
        private = {self.user_folder / f"{text_hash(each.text)}.md": each.text for each in prefix.blocks if each.private}
        whole = self.folder / f"{prefix.hash}.md"
        if all(self._stands(path) for path in (*private, whole)):
            return
        for path, text in (*private.items(), (whole, _text(prefix))):
            _write_once(path, text)
            self._saved[path] = _signature(path)

    def load(self, name: str) -> Prefix | None:
        """The prefix with that hash; None when it is gone, or is no longer what its hash says."""
        if name not in self._loaded:
            prefix = self._read(name)
            if prefix is None or prefix.hash != name:
                return None
            self._loaded[name] = prefix
        return self._loaded[name]

    def _stands(self, path: Path) -> bool:
        """Whether nothing has happened to a file since it was known to be whole."""
        now = _signature(path)
        return now is not None and self._saved.get(path) == now

    def _read(self, name: str) -> Prefix | None:
        if not name.isalnum():
            return None
        try:
            found = read(self.folder / f"{name}.md")
        except StateError:
            return None
        if found.data is None:
            return None
        tools: tuple[Json, ...] = ()
        blocks: list[PrefixBlock] = []
        for block in parse(found.data, f"{FOLDER}/{name}.md").blocks:
            if block.kind == "tools":
                tools = _tools_of(block.text)
            elif block.kind == "system" and (read_back := self._block(block)) is not None:
                blocks.append(read_back)
        return Prefix(tools, tuple(blocks))

    def _block(self, block: Block) -> PrefixBlock | None:
        facts = block.attrs
        private = str(facts.get("user") or "")
        text = block.text
        if private:
            try:
                found = read(self.user_folder / f"{private}.md")
            except StateError:
                return None
            if found.data is None:
                return None
            text = found.data.decode("utf-8", "replace")
        name, path, revision = (str(facts.get(key, "")) for key in ("id", "path", "rev"))
        return PrefixBlock(name, text, path, revision, private=bool(private))


def _text(prefix: Prefix) -> str:
    header = render_header({"prefix": prefix.hash, "format": "1"})
    tools = Block("tools", {}, _tools_text(prefix.tools), heading=heading(2, "Tools"))
    return header + render([tools, *map(_system_block, prefix.blocks)])


def _system_block(block: PrefixBlock) -> Block:
    facts = {"id": block.id, **({"path": block.path, "rev": block.revision} if block.path else {})}
    words = heading(2, block.path or block.id)
    if block.private:
        return Block("system", {**facts, "user": text_hash(block.text)}, heading=words)
    return Block("system", facts, block.text, heading=words)


def _tools_text(tools: tuple[Json, ...]) -> str:
    return "[\n" + ",\n".join(to_json(tool) for tool in tools) + "\n]"


def _tools_of(text: str) -> tuple[Json, ...]:
    try:
        tools = json.loads(text)
    except ValueError:
        return ()
    return tuple(tool for tool in tools if isinstance(tool, dict)) if isinstance(tools, list) else ()


def _signature(path: Path) -> Signature | None:
    try:
        return signature(path.stat())
    except OSError:
        return None


def _write_once(path: Path, text: str) -> None:
    """Write a file whose name is the hash of its content; one that is there is left alone."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StateError(f"{path.parent}: cannot be made ({error.strerror}); give write access to it") from error
    there = read(path)
    data = text.encode("utf-8", "replace")
    if there.data != data:
        write(path, data, base=there)
