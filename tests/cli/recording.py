"""Recorded sessions for ``-m replay:FILE``, made of replies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tinyclaw.state.transcript.content import reply_block
from tinyclaw.state.transcript.grammar import Block, render, render_header
from tinyclaw.types import Text, ToolUse

MODEL = "claude-sonnet-5-5"
Step = str | Sequence[tuple[str, dict]]
"""A text that ends the turn, or calls as (tool, arguments)."""


def record(path: Path, *steps: Step) -> str:
    """Write a session in which the model answers with ``steps``; gives the value for ``-m``."""
    blocks: list[Block] = []
    for number, step in enumerate(steps, 1):
        content = [Text(step)] if isinstance(step, str) else _calls(number, step)
        stop = "end_turn" if isinstance(step, str) else "tool_use"
        blocks.append(Block("request", {"n": number, "model": MODEL, "max_tokens": 1000}))
        blocks += [reply_block(block, 2 * number, MODEL) for block in content]
        blocks.append(Block("reply", {"n": number, "in": 10, "out": 5, "stop": stop}))
    header = render_header({"session": "20260101-000000-aaaa", "created": "2026-01-01T00:00:00Z", "format": "1"})
    path.write_text(header + render(blocks), encoding="utf-8", newline="")
    return f"replay:{path}"


def _calls(number: int, calls: Sequence[tuple[str, dict]]) -> list[ToolUse]:
    return [ToolUse(f"toolu_{number}_{at}", name, arguments) for at, (name, arguments) in enumerate(calls)]
