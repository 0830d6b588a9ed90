"""A session that is killed at any moment goes on: nothing that was complete is lost, nothing is done twice unsaid."""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.campaigns.launcher import Launcher
from tests.messages_api import MessagesApi, reply, slow
from tinyclaw.state.transcript.content import call_of
from tinyclaw.state.transcript.fold import INTERRUPTED
from tinyclaw.state.transcript.grammar import DAMAGED, OUTSIDE, Block, parse

FULL = [pytest.mark.campaign, pytest.mark.timeout(3000)]
RUN = ["run", "--permission-mode", "auto"]
KILLS_IN_A_ROW = 3


def script(root: Path) -> Callable[[dict[str, Any]], Any]:
    """The model: what it does next depends on how often it has spoken; each delivery's side effects are its own."""
    deliveries = itertools.count(1)

    def step(body: dict[str, Any]) -> Any:
        spoken = sum(message["role"] == "assistant" for message in body["messages"])
        mark = f"{spoken}-{next(deliveries)}"
        effect = f"echo {mark} >> log.txt"
        if spoken == 3:
            (root / "PLAN.md").write_text((root / "PLAN.md").read_text() + f"A person's line {mark}\n")
        steps = [
            reply("Look.", tools=[("read", {"path": "a.txt"}), ("grep", {"pattern": "x"}), ("glob", {"pattern": "*"})]),
            reply(tools=[("write", {"path": f"made-{mark}.txt", "content": "line\n" * 200})]),
            reply(tools=[("bash", {"command": f"{effect}; seq 1 20000"})]),
            reply(tools=[("todo", {"add": [f"item {mark}"]}), ("bash", {"command": effect}), ("read", {"path": "b"})]),
            slow(
                reply("Hm. " * 20, thinking="Let me see.", tools=[("bash", {"command": effect})]), between_seconds=0.003
            ),
            reply(tools=[("edit", {"path": "a.txt", "old_text": "x = ", "new_text": f"y{spoken}x = "})]),
            reply(tools=[("bash", {"command": f"{effect}; sleep 0.2; echo {mark} >> late.txt", "background": True})]),
            reply(tools=[("bash", {"command": f"echo more >> PLAN.md; {effect}; sleep 0.05"})]),
            reply(
                tools=[
                    ("plan", {"text": f"# Plan\n\n1. {mark}\n"}),
                    ("edit", {"path": "PLAN.md", "old_text": "1.", "new_text": "2."}),
                ]
            ),
        ]
        return steps[spoken] if spoken < len(steps) else reply("Done.")

    return step


@dataclass(frozen=True)
class Whole:
    """How long a session takes that nobody kills: in seconds, and in steps."""

    seconds: float
    steps: int


@pytest.mark.parametrize("times", [2, pytest.param(200, marks=FULL)])
def test_killed_at_random_moments_a_session_goes_on_and_loses_nothing(tmp_path: Path, launcher: Launcher, times: int):
    chance = random.Random(20261130)
    with MessagesApi() as server:
        whole = _undisturbed(_Life(launcher, server, tmp_path / "whole"))
        kills = number = 0
        while kills < times:
            number += 1
            life = _Life(launcher, server, tmp_path / str(number))
            kills += sum(life.killed(chance, whole) for _ in range(min(KILLS_IN_A_ROW, times - kills)))
            life.lives_to_its_end(with_text=chance.random() < 0.5)
            assert server.refused == []


def _undisturbed(life: _Life) -> Whole:
    count = life.root.with_name("steps")
    began = time.monotonic()
    assert life.run(["do it"], count=str(count)) == 0, life.said
    return Whole(time.monotonic() - began, int(count.read_text()))


