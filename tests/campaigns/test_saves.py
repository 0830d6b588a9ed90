"""A person saves while a session runs, in every editor's way: each request carries the last save, and none is lost."""

from __future__ import annotations

import random
import re
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.messages_api import MessagesApi, reply
from tests.state.person import anew, backup, in_place, overwrite, rename, two_renames
from tinyclaw.agent.events import Event, Notice, RequestStarted, ToolFinished
from tinyclaw.agent.loop import run_turn
from tinyclaw.agent.start import Options, open_session
from tinyclaw.state.transcript.fold import Conversation
from tinyclaw.state.transcript.statements import stated_text
from tinyclaw.state.workspace import Workspace

BODY = "".join(f"- line {number} of the plan, which is long enough to be torn\n" for number in range(60))


STYLES = (in_place, overwrite, rename, backup, two_renames, anew)


class Person(threading.Thread):
    """Saves numbered texts into ``path`` at random moments; knows when each save was finished."""

    def __init__(self, path: Path, saves: int, seed: int) -> None:
        super().__init__(daemon=True)
        self.path = path
        self.finished: list[tuple[float, int]] = []
        self._saves = saves
        self._chance = random.Random(seed)

    def run(self) -> None:
        for number in range(1, self._saves + 1):
            self._chance.choice(STYLES)(self.path, text_of(number).encode())
            self.finished.append((time.monotonic(), number))
            time.sleep(self._chance.uniform(0.0, 0.15))

    def last_before(self, moment: float) -> int:
        return max((number for at, number in self.finished if at <= moment), default=0)


def text_of(number: int) -> str:
    return f"# Plan {number}\n\n{BODY}\nEnd of plan {number}.\n"


def numbers_in(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"[Pp]lan (\d+)", text)}


def open_one(root: Path, server: MessagesApi):
    environment = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x", "PATH": "/usr/local/bin:/usr/bin:/bin"}
    workspace = Workspace.find(root, root.parent / "user")
    return open_session(Options(workspace, environment, lambda: datetime.now(UTC), {"permission_mode": "auto"}))


@pytest.mark.parametrize("saves", [25, pytest.param(500, marks=[pytest.mark.campaign, pytest.mark.timeout(900)])])
def test_each_request_carries_the_last_save_that_had_finished_and_none_a_torn_one(tmp_path: Path, saves: int):
    root = tmp_path / "project"
    root.mkdir()
    (root / "PLAN.md").write_text(text_of(0))
    person = Person(root / "PLAN.md", saves, seed=saves)
    is_done: list[bool] = []

    def step(body: dict[str, Any]) -> Any:
        if not person.ident:
            person.start()
        is_done.append(not person.is_alive())  # a save may end between a compile and the request's arrival here
        return reply("Done.") if is_done[-2:] == [True, True] else reply(tools=[("glob", {"pattern": "*.md"})])

    with MessagesApi(step) as server:
        session = open_one(root, server)
        compiles: list[float] = []
        stated: list[str | None] = []
        before = time.monotonic()
        for event in run_turn(session, "go"):
            if isinstance(event, ToolFinished):
                before = time.monotonic()  # the loop stands still until we ask for more: the compile comes after this
            elif isinstance(event, RequestStarted):
                compiles.append(before)
                stated.append(_plan_in(session.conversation))
        session.close()
        assert server.refused == []
    assert len(compiles) == len(stated) > saves // 10
    for began, text in zip(compiles, stated, strict=True):
        assert text is not None
        (number,) = numbers_in(text)
        assert text == text_of(number).strip(), "a torn save was stated"
        assert number >= person.last_before(began), "a save that had finished was not carried"
    assert numbers_in(stated[-1] or "") == {saves}


def _plan_in(conversation: Conversation) -> str | None:
    """What the conversation says of PLAN.md now, from its own state events."""
    text: str | None = None
    for group in conversation.groups:
        for block in group.blocks:
            if block.kind == "state" and block.attrs["path"] == "PLAN.md":
                text = stated_text(block, text)
    return text


@pytest.mark.parametrize("saves", [20, pytest.param(300, marks=[pytest.mark.campaign, pytest.mark.timeout(900)])])
def test_no_save_is_lost_while_the_agent_writes_the_same_file(tmp_path: Path, saves: int):
    """Each save of the person adds a line; every line is in the file at the end, or was put back and reported."""
    root = tmp_path / "project"
    root.mkdir()
    todo = root / "TODO.md"
    todo.write_text("- [ ] first\n\n## The person's\n\n")
    chance = random.Random(saves)
    done = threading.Event()

    def person() -> None:
        for number in range(saves):
            text = todo.read_text() if todo.exists() else ""
            chance.choice([in_place, rename])(todo, f"{text}person {number}\n".encode())
            time.sleep(chance.uniform(0.0, 0.06))
            while writes and writes[-1] < number // 8:  # both are at it, however slow the machine is
                time.sleep(0.01)
        done.set()

    counter = iter(range(10_000))
    writes: list[int] = []
    thread = threading.Thread(target=person)

    def step(body: dict[str, Any]) -> Any:
        if not thread.ident:
            thread.start()
        writes.append(next(counter))
        return reply("Done.") if done.is_set() else reply(tools=[("todo", {"add": [f"agent {writes[-1]}"]})])

    events: list[Event] = []
    with MessagesApi(step) as server:
        session = open_one(root, server)
        events += run_turn(session, "go")
        thread.join()
        session.close()
        events += [Notice(text) for text in session.take_notices()]
    final = todo.read_text()
    kept = final + "".join(path.read_text() for path in root.glob("TODO.md.rescued-*"))
    said = "".join(event.text for event in events if isinstance(event, Notice | ToolFinished))
    missing = [
        number for number in range(saves) if f"person {number}\n" not in kept and f"person {number}\n" not in said
    ]
    assert missing == []
    agents = [event for event in events if isinstance(event, ToolFinished) and event.name == "todo"]
    assert len(agents) > saves // 10 and any(not event.is_error for event in agents)
