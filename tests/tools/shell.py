"""A workspace whose commands run in the environment of the test."""

from __future__ import annotations

import os
from pathlib import Path

from tests.tools.workspace import Bench, bench
from tinyclaw.tools._jobs import Jobs


def shell_bench(folder: Path, **environment: str) -> Bench:
    ws = bench(folder)
    ws.context.jobs = Jobs(ws.root, {**os.environ, **environment}, ws.context.outputs)
    return ws


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    state = Path(f"/proc/{pid}/stat")
    if state.parent.parent.joinpath("self").exists():
        return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
