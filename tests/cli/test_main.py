from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import PROGRAM, environment, tinyclaw
from tinyclaw.cli import main as entry

HEAVY = {"anthropic", "mcp", "rich", "prompt_toolkit", "git", "watchdog", "pydantic"}


def test_the_version_is_one_line(workspace):
    done = tinyclaw("--version", cwd=workspace)
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, "tinyclaw", "")


def test_help_shows_every_command_file_with_the_first_line_of_its_docstring(workspace):
    shown = " ".join(tinyclaw("--help", cwd=workspace).stdout.split())
    for path in Path(entry.__file__).parent.glob("[!_]*.py"):
        if path.stem != "main":
            first = ast.get_docstring(ast.parse(path.read_text())).partition("\n")[0]
            assert f"{path.stem} {first}" in shown


def test_an_unknown_command_is_a_usage_error_that_names_run(workspace):
    done = tinyclaw("fix", "it", cwd=workspace)
    assert done.returncode == 2
    assert "tinyclaw run" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "line",
    [
        "--version",
        "--help",
        "run --help",
        "init",
        "sessions list",
        "sessions show --help",
        "context",
        "prompt",
        "doctor",
        "plan show",
    ],
)
def test_what_calls_no_model_imports_nothing_heavy(workspace, line):
    code = (
        "import os, sys; from tinyclaw.cli._group import run; run(sys.argv[1:]);"
        f"print('HEAVY', *sorted({HEAVY!r} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *line.split()], cwd=workspace, env=environment(), capture_output=True, text=True
    )
    assert done.stderr.rpartition("HEAVY")[2].strip() == ""


def test_completion_is_offered_for_bash(workspace):
    script = tinyclaw(cwd=workspace, _TINYCLAW_COMPLETE="bash_source")
    assert (script.returncode, "_tinyclaw_completion" in script.stdout) == (0, True)
    words = {"_TINYCLAW_COMPLETE": "bash_complete", "COMP_WORDS": "tinyclaw ses", "COMP_CWORD": "1"}
    assert tinyclaw(cwd=workspace, **words).stdout.strip() == "plain,sessions"


def test_an_unexpected_error_is_one_line_that_names_a_file_outside_the_workspace(workspace, tmp_path):
    broken = (
        "import tinyclaw.cli._group as m, tinyclaw.cli.main, click\n"
        "@m.group.command()\n"
        "def boom(): raise ValueError('secret sk-ant-api03-' + 'a1B2' * 20)\n"
        "m.Commands.get_command = lambda self, ctx, name: boom\n"
        "tinyclaw.cli.main.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", broken, "boom"],
        cwd=workspace,
        env=environment(XDG_STATE_HOME=str(tmp_path / "state")),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    [details] = (tmp_path / "state").rglob("crash-*.txt")
    assert str(details) in line
    assert "Traceback" in details.read_text()
    assert "sk-ant" not in line + details.read_text()
    assert list(workspace.iterdir()) == []


def test_closed_standard_streams_do_not_crash(workspace):
    for closing in ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"):
        command = f'exec "$@" {closing}'
        done = subprocess.run(
            ["sh", "-c", command, "sh", *PROGRAM, "sessions", "list"],
            cwd=workspace,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.returncode == 0
        assert "Traceback" not in done.stderr


def test_the_package_can_be_run_as_a_module(workspace):
    done = subprocess.run(
        [sys.executable, "-m", "tinyclaw", "--version"], env=environment(), capture_output=True, text=True
    )
    assert done.stdout.startswith("tinyclaw ")


@pytest.mark.parametrize("line", [["-C", "/no/such/folder", "doctor"], ["run", "-m", "replay:no-such.md", "hi"]])
def test_what_is_asked_of_a_place_that_is_not_there_is_wrong_usage(workspace, line):
    done = tinyclaw(*line, cwd=workspace)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1 and done.stderr.count("no-such.md" if "run" in line else "/no/such") == 1
    assert sorted(workspace.rglob("*.md")) == []


def test_a_folder_that_was_deleted_is_named(workspace):
    gone = workspace / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", *PROGRAM, "sessions", "list"],
        cwd=gone,
        env=environment(PWD=str(gone)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"tinyclaw: {gone}")


def test_the_workspace_can_be_named_before_or_behind_the_command(workspace, tmp_path):
    for line in (["-C", str(workspace), "init"], ["init", "-C", str(workspace)]):
        assert tinyclaw(*line, cwd=tmp_path).returncode == 0
    assert (workspace / "AGENTS.md").exists()
    assert not (tmp_path / "AGENTS.md").exists()


def test_without_a_home_nothing_is_written_below_the_workspace(workspace):
    variables = {name: value for name, value in environment().items() if name not in ("HOME", "XDG_CONFIG_HOME")}
    done = subprocess.run([*PROGRAM, "context"], cwd=workspace, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(workspace.iterdir()) == []
