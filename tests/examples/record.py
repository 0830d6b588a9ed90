"""Record the examples again: ``python -m tests.examples.record``, from the project's root.

The real loop, tools and client run on a copy of each workspace; the model's replies come from the
strict server with the scenario's script. What lies in ``examples/`` is what that session wrote.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.examples.scenarios import SCENARIOS, Scenario
from tests.messages_api import MessagesApi
from tinyclaw.agent.events import TurnEnded
from tinyclaw.agent.loop import run_turn
from tinyclaw.agent.start import Options, open_session
from tinyclaw.state.workspace import TRANSCRIPTS, Workspace

EXAMPLES = Path(__file__).parents[2] / "examples"
STARTED = datetime(2026, 11, 30, 10, 15, tzinfo=UTC)


def record(scenario: Scenario, target: Path) -> None:
    """Run the scenario on a copy of its workspace; the transcript and its prefix go to ``target``."""
    folder = Path(tempfile.gettempdir()) / "tinyclaw-examples"  # outputs of tests name it: the same each time
    shutil.rmtree(folder, ignore_errors=True)
    root = folder / scenario.name
    try:
        shutil.copytree(target / "workspace", root)
        with MessagesApi(list(_script(scenario, root))) as server:
            for number, (text, _) in enumerate(scenario.turns):
                _run(server, root, text, resume="last" if number else None)
            assert not server.refused, server.refused
        shutil.rmtree(target / "prefixes", ignore_errors=True)
        shutil.copytree(root / TRANSCRIPTS / "prefixes", target / "prefixes")
        (transcript,) = (root / TRANSCRIPTS).glob("*.md")
        shutil.copy(transcript, target / "transcript.md")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _script(scenario: Scenario, root: Path) -> Iterator[Any]:
    replies = (step for _, steps in scenario.turns for step in steps)
    for number, step in enumerate(replies, start=1):
        if number == scenario.edit_at and scenario.edit is not None:
            yield _edited(scenario, step, root)
        else:
            yield step


def _edited(scenario: Scenario, step: Any, root: Path) -> Any:
    def answer(body: dict[str, Any]) -> Any:
        assert scenario.edit is not None
        scenario.edit(root)
        return step

    return answer


def _run(server: MessagesApi, root: Path, text: str, resume: str | None) -> None:
    environment = {
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": "none",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
    }
    options = Options(
        workspace=Workspace.find(root, root.parent / "user"),
        environment=environment,
        clock=lambda: STARTED,
        flags={"permission_mode": "auto"},
        resume=resume,
        title=text,
    )
    session = open_session(options)
    try:
        *_, last = run_turn(session, text)
        assert isinstance(last, TurnEnded) and last.reason == "done", last
    finally:
        session.close()


if __name__ == "__main__":
    for each in SCENARIOS:
        record(each, EXAMPLES / each.name)
        print(f"recorded {each.name}")
