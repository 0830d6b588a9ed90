"""Our own time per request: from the end of a reply to the next request on the wire, tool time taken out.

A session of 200 requests with reads, searches and commands, in an empty workspace and in one with
10,000 memory records, 1,000 skills and a git repository of 50,000 files, request by request, so that
what else the machine does meets both.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from itertools import chain, pairwise
from pathlib import Path

from benchmarks._figures import milliseconds, ratio
from benchmarks._server import Json, exchanges, git, opened, serving, workspace
from tinyclaw.agent.events import ToolFinished
from tinyclaw.agent.loop import run_turn
from tinyclaw.agent.session import Session

ROUNDS = 3
REQUESTS = 205
KILOBYTES = (1, 2, 4, 1, 15, 2, 1, 4)
"""The sizes of the results, in turn."""
FRAMES = {"10": (6, 15), "50": (45, 55), "100": (95, 105), "200": (195, 204)}


def run() -> None:
    empty: list[list[float]] = []
    full: list[list[float]] = []
    bare: list[list[float]] = []
    with workspace() as small, workspace() as large:
        fill(large)
        for root in (small, large):
            prepare(root)
        for _ in range(ROUNDS):
            bodies: list[Json] = []
            for times, found in zip(measured([small, large], bodies), (empty, full), strict=True):
                found.append(times)
            bare.append(sent_bare(bodies))
    print(f"the last body has {len(json.dumps(bodies[-1])) / 1000:.0f} kB")
    show("empty workspace", empty)
    show("large workspace", full)
    show("the SDK alone, same requests", bare)
    print(f"large against empty: {ratio(together(full), together(empty))}; round by round: {each_round(full, empty)}")
    print(f"empty against the SDK alone: {ratio(together(empty), together(bare))}")


def show(name: str, rounds: list[list[float]]) -> None:
    """The median over all requests, and around some of them."""
    print(f"{name}: {milliseconds(together(rounds))}")
    frames = {place: [time for times in rounds for time in times[a:b]] for place, (a, b) in FRAMES.items()}
    for place, times in frames.items():
        print(f"  at request {place:>3}: {milliseconds(times)}  {ratio(times, frames['10'])}")


def together(rounds: list[list[float]]) -> list[float]:
    return list(chain.from_iterable(rounds))


def each_round(over: list[list[float]], under: list[list[float]]) -> str:
    return ", ".join(ratio(a, b) for a, b in zip(over, under, strict=True))


def prepare(root: Path) -> None:
    """What the session reads, and a plan."""
    for size in set(KILOBYTES):
        (root / f"{size}.txt").write_text("a line of some forty characters, about\n" * (size * 1000 // 40))
    (root / "PLAN.md").write_text("# Plan\n\n1. Measure\n" * 20)


def call(number: int) -> list[object]:
    """A read, a search or a command, whose result has about the size whose turn it is."""
    name = f"{KILOBYTES[number // 3 % len(KILOBYTES)]}.txt"
    calls: tuple[list[object], ...] = (
        ["read", {"path": name}],
        ["grep", {"pattern": "forty", "path": name}],
        ["bash", {"command": f"cat {name}"}],
    )
    return calls[number % 3]


def measured(roots: list[Path], bodies: list[Json]) -> list[list[float]]:
    """Seconds of overhead before each request but the first, for each root; ``bodies`` takes what the first sent."""
    script = [{"reply": {"text": f"Step {n}.", "tools": [call(n)]}} for n in range(REQUESTS - 1)]
    with ExitStack() as stack:
        servers = [stack.enter_context(serving([*script, "Done."])) for _ in roots]
        tools = in_turns([opened(root, url) for root, (url, _) in zip(roots, servers, strict=True)])
        answered = [exchanges(log) for _, log in servers]
        bodies += [json.loads(path.read_bytes()) for path in sorted(servers[0][1].glob("[0-9]*.json"))]
    return [
        [max(0.0, gap - tool) for gap, tool in zip(gaps(each), times, strict=True)]
        for each, times in zip(answered, tools, strict=True)
    ]


def in_turns(sessions: list[Session]) -> list[list[float]]:
    """Run the sessions one call at a time in turn; the seconds that each one's calls took, with the others' turns."""
    running = [run_turn(session, "go") for session in sessions]
    seconds: list[list[float]] = [[] for _ in sessions]
    left = [0.0] * len(sessions)
    for _ in range(REQUESTS - 1):
        for at, events in enumerate(running):
            if seconds[at]:
                seconds[at][-1] += time.perf_counter() - left[at]
            seconds[at].append(next(each.milliseconds for each in events if isinstance(each, ToolFinished)) / 1000)
            left[at] = time.perf_counter()
    for at, events in enumerate(running):
        seconds[at][-1] += time.perf_counter() - left[at]
        list(events)
        sessions[at].close()
    return seconds


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
    fill_records(root)
    fill_skills(root)
    for number in range(50_000):
        place = root / f"src/{number % 500}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.txt").write_text("x\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "all")


def fill_records(root: Path) -> None:
    memory = root / ".memory"
    memory.mkdir()
    for number in range(10_000):
        head = f"---\nname: note {number}\ntype: project\nupdated: 2026-11-{number % 28 + 1:02}T12:00:00Z\n---\n"
        (memory / f"note-{number}.md").write_text(f"{head}\nfact {number}\n")


def fill_skills(root: Path) -> None:
    for number in range(1_000):
        folder = root / f"skills/skill-{number}"
        folder.mkdir(parents=True)
        head = f"---\nname: skill-{number}\ndescription: Does thing {number}.\n---\n"
        (folder / "SKILL.md").write_text(f"{head}\nSteps.\n")
