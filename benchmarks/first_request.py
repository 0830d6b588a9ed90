"""From the start to the first request on the wire, against a bare script that imports the SDK and sends one."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks._server import exchanges, serving, workspace

ROUNDS = 7
BARE = """
import anthropic
client = anthropic.Anthropic(max_retries=0)
hi = [{"role": "user", "content": "hi"}]
list(client.messages.create(model="claude-sonnet-5-5", max_tokens=9, stream=True, messages=hi))
"""
RUN = "from tinyclaw.cli.main import main; main()"


def run() -> None:
    bare, ours = [], []
    with serving(["Hello."] * (2 * ROUNDS)) as (url, log), workspace() as root:
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        project = str(Path(__file__).parents[1])
        environment |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "x", "PYTHONPATH": project}
        for _ in range(ROUNDS):
            for code, arguments, times in ((BARE, [], bare), (RUN, ["run", "hi"], ours)):
                began = time.monotonic()
                command = [sys.executable, "-c", code, *arguments]
                done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True)
                assert done.returncode == 0, done.stderr
                times.append(exchanges(log)[-1]["received"] - began)
    base, middle = statistics.median(bare), statistics.median(ours)
    print(f"SDK alone     {base * 1000:6.0f} ms to its request")
    print(f"tinyclaw run  {middle * 1000:6.0f} ms, {(middle - base) * 1000:+.0f} ms  {middle / base:.2f}x")
    spread = [f"{(a - b) * 1000:+.0f}" for a, b in zip(ours, bare, strict=True)]
    print(f"each round: {', '.join(spread)} ms")
