"""What git says of the workspace, read-only, through GitPython as the runner of git.

Every call is bounded in time and in what it returns, and never fails the caller: a repository that git
will not speak about gives a text that says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tinyclaw.state.workspace import OUTPUTS, TRANSCRIPTS, git_root

MAX_PATHS = 20
MAX_COMMITS = 5
_SECONDS = 2.0
_QUIET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
_HARMLESS = ("-c", "core.fsmonitor=false", "-c", "log.showSignature=false")
"""A repository's own settings may name programs that git would run."""
_HOOK_VARIABLES = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
)
"""What a hook or an alias that starts us leaks; it would name another repository."""


@dataclass(frozen=True)
class GitFacts:
    """``head`` is the branch in words, ``changed`` the paths that differ from it (at most ``MAX_PATHS``)."""

    head: str
    changed: tuple[str, ...]
    changed_in_all: int
    commits: tuple[str, ...]
    problem: str = ""

    def __str__(self) -> str:
        if self.problem:
            return f"git: {self.problem}"
        more = f" and {self.changed_in_all - len(self.changed)} more" if self.changed_in_all > len(self.changed) else ""
        changed = ", ".join(self.changed) + more if self.changed else "nothing"
        commits = "".join(f"\n- {subject}" for subject in self.commits)
        return f"git: {self.head}; changed and not committed: {changed}" + (
            f"\nLast commits:{commits}" if commits else ""
        )


def facts(root: Path) -> GitFacts | None:
    """The facts of the repository whose work tree is ``root``; None outside git, or where there is no git program."""
    if git_root(root) is None:
        return None
    runner = _Runner(root)
    ours = [f":(exclude){folder}" for folder in (TRANSCRIPTS, OUTPUTS)]
    form = ("--porcelain=v2", "--branch", "--no-ahead-behind", "-z", "--untracked-files=normal")
    status = runner.run("status", *form, "--", ".", *ours)
    if status is None:
        return GitFacts("", (), 0, (), f"its status is unknown: {runner.problem}") if runner.problem else None
    headers, changed = _read_status(status)
    commits = (runner.run("log", f"-{MAX_COMMITS}", "--format=%h %s") or "").splitlines()
    return GitFacts(_head(headers, commits), tuple(changed[:MAX_PATHS]), len(changed), tuple(commits))


class _Runner:
    """Runs git commands in one folder. ``problem`` says why the last one could not answer."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.problem = ""

    def run(self, *arguments: str) -> str | None:
        """The command's output, or None when it failed."""
        try:
            import git
        except ImportError:  # GitPython refuses to load where there is no git program
            return None
        without = [word for name in _HOOK_VARIABLES for word in ("-u", name)]
        command = ["env", *without, "git", *_HARMLESS, *arguments]
        try:
            status, output, errors = git.Git(str(self._root)).execute(
                command,
                with_extended_output=True,
                with_exceptions=False,
                kill_after_timeout=_SECONDS,
                strip_newline_in_stdout=False,
                env=_QUIET,
            )
        except git.GitCommandNotFound:
            return None
        except (git.GitError, OSError) as error:
            self.problem = f"could not be asked ({error})"
            return None
        if status != 0:
            self.problem = _explained(str(errors), self._root)
            return None
        return str(output)


def _explained(errors: str, root: Path) -> str:
    if "dubious ownership" in errors:
        return f"the repository belongs to another user; trust it with: git config --global --add safe.directory {root}"
    first = errors.strip().splitlines()
    return first[0] if first else "gave no answer in time"


def _head(headers: dict[str, str], commits: list[str]) -> str:
    branch, commit = headers.get("branch.head", ""), headers.get("branch.oid", "")
    if branch.startswith("("):  # "(detached)", or "(null)" for a HEAD that names no branch
        return f"detached at {commits[0].split()[0] if commits else commit}"
    return f"on branch {branch}" + (", no commits yet" if commit == "(initial)" else "")


_FIELDS_BEFORE_PATH = {"1": 8, "2": 9, "u": 10, "?": 1}


def _read_status(status: str) -> tuple[dict[str, str], list[str]]:
    """The headers and the changed paths of ``git status`` (https://git-scm.com/docs/git-status, porcelain version 2).

    Conflicts come first. A rename's second name is the old one and is left out.
    """
    headers: dict[str, str] = {}
    conflicts: list[str] = []
    changed: list[str] = []
    entries = iter(status.split("\0"))
    for entry in entries:
        kind = entry[:1]
        if kind == "#":
            _, name, value = entry.split(" ", 2)
            headers[name] = value
        elif kind in _FIELDS_BEFORE_PATH:
            paths = conflicts if kind == "u" else changed
            paths.append(entry.split(" ", _FIELDS_BEFORE_PATH[kind])[-1])
            if kind == "2":
                next(entries, None)
    return headers, conflicts + changed
