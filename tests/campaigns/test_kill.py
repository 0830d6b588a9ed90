"""A session that is killed at any moment goes on: nothing that was complete is lost, nothing is done twice unsaid."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.campaigns.launcher import Launcher
from tests.messages_api import MessagesApi, reply
from tinyclaw.state.transcript.grammar import DAMAGED, OUTSIDE, Block, parse

FULL = pytest.mark.campaign


def step(body: dict[str, Any]) -> Any:
    """The model's next reply, by how often it has spoken: reads side by side, writes, edits, commands, long outputs."""
    spoken = sum(message["role"] == "assistant" for message in body["messages"])
    steps = [
        reply("Looking.", tools=[("read", {"path": "a.txt"}), ("grep", {"pattern": "x"}), ("glob", {"pattern": "*"})]),
        reply(tools=[("write", {"path": f"made-{spoken}.txt", "content": "line\n" * 200})]),
        reply(tools=[("bash", {"command": f"echo {spoken} >> log.txt; seq 1 20000"})]),
        reply(tools=[("todo", {"add": [f"item {spoken}"]}), ("bash", {"command": f"echo {spoken} >> log.txt"})]),
        reply(
            "Hm.", thinking="Let me see.", tools=[("edit", {"path": "a.txt", "old_text": "x = 1", "new_text": "x = 1"})]
        ),
        reply(tools=[("bash", {"command": "echo more >> PLAN.md; sleep 0.05"})]),
    ]
    return steps[spoken] if spoken < len(steps) else reply("Done.")


@pytest.mark.parametrize("times", [6, pytest.param(200, marks=[FULL, pytest.mark.timeout(3000)])])
def test_killed_at_random_moments_a_session_goes_on_and_loses_nothing(tmp_path: Path, times: int):
    chance = random.Random(20261130)
    with MessagesApi(step) as server, Launcher() as launcher:
        _one(launcher, server, tmp_path / "warm", None)
        length = _one(launcher, server, tmp_path / "whole", None)
        moments = {}
        for number in range(times):
            delay = chance.uniform(0.0, length)
            moments[number] = _one(launcher, server, tmp_path / str(number), delay)
        assert server.refused == []
    assert sum(killed > 0 for killed in moments.values()) >= times // 2, "most runs must die before their end"


def _one(launcher: Launcher, server: MessagesApi, root: Path, delay: float | None) -> float:
    """Run a session, kill it after ``delay`` seconds and resume it; gives its length, or 1 if it was killed."""
    root.mkdir()
    (root / "a.txt").write_text("x = 1\n")
    (root / "PLAN.md").write_text("# Plan\n\n1. Look\n")
    environment = {**os.environ, "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x"}
    run = ["run", "--permission-mode", "auto"]
    output = root.parent / f"{root.name}.out"
    began = time.monotonic()
    process = launcher.start([*run, "do it"], root, environment, output)
    if delay is None:
        assert launcher.wait(process) == 0, output.read_text()
        return time.monotonic() - began
    time.sleep(delay)
    os.kill(process, signal.SIGKILL)
    killed = launcher.wait(process) == -signal.SIGKILL
    transcripts = list((root / ".transcripts").glob("2*.md"))
    before = transcripts[0].read_bytes() if transcripts else b""
    resume = ["--resume", "last"] if transcripts else []
    again = launcher.start([*run, *resume, "go on"], root, environment, output)
    assert launcher.wait(again) == 0, output.read_text()
    _check(root, before)
    return float(killed)


def _check(root: Path, before: bytes) -> None:
    (transcript,) = (root / ".transcripts").glob("2*.md")
    after = transcript.read_bytes()
    assert after.startswith(before)
    ended = _complete(before)
    assert _complete(after)[: len(ended)] == ended
    if (root / "log.txt").exists():
        lines = (root / "log.txt").read_text().split()
        assert len(lines) == len(set(lines)), "a side effect was done twice"
    left = [path.name for path in root.rglob(".tinyclaw-*")] + [path.name for path in root.rglob("*.lock")]
    assert left == []


def _complete(data: bytes) -> list[Block]:
    return [block for block in parse(data, "t").blocks if block.kind not in (DAMAGED, OUTSIDE, "torn")]
