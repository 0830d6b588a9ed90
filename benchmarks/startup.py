"""Starting without a model: against a bare interpreter that imports click; and what each command imports."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks._figures import milliseconds, ratio
from benchmarks._server import PROJECT, workspace

ROUNDS = 15
CLI = "from tinyclaw.cli.main import main; main()"
TIMED = {"--version": ["--version"], "--help": ["--help"], "sessions list": ["sessions", "list"]}
COMMANDS = [*TIMED.values(), ["context"], ["doctor"], ["init"], ["plan"], ["prompt"], ["sessions", "show", "none"]]
SLOW = ("anthropic", "mcp", "rich", "prompt_toolkit", "yaml", "frontmatter", "git", "watchdog", "platformdirs")


def run() -> None:
    with workspace() as root:
        timing(root)
        for command in COMMANDS:
            names = imported(command, root)
            slow = [name for name in SLOW if name in names]
            print(f"{' '.join(command):18} {len(names):4} modules, of the slow ones {', '.join(slow) or 'none'}")


def timing(root: Path) -> None:
    times: dict[str, list[float]] = {name: [] for name in ("import click", *TIMED)}
    for _ in range(ROUNDS):
        times["import click"].append(seconds(["import click"], root))
        for name, arguments in TIMED.items():
            times[name].append(seconds([CLI, *arguments], root))
    for name, measured in times.items():
        print(f"{name:18} {milliseconds(measured)}  {ratio(measured, times['import click'])}")


def seconds(arguments: list[str], root: Path) -> float:
    """One run of ``python -c``."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", *arguments], env=environment(), cwd=root, check=True, capture_output=True)
    return time.perf_counter() - began


def imported(command: list[str], root: Path) -> set[str]:
    """The modules that a command imports, however it ends."""
    words = [sys.executable, "-X", "importtime", "-c", CLI, *command]
    done = subprocess.run(words, env=environment(), cwd=root, capture_output=True, text=True)
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


def environment() -> dict[str, str]:
    """Ours, with bytecode, as an installed command has it, and able to find the program from any folder."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPATH": PROJECT}
