"""Sessions on real files, with the real client against the strict server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tinyclaw.agent.events import Event, TurnEnded
from tinyclaw.agent.loop import run_turn
from tinyclaw.agent.session import Session
from tinyclaw.agent.start import Options, open_session
from tinyclaw.model.anthropic import AnthropicModel
from tinyclaw.model.retry import RetryPolicy
from tinyclaw.state.workspace import Workspace

QUIET = {"memory_extract": "off", "memory_consolidate": "off"}
"""The small model is not asked at a turn's end, unless a test is about that."""

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty workspace."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def start(root: Path, tmp_path: Path) -> Iterator[Callable[..., Session]]:
    """``start(server, **changes)`` opens a session there; ``changes`` are fields of ``Options``, or settings.

    With ``replay`` a recorded session answers in the server's place.
    """
    with ExitStack() as stack:

        def open_one(
            server: Any, *, environment: dict[str, str] | None = None, replay: Path | None = None, **changes: Any
        ) -> Session:
            names = {"workspace", "resume", "title", "ask", "interrupt", "strict", "clock"}
            options = Options(
                workspace=Workspace.find(root, tmp_path / "user"),
                environment={"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "test-key", **(environment or {})},
                clock=changes.pop("clock", lambda: NOON),
                flags={"permission_mode": "auto", **QUIET, **{k: str(v) for k, v in changes.items() if k not in names}},
            )
            if replay is not None:
                options = replace(options, flags={**options.flags, "model": f"replay:{replay}"})
            session = open_session(replace(options, **{k: v for k, v in changes.items() if k in names}))
            stack.callback(session.close)
            if replay is not None:
                return session
            assert isinstance(session.model, AnthropicModel)
            session.model._retry = RetryPolicy(first_seconds=0.01, longest_seconds=0.02)
            assert session.small is not None and isinstance(session.small.model, AnthropicModel)
            session.small.model._retry = RetryPolicy(max_tries=2, first_seconds=0.01, longest_seconds=0.02)
            return session

        yield open_one


@pytest.fixture
def turn() -> Callable[..., list[Event]]:
    """Runs one turn to its end and gives its events."""

    def run(session: Session, text: str | None = "go on") -> list[Event]:
        events = list(run_turn(session, text))
        assert isinstance(events[-1], TurnEnded)
        return events

    return run
