"""What git says of a workspace, in every state a repository can be in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tinyclaw.state.git import MAX_PATHS, facts
from tinyclaw.state.workspace import Workspace


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    return folder


def commit(repository: Path, name: str = "a.txt") -> None:
    (repository / name).write_text("x\n")
    git(repository, "add", name)
    git(repository, "commit", "-qm", f"Add {name}")


def test_outside_a_repository_there_are_no_facts(tmp_path: Path):
    assert facts(tmp_path) is None


def test_a_repository_without_commits_says_so(repository: Path):
    assert str(facts(repository)).startswith("git: on branch main, no commits yet; changed and not committed: nothing")


def test_branch_changes_and_last_commits_are_told(repository: Path):
    commit(repository)
    (repository / "a.txt").write_text("y\n")
    found = facts(repository)
    assert (found.head, found.changed) == ("on branch main", ("a.txt",))
    assert found.commits[0].endswith("Add a.txt")


def test_a_detached_head_names_its_commit(repository: Path):
    commit(repository)
    git(repository, "checkout", "-q", "--detach")
    assert facts(repository).head == f"detached at {git(repository, 'rev-parse', '--short', 'HEAD')}"


def test_changed_paths_have_their_real_names(repository: Path):
    commit(repository, "old name.txt")
    names = {"café.txt", "日本 語.txt", "two\nlines", 'quote" b/x'}
    (repository / 'quote" b').mkdir()
    for name in names:
        (repository / name).write_text("x")
    git(repository, "mv", "old name.txt", "new name.txt")
    assert set(facts(repository).changed) == {"café.txt", "日本 語.txt", "two\nlines", 'quote" b/', "new name.txt"}


def test_many_changes_are_counted_and_not_all_listed(repository: Path):
    for number in range(MAX_PATHS + 5):
        (repository / f"{number}.txt").write_text("x")
    found = facts(repository)
    assert (len(found.changed), found.changed_in_all) == (MAX_PATHS, MAX_PATHS + 5)
    assert "and 5 more" in str(found)


def test_our_own_transcripts_are_no_change(repository: Path):
    commit(repository)
    (repository / ".transcripts").mkdir()
    (repository / ".transcripts/x.md").write_text("x")
    assert facts(repository).changed == ()


def test_variables_that_a_hook_leaks_name_no_other_repository(repository: Path, tmp_path: Path, monkeypatch):
    commit(repository)
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "elsewhere")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    assert facts(repository).head == "on branch main"


def test_a_bare_repository_has_no_facts_and_is_no_root(tmp_path: Path):
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    bare = tmp_path / "bare.git"
    assert facts(bare) is None
    assert Workspace.find(bare, tmp_path).root == bare.resolve()


@pytest.mark.parametrize("where", ["sub/folder", "worktree", "module"])
def test_the_root_is_what_git_calls_the_top_level(repository: Path, tmp_path: Path, where: str):
    commit(repository)
    (repository / "sub/folder").mkdir(parents=True)
    git(repository, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "tree")
    other = tmp_path / "lib"
    other.mkdir()
    git(other, "init", "-q")
    commit(other)
    git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "module")
    start = {"sub/folder": repository / where, "worktree": tmp_path / "tree", "module": repository / where}[where]
    assert str(Workspace.find(start, tmp_path).root) == git(start, "rev-parse", "--show-toplevel")
    assert facts(Workspace.find(start, tmp_path).root).head.startswith("on branch")


def test_a_head_that_is_no_branch_is_not_called_one(repository: Path):
    commit(repository)
    git(repository, "update-ref", "refs/remotes/origin/x", "HEAD")
    git(repository, "symbolic-ref", "HEAD", "refs/remotes/origin/x")
    assert facts(repository).head == f"detached at {git(repository, 'rev-parse', '--short', 'HEAD')}"


def test_conflicts_come_first(repository: Path):
    commit(repository, "z.txt")
    git(repository, "checkout", "-qb", "other")
    (repository / "z.txt").write_text("other\n")
    git(repository, "commit", "-qam", "other")
    git(repository, "checkout", "-q", "main")
    (repository / "z.txt").write_text("main\n")
    git(repository, "commit", "-qam", "main")
    subprocess.run(["git", "merge", "-q", "other"], cwd=repository, capture_output=True)
    (repository / "a.txt").write_text("x\n")
    git(repository, "add", "a.txt")
    assert facts(repository).changed == ("z.txt", "a.txt")


def test_a_branch_far_from_its_upstream_is_not_compared_with_it(repository: Path, tmp_path: Path):
    """Counting the commits between two long histories would take longer than git is waited for."""
    commit(repository)
    git(repository, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(repository, "config", "branch.main.remote", "origin")
    git(repository, "config", "branch.main.merge", "refs/heads/main")
    git(repository, "config", "remote.origin.url", str(tmp_path))
    git(repository, "config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
    trace = tmp_path / "trace"
    code = (
        f"from pathlib import Path; from tinyclaw.state.git import facts; print(facts(Path({str(repository)!r})).head)"
    )
    environment = {**os.environ, "GIT_TRACE": str(trace), "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "on branch main\n"
    assert "--no-ahead-behind" in trace.read_text()


def test_programs_that_the_repository_names_are_not_run(repository: Path, tmp_path: Path):
    commit(repository)
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(program))
    assert facts(repository).head == "on branch main"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("content", [None, "gitdir: nowhere", "nonsense"])
def test_what_git_would_not_take_for_a_repository_is_no_root(tmp_path: Path, content):
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    if content is None:
        (folder / ".git").mkdir()
    else:
        (folder / ".git").write_text(content)
    assert Workspace.find(folder / "sub", tmp_path).root == (folder / "sub").resolve()


def test_without_a_git_program_there_are_no_facts(repository: Path, tmp_path: Path):
    empty = tmp_path / "empty"
    empty.mkdir()
    code = f"from pathlib import Path; from tinyclaw.state.git import facts; print(facts(Path({str(repository)!r})))"
    here = str(Path(__file__).parents[2])
    environment = {"PATH": str(empty), "HOME": os.environ["HOME"], "PYTHONPATH": here}

    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "None"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_repository_of_another_user_names_the_way_to_trust_it(repository: Path):
    commit(repository)
    for path in [repository, *repository.rglob("*")]:
        os.chown(path, 65534, 65534)
    assert f"safe.directory {repository}" in str(facts(repository))
