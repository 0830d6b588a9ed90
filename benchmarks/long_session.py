"""What a session of 200 steps costs: 100 reads of 1 to 60 KB, a third of them repeated, 100 commands with up to 200 KB.

Against the strict server with its simulated prompt cache. Billed tokens are input, plus 1.25 times
what is written to the cache, plus 0.1 times what is read from it. The floor: every new token written
once. Beside it a naive policy on the same script, which rebuilds everything in the system prompt and
drops the oldest messages. ``python -m benchmarks long_session --sweep`` tries other settings.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks._server import Json, opened, workspace
from tests.messages_api import MessagesApi, reply
from tests.messages_api.cache import CHARS_PER_TOKEN, PromptCache, measure
from tinyclaw.agent.events import ToolFinished
from tinyclaw.agent.loop import run_turn
from tinyclaw.agent.session import Session
from tinyclaw.context import clearing
from tinyclaw.context.clearing import WaterMarks
from tinyclaw.model.catalog import default_model

STEPS = 200
CONSTRAINTS = ("Never touch legacy/.", "Python 3.9 must keep working.", "Keep the name `total_v2`.")
TASK = "Go through all files and logs and report what is odd.\n" + "\n".join(f"- {each}" for each in CONSTRAINTS)
SWEEP = tuple(itertools.product((2.0, 4.0, 5.0, 5.5, 6.0), (60_000, 80_000, 100_000)))
"""``clearing.PAYS`` and the high-water mark."""
_MARK = {"cache_control": {"type": "ephemeral"}}


@dataclass(frozen=True)
class Cost:
    """The usages of a session's requests, summed, in tokens; ``floor`` is what was new, written once."""

    requests: int
    input: int
    written: int
    read: int
    floor: float

    @property
    def billed(self) -> float:
        return self.input + 1.25 * self.written + 0.1 * self.read

    def __str__(self) -> str:
        share = self.read / max(1, self.input + self.written + self.read)
        return (
            f"{self.billed / 1e6:.2f}M billed in {self.requests} requests, {share:.1%} read from the cache, "
            f"{self.billed / self.floor:.2f}x the floor of {self.floor / 1e6:.2f}M"
        )


def run() -> None:
    for window in (100_000, 200_000):
        print(f"window {window:,}:")
        ours, kept = session(window)
        print(f"  tinyclaw             {ours}")
        print(f"  with edits of PLAN.md {session(window, edits=True)[0]}")
        print(f"  naive                {naive(window)}")
        print(f"  constraints in the last request: {sum(kept)} of {len(kept)}")
    if "--sweep" in sys.argv:
        for pays, high in SWEEP:
            with patch.object(clearing, "PAYS", pays):
                print(f"pays {pays}, high {high:,}: {session(100_000, marks=WaterMarks(high, 10_000))[0]}")


def session(window: int, *, marks: WaterMarks | None = None, edits: bool = False) -> tuple[Cost, list[bool]]:
    """The session with tinyclaw; its cost, and which constraints stand word for word in the last request."""
    with workspace() as root:
        fill(root)
        steps = iter([*calls(), reply("Nothing is odd.")])
        with MessagesApi(
            lambda body: summary() if is_for_summary(body) else next(steps),
            window_tokens=window,
            models={default_model("main"): (window, 32_000)},
        ) as server:
            running = opened(root, server.url)
            if marks:
                running.marks = marks
            go(running, root, edits=edits)
            cost = costs(server.usages, (request for request in server.requests))
            last = json.dumps(server.requests[-1], ensure_ascii=False)
            assert len(server.refused) <= 1 and sum(not is_for_summary(each) for each in server.requests) > STEPS
    return cost, [each in last for each in CONSTRAINTS]


def go(running: Session, root: Path, *, edits: bool) -> None:
    done = 0
    for event in run_turn(running, TASK):
        if isinstance(event, ToolFinished):
            done += 1
            if edits and done % 5 == 0:
                (root / "PLAN.md").write_text(plan(f"now at {done}"))
    running.close()
    assert done == STEPS, f"{done} steps of {STEPS} were done"


