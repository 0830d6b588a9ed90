from __future__ import annotations

import subprocess

from tests.cli.process import tinyclaw
from tinyclaw.state.scaffold import IGNORED, LAID


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and ".git/" not in str(path)}


def test_init_lays_every_file_and_says_so(workspace):
    done = tinyclaw("init", cwd=workspace)
    assert (done.returncode, done.stdout) == (0, "")
    for name in LAID:
        assert (workspace / name).is_file()
        assert f"{name}: made" in done.stderr
    assert set(IGNORED) <= set((workspace / ".gitignore").read_text().splitlines())
    assert (workspace / ".gitattributes").read_text() == ".transcripts/** -text\n"


def test_init_twice_changes_nothing(workspace):
    tinyclaw("init", cwd=workspace)
    before = contents(workspace)
    done = tinyclaw("init", cwd=workspace)
    assert "nothing to do" in done.stderr
    assert contents(workspace) == before


def test_init_keeps_what_is_there_byte_for_byte(workspace):
    (workspace / "AGENTS.md").write_bytes(b"mine\r\n")
    (workspace / ".gitignore").write_bytes(b"*.o\r\n/.task_outputs/\r\nlast")
    tinyclaw("init", cwd=workspace)
    assert (workspace / "AGENTS.md").read_bytes() == b"mine\r\n"
    kept = (workspace / ".gitignore").read_bytes()
    assert kept.startswith(b"*.o\r\n/.task_outputs/\r\nlast\r\n.transcripts/*.lock\r\n")
    assert kept.count(b".task_outputs/") == 1


def test_init_with_git_makes_a_repository_once(workspace):
    assert "made in" in tinyclaw("init", "--git", cwd=workspace).stderr
    status = subprocess.run(["git", "status", "--short"], cwd=workspace, capture_output=True, text=True, check=True)
    assert "?? AGENTS.md" in status.stdout
    assert "nothing to do" in tinyclaw("init", "--git", cwd=workspace).stderr


def test_init_without_git_installed_says_what_to_do(workspace, tmp_path):
    done = tinyclaw("init", "--git", cwd=workspace, PATH=str(tmp_path))
    assert done.returncode == 1
    assert "git is not installed" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_folder_in_the_place_of_a_file_is_named_and_kept(workspace):
    (workspace / "PLAN.md").mkdir()
    done = tinyclaw("init", cwd=workspace)
    assert done.returncode == 1
    assert "PLAN.md" in done.stderr
    assert "Traceback" not in done.stderr
