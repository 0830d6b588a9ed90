"""The strict server as a process of its own, so that its time is not ours, and sessions against it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tinyclaw.agent.session import Session
from tinyclaw.agent.start import Options, open_session
from tinyclaw.state.workspace import Workspace

Json = dict[str, Any]
ONE_MODEL = {"memory_select": "keywords", "memory_extract": "off", "memory_consolidate": "off"}
"""The small model is another server's matter, and its answers are awaited at a turn's two ends alone."""
PROJECT = str(Path(__file__).parents[1])


@contextmanager
def serving(script: list[Any]) -> Iterator[tuple[str, Path]]:
    """A server with that script; its URL, and the folder of its log."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        path = Path(folder) / "script.json"
        path.write_text(json.dumps(script))
        command = [sys.executable, "-m", "tests.messages_api", str(path), "--port", "0", "--log", str(log)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=PROJECT) as server:
            assert server.stdout is not None
            try:
                yield server.stdout.readline().split()[-1], log
            finally:
                server.terminate()


def exchanges(log: Path) -> list[Json]:
    """One record per answered request, in order: when it was received and when its answer was sent."""
    return [json.loads(line) for line in (log / "exchanges.jsonl").read_text().splitlines()]


def opened(root: Path, url: str) -> Session:
    """A session in ``root`` in which everything may run."""
    environment = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "x", "PATH": "/usr/local/bin:/usr/bin:/bin"}
    workspace = Workspace.find(root, root.parent / "user")
    flags = {"permission_mode": "auto", **ONE_MODEL}
    return open_session(Options(workspace, environment, lambda: datetime.now(UTC), flags))


@contextmanager
def workspace() -> Iterator[Path]:
    """An empty folder that has stood for a moment: a fresh one is waited for, in case somebody is saving into it."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        root.mkdir()
        time.sleep(0.4)
        yield root


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=b", "-c", "user.email=b@b", *arguments], cwd=root, check=True)
