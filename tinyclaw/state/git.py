"""What git knows of the workspace, read without changing anything in it.

The root is found without running git. The rest comes from the ``git`` program directly: GitPython
starts from the process's own environment, in which a hook's GIT_DIR may stand, and takes longer to
import than all of this takes to run.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tinyclaw.types import Diagnostic

_TIMEOUT_SECONDS = 2.0
_MAX_PATHS = 20
_MAX_COMMITS = 5
_SUBJECT_CHARS = 100

LOCAL_VARIABLES = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_NAMESPACE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_QUARANTINE_PATH",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)
"""Variables that tie git to one repository (``git rev-parse --local-env-vars``, without configuration). Git sets
them for hooks and aliases; left in place they would make every git below us speak of that repository."""

_SAFE = ("-c", "core.fsmonitor=false", "-c", "log.showSignature=false", "--no-optional-locks", "--no-pager")
"""A repository's own configuration must not run programs, and reading must not write its index."""


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """``environment`` without what ties git to another repository."""
    return {name: value for name, value in environment.items() if name not in LOCAL_VARIABLES}


def find_root(start: Path) -> Path | None:
    """The top of the work tree around ``start``, as ``git rev-parse --show-toplevel`` gives it.

    Worktrees and submodules (``.git`` is a file) count. None outside git, in a bare repository and inside ``.git``.
    """
    start = start.resolve()
    for folder in (start, *start.parents):
        marker = folder / ".git"
        if marker.is_file():
            return folder if _is_git_folder(_linked_folder(marker)) else None
        if _is_git_folder(marker):
            return None if _is_bare(marker) else folder
        if _is_git_folder(folder):
            return None
    return None


@dataclass(frozen=True)
class GitFacts:
    """The state of a repository. ``str()`` says it in a few lines for the prompt.

    ``branch`` is a name, ``detached at SHA`` or ``NAME, no commits yet``; ``changed`` holds the first
    paths with git's two status letters, ``changed_count`` all of them (None: git took too long to say).
    With a ``problem`` the rest is empty.
    """

    branch: str = ""
    changed: tuple[str, ...] = ()
    changed_count: int | None = 0
    commits: tuple[str, ...] = ()
    problem: Diagnostic | None = None

    def __str__(self) -> str:
        if self.problem is not None:
            return f"git: {self.problem.message}"
        lines = [f"branch: {self.branch}", f"changed files: {self._changed_text()}"]
        lines += [f"  {path}" for path in self.changed]
        if self.changed_count is not None and self.changed_count > len(self.changed):
            lines.append(f"  … and {self.changed_count - len(self.changed)} more")
        if self.commits:
            lines += ["last commits:", *(f"  {commit}" for commit in self.commits)]
        return "\n".join(lines)

    def _changed_text(self) -> str:
        return "unknown (git took too long)" if self.changed_count is None else str(self.changed_count or "none")


def facts(root: Path, environment: Mapping[str, str] = os.environ) -> GitFacts | None:
    """Branch, changed files and last commits of the work tree at ``root``; None where there is no git.

    Takes 2 seconds at most for each of two questions. A repository that belongs to somebody else gives a ``problem``.
    """
    status = _git(root, environment, "status", "--porcelain=v2", "--branch", "-z", "--ignore-submodules=dirty")
    if status.error:
        problem = _foreign_owner(root, status.error)
        return GitFacts(problem=problem) if problem else None
    commits = _commits(root, environment)
    if status.output is None:
        return GitFacts(_branch_name(root, environment), (), None, commits)
    headers, changed = _parse_status(status.output)
    return GitFacts(_branch(headers), changed[:_MAX_PATHS], len(changed), commits)


@dataclass(frozen=True)
class _Answer:
    """``output`` is None when git failed (then ``error`` says how) or took too long."""

    output: str | None
    error: str = ""


def _git(root: Path, environment: Mapping[str, str], *arguments: str) -> _Answer:
    quiet = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
    try:
        done = subprocess.run(
            ["git", *_SAFE, *arguments],
            cwd=root,
            env=clean_environment(environment) | quiet,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _Answer(None)
    except OSError as error:
        return _Answer(None, str(error))
    if done.returncode:
        return _Answer(None, os.fsdecode(done.stderr) or "failed")
    return _Answer(done.stdout.decode("utf-8", errors="replace"))


def _parse_status(output: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Headers and ``XY path`` lines of ``git status --porcelain=v2 -z`` (git-status(1))."""
    headers: dict[str, str] = {}
    changed: list[str] = []
    fields = iter(output.split("\0"))
    for entry in fields:
        kind = entry[:1]
        if kind == "#":
            name, _, value = entry[2:].partition(" ")
            headers[name] = value
        elif kind == "?":
            changed.append(f"?? {_shown(entry[2:])}")
        elif kind == "1":
            changed.append(f"{entry[2:4]} {_shown(entry.split(' ', 8)[8])}")
        elif kind == "u":
            changed.append(f"{entry[2:4]} {_shown(entry.split(' ', 10)[10])}")
        elif kind == "2":
            changed.append(f"{entry[2:4]} {_shown(next(fields))} -> {_shown(entry.split(' ', 9)[9])}")
    return headers, tuple(changed)


def _shown(path: str) -> str:
    """A path as it is, on one line: only what would break the line is escaped."""
    return (
        path if path.isprintable() else re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", lambda m: ascii(m[0])[1:-1], path)
    )


def _branch(headers: Mapping[str, str]) -> str:
    name, commit = headers.get("branch.head", ""), headers.get("branch.oid", "")
    if commit == "(initial)":
        return f"{name}, no commits yet"
    return f"detached at {commit[:10]}" if name == "(detached)" else name


def _branch_name(root: Path, environment: Mapping[str, str]) -> str:
    answer = _git(root, environment, "symbolic-ref", "--short", "-q", "HEAD")
    return (answer.output or "detached").strip()


def _commits(root: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    answer = _git(root, environment, "log", "-z", f"-{_MAX_COMMITS}", "--format=%h %s")
    lines = (answer.output or "").split("\0")
    return tuple(_shown(line.strip())[:_SUBJECT_CHARS] for line in lines if line.strip())


def _foreign_owner(root: Path, error: str) -> Diagnostic | None:
    if "dubious ownership" not in error and "safe.directory" not in error:
        return None
    return Diagnostic(
        str(root),
        None,
        "git refuses to read this repository, since it belongs to another user",
        f"if you trust it: git config --global --add safe.directory {root}",
    )


def _linked_folder(marker: Path) -> Path:
    """Where a ``.git`` file points (gitrepository-layout(5))."""
    try:
        target = marker.read_bytes()[:4096].decode("utf-8", errors="surrogateescape")
    except OSError:
        return marker
    return marker.parent / target.removeprefix("gitdir:").strip()


def _is_git_folder(folder: Path) -> bool:
    """What git itself looks for: HEAD, and objects and refs here or in the shared folder of a worktree."""
    try:
        if not (folder / "HEAD").is_file() and not (folder / "HEAD").is_symlink():
            return False
        shared = folder / "commondir"
        common = folder / shared.read_text().strip() if shared.is_file() else folder
        return (common / "objects").is_dir() and (common / "refs").is_dir()
    except (OSError, ValueError):
        return False


def _is_bare(folder: Path) -> bool:
    try:
        return (
            re.search(r"^\s*bare\s*=\s*true", (folder / "config").read_text(errors="replace"), re.M | re.I) is not None
        )
    except OSError:
        return False