class _Life:
    """One session in a workspace of its own, from its start over its deaths to its end."""

    def __init__(self, launcher: Launcher, server: MessagesApi, root: Path) -> None:
        self.launcher, self.server, self.root = launcher, server, root
        self.lost: set[str] = set()
        self.before = b""
        root.mkdir()
        (root / "a.txt").write_text("x = 1\n")
        (root / "PLAN.md").write_text("# Plan\n\n1. Look\n")
        server.reset(script(root))

    @property
    def said(self) -> str:
        return self._output.read_text()

    @property
    def transcript(self) -> bytes:
        files = list((self.root / ".transcripts").glob("2*.md"))
        assert len(files) <= 1
        return files[0].read_bytes() if files else b""

    def run(self, words: list[str], **more: int | str) -> int:
        return self.launcher.wait(self._start(words, **more))

    def killed(self, chance: random.Random, whole: Whole) -> bool:
        """Run it, or go on with it, and kill it somewhere; False when it ended before that."""
        words = self._words(with_text=chance.random() < 0.5)
        if chance.random() < 0.5:
            ended = self.run(words, dies_at=chance.randint(1, whole.steps))
        else:
            process = self._start(words)
            time.sleep(chance.uniform(0, whole.seconds))
            os.kill(process, signal.SIGKILL)
            ended = self.launcher.wait(process)
        assert ended in (-signal.SIGKILL, 0), self.said
        self._check()
        return ended == -signal.SIGKILL

    def lives_to_its_end(self, *, with_text: bool) -> None:
        assert self.run(self._words(with_text=with_text)) == 0, self.said
        self._check()
        assert self.said.startswith("Done.") or "\nDone." in self.said
        blocks = _complete(self.transcript)
        assert (blocks[-1].kind, blocks[-1].attrs["reason"]) == ("turn_end", "done")
        self._check_effects(blocks)
        hidden = [path.name for path in self.root.rglob("*") if path.name.startswith(".tinyclaw-")]
        assert hidden == []
        for lock in self.root.rglob("*.lock"):  # of a process that died before it had a transcript
            assert self._doctor().count(lock.name) == 1

    def _doctor(self) -> str:
        self.launcher.wait(self.launcher.start(["doctor"], self.root, os.environ, self._output))
        return self.said

    def _start(self, words: list[str], **more: int | str) -> int:
        self._output = self.root.with_suffix(".out")
        environment = {**os.environ, "ANTHROPIC_BASE_URL": self.server.url, "ANTHROPIC_API_KEY": "x"}
        return self.launcher.start([*RUN, *words], self.root, environment, self._output, **more)

    def _words(self, *, with_text: bool) -> list[str]:
        """The arguments that go on: without a text only where something is pending."""
        if not list((self.root / ".transcripts").glob("2*.md")):
            return ["do it"]
        ended = _complete(self.transcript)
        is_idle = not any(block.kind == "text" for block in ended) or ended[-1].kind == "turn_end"
        return ["--resume", "last", *(["go on"] if with_text or is_idle else [])]

    def _check(self) -> None:
        """What was there is there, byte for byte; calls without a result are remembered as lost."""
        assert self.transcript.startswith(self.before)
        self.before = self.transcript
        blocks = _complete(self.before)
        answered = {block.attrs["id"] for block in blocks if block.kind == "tool_result"}
        self.lost |= {block.attrs["id"] for block in blocks if block.kind == "tool_use"} - answered

    def _check_effects(self, blocks: list[Block]) -> None:
        """No effect twice, none of a call that was not recorded first; the model was told of each lost one."""
        log = self.root / "log.txt"
        effects = log.read_text().split() if log.exists() else []
        assert len(effects) == len(set(effects))
        calls = "".join(str(call_of(block).input) for block in blocks if block.kind == "tool_use")
        assert [effect for effect in effects if f"echo {effect} >>" not in calls] == []
        told = {
            block["tool_use_id"]: block["content"]
            for message in self.server.requests[-1]["messages"]
            for block in message["content"]
            if block["type"] == "tool_result"
        }
        assert {call: told[call] for call in self.lost} == dict.fromkeys(self.lost, INTERRUPTED)


def _complete(data: bytes) -> list[Block]:
    return [block for block in parse(data, "t").blocks if block.kind not in (DAMAGED, OUTSIDE, "torn")]
