"""The real command line as a process, with pipes or on a pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PROGRAM = [sys.executable, "-c", "from tinyclaw.cli.main import main; main()"]
ROOT = Path(__file__).resolve().parents[2]
SECONDS = 30.0


def environment(**more: str) -> dict[str, str]:
    """The test's own environment, with the package to be found from any folder."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def tinyclaw(
    *arguments: str, cwd: Path, stdin: str | int | None = subprocess.DEVNULL, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a command line to its end; ``stdin`` is text to pipe in or a file descriptor."""
    given = {"input": stdin} if isinstance(stdin, str) else {"stdin": stdin}
    return subprocess.run(
        [*PROGRAM, *arguments],
        cwd=cwd,
        env=environment(**more),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=SECONDS,
        **given,
    )


class Screen:
    """A process on a pseudo-terminal of its own; ``text`` is all that it has written so far."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.process = process
        self._terminal = terminal
        self.text = ""

    def send(self, text: str) -> None:
        data = text.encode()
        while data:
            written = os.write(self._terminal, data[:1024])
            data = data[written:]
            self._read(0)

    def wait_for(self, wanted: str, *, count: int = 1) -> None:
        """Return once ``wanted`` has been written that often."""
        end = time.monotonic() + SECONDS
        while self.text.count(wanted) < count:
            if time.monotonic() > end or not self._read(1.0):
                raise AssertionError(f"{wanted!r} did not come; the screen holds:\n{self.text[-3000:]}")

    def wait(self) -> int:
        """Read to the end; returns the exit code."""
        end = time.monotonic() + SECONDS
        while self._read(1.0):
            assert time.monotonic() < end, self.text[-3000:]
        return self.process.wait(SECONDS)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.write(self._terminal, b"\x03")

    def resize(self, columns: int, rows: int = 24) -> None:
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read(self, seconds: float) -> bool:
        """Take what there is; False at the end."""
        if not select.select([self._terminal], [], [], seconds)[0]:
            return self.process.poll() is None or seconds == 0
        try:
            data = os.read(self._terminal, 65_536)
        except OSError:  # Linux: everybody has closed the other side
            return False
        self.text += data.decode("utf-8", "replace")
        return bool(data)


@contextmanager
def on_terminal(
    *arguments: str,
    cwd: Path,
    columns: int = 100,
    files: Mapping[str, Path] | None = None,
    **more: str,
) -> Iterator[Screen]:
    """A command line on a terminal; ``files`` sends ``stdout`` or ``stderr`` to a file instead."""
    ours, theirs = pty.openpty()
    opened = {name: path.open("wb") for name, path in (files or {}).items()}
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs, **opened}

    def own_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=cwd,
        env=environment(TERM="xterm-256color") | more,
        start_new_session=True,
        preexec_fn=own_terminal,
        **streams,
    )
    os.close(theirs)
    for file in opened.values():
        file.close()
    screen = Screen(process, ours)
    screen.resize(columns)
    try:
        yield screen
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(ours)
