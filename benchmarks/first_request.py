"""From the start to the first request on the wire, against a bare script that imports the SDK and sends one.

What is ours alone shows in a replay of the same session, which loads no SDK: the whole process, so
an upper bound of our share. In an empty folder, and in a git repository of 200 files.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks._figures import milliseconds, ratio
from benchmarks._server import ONE_MODEL, exchanges, git, serving, workspace
from benchmarks.startup import CLI, environment

ROUNDS = 11
BARE = """
import anthropic
client = anthropic.Anthropic(max_retries=0)
hi = [{"role": "user", "content": "hi"}]
list(client.messages.create(model="claude-sonnet-5-5", max_tokens=9, stream=True, messages=hi))
"""


def run() -> None:
    with workspace() as root:
        compare("an empty folder", root)
    with workspace() as root:
        for number in range(200):
            (root / f"{number}.txt").write_text("x\n")
        git(root, "init", "-q")
        git(root, "add", "-A")
        git(root, "commit", "-qm", "all")
        compare("a git repository", root)


def compare(name: str, root: Path) -> None:
    bare, ours, click, replayed = [], [], [], []
    with serving(["Hello."] * (2 * ROUNDS + 1)) as (url, log):
        seconds([CLI, "run", "hi"], root, url)
        replay = f"replay:{next((root / '.transcripts').glob('*.md'))}"
        for _ in range(ROUNDS):
            for arguments, times in (([BARE], bare), ([CLI, "run", "hi"], ours)):
                began = time.monotonic()
                seconds(arguments, root, url)
                times.append(exchanges(log)[-1]["received"] - began)
            click.append(seconds(["import click"], root, url))
            replayed.append(seconds([CLI, "run", "-m", replay, "hi"], root, url))
    more = [a - b for a, b in zip(ours, bare, strict=True)]
    fastest = (min(ours) - min(bare)) * 1000
    print(f"in {name}")
    print(f"  SDK alone, to its request   {milliseconds(bare)}")
    print(f"  tinyclaw run, to its first  {milliseconds(ours)}  {ratio(ours, bare)}")
    print(f"  more than the SDK alone     {milliseconds(more)}; of the fastest: {fastest:.0f} ms")
    print(f"  a bare `import click`       {milliseconds(click)}")
    print(f"  the same replayed, no SDK   {milliseconds(replayed)}  {ratio(replayed, click)}")


def seconds(arguments: list[str], root: Path, url: str) -> float:
    """One run of ``python -c`` to its end."""
    began = time.monotonic()
    variables = environment() | {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "x"}
    variables |= {f"TINYCLAW_{name.upper()}": value for name, value in ONE_MODEL.items()}
    done = subprocess.run([sys.executable, "-c", *arguments], env=variables, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return time.monotonic() - began
