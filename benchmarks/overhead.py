"""Our own time per request: from the end of a reply to the next request on the wire, tool time taken out.

A session of 200 requests with reads, searches and commands, in an empty workspace and in one with
10,000 memory records, 1,000 skills and a git repository of 50,000 files.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from itertools import pairwise
from pathlib import Path

from benchmarks._server import Json, exchanges, opened, serving, workspace
from tinyclaw.agent.events import ToolFinished
from tinyclaw.agent.loop import run_turn

REQUESTS = 205
CALLS = [
    ["read", {"path": "small.txt"}],
    ["read", {"path": "large.txt"}],
    ["bash", {"command": "seq 1 1500"}],
    ["glob", {"pattern": "small.txt"}],
]
FRAMES = {"10": (6, 15), "50": (45, 55), "100": (95, 105), "200": (195, 204)}


def run() -> None:
    bodies: list[Json] = []
    with workspace() as root:
        empty = measured(root, bodies)
    with workspace() as root:
        fill(root)
        full = measured(root)
    bare = sent_bare(bodies)
    for name, times in (("empty workspace", empty), ("large workspace", full), ("the SDK alone, same requests", bare)):
        frames = {place: statistics.median(times[a:b]) * 1000 for place, (a, b) in FRAMES.items()}
        shown = ", ".join(f"{value:.1f} ms at {place}" for place, value in frames.items())
        growth = frames["200"] / frames["10"]
        print(f"{name}: median {statistics.median(times) * 1000:.1f} ms; {shown}; growth {growth:.2f}x")
    print(f"large against empty: {statistics.median(full) / statistics.median(empty):.2f}x")
    print(f"empty against the SDK alone: {statistics.median(empty) / statistics.median(bare):.2f}x")


def measured(root: Path, bodies: list[Json] | None = None) -> list[float]:
    """Seconds of overhead before each request but the first; ``bodies`` takes what was sent."""
    (root / "small.txt").write_text("one line\n" * 30)
    (root / "large.txt").write_text("a line of some forty characters in it, ok\n" * 350)
    (root / "PLAN.md").write_text("# Plan\n\n1. Measure\n" * 20)
    script = [{"reply": {"text": f"Step {n}.", "tools": [CALLS[n % len(CALLS)]]}} for n in range(REQUESTS - 1)]
    with serving([*script, "Done."]) as (url, log):
        session = opened(root, url)
        tools = [event.milliseconds / 1000 for event in run_turn(session, "go") if isinstance(event, ToolFinished)]
        session.close()
        answered = exchanges(log)
        if bodies is not None:
            bodies += [json.loads(path.read_bytes()) for path in sorted(log.glob("[0-9]*.json"))]
    return [max(0.0, gap - tool) for gap, tool in zip(gaps(answered), tools, strict=True)]


def sent_bare(bodies: list[Json]) -> list[float]:
    """The same requests one after the other with nothing but the SDK, streamed, and no work between them."""
    import anthropic

    with serving(["Ok."] * len(bodies)) as (url, log):
        client = anthropic.Anthropic(base_url=url, api_key="x", max_retries=0)
        for body in bodies:
            list(client.messages.create(**body))
        return gaps(exchanges(log))


def gaps(answered: list[Json]) -> list[float]:
    """Seconds from the end of each reply to the next request."""
    return [after["received"] - before["sent"] for before, after in pairwise(answered)]


def fill(root: Path) -> None:
    """10,000 records with their index, 1,000 skills, 50,000 files under git."""
    memory = root / ".memory"
    memory.mkdir()
    for number in range(10_000):
        (memory / f"note-{number}.md").write_text(f"---\nname: note {number}\n---\n\nfact {number}\n")
    (memory / "MEMORY.md").write_text("".join(f"- [note {n}](note-{n}.md) — fact {n}\n" for n in range(10_000)))
    for number in range(1_000):
        folder = root / f"skills/skill-{number}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(
            f"---\nname: skill-{number}\ndescription: Does thing {number}.\n---\n\nSteps.\n"
        )
    for number in range(50_000):
        place = root / f"src/{number % 500}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.txt").write_text("x\n")
    for command in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=b", "-c", "user.email=b@b", "commit", "-qm", "all"],
    ):
        subprocess.run(["git", *command], cwd=root, check=True)
