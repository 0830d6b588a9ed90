"""Ctrl-C at any moment ends with 130, leaves a valid transcript, nobody running and nothing in the way of going on."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.campaigns.launcher import Launcher
from tests.messages_api import MessagesApi, reply, slow
from tinyclaw.state.transcript.grammar import parse

FULL = [pytest.mark.campaign, pytest.mark.timeout(900)]
RUN = ["run", "--permission-mode", "auto"]
SLEEP = "echo $$ >> pids; sleep 600"


def step(body: dict[str, Any]) -> Any:
    """The model's next reply, by how often it has spoken."""
    spoken = sum(message["role"] == "assistant" for message in body["messages"])
    steps = [
        slow(reply("Hm. " * 30, thinking="Hm.", tools=[("glob", {"pattern": "*"})]), between_seconds=0.005),
        reply(tools=[("write", {"path": "made.txt", "content": "line\n" * 500}), ("todo", {"add": ["one"]})]),
        reply(tools=[("bash", {"command": SLEEP, "background": True})]),
        reply(tools=[("bash", {"command": "seq 1 30000; sleep 0.1"}), ("read", {"path": "a.txt"})]),
    ]
    return steps[spoken] if spoken < len(steps) else reply("Done.")


@pytest.mark.parametrize("times", [1, pytest.param(50, marks=FULL), pytest.param(200, marks=FULL)])
def test_control_c_at_any_moment_leaves_a_session_that_goes_on(tmp_path: Path, launcher: Launcher, times: int):
    chance = random.Random(times)
    count = tmp_path / "steps"
    with MessagesApi(step) as server:
        began = time.monotonic()
        code, _ = _run(launcher, server, _workspace(tmp_path / "whole"), ["do it"], interrupted_at=0, count=str(count))
        seconds = time.monotonic() - began
        assert code == 0
        interrupted = 0
        for number in range(times):
            root = _workspace(tmp_path / str(number))
            at = {"interrupted_at": chance.randint(1, int(count.read_text()))} if number % 2 else {}
            code, said = _run(launcher, server, root, ["do it"], chance.uniform(0, seconds * 0.7), **at)
            interrupted += code != 0
            _check(root, code, said)
            resume = ["--resume", "last"] if _transcript(root) else []
            code, said = _run(launcher, server, root, [*resume, "go on"])
            assert (code, said.splitlines()[0]) == (0, "Done.") or "\nDone." in said, said
        assert server.refused == []
    assert interrupted >= times // 2


def _workspace(root: Path) -> Path:
    root.mkdir()
    (root / "a.txt").write_text("x = 1\n")
    (root / "PLAN.md").write_text("# Plan\n")
    return root


def _run(
    launcher: Launcher, server: MessagesApi, root: Path, words: list[str], after: float | None = None, **more: int | str
) -> tuple[int, str]:
    """Run it, with a Ctrl-C ``after`` so many seconds unless ``more`` says at which step; its code and all it said."""
    output = root.with_suffix(".out")
    environment = {**os.environ, "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x"}
    process = launcher.start([*RUN, *words], root, environment, output, **more)
    if after is not None and not more:
        time.sleep(after)
        os.kill(process, signal.SIGINT)
    code = launcher.wait(process, 15)
    said = output.read_text(errors="replace")
    assert "Traceback" not in said and "unexpected error" not in said, said
    return code, said


def _transcript(root: Path) -> bytes:
    found = list((root / ".transcripts").glob("*.md"))
    return found[0].read_bytes() if found else b""


def _check(root: Path, code: int, said: str) -> None:
    parsed = parse(_transcript(root), "t")
    assert (parsed.torn_at, parsed.diagnostics) == (None, ())
    kinds = [block.kind for block in parsed.blocks]
    if code != 0:
        assert code == 130 or (code == -signal.SIGINT and not kinds), said
    assert not kinds or kinds[-1] == "turn_end"
    pids = root / "pids"
    assert [pid for pid in (pids.read_text().split() if pids.exists() else []) if _is_alive(int(pid))] == []
    assert [path.name for path in root.rglob("*") if path.name.startswith(".tinyclaw-")] == []


def _is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
