"""The demo: everything is real but the model's replies, and nothing is needed for it."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import ROOT, on_terminal, tinyclaw
from tests.examples.fix_failing_test import FIX, LAST_STEP, NEW_STEP
from tinyclaw.cli import _demonstration
from tinyclaw.state.transcript.grammar import parse

BARE = """
import sys
from tinyclaw.cli.main import main

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise AssertionError(f"the network was asked for: {arguments}")
    if event == "import" and arguments[0] == "anthropic":
        raise AssertionError("the SDK was loaded")

sys.addaudithook(refuse)
main()
"""


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An environment with bash and python3, without key, home and git."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("bash", "sh"):
        (programs / name).symlink_to(shutil.which(name))
    (programs / "python3").symlink_to(sys.executable)
    return {"PATH": str(programs), "PYTHONPATH": str(ROOT)}


def demo(bare: dict[str, str], cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BARE, "demo", *arguments]
    return subprocess.run(command, cwd=cwd, env=bare, capture_output=True, encoding="utf-8", timeout=60, check=False)


def test_it_needs_no_key_no_home_no_git_no_network_and_no_sdk(tmp_path: Path, bare: dict[str, str]):
    done = demo(bare, tmp_path, "project")
    assert (done.returncode, "Traceback" in done.stderr.replace("│ Traceback", "")) == (0, False), done.stderr
    assert "4 tests, all pass" in done.stdout
    assert "no tests ran" not in done.stderr and "Ran 4 tests" in done.stderr


def test_it_tells_in_order_what_is_recorded_what_was_saved_and_where_to_look(tmp_path: Path, bare: dict[str, str]):
    told = demo(bare, tmp_path, "project").stderr
    places = [
        "the model's replies are recorded",
        "FAILED (failures=1)",
        "somebody saves PLAN.md",
        "the request that now goes out carries that line",
        "Ran 4 tests",
        "The proof: request 4",
        f"    +{NEW_STEP.strip()}",
        "All of it is in files",
        "The model's part was recorded",
    ]
    found = [told.find(place) for place in places]
    assert -1 not in found and found == sorted(found), told


def test_the_tools_really_ran_and_the_transcript_has_the_edit_once(tmp_path: Path, bare: dict[str, str]):
    demo(bare, tmp_path, "project")
    root = tmp_path / "project"
    tests = subprocess.run([sys.executable, "-m", "unittest"], cwd=root, capture_output=True, text=True, check=False)
    assert "Ran 4 tests" in tests.stderr and "OK" in tests.stderr
    assert NEW_STEP in (root / "PLAN.md").read_text() and "status: done" in (root / "PLAN.md").read_text()
    assert "[ ]" not in (root / "TODO.md").read_text()
    (transcript,) = (root / ".transcripts").glob("*.md")
    blocks = parse(transcript.read_bytes(), "t").blocks
    (change,) = [block for block in blocks if block.kind == "state" and block.attrs["how"] == "diff"]
    assert (change.attrs["path"], change.attrs["by"]) == ("PLAN.md", "outside")
    assert f"+{NEW_STEP}" in change.text


def test_every_command_and_file_that_it_names_is_there(tmp_path: Path):
    done = tinyclaw("demo", "project", cwd=tmp_path)
    commands = re.findall(r"^  tinyclaw (-C .*?)(?:  |$)", done.stderr, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        shown = tinyclaw(*shlex.split(command), cwd=tmp_path)
        assert shown.returncode == 0, shown.stderr
    files = re.findall(r"^  (/\S+)$", done.stderr, re.MULTILINE)
    assert len(files) == 3 and all(Path(file).is_file() for file in files)


def test_it_names_its_own_path_where_the_shell_would_not_find_it(tmp_path: Path, bare: dict[str, str]):
    program = tmp_path / "venv/tinyclaw"
    program.parent.mkdir()
    program.write_text("from tinyclaw.cli.main import main\nmain()\n")
    command = [sys.executable, str(program), "demo", "project"]
    told = subprocess.run(command, cwd=tmp_path, env=bare, capture_output=True, encoding="utf-8", check=True).stderr
    assert f"  {program} -C {tmp_path}/project context" in told and "\n  tinyclaw " not in told


def test_without_a_folder_it_makes_a_temporary_one(tmp_path: Path):
    done = tinyclaw("demo", cwd=tmp_path, TMPDIR=str(tmp_path))
    (made,) = tmp_path.glob("tinyclaw-demo-*/project")
    assert done.returncode == 0 and str(made) in done.stderr


def test_it_never_writes_into_a_folder_that_is_there(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    done = tinyclaw("demo", "mine", cwd=tmp_path)
    assert done.returncode == 2 and "mine is there already" in done.stderr
    assert list((tmp_path / "mine").iterdir()) == []


def test_it_never_writes_into_a_repository(tmp_path: Path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    done = tinyclaw("demo", "project", cwd=tmp_path)
    assert done.returncode == 2 and "lies in the repository" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [".git"]


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path):
    (tmp_path / "file").write_text("")
    done = tinyclaw("demo", "file/below", cwd=tmp_path)
    assert done.returncode == 1 and "cannot be copied there" in done.stderr
    assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) == 1


def test_it_runs_on_a_terminal_too(tmp_path: Path):
    with on_terminal("demo", "project", cwd=tmp_path) as screen:
        assert screen.wait() == 0
    assert "The proof: request 4" in screen.text


def test_the_person_saves_in_the_demo_what_the_recorded_person_saved():
    assert _demonstration.NEW_STEP == NEW_STEP
    assert list(FIX.saves) == [_demonstration.EDIT_AFTER_REPLY]
    assert FIX.turns[0].text == _demonstration.PROMPT
    assert (ROOT / f"examples/{FIX.name}/workspace/PLAN.md").read_text().endswith(LAST_STEP)
