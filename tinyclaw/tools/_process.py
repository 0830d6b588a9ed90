"""A shell command in a process group of its own: no terminal, no stdin, an end that cannot be missed.

The end is the shell's exit, not the end of its output: a background child that holds the pipe does
not hold us. Such a child is left alone and what it prints later is thrown away. A time limit, an
interrupt or too much output ends the whole group: TERM, and KILL for what is left 2 seconds later.
"""

from __future__ import annotations

import math
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from tinyclaw.errors import ToolError
from tinyclaw.types import Interrupt

OUTPUT_LIMIT_BYTES = 200_000_000
GRACE_SECONDS = 2.0

_NO_EDITOR = "echo 'No editor here: give the text as an argument (git: -m, --no-edit, or GIT_EDITOR=true).' >&2; false"
_ADDED = {
    "DEBIAN_FRONTEND": "noninteractive",
    "EDITOR": "false",
    "GIT_EDITOR": _NO_EDITOR,
    "GIT_PAGER": "cat",
    "GIT_SEQUENCE_EDITOR": _NO_EDITOR,
    "GIT_TERMINAL_PROMPT": "0",
    "MANPAGER": "cat",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "PIP_NO_INPUT": "1",
    "PYTHONUNBUFFERED": "1",
    "SSH_ASKPASS_REQUIRE": "never",
    "TERM": "dumb",
    "VISUAL": "false",
}
_OUR_SECRETS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
# What `git rev-parse --local-env-vars` lists: a hook that starts us leaks its own repository through them.
_GIT_LOCAL = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)
_TICK_SECONDS = 0.02
_CHUNK_BYTES = 65_536
_PIPE_BYTES = 1_048_576  # no pipe holds more unless root made it so

Why = Literal["exit", "timeout", "interrupt", "output"]


@dataclass(frozen=True)
class Ended:
    """How a command ended. ``exit_code`` is the shell's; minus the number of the signal that killed it."""

    why: Why
    exit_code: int

    def __str__(self) -> str:
        if self.exit_code < 0:
            return f"killed by {_signal_name(-self.exit_code)}"
        return f"exit code {self.exit_code}"


def shell_environment(base: Mapping[str, str]) -> dict[str, str]:
    """The environment of commands: ``base`` without our keys, without a hook's git variables, and made to never ask."""
    kept = {name: value for name, value in base.items() if name not in (*_OUR_SECRETS, *_GIT_LOCAL)}
    return {**kept, **_ADDED}


class Shell:
    """A running command. One thread follows it to its end."""

    def __init__(self, command: str, folder: Path, environment: Mapping[str, str]) -> None:
        """Start ``command`` with bash, or sh where there is none; ``environment`` is the person's.

        Raises: ToolError when it cannot be started.
        """
        program = shutil.which("bash", path=environment.get("PATH", os.defpath)) or "/bin/sh"
        if "\0" in command:
            raise ToolError("The command holds a NUL character, which no command can. Write it as \\0 or $'\\0'.")
        try:
            self._process = subprocess.Popen(
                [program, "-c", command],
                cwd=folder,
                env=shell_environment(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ToolError(
                f"The command could not be started: {error}. If it is very long, write it to a file and run that."
            ) from error
        assert self._process.stdout is not None
        self._pipe = self._process.stdout
        self._open = True
        os.set_blocking(self._pipe.fileno(), False)
        self._poll = select.poll()
        self._poll.register(self._pipe, select.POLLIN)

    @property
    def group(self) -> int:
        """The process group; ``kill -- -GROUP`` ends all of it."""
        return self._process.pid

    def follow(
        self, take: Callable[[bytes], None], interrupt: Interrupt, timeout_seconds: float | None = None
    ) -> Ended:
        """Hand each piece of output to ``take`` as it comes, until the command ends or has to end."""
        try:
            why = self._follow(take, interrupt, timeout_seconds)
            self._forward(take, _PIPE_BYTES)
        finally:
            if self._process.poll() is None:
                self._stop(lambda data: None)
            self._let_go()
        return Ended(why, self._process.returncode)

    def _follow(self, take: Callable[[bytes], None], interrupt: Interrupt, timeout_seconds: float | None) -> Why:
        deadline = math.inf if timeout_seconds is None else time.monotonic() + timeout_seconds
        received = 0
        while self._process.poll() is None:
            received += self._wait_and_forward(take)
            why = _reason_to_stop(interrupt, deadline, received)
            if why is not None:
                self._stop(take)
                return why
        # The terminal's Ctrl-C also ends a child that has no process group of its own yet.
        return "interrupt" if interrupt.is_set() and self._process.returncode < 0 else "exit"

    def _wait_and_forward(self, take: Callable[[bytes], None]) -> int:
        """Wait a moment for output or, when that has ended, for the exit; how many bytes came."""
        if self._open:
            self._poll.poll(_TICK_SECONDS * 1000)
            return self._forward(take, _CHUNK_BYTES)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_TICK_SECONDS)
        return 0

    def _forward(self, take: Callable[[bytes], None], most: int) -> int:
        """Hand over what the pipe holds, about ``most`` bytes of it, without waiting."""
        received = 0
        while self._open and received < most:
            try:
                data = os.read(self._pipe.fileno(), _CHUNK_BYTES)
            except BlockingIOError:
                break
            self._open = data != b""
            received += len(data)
            take(data)
        return received

    def _stop(self, take: Callable[[bytes], None]) -> None:
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + GRACE_SECONDS
        while self._signal(0) and self._is_alive() and time.monotonic() < deadline:
            self._forward(take, _CHUNK_BYTES)
            time.sleep(_TICK_SECONDS / 2)
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: int) -> bool:
        """Signal the group; False when nobody is left in it whom we may signal."""
        self._process.poll()
        try:
            os.killpg(self.group, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _is_alive(self) -> bool:
        return self._process.returncode is None or _has_living(self.group)

    def _let_go(self) -> None:
        """A background child may hold the pipe: the next line it prints must not kill it."""
        if self._open:
            os.set_blocking(self._pipe.fileno(), True)
            threading.Thread(target=_discard, args=(self._pipe,), daemon=True).start()
        else:
            self._pipe.close()


def _has_living(group: int) -> bool:
    """Whether more than zombies is left of a group: in many a container nobody reaps orphans. True without /proc."""
    stats = list(Path("/proc").glob("[0-9]*/stat"))
    return not stats or any(_is_living_member(stat, group) for stat in stats)


def _is_living_member(stat: Path, group: int) -> bool:
    """https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html: after the name come state, parent and group."""
    try:
        state, _, of_group = stat.read_bytes().rpartition(b")")[2].split()[:3]
    except (OSError, ValueError):
        return False
    return int(of_group) == group and state not in (b"Z", b"X")


def _discard(pipe: IO[bytes]) -> None:
    with pipe:
        while pipe.read(_CHUNK_BYTES):
            pass


def _reason_to_stop(interrupt: Interrupt, deadline: float, received: int) -> Why | None:
    if interrupt.is_set():
        return "interrupt"
    if time.monotonic() >= deadline:
        return "timeout"
    return "output" if received > OUTPUT_LIMIT_BYTES else None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
