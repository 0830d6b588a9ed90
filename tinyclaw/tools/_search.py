"""Searching from a tool: starts the searcher, waits for it, and words what it did not look at."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import tinyclaw
from tinyclaw.errors import StateError, ToolError
from tinyclaw.state.workspace import OUTPUTS, OWN_FOLDER, TRANSCRIPTS, Workspace
from tinyclaw.tools._searcher import Files, Glob, Grep, Matches
from tinyclaw.tools._walk import COUNT_LIMIT
from tinyclaw.types import Interrupt

SECONDS = 20.0
LEFT_OUT = [TRANSCRIPTS, OUTPUTS, OWN_FOLDER]
"""Folders that a search enters only when it is started in them, so that it does not feed on itself."""

_POLL_SECONDS = 0.05


def find_files(query: Glob, interrupt: Interrupt) -> Files:
    """Raises: ToolError for a bad pattern and when the time is over; Interrupted."""
    return Files(*_search(query, interrupt))


def find_lines(query: Grep, interrupt: Interrupt) -> Matches:
    """Raises: ToolError for a bad pattern and when the time is over; Interrupted."""
    return Matches(*_search(query, interrupt))


def inside(workspace: Workspace, name: str) -> Path:
    """The real path that ``name`` means. Raises: ToolError when it is outside the workspace or git's own."""
    try:
        path = workspace.resolve(name)
    except StateError as error:
        raise ToolError(str(error)) from error
    if ".git" in path.relative_to(workspace.root).parts:
        raise ToolError(f"{name} belongs to git and is never searched; ask git in bash.")
    return path


def existing(workspace: Workspace, name: str) -> Path:
    """The real path of a file or folder to search in. Raises: ToolError, also when there is none."""
    path = inside(workspace, name)
    if not path.exists():
        raise ToolError(f"{name} does not exist. Find its place with glob, for example **/{path.name}.")
    if not (path.is_dir() or path.is_file()):
        raise ToolError(f"{name} is neither a file nor a folder, so it cannot be searched.")
    return path


def from_root(workspace: Workspace, path: Path) -> str:
    """``path`` relative to the root, "" for the root itself."""
    return "" if path == workspace.root else workspace.relative(path)


def folder_of(workspace: Workspace, start: Path) -> str:
    """The folder that a search from ``start`` looks into, relative to the root."""
    return from_root(workspace, start if start.is_dir() else start.parent)


def count(number: int, noun: str) -> str:
    """``1 file``, ``2 files``, ``2 matches``."""
    plural = noun + ("es" if noun.endswith("ch") else "s")
    return f"{number:,} {noun if number == 1 else plural}"


def notes(ignored: int, binary: int, unreadable: int) -> list[str]:
    """What a search left out, in clauses."""
    at_least = "at least " if ignored >= COUNT_LIMIT else ""
    clauses = {
        f"{at_least}{count(ignored, 'ignored file')} skipped, name the path to search there": ignored,
        f"{count(binary, 'binary file')} skipped": binary,
        f"{count(unreadable, 'place')} could not be read": unreadable,
    }
    return [clause for clause, number in clauses.items() if number]


def _search(query: Glob | Grep, interrupt: Interrupt) -> list[Any]:
    interrupt.check()
    process = subprocess.Popen(
        [sys.executable, "-S", "-P", "-X", "utf8", "-m", "tinyclaw.tools._searcher"],
        cwd=query.root,
        env={"PYTHONPATH": _import_path()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with process:
        try:
            output, errors = _communicate(process, json.dumps([type(query).__name__, query]).encode(), interrupt)
        finally:
            process.kill()
    if process.returncode == -signal.SIGALRM:
        raise ToolError(
            f"The search took longer than {query.seconds:g} s and was stopped. Name a smaller path, or write the "
            "pattern without repetitions inside repetitions such as (a+)+."
        )
    if process.returncode != 0:
        reason = errors.decode(errors="replace").strip().rpartition("\n")[2]
        raise ToolError(f"The search broke off ({reason or process.returncode}). Try a smaller path, or grep in bash.")
    result = json.loads(output)
    if isinstance(result, str):
        raise ToolError(f"The pattern is not valid: {result}. Escape characters that stand for themselves with \\.")
    assert isinstance(result, list)
    return result


def _communicate(process: subprocess.Popen[bytes], question: bytes, interrupt: Interrupt) -> tuple[bytes, bytes]:
    """Raises: Interrupted, soon after the person interrupts."""
    to_send: bytes | None = question
    while True:
        try:
            return process.communicate(to_send, timeout=_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            interrupt.check()
            to_send = None


def _import_path() -> str:
    """Ours and what we import from, never the folder that happens to be current: a workspace is not to be run."""
    package = Path(tinyclaw.__file__).resolve().parent.parent
    return os.pathsep.join([str(package), *(path for path in sys.path if path)])
