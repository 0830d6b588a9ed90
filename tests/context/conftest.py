"""Compiles on real files."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tinyclaw.context.compiler import Inputs, Target, WorkingSet, compile_request
from tinyclaw.context.source import Limits, load_sources, watched_patterns
from tinyclaw.prompts import prompt_loader
from tinyclaw.state.live import LiveFiles
from tinyclaw.state.redaction import Masker
from tinyclaw.state.snapshot import MAX_STATE_BYTES, SnapshotReader
from tinyclaw.state.transcript.content import reply_block, result_block, user_text
from tinyclaw.state.transcript.fold import Conversation, conversation_of
from tinyclaw.state.transcript.grammar import Block
from tinyclaw.state.transcript.prefixes import Prefix
from tinyclaw.state.workspace import Workspace
from tinyclaw.types import Content, Text, ToolSpec

TARGET = Target("claude-sonnet-5-5", 200_000, 8_000, 3.5, {})
TOOLS = (ToolSpec("read", "Read a file.", {"type": "object", "properties": {}, "required": []}),)
NOON = "2026-11-30T12:00:00Z"
FACTS = {"Workspace": "project (paths are relative to its root)", "Platform": "Linux", "Date": "2026-11-30"}


@dataclass
class Bench:
    """A workspace and a conversation in it; ``compile`` makes the next request and takes its blocks in."""

    root: Path
    user: Path
    cwd: Path
    conversation: Conversation = field(default_factory=Conversation)
    prefix: Prefix | None = None
    inputs: dict = field(default_factory=dict)
    requests: int = 0
    blocks: list[Block] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sources = load_sources()
        self.reader = self.new_reader()

    def new_reader(self) -> SnapshotReader:
        workspace = Workspace(self.root, self.cwd, self.user)
        live = LiveFiles(time.time, lambda seconds: None, limit_bytes=MAX_STATE_BYTES)
        return SnapshotReader(workspace, live, Masker({}).mask, watched_patterns(self.sources), time.time)

    def write(self, path: str, text: str | bytes) -> None:
        """Save a file as it was a while ago, so that nobody waits for it to stand still."""
        place = self.user / path.removeprefix("~/") if path.startswith("~/") else self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.age(place)

    def save(self, path: str, text: str | None) -> None:
        """Save a file, or delete it where there is one."""
        if text is not None:
            self.write(path, text)
        else:
            place = self.user / path.removeprefix("~/") if path.startswith("~/") else self.root / path
            place.unlink(missing_ok=True)

    def age(self, place: Path) -> None:
        past = time.time() - 10 + self.requests
        os.utime(place, (past, past))

    def append(self, *blocks: Block) -> None:
        """Take blocks in as a transcript does."""
        for block in blocks:
            self.conversation.append(block)
            self.blocks.append(block)

    def say(self, text: str) -> None:
        number = self.conversation.last + (not self.conversation.awaits_reply)
        self.append(user_text(text, number, "now"))

    def reply(self, *content: Content, stop: str = "end_turn") -> None:
        """The model's next message: what it says, or "ok"."""
        number = self.conversation.last + 1
        self.append(*(reply_block(each, number, TARGET.model) for each in content or (Text("ok"),)))
        self.append(Block("reply", {"n": self.requests, "in": 900, "out": 5, "stop": stop}))

    def result(self, call: str, text: str, **facts) -> None:
        pending = self.conversation.pending_calls
        first = len(pending) == 1 or call == pending[0].id
        number = self.conversation.last + first
        self.append(result_block(call, number, text, name="tool", **facts))

    def untick(self) -> None:
        """Take the first turn that is still in out of the conversation, as a person does in the file."""
        turns = [index for index, block in enumerate(self.blocks) if block.kind == "text" and block.box]
        if len(turns) > 1:
            first = self.blocks[turns[0]]
            self.blocks[turns[0]] = Block("text", first.attrs, first.text, heading=first.heading, box=False)
            self.conversation = conversation_of(self.blocks)

    def peek(self, **changes) -> WorkingSet:
        inputs = Inputs(
            snapshot=self.reader.take(self.inputs.get("facts", FACTS), self.conversation.touched),
            conversation=self.conversation,
            prefix=self.prefix,
            sources=self.sources,
            tools=TOOLS,
            prompts=prompt_loader(self.user),
            target=TARGET,
            limits=Limits(),
            mode="default",
            now=NOON,
        )
        return compile_request(replace(inputs, **changes))

    def compile(self, **changes) -> WorkingSet:
        working = self.peek(**changes)
        self.requests += 1
        self.prefix = working.prefix
        record = {
            "n": self.requests,
            "model": working.request.model,
            "max_tokens": working.request.max_tokens,
            "params": working.request.params,
            "sha256": working.sha256,
            "manifest": {"at": changes.get("now", NOON), **working.manifest.difference(self.conversation.manifest)},
        }
        self.append(*working.blocks, Block("request", record))
        return working


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    root = tmp_path / "project"
    (root / "sub/deep").mkdir(parents=True)
    (tmp_path / "user").mkdir()
    made = Bench(root, tmp_path / "user", root)
    made.say("hello")
    return made


@pytest.fixture
def deep(bench: Bench) -> Bench:
    """The same workspace, entered two folders below its root."""
    made = Bench(bench.root, bench.user, bench.root / "sub/deep")
    made.say("hello")
    return made
