"""Run a scenario's turns on a copy of its workspace, with the saves that a person makes in the middle."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from tests.examples.scenario import Scenario
from tinyclaw.agent.events import Event, ReplyReceived
from tinyclaw.agent.loop import run_turn
from tinyclaw.agent.session import Session
from tinyclaw.agent.start import Options, open_session
from tinyclaw.state.transcript.store import SessionName, Transcript
from tinyclaw.state.workspace import TRANSCRIPTS, Workspace

EXAMPLES = Path(__file__).parents[2] / "examples"
STARTED = datetime(2026, 11, 30, 10, 15, tzinfo=UTC)
PATH = "/usr/local/bin:/usr/bin:/bin"


Clock = Callable[[], datetime]


def ticking() -> Clock:
    """A clock that goes on by a second with each look at it."""
    seconds = count()
    return lambda: STARTED + timedelta(seconds=next(seconds))


def begin(scenario: Scenario, root: Path) -> str:
    """Make the session's transcript, with an id that is the same each time; returns the id."""
    title = scenario.turns[0].text
    name = SessionName.new("20261130-101500", title, hashlib.sha256(scenario.name.encode()).hexdigest()[:4])
    Transcript.create(root / TRANSCRIPTS, name, title, "2026-11-30T10:15:00Z", lambda path, sha256: None).close()
    return name.id


@contextmanager
def opened(
    root: Path, session: str, flags: Mapping[str, str], environment: Mapping[str, str], clock: Clock, *, strict: bool
) -> Iterator[Session]:
    """The session, with nobody to ask."""
    found = open_session(
        Options(
            workspace=Workspace.find(root, root.parent / "user"),
            environment={"PATH": PATH, **environment},
            clock=clock,
            flags={"memory_extract": "off", "memory_consolidate": "off", **flags},
            resume=session,
            strict=strict,
        )
    )
    try:
        yield found
    finally:
        found.close()


def turn(session: Session, text: str | None, scenario: Scenario, root: Path) -> list[Event]:
    """One turn to its end. What the person saves meanwhile is saved when the reply is there and no tool has run."""
    events = []
    for event in run_turn(session, text):
        events.append(event)
        if isinstance(event, ReplyReceived) and event.number in scenario.saves:
            scenario.saves[event.number](root)
    return events


def replay(scenario: Scenario, root: Path, *, strict: bool = False) -> list[Event]:
    """Play the recorded session on ``root``. Nothing is asked, so what was a pause goes on at once."""
    flags = {"permission_mode": "auto", "model": f"replay:{EXAMPLES / scenario.name / 'transcript.md'}"}
    with opened(root, begin(scenario, root), flags, {}, ticking(), strict=strict) as session:
        return [event for each in scenario.turns for event in turn(session, each.text, scenario, root)]
