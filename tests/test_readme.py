"""The README says what is: its commands run, its tables match the program, the errors it explains are the real ones."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.messages_api import MessagesApi, fault, reply
from tinyclaw.cli.run import command as run_command
from tinyclaw.state.settings import Settings
from tinyclaw.state.transcript.sessions import find_session
from tinyclaw.state.transcript.store import Transcript
from tinyclaw.state.workspace import TRANSCRIPTS, Workspace
from tinyclaw.tools._base import load_tools
from tinyclaw.tools._permissions import decide
from tinyclaw.types import PermissionMode

PROJECT = Path(__file__).parents[1]
README = (PROJECT / "README.md").read_text()
LAST = "tinyclaw --resume last"
"""The prompt; it needs a terminal, and is tested on one elsewhere."""
EXIT_CODES = {LAST: 2, 'tinyclaw run "run the tests"': 3, "tinyclaw why docs/x.md --request 2": 1}
"""Of the commands on the page that do not end with 0."""


def commands() -> list[str]:
    """Every command line in the README's shell blocks, without comments and the set-up lines that the CI runs."""
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    lines = [line.partition("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith(("python3 -m venv", "export ", "cd "))]


def section(title: str) -> str:
    return README.partition(f"## {title}\n")[2].partition("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    """The cells of the section's tables, without their heads."""
    lines = re.findall(r"^\|(.*)\|$", section(title), re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines if not re.match(r"[-| ]+$", line)][1:]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


@pytest.fixture
def shell(workspace: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command line in the workspace, with ``tinyclaw`` on PATH."""
    program = tmp_path / "bin/tinyclaw"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from tinyclaw.cli.main import main; main()" "$@"\n')
    program.chmod(0o755)
    base = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(PROJECT)}

    def run(line: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", line],
            cwd=workspace,
            env={**base, **more},
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    return run


def answer(body: dict[str, Any]) -> Any:
    """The model of the page: it runs the tests when it is told to, and answers everything else."""
    newest = body["messages"][-1]["content"]
    wants_tests = newest != [] and newest[-1].get("text") == "run the tests"
    return reply(tools=[("bash", {"command": "echo all pass"})]) if wants_tests else reply("Done.")


def test_every_command_runs_in_the_order_of_the_page(workspace: Path, shell):
    with MessagesApi(answer) as server:
        given = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x"}
        for line in commands():
            transcripts = sorted((workspace / TRANSCRIPTS).glob("2*.md"))
            done = shell(line.replace(".transcripts/FILE.md", str(transcripts[0]) if transcripts else "none"), **given)
            assert done.returncode == EXIT_CODES.get(line, 0), (line, done.stderr)
            assert "Traceback" not in done.stderr
    assert server.refused == [] and len(server.requests) >= 6
    assert len(commands()) >= 14
    assert any("\nall pass\n" in path.read_text() for path in transcripts)


def test_there_are_two_set_up_lines_one_command_each():
    lines = [line for line in README.splitlines() if line.startswith("python3 -m venv ")]
    assert lines == [
        "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/tinyclaw demo",
        "python3 -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/pytest",
    ]


def test_the_table_of_settings_is_complete_and_its_defaults_are_the_programs():
    told = {name.strip("`"): default.strip("`") for name, default, _ in rows("Settings")}
    settings = {each.name: each.default for each in dataclasses.fields(Settings) if each.name != "origins"}
    assert told == {name: str(default) for name, default in settings.items()} | {"model": told["model"]}


def test_the_table_of_permissions_is_what_is_decided(tmp_path: Path):
    words = {"allow": "run", "ask": "asks", "deny": "refused"}
    tools = load_tools()
    samples = [tools.get("read"), tools.get("todo"), tools.get("edit"), tools.get("bash")]
    table = {cells[0].partition("`")[2].partition("`")[0]: cells[1:] for cells in rows("Permissions")}
    assert list(table) == list(get_args(PermissionMode))
    for mode, told in table.items():
        verdicts = [decide(tool, {}, mode, Workspace.find(tmp_path, tmp_path)).verdict for tool in samples]
        assert told == [words[verdict] for verdict in verdicts], mode


def test_the_exit_codes_are_those_that_the_help_names():
    named = re.findall(r"\d+", (run_command.help or "").partition("Exit codes:")[2])
    assert [code for code, _ in rows("In scripts")] == named


@pytest.fixture
def holder(workspace: Path) -> Iterator[Transcript]:
    """Somebody else's open session."""
    path = find_session(workspace / TRANSCRIPTS, "last").path
    transcript = Transcript.open(path, lambda path, sha256: None)
    yield transcript
    transcript.close()


def explained() -> set[str]:
    """The messages that the README explains."""
    return {text for cells in rows("When something is wrong") for text in re.findall(r"`([^`]*)`", cells[0])}


def test_the_errors_that_it_explains_are_the_programs(workspace: Path, shell, request):
    told = ""
    for status in (401, 404, 429, 529):
        with MessagesApi([fault(status)]) as server:
            key = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x", "TINYCLAW_MAX_TRIES": "1"}
            told += shell("tinyclaw run hello", **key).stderr
    nowhere = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_API_KEY": "x", "TINYCLAW_MAX_TRIES": "1"}
    told += shell("tinyclaw run hello", **nowhere).stderr
    told += shell("tinyclaw run hello").stderr
    told += shell("tinyclaw").stderr
    with MessagesApi(answer) as server:
        key = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x"}
        (workspace / "PLAN.md").write_text("---\nstatus: certainly\n---\n# Plan\n")
        told += shell("tinyclaw run hello; tinyclaw run --resume last", **key).stderr
        told += shell('tinyclaw run "run the tests"', **key).stderr
        request.getfixturevalue("holder")
        told += shell("tinyclaw run --resume last on", **key).stderr
    told += shell("tinyclaw doctor").stdout
    elsewhere = {"paused", "tinyclaw doctor"}
    assert {text for text in explained() if text not in told} - elsewhere == set(), told


def test_every_linked_file_is_there():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (PROJECT / target).exists(), target


def test_no_line_is_too_wide_for_an_editor():
    assert [
        line for line in README.splitlines() if len(line) > 120 and not line.startswith(("|", "tinyclaw", "export"))
    ] == []
