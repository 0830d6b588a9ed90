"""10,000 memory records and 1,000 skills: what is looked up in them, and what they cost a start."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from benchmarks._figures import milliseconds, ratio
from benchmarks._server import exchanges, serving, workspace
from benchmarks.first_request import seconds
from benchmarks.overhead import fill_records, fill_skills
from benchmarks.startup import CLI
from tinyclaw.state.memory.store import Memory

ROUNDS = 15
STARTS = 9


def run() -> None:
    with workspace() as small, workspace() as large:
        fill_records(large)
        fill_skills(large)
        look_up(large)
        starts(small, large)


def look_up(root: Path) -> None:
    cache = root.parent / "memory.sqlite"
    began = time.perf_counter()
    memory(root, cache).index.write()
    print(f"the first index, once for a machine   {time.perf_counter() - began:.1f} s")
    (opened := memory(root, cache)).search("fact", 10)
    timed("search, in a session", lambda: opened.search("fact 777", 10))
    timed("search, in a new process", lambda: memory(root, cache).search("fact 777", 10))
    timed("search for a word of all records", lambda: opened.search("fact", 10))
    timed("find by name", lambda: opened.find("note 777"))
    opened.index.refresh()
    timed("is the index stale?", opened.index.is_stale)
    timed("the same in the middle of a turn", opened.index.may_be_stale)
    path = root / ".memory/note-5.md"

    def change() -> None:
        path.write_text(path.read_text() + "more\n")
        opened.index.refresh()

    timed("one record changed: the index again", change)


def memory(root: Path, cache: Path) -> Memory:
    return Memory(root, lambda: "2026-11-30T12:00:00Z", str, cache)


def timed(name: str, action: Callable[[], object]) -> None:
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    print(f"{name:37} {milliseconds(times)}")


def starts(small: Path, large: Path) -> None:
    """From the start of a process to its first request, in turn."""
    times: dict[Path, list[float]] = {small: [], large: []}
    with serving(["Hello."] * (2 * STARTS + 2)) as (url, log):
        for root in times:
            seconds([CLI, "run", "hi"], root, url)
        for _ in range(STARTS):
            for root, found in times.items():
                began = time.monotonic()
                seconds([CLI, "run", "hi"], root, url)
                found.append(exchanges(log)[-1]["received"] - began)
    print(f"{'start to first request, empty':37} {milliseconds(times[small])}")
    print(f"{'start to first request, full':37} {milliseconds(times[large])}  {ratio(times[large], times[small])}")