def is_for_summary(body: Json) -> bool:
    text = str(body["messages"][-1]["content"][-1].get("text", ""))
    return text.startswith("The conversation above has grown too long")


def summary() -> Any:
    return reply("## Goal\n\nFind what is odd.\n\n" + "## Files\n\n" + "- data/1.txt: nothing odd\n" * 60)


def plan(words: str) -> str:
    return "---\nstatus: approved\n---\n\n# Plan\n\n" + "".join(f"{n}. Part {n}\n" for n in range(40)) + f"\n{words}\n"


def fill(root: Path) -> None:
    chance = random.Random(7)
    (root / "PLAN.md").write_text(plan("begin"))
    (root / "data").mkdir()
    for number in range(64):
        lines = (chance.randint(1_000, 60_000)) // 50
        text = "".join(f"{number} {line:05} {chance.random():.12f} some words of a file\n" for line in range(lines))
        (root / f"data/{number}.txt").write_text(text)


def calls() -> Iterator[Any]:
    """100 reads, 36 of them of files that were read before, and 100 commands."""
    chance = random.Random(8)
    reads = [*range(64), *(chance.randrange(64) for _ in range(36))]
    chance.shuffle(reads)
    for number, name in enumerate(reads):
        yield reply(f"Step {number}: read.", tools=[("read", {"path": f"data/{name}.txt"})])
        size = chance.choice((200, 1_000, 5_000, 20_000, 200_000))
        command = f"seq -f 'line %g of the log of step {number}' 1 {size // 30}"
        yield reply(f"Step {number}: log.", tools=[("bash", {"command": command})])


def costs(usages: list[Json], requests: Iterator[Json]) -> Cost:
    new = set()
    tokens = 0
    for request in requests:
        for block in itertools.chain.from_iterable(message["content"] for message in request["messages"]):
            key = re.sub(r', "cache_control": \{[^}]*\}', "", json.dumps(block))
            if key not in new:
                new.add(key)
                tokens += len(key) // CHARS_PER_TOKEN
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    sums = [sum(usage[name] for usage in usages) for name in names]
    return Cost(len(usages), *sums, floor=1.25 * tokens)


def naive(window: int) -> Cost:
    """The same calls and results, with PLAN.md in the system prompt and the oldest dropped when the window is full."""
    cache, usages, requests = PromptCache(lambda: 0.0), [], []
    with workspace() as root:
        fill(root)
        messages: list[Json] = [{"role": "user", "content": [{"type": "text", "text": TASK}]}]
        for number, step in enumerate(calls()):
            body: Json = {"model": "m", "system": [{"type": "text", "text": plan("begin") + "x" * 8_000, **_MARK}]}
            while len(json.dumps(messages)) // CHARS_PER_TOKEN > window - 32_000:
                del messages[1:3]
            last = {
                **messages[-1],
                "content": [*messages[-1]["content"][:-1], {**messages[-1]["content"][-1], **_MARK}],
            }
            body["messages"] = [*messages[:-1], last]
            usages.append(cache.account(measure(body)))
            requests.append(body)
            text, call = (dict(block) for block in step.blocks)
            call["id"] = f"toolu_{number}"
            messages.append({"role": "assistant", "content": [text, call]})
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": plainly(root, call["input"])}
            messages.append({"role": "user", "content": [result]})
    return costs(usages, iter(requests))


def plainly(root: Path, arguments: Json) -> str:
    """A result as a tool without limits of its own would give it, cut at 50,000 characters."""
    if "path" in arguments:
        return (root / arguments["path"]).read_text()[:50_000]
    found = re.fullmatch(r"seq -f '(.*)' 1 (\d+)", arguments["command"])
    assert found is not None
    return "".join(found[1].replace("%g", str(n)) + "\n" for n in range(1, int(found[2]) + 1))[-50_000:]
