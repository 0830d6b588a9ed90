"""The transcript's file: appending is O(1) in its length, loading 50 MB takes a moment."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from tinyclaw.state.transcript.content import reply_block, result_block, user_text
from tinyclaw.state.transcript.grammar import Block
from tinyclaw.state.transcript.store import SessionName, Transcript
from tinyclaw.types import Text, ToolUse

PLACES = (10, 1_000, 50_000)
LOADED_BYTES = 50_000_000


def run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        appending(Path(folder) / "append")
        loading(Path(folder) / "load")


def appending(folder: Path) -> None:
    made = Transcript.create(
        folder, SessionName.new("20261130-101500", "x", "0000"), "x", "now", lambda path, sha: None
    )
    medians = []
    written = 0
    for place in PLACES:
        while written < place:
            made.append(*[Block("side", {"n": written + n}) for n in range(50)])
            written += 50
        times = []
        for _ in range(200):
            began = time.perf_counter()
            made.append(user_text("a line of text", 1, "now"))
            times.append(time.perf_counter() - began)
        medians.append(statistics.median(times))
    made.close()
    first = medians[0]
    for place, middle in zip(PLACES, medians, strict=True):
        print(f"append behind {place:6,} blocks: {middle * 1e6:5.0f} µs  {middle / first:.2f}x")


def loading(folder: Path) -> None:
    made = Transcript.create(
        folder, SessionName.new("20261130-101500", "x", "0001"), "x", "now", lambda path, sha: None
    )
    body = "".join(f"{n:4d} a line of a result, of the usual length\n" for n in range(400))
    made.append(user_text("go", 1, "now"))
    number = 2
    while made.path.stat().st_size < LOADED_BYTES:
        call = ToolUse(f"t{number}", "read", {"path": "a"})
        made.append(reply_block(Text("Reading."), number, "m"), reply_block(call, number, "m"))
        made.append(result_block(f"t{number}", number + 1, body, name="read"))
        number += 2
    made.close()
    began = time.perf_counter()
    again = Transcript.open(made.path, lambda path, sha: None)
    opened = time.perf_counter() - began
    again.conversation.messages("m")
    folded = time.perf_counter() - began
    again.close()
    began = time.perf_counter()
    made.path.read_bytes()
    plain = time.perf_counter() - began
    print(f"load {LOADED_BYTES / 1e6:.0f} MB: {opened:.2f} s, with all messages {folded:.2f} s")
    print(f"reading its bytes alone: {plain:.2f} s")
