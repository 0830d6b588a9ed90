"""A turn against the strict server in the test's own process: for tests of what is told of a session afterwards."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from tests.messages_api import MessagesApi
from tinyclaw.agent.loop import run_turn
from tinyclaw.agent.start import Options, open_session
from tinyclaw.cli._here import user_dir
from tinyclaw.state.workspace import Workspace


def turn_in(folder: Path, server: MessagesApi, text: str, *, resume: str | None = None, **environment: str) -> None:
    """Run one turn in which everything may run, as ``tinyclaw run`` there would; it has to end by itself."""
    options = Options(
        workspace=Workspace.find(folder, user_dir()),
        environment={**os.environ, "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x", **environment},
        clock=lambda: datetime.now(UTC),
        flags={"permission_mode": "auto"},
        resume=resume,
        title=text,
    )
    session = open_session(options)
    try:
        *_, ended = run_turn(session, text)
    finally:
        session.close()
    assert ended.reason == "done", ended.text
