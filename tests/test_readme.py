"""The README says what is: its commands run, its tables match the program."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.messages_api import MessagesApi, reply
from tinyclaw.state.settings import Settings

PROJECT = Path(__file__).parents[1]
README = (PROJECT / "README.md").read_text()


def commands() -> list[str]:
    """Every command line in the README's shell blocks, without comments and the set-up lines that the CI runs."""
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    lines = [line.partition("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith(("python3 -m venv", "export ", "cd "))]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    """A folder with ``tinyclaw`` in it, for PATH."""
    program = tmp_path / "bin/tinyclaw"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from tinyclaw.cli.main import main; main()" "$@"\n')
    program.chmod(0o755)
    return program.parent


def test_every_command_runs_in_the_order_of_the_page(workspace: Path, tool: Path):
    call = reply("Looking.", tools=[("glob", {"pattern": "*"})])
    with MessagesApi([call, *[reply("Done.")] * 10]) as server:
        environment = {
            **os.environ,
            "PATH": f"{tool}:{os.environ['PATH']}",
            "PYTHONPATH": str(PROJECT),
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "x",
        }
        ran = []
        for line in commands():
            transcript = next((workspace / ".transcripts").glob("2*.md"), "none")
            line = line.replace(".transcripts/FILE.md", str(transcript))
            done = subprocess.run(
                ["bash", "-c", line], cwd=workspace, env=environment, capture_output=True, text=True, timeout=60,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
            expected = {1} if line == "tinyclaw doctor" else {2} if line == "tinyclaw --resume last" else {0}
            assert done.returncode in expected | {0}, (line, done.stderr)
            assert "Traceback" not in done.stderr
            ran.append(line)
        assert len(ran) >= 9 and server.refused == []


def test_there_are_two_set_up_lines_one_command_each():
    lines = [line for line in README.splitlines() if line.startswith("python3 -m venv ")]
    assert lines == [
        "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/tinyclaw demo",
        "python3 -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/pytest",
    ]


def test_the_table_of_settings_is_complete_and_its_defaults_are_the_programs():
    rows = dict(re.findall(r"^\| `(\w+)` \| (\S.*?) \|", README.partition("## Settings")[2], re.MULTILINE))
    for each in dataclasses.fields(Settings):
        if each.name not in ("origins", "model"):
            assert rows[each.name].strip("`") == str(each.default), each.name
    assert set(rows) == {each.name for each in dataclasses.fields(Settings)} - {"origins"}


def test_every_linked_file_is_there():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (PROJECT / target).exists(), target
