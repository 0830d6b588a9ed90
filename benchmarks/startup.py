"""Starting without a model: against a bare interpreter that imports click."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

ROUNDS = 15
CLI = "from tinyclaw.cli.main import main; main()"
COMMANDS = {"--version": [CLI, "--version"], "--help": [CLI, "--help"], "sessions list": [CLI, "sessions", "list"]}


def run() -> None:
    times: dict[str, list[float]] = {name: [] for name in ("import click", *COMMANDS)}
    for _ in range(ROUNDS):
        times["import click"].append(seconds(["import click"]))
        for name, arguments in COMMANDS.items():
            times[name].append(seconds(arguments))
    base = statistics.median(times["import click"])
    for name, measured in times.items():
        middle = statistics.median(measured)
        print(f"{name:15} {middle * 1000:6.0f} ms  {middle / base:.2f}x")


def seconds(arguments: list[str]) -> float:
    """One run of ``python -c`` with bytecode, as an installed command has it."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", *arguments], env=environment, check=True, capture_output=True)
    return time.perf_counter() - began
