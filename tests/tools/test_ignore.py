from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tinyclaw.tools._walk import Walk

FOLDERS = ("", "a/", "b/", "foo/", "a/b/", "a/foo/", "b/a/", "a/b/foo/")
NAMES = ("keep.txt", "x.log", "c.py", "fool", "#x", "!x", "sp ")
RULES = r"""
*|!*/|!*.txt|*.log|!keep.txt|foo|/foo|foo/|!foo/|a/|!a/|a/*|!a/b|!a/b/|a/**|**/foo|/a/b|!/a|b/**/foo|*.py|!a/**
a/**/x.log|fo?|[ab]|!x.log|/*|!/a/|/a/*|!/a/b/|\!x|\#x|#x|!x|a\b|[!a]*|[^a-f]*|x.*  |sp|sp\ |sp\  |**|**/|*/b
keep.[tx]xt|[a-|f\oo|!**/b/|b//|/|a**b|[]x]*|[a\-z]*|[z-a]|**/**/c.py|a/b/../x.log
"""
LINES = st.sampled_from([*RULES.strip().replace("\n", "|").split("|"), "x.log\r"])


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is the judge here")
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", root], check=True)
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            (root / folder / name).touch()
    return root


def kept_by_git(root: Path) -> set[str]:
    command = ["git", "-C", root, "ls-files", "--others", "--exclude-standard", "-z"]
    return set(subprocess.run(command, capture_output=True, check=True, text=True).stdout.split("\0")) - {""}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINES, max_size=5), st.lists(LINES, max_size=3), st.lists(LINES, max_size=2))
@example(["*.log", "[ab]", "!a/"], [], [])
@example(["*", "!*/", "!*.txt"], [], [])
@example(["*.txt"], ["!keep.txt"], [])
@example(["!keep.txt"], [], ["*.txt"])
def test_the_files_that_are_kept_are_those_that_git_keeps(repository, top, nested, excluded):
    (repository / ".gitignore").write_text("\n".join(top), newline="")
    (repository / "a/.gitignore").write_text("\n".join(nested), newline="")
    (repository / ".git/info/exclude").write_text("\n".join(excluded), newline="")
    kept = {file.path for file in Walk(str(repository), "", []).files(lambda path: True)}
    assert kept == kept_by_git(repository)
