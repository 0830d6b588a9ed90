"""Starts the command line hundreds of times without paying for its imports each time.

Run as a process: it imports everything once, then forks a child for each line of JSON on standard
input, ``{"arguments": [...], "folder": "...", "environment": {...}, "output": "file"}``, and answers
with the child's process id. ``{"wait": pid, "seconds": N}`` answers with its exit status, negative for a
signal; a child that takes longer is killed. ``"file_bytes": N`` lets no file grow beyond N bytes.

A child's *steps* are its calls into the system: open, write, rename, unlink, fork and so on. With
``"dies_at": N`` it kills itself right before its Nth step, with ``"interrupted_at": N`` it gets a
Ctrl-C there, and with ``"count": "file"`` it writes down how many there were.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[2]
_SYSTEM = {"posix", "_io", "fcntl", "_posixsubprocess"}


class Launcher:
    """The other end: a context manager in the test's process. Permissions hold for root's children too."""

    def __enter__(self) -> Launcher:
        environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
        command = [*_without_overrides(), sys.executable, "-m", "tests.campaigns.launcher"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=PROJECT, text=True
        )
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def start(
        self, arguments: list[str], folder: Path, environment: Mapping[str, str], output: Path, **more: int | str
    ) -> int:
        """Start the command line in a process of its own; its process id. ``more`` as the module says."""
        order = {"arguments": arguments, "folder": str(folder), "environment": dict(environment), "output": str(output)}
        return self._ask({**order, **more})

    def wait(self, process: int, seconds: float = 60.0) -> int:
        """The exit status; minus the number of the signal that ended it, which is 9 when it took too long."""
        return self._ask({"wait": process, "seconds": seconds})

    def _ask(self, order: Mapping[str, Any]) -> int:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def _without_overrides() -> list[str]:
    """What takes root's right to read and write everything from a command (capabilities(7)), where it can be had."""
    if os.geteuid() or not shutil.which("setpriv"):
        return []
    return ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]


def serve() -> None:
    import anthropic  # noqa: F401

    import tinyclaw.agent.start
    import tinyclaw.cli._once
    import tinyclaw.model.anthropic  # noqa: F401
    from tinyclaw.cli.main import main

    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            print(_end_of(order["wait"], order["seconds"]), flush=True)
            continue
        process = os.fork()
        if process == 0:
            _become(order)
            main()
        print(process, flush=True)


def _end_of(process: int, seconds: float) -> int:
    deadline = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(process, signal.SIGKILL)
        time.sleep(0.005)


def _become(order: Mapping[str, Any]) -> None:
    os.setsid()
    output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    if "file_bytes" in order:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_bytes"],) * 2)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv[1:] = order["arguments"]
    signals = {"dies_at": signal.SIGKILL, "interrupted_at": signal.SIGINT}
    at = {order[name]: number for name, number in signals.items() if name in order}
    if at or "count" in order:
        _watch_steps(at, order.get("count"))


def _watch_steps(at: Mapping[int, signal.Signals], count: str | None) -> None:
    """Send this process the signals of ``at`` before its steps of that number; ``count`` is where to tell how many.

    A Ctrl-C is for the main thread, whose steps alone are counted then: while it waits to be handled, CPython
    3.11 never gets past the next call of another thread that is watched.
    """
    numbers = itertools.count(1)
    taken = 0

    def watch(frame: object, event: str, called: object) -> None:
        nonlocal taken
        if event != "c_call" or getattr(called, "__module__", "") not in _SYSTEM:
            return
        taken = next(numbers)
        if taken in at:
            os.kill(os.getpid(), at[taken])
        if count and getattr(called, "__name__", "") == "_exit":
            Path(count).write_text(str(taken))

    if signal.SIGINT not in at.values():
        threading.setprofile(watch)
    sys.setprofile(watch)


if __name__ == "__main__":
    serve()
