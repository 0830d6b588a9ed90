"""Git facts are those of git itself, and reading them changes and runs nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tinyclaw.state.git import LOCAL_VARIABLES, clean_environment, facts, find_root

ENVIRONMENT = clean_environment(os.environ) | {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "protocol.file.allow=always", *arguments]
    return subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True, text=True).stdout.rstrip("\n")


def commit(folder: Path, name: str, text: str = "x", subject: str = "Say something") -> None:
    (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", subject)


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "r"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    return folder


def toplevel(folder: Path) -> Path | None:
    """What git itself says."""
    command = ["git", "-C", str(folder), "rev-parse", "--show-toplevel"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    return Path(done.stdout.rstrip("\n")) if done.returncode == 0 and done.stdout.strip() else None


def test_the_root_is_what_git_says_wherever_one_stands(tmp_path, repository):
    commit(repository, "a")
    below = repository / "sub/deep"
    below.mkdir(parents=True)
    git(repository, "worktree", "add", "-q", str(tmp_path / "linked"))
    git(repository, "submodule", "add", "-q", str(repository), "module")
    git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    git(tmp_path, "clone", "-q", "--bare", str(repository), "hidden/.git")
    git(tmp_path / "hidden/.git", "worktree", "add", "-q", str(tmp_path / "of-bare"))
    (tmp_path / "plain/.git").mkdir(parents=True)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/.git").write_text("gitdir: /nowhere\n")
    (tmp_path / "via").symlink_to(below)
    places = "r r/sub/deep r/.git r/.git/refs linked r/module bare.git bare.git/refs hidden of-bare plain broken via ."
    for place in places.split():
        assert find_root(tmp_path / place) == toplevel(tmp_path / place), place
    assert find_root(below) == repository.resolve()
    assert find_root(repository / "module") == repository.resolve() / "module"


def test_a_repository_without_commits(repository):
    found = facts(repository, ENVIRONMENT)
    assert (found.branch, found.changed, found.commits) == ("main, no commits yet", (), ())


def test_a_detached_head_and_the_last_subjects(repository):
    for number in range(7):
        commit(repository, "a", str(number), f"Step {number}")
    sha = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "--detach")
    found = facts(repository, ENVIRONMENT)
    assert found.branch == f"detached at {sha[:10]}"
    assert [line.split(" ", 1)[1] for line in found.commits] == [f"Step {number}" for number in (6, 5, 4, 3, 2)]


def test_changed_files_have_their_real_names(repository):
    commit(repository, "old name.txt", "some text to be found again\n" * 5)
    names = ["café.txt", "日本 語.txt", "a b/c -> d.txt", 'quo"te']
    (repository / "a b").mkdir()
    for name in names:
        (repository / name).write_text("x")
    git(repository, "add", "-A")
    git(repository, "mv", "old name.txt", "new name.txt")
    (repository / "two\nlines").write_text("x")
    found = facts(repository, ENVIRONMENT)
    assert set(found.changed) == {
        *(f"A. {name}" for name in names),
        "R. old name.txt -> new name.txt",
        r"?? two\nlines",
    }


def test_many_changes_are_counted_and_only_the_first_named(repository):
    commit(repository, "a")
    for number in range(50):
        (repository / f"f{number:02}").write_text("x")
    found = facts(repository, ENVIRONMENT)
    assert (len(found.changed), found.changed_count) == (20, 50)
    assert "… and 30 more" in str(found)


def test_the_facts_read_as_a_few_lines(repository):
    commit(repository, "a", subject="Begin")
    sha = git(repository, "rev-parse", "--short", "HEAD")
    assert str(facts(repository, ENVIRONMENT)) == f"branch: main\nchanged files: none\nlast commits:\n  {sha} Begin"


def test_variables_that_a_hook_leaks_do_not_redirect_git(tmp_path, repository):
    commit(repository, "a")
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "elsewhere")
    leaked = ENVIRONMENT | {"GIT_DIR": str(other / ".git"), "GIT_INDEX_FILE": str(tmp_path / "i"), "GIT_WORK_TREE": "/"}
    assert facts(repository, leaked) == facts(repository, ENVIRONMENT)
    listed = set(git(repository, "rev-parse", "--local-env-vars").split())
    assert listed - LOCAL_VARIABLES <= {"GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"}


def test_a_repository_of_somebody_else_is_said_with_the_mend(repository):
    found = facts(repository, ENVIRONMENT | {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"})
    assert "belongs to another user" in str(found)
    assert f"git config --global --add safe.directory {repository}" in str(found.problem)


def test_no_git_program_and_no_repository_give_nothing(tmp_path, repository):
    assert facts(repository, {"PATH": str(tmp_path)}) is None
    assert facts(tmp_path, ENVIRONMENT | {"GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}) is None
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    assert facts(tmp_path / "bare.git", ENVIRONMENT) is None


def test_reading_runs_no_program_of_the_repository_and_writes_nothing(tmp_path, repository):
    commit(repository, "a")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "diff.external", "gpg.program"):
        git(repository, "config", key, str(program))
    git(repository, "config", "log.showSignature", "true")
    (repository / "a").touch()
    index = (repository / ".git/index").read_bytes()
    assert facts(repository, ENVIRONMENT).branch == "main"
    assert not (tmp_path / "ran").exists()
    assert (repository / ".git/index").read_bytes() == index


def test_a_git_that_hangs_costs_seconds_and_the_facts_it_would_have_told(tmp_path, repository):
    commit(repository, "a")
    slow = tmp_path / "bin/git"
    slow.parent.mkdir()
    slow.write_text('#!/bin/sh\ncase "$*" in *status*) exec sleep 60;; esac\nexec env PATH="$REAL_PATH" git "$@"\n')
    slow.chmod(0o755)
    path = f"{slow.parent}:{ENVIRONMENT['PATH']}"
    found = facts(repository, ENVIRONMENT | {"PATH": path, "REAL_PATH": ENVIRONMENT["PATH"]})
    assert (found.branch, found.changed_count, len(found.commits)) == ("main", None, 1)
    assert "unknown (git took too long)" in str(found)
