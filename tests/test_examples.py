"""The examples replay: the recorded model, the real tools, and the same end."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.examples.record import EXAMPLES, record
from tests.examples.scenarios import SCENARIOS, Scenario
from tinyclaw.agent.events import Event, ReplyReceived, TurnEnded
from tinyclaw.agent.loop import run_turn
from tinyclaw.agent.start import Options, open_session
from tinyclaw.errors import ReplayError
from tinyclaw.model.replay import ReplayModel
from tinyclaw.state.transcript.grammar import parse
from tinyclaw.state.workspace import Workspace
from tinyclaw.types import Interrupt, Request

STARTED = datetime(2026, 11, 30, 10, 15, tzinfo=UTC)


def replay(scenario: Scenario, root: Path, *, strict: bool = False) -> list[Event]:
    """Play the recorded session on the workspace ``root``, with the person's edit where it was."""
    transcript = EXAMPLES / scenario.name / "transcript.md"
    events: list[Event] = []
    session = open_session(
        Options(
            workspace=Workspace.find(root, root.parent / "user"),
            environment={"PATH": "/usr/local/bin:/usr/bin:/bin"},
            clock=lambda: STARTED,
            flags={"permission_mode": "auto", "model": f"replay:{transcript}"},
            strict=strict,
        )
    )
    try:
        for text, _ in scenario.turns:
            for event in run_turn(session, text):
                events.append(event)
                if isinstance(event, ReplyReceived) and event.number == scenario.edit_at and scenario.edit:
                    scenario.edit(root)
    finally:
        session.close()
    return events


@pytest.fixture(params=SCENARIOS, ids=lambda scenario: scenario.name)
def scenario(request) -> Scenario:
    return request.param


@pytest.fixture
def root(scenario: Scenario, tmp_path: Path) -> Path:
    return shutil.copytree(EXAMPLES / scenario.name / "workspace", tmp_path / scenario.name)


def test_an_example_replays_to_its_end(scenario: Scenario, root: Path):
    events = replay(scenario, root)
    assert [event.reason for event in events if isinstance(event, TurnEnded)] == ["done"] * len(scenario.turns)


def test_the_examples_tests_pass_afterwards(scenario: Scenario, root: Path):
    replay(scenario, root)
    if (root / "tests").is_dir():
        done = subprocess.run([sys.executable, "-m", "unittest", "-q"], cwd=root, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    else:
        assert "81c3,1\n" in (root / "records.csv").read_text()


def test_what_is_recorded_is_what_the_scenario_records_today(scenario: Scenario, tmp_path: Path):
    """Times, hashes and durations apart, a new recording is the one that is there."""
    fresh = tmp_path / scenario.name
    shutil.copytree(EXAMPLES / scenario.name, fresh)
    record(scenario, fresh)
    assert _essence(fresh / "transcript.md") == _essence(EXAMPLES / scenario.name / "transcript.md")


def _essence(path: Path) -> list[tuple]:
    blocks = parse(path.read_bytes(), path.name).blocks
    return [
        (block.kind, block.heading, block.attrs.get("name"), block.attrs.get("path"), block.attrs.get("how"))
        for block in sorted(blocks, key=lambda block: (block.attrs.get("m", 0), block.kind == "tool_result"))
    ]


def test_no_example_names_the_machine_it_was_recorded_on(scenario: Scenario):
    text = (EXAMPLES / scenario.name / "transcript.md").read_text()
    assert "/home/" not in text and "/root" not in text and "/work" not in text


def test_a_strict_replay_names_the_file_that_made_the_request_differ(tmp_path: Path):
    scenario = SCENARIOS[0]
    root = shutil.copytree(EXAMPLES / scenario.name / "workspace", tmp_path / scenario.name)
    plan = root / "PLAN.md"
    plan.write_text(plan.read_text().replace("Run all tests", "Run everything"))
    last = replay(scenario, root, strict=True)[-1]
    assert isinstance(last, TurnEnded) and last.reason == "error"
    assert "request 1 differs" in last.text and "the state of PLAN.md" in last.text and "Run everything" in last.text
    (root / "AGENTS.md").write_text("Other rules.\n")
    shutil.copy(EXAMPLES / scenario.name / "workspace/PLAN.md", plan)
    assert "the source instructions:AGENTS.md" in replay(scenario, root, strict=True)[-1].text


def test_a_strict_replay_of_what_did_not_change_passes(tmp_path: Path):
    """The first request of each example is equal; later ones hold durations and temporary paths."""
    scenario = SCENARIOS[1]
    root = shutil.copytree(EXAMPLES / scenario.name / "workspace", tmp_path / scenario.name)
    replies = [event for event in replay(scenario, root, strict=True) if isinstance(event, ReplyReceived)]
    assert len(replies) >= 3


def test_a_replay_that_runs_dry_says_so(tmp_path: Path):

    model = ReplayModel(EXAMPLES / SCENARIOS[2].name / "transcript.md", tmp_path)
    request = Request(model.name, 1, (), (), ())
    replies = sum(len(steps) for _, steps in SCENARIOS[2].turns)
    for _ in range(replies):
        list(model.stream(request, Interrupt()))
    with pytest.raises(ReplayError, match=f"holds {replies} replies, and one more was asked for"):
        list(model.stream(request, Interrupt()))


def run_cli(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line without key, git settings or home; fails if it loads the SDK."""
    code = (
        "import sys; from tinyclaw.cli.main import main\n"
        "try:\n    main()\nfinally:\n    assert 'anthropic' not in sys.modules"
    )
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "PYTHONPATH": str(EXAMPLES.parent)}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60)


def test_the_demo_ends_well_without_key_or_home_and_shows_the_edit(tmp_path: Path):
    folder = tmp_path / "project"
    done = run_cli(tmp_path, "demo", str(folder))
    assert done.returncode == 0, done.stderr
    assert "4 tests, all pass" in done.stdout
    assert "the model's replies are recorded" in done.stderr
    assert "the request that now goes out carries that line" in done.stderr
    (transcript,) = (folder / ".transcripts").glob("*.md")
    blocks = parse(transcript.read_bytes(), "t").blocks
    (change,) = (block for block in blocks if block.kind == "state" and block.attrs["how"] == "diff")
    assert "+4. An empty basket costs nothing" in change.text
    shown = run_cli(tmp_path, "-C", str(folder), "prompt", "last", "--request", "4")
    assert "An empty basket costs nothing" in json.dumps(json.loads(shown.stdout)["messages"])
    again = run_cli(tmp_path, "demo", str(folder))
    assert (again.returncode, "is there already" in again.stderr) == (2, True)
