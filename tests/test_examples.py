"""The examples replay: the recorded model, the real tools, and the same end."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.examples.play import EXAMPLES, replay
from tests.examples.record import record
from tests.examples.scenario import Scenario
from tests.examples.scenarios import FIX, RESUME, SCENARIOS, STEER
from tinyclaw.agent.events import Event, ReplyReceived, ToolFinished, TurnEnded
from tinyclaw.agent.recorded import Recording
from tinyclaw.errors import ReplayError
from tinyclaw.model.replay import ReplayModel
from tinyclaw.state.transcript.grammar import Block, parse
from tinyclaw.state.transcript.prefixes import PrefixStore
from tinyclaw.state.workspace import TRANSCRIPTS
from tinyclaw.types import Interrupt, Request

same_platform = pytest.mark.skipif(platform.system() != "Linux", reason="the recorded prompt names its platform, Linux")


@pytest.fixture(params=SCENARIOS, ids=lambda scenario: scenario.name)
def scenario(request) -> Scenario:
    return request.param


@pytest.fixture
def root(scenario: Scenario, tmp_path: Path) -> Path:
    return copy_of(scenario, tmp_path)


def copy_of(scenario: Scenario, folder: Path) -> Path:
    return shutil.copytree(EXAMPLES / scenario.name / "workspace", folder / scenario.name)


def replies_in(scenario: Scenario) -> int:
    return sum(len(turn.replies) for turn in scenario.turns)


def prove(scenario: Scenario, root: Path) -> str:
    command = ["bash", "-c", scenario.proof]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout.strip()


def ends(events: list[Event]) -> list[str]:
    return [event.reason for event in events if isinstance(event, TurnEnded)]


def messages(transcript: Path) -> list[str]:
    """What the model was sent last, by message; without what no two runs have in common."""
    folder = transcript.parent
    recording = Recording.read(transcript, lambda path, sha256: None)
    last = max(block.attrs["n"] for block in recording.blocks if block.kind == "request")
    rebuilt = recording.request(last, PrefixStore(folder, folder / "user"))
    assert rebuilt.is_exact
    texts = [str(message) for message in rebuilt.request.messages]
    return [re.sub(r"in \d+\.\d+s|File \"\S+/(?=tests/)", "…", text) for text in texts]


def test_an_example_replays_to_its_end(scenario: Scenario, root: Path):
    assert ends(replay(scenario, root)) == ["done"] * len(scenario.turns)


def test_the_work_is_done_afterwards_and_not_before(scenario: Scenario, root: Path):
    assert prove(scenario, root) != scenario.proved
    replay(scenario, root)
    assert prove(scenario, root) == scenario.proved


def test_a_replay_says_to_the_model_what_was_recorded(scenario: Scenario, root: Path):
    replay(scenario, root)
    (transcript,) = (root / TRANSCRIPTS).glob("*.md")
    assert messages(transcript) == messages(EXAMPLES / scenario.name / "transcript.md")


def test_what_lies_there_is_what_a_recording_of_today_would_be(scenario: Scenario, tmp_path: Path):
    """Otherwise: python -m tests.examples.record"""
    fresh = shutil.copytree(EXAMPLES / scenario.name, tmp_path / "fresh")
    record(scenario, fresh, tmp_path / "folder")
    assert essence(fresh / "transcript.md") == essence(EXAMPLES / scenario.name / "transcript.md")
    if platform.system() == "Linux":
        kept = {path.name for path in (EXAMPLES / scenario.name / "prefixes").iterdir()}
        assert {path.name for path in (fresh / "prefixes").iterdir()} == kept


def essence(path: Path) -> list[tuple]:
    """The blocks without what differs from run to run: times, hashes, and the order in which parallel calls end."""
    blocks = parse(path.read_bytes(), path.name).blocks
    names = ("name", "path", "how", "by", "stop", "what", "answer", "reason", "is_error")

    def place(block: Block) -> tuple[int, str]:
        return (block.attrs.get("m", 0), str(block.attrs["id"]) if block.kind == "tool_result" else "")

    return [
        (block.kind, block.heading, *(block.attrs.get(name) for name in names)) for block in sorted(blocks, key=place)
    ]


def test_no_example_names_the_machine_it_was_recorded_on(scenario: Scenario):
    for path in (EXAMPLES / scenario.name).rglob("*.md"):
        text = path.read_text().replace("/tmp/tinyclaw-examples/", "")
        assert not re.search(r"/(home|root|Users|work|tmp|var)/", text), path


@same_platform
def test_a_strict_replay_of_what_did_not_change_goes_to_the_end(tmp_path: Path):
    events = replay(STEER, copy_of(STEER, tmp_path), strict=True)
    assert (ends(events), events[-1].requests) == (["done"], replies_in(STEER)), events[-1].text


@same_platform
def test_a_strict_replay_goes_on_over_an_output_that_was_kept_in_a_file_and_a_second_turn(tmp_path: Path):
    events = replay(RESUME, copy_of(RESUME, tmp_path), strict=True)
    assert ends(events) == ["done", "done"], events[-1].text


@same_platform
@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("PLAN.md", "Run all tests", "Run everything", "the state of PLAN.md"),
        ("TODO.md", "all tests pass", "all is well", "the state of TODO.md"),
        ("AGENTS.md", "whole cents", "euros", "the source instructions:AGENTS.md"),
    ],
)
def test_a_strict_replay_names_the_file_that_made_the_request_differ(
    tmp_path: Path, name: str, old: str, new: str, said: str
):
    root = copy_of(FIX, tmp_path)
    (root / name).write_text((root / name).read_text().replace(old, new))
    events = replay(FIX, root, strict=True)
    assert ends(events) == ["error"]
    assert not [event for event in events if isinstance(event, (ReplyReceived, ToolFinished))]
    assert "request 1 differs" in events[-1].text and said in events[-1].text and new in events[-1].text


def test_a_replay_that_runs_dry_says_so(tmp_path: Path):
    model = ReplayModel(EXAMPLES / RESUME.name / "transcript.md", tmp_path)
    request = Request(model.name, 1, (), (), ())
    for _ in range(replies_in(RESUME)):
        list(model.stream(request, Interrupt()))
    with pytest.raises(ReplayError, match=f"holds {replies_in(RESUME)} replies, and one more was asked for"):
        list(model.stream(request, Interrupt()))


def test_each_example_is_listed_in_their_readme():
    text = (EXAMPLES / "README.md").read_text()
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    assert (
        folders == {scenario.name for scenario in SCENARIOS} == set(re.findall(r"^\| \[([\w-]+)\]", text, re.MULTILINE))
    )
