"""Which calls the allowed-tools of a skill let through."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyclaw.tools._skills import allows, simple_command


def bash(command: str, *entries: str) -> bool:
    return allows(entries, "bash", {"command": command})


def test_a_tool_is_let_through_by_its_name_in_any_case():
    assert allows(["Read"], "read", {"path": "x"}) and allows(["grep", "READ"], "read", {})
    assert not allows(["Reader", "Rea", "WebFetch"], "read", {})
    assert not allows([], "read", {}) and not allows(["*"], "read", {})
    assert allows(["search_sessions"], "search_sessions", {})


def test_load_skill_is_always_let_through():
    assert allows([], "load_skill", {"name": "x"})


def test_a_pattern_is_understood_for_commands_only():
    assert not allows(["Read(./docs/**)", "Edit(*.md)"], "read", {"path": "docs/x"})
    assert allows(["Read(*)"], "read", {})
    assert bash("make; ls", "Bash") and bash("make; ls", "bash(*)")


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git",
        "  git   log --oneline",
        "'git' status",
        "git commit -m 'a; b | c > d $x'",
        'git commit -m "a; b"',
        "git log -- *.py",
        "git commit -m a\\;b",
        "git show HEAD~1 # why",
    ],
)
def test_a_simple_command_that_begins_with_the_words_is_let_through(command: str):
    assert bash(command, "Bash(git:*)") and bash(command, "Read", "Bash(git *)")


@pytest.mark.parametrize(
    "command",
    [
        "git status; ls",
        "git status && ls",
        "git status || ls",
        "git status | sh",
        "git status & ls",
        "git status &",
        "git log > x",
        "git log >> x",
        "git apply < x",
        "git log 2>&1",
        "git log $(ls)",
        "git log `ls`",
        'git log "$(ls)"',
        'git log "`ls`"',
        "git log $HOME",
        'git log "$HOME"',
        "git status\nls",
        "git status\rls",
        "git commit -m 'a\nb'",
        "(git status)",
        "{ git status; }",
        "GIT_DIR=x git status",
        "x=1 git",
        "gitk",
        "gi\\\nt",
        "git-shell",
        "/bin/git x",
        "sudo git status",
        "env git status",
        "! git status",
        "git <(ls)",
        "git log 'a",
        "ls",
        "",
        "  ",
        "git\vstatus",
        "git log\0",
        "git log \\",
        "time git log",
        "git\u00a0status",
        "git\u2028ls",
    ],
)
def test_anything_else_is_not(command: str):
    assert not bash(command, "Bash(git:*)", "Bash(git *)")


def test_several_words_must_all_be_there_and_without_a_star_nothing_more():
    assert bash("git add x", "Bash(git add:*)") and bash("git add", "Bash(git add:*)")
    assert not bash("git addx", "Bash(git add:*)") and not bash("git -C x add", "Bash(git add:*)")
    assert bash("npm test", "Bash(npm test)") and bash("npm  test", "Bash(npm test)")
    assert not bash("npm test x", "Bash(npm test)")


@pytest.mark.parametrize(
    "entry", ["Bash()", "Bash(:*)", "Bash( *)", "Bash(*:*)", "Bash(git*)", "Bash(git * x:*)", "Bash(git:*)x"]
)
def test_a_pattern_that_is_not_understood_lets_nothing_through(entry: str):
    assert not bash("git status", entry) and not bash("ls", entry) and not bash("", entry)


@pytest.mark.parametrize("command", ["X=1 git", "X=", "X+=1 git", "X[0]=1 git"])
def test_a_command_that_begins_with_an_assignment_is_no_simple_command(command: str):
    assert simple_command(command) is None and not bash(command, f"Bash({command.split()[0]}:*)")


def test_a_command_of_another_type_is_not_let_through():
    assert not allows(["Bash(git:*)"], "bash", {"command": ["git"]}) and not allows(["Bash(git:*)"], "bash", {})


SPELLINGS = st.sampled_from(
    ["echo", " ", "  ", "a", "b", "'", '"', "\\", ";", "|", "$", "`", "(", "#", "*", "\n", "~", "=", "!", "{", ","]
)


@given(st.lists(SPELLINGS, max_size=12).map(lambda parts: "echo " + "".join(parts)))
def test_what_is_let_through_runs_one_command_with_these_words(tmp_path_factory: pytest.TempPathFactory, command: str):
    """The shell is asked: a command that is let through calls the first word, once, and nothing else."""
    words = simple_command(command)
    if words is None:
        return
    folder: Path = tmp_path_factory.getbasetemp()
    script = f'set -f; echo() {{ printf "%s\\n" called >&2; }}; {command}'
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.stderr == "called\n", (command, words, done.stderr)
    assert words[0] == shlex.split(command)[0] == "echo"
