"""Commands that run in the background of a session, each writing what it prints to ``.task_outputs/``.

They end with the session. Nothing about them is remembered after that but their output.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tinyclaw.errors import StateError
from tinyclaw.tools._process import Ended, Shell
from tinyclaw.tools._terminal import Terminal
from tinyclaw.types import Interrupt

if TYPE_CHECKING:
    from tinyclaw.state.outputs import Outputs, OutputWriter


class Job:
    """One background command. ``path`` is its output's, from the workspace's root; it grows while the job runs."""

    def __init__(self, number: int, command: str, shell: Shell, writer: OutputWriter, stack: ExitStack) -> None:
        self.number = number
        self.command = command
        self.path = writer.path
        self.group = shell.group
        self.ended: Ended | None = None
        self._problem = ""
        self._interrupt = Interrupt()
        self._thread = threading.Thread(
            target=self._follow, args=(shell, writer, stack), name=f"job {number}", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end: TERM, then KILL. Returns at once."""
        self._interrupt.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended and its output is written; False when it has not within ``seconds``."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def __str__(self) -> str:
        """What became of it, in one line."""
        state = "is running" if self.ended is None else f"has ended: {self.ended}"
        command = " ".join(self.command.split())[:80]
        return f"Job {self.number} ({command}) {state}{self._problem}; its output is in {self.path}"

    def _follow(self, shell: Shell, writer: OutputWriter, stack: ExitStack) -> None:
        terminal = Terminal()
        ended = shell.follow(lambda data: self._write(writer, terminal.feed(data)), self._interrupt)
        self._write(writer, terminal.close())
        with self._told(), stack:
            pass
        self.ended = ended

    def _write(self, writer: OutputWriter, text: str) -> None:
        """A full disk ends the record, not the job."""
        if not self._problem:
            with self._told():
                writer.write(text)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (StateError, OSError) as error:
            self._problem = f" (its output is incomplete: {error})"


class Jobs:
    """The background commands of a session, and the environment that all its commands start from."""

    def __init__(self, root: Path, environment: Mapping[str, str], outputs: Outputs) -> None:
        self.environment = environment
        self._root = root
        self._outputs = outputs
        self._lock = threading.Lock()  # each job has its own number and is announced once
        self._all: list[Job] = []
        self._announced: set[int] = set()

    def start(self, command: str) -> Job:
        """Start ``command`` at the root. Raises: ToolError or StateError when it cannot be started or recorded."""
        with self._lock, ExitStack() as stack:
            writer = stack.enter_context(self._outputs.writer("bash"))
            shell = Shell(command, self._root, self.environment)
            job = Job(len(self._all) + 1, command, shell, writer, stack.pop_all())
            self._all.append(job)
        return job

    def running(self) -> list[Job]:
        return [job for job in self._all if job.ended is None]

    def finished(self) -> list[Job]:
        """The jobs that have ended since this was last asked; each is given once."""
        with self._lock:
            ended = [job for job in self._all if job.ended is not None and job.number not in self._announced]
            self._announced |= {job.number for job in ended}
        return ended

    def announced(self, job: Job) -> None:
        """Whoever started ``job`` has told of its end already."""
        with self._lock:
            self._announced.add(job.number)

    def close(self) -> None:
        """End what is still running, all at once; returns when it has ended, after some 2 seconds at most."""
        running = self.running()
        for job in running:
            job.stop()
        for job in running:
            job.wait()
