"""What a content block of a request is, in words for people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from tinyclaw.types import Json

_STATE = re.compile(r'<state path="([^"]*)"')
_SHOWN_CHARS = 60
SUMMARY = "# Summary of what came before"
"""How a summary begins."""


def describe(block: Json) -> str:
    """The block's kind and what tells it from others: the file it states, its call, or how it begins."""
    kind = block["type"]
    if kind == "tool_result":
        return f"the result of {block['tool_use_id']}"
    if kind == "tool_use":
        return f"the call {block['name']} ({block['id']})"
    text = str(block.get("text") or block.get("thinking") or "")
    if state := _STATE.match(text):
        return f"the state of {state[1]}"
    return f"the {kind} that begins {text[:_SHOWN_CHARS]!r}" if text else f"the {kind}"


def shares(messages: Iterable[Json]) -> dict[str, int]:
    """What a conversation is made of: characters by origin, the largest first.

    A result counts for its call (``read src/a.py``), a state for its file, and text for who said it.
    """
    calls: dict[str, str] = {}
    found: dict[str, int] = {}
    for message in messages:
        for block in message["content"]:
            if block["type"] == "tool_use":
                calls[block["id"]] = _headline(block)
            origin = _origin(block, message["role"], calls)
            found[origin] = found.get(origin, 0) + len(json.dumps(block))
    return dict(sorted(found.items(), key=lambda share: -share[1]))


def _headline(call: Json) -> str:
    first = next((value for value in call["input"].values() if isinstance(value, str)), "")
    return f"{call['name']} {first}".split("\n", 1)[0].strip()


def _origin(block: Json, role: str, calls: dict[str, str]) -> str:
    kind = block["type"]
    if kind == "tool_result":
        return calls.get(block["tool_use_id"], "results")
    if kind == "tool_use":
        return "the model's calls"
    if kind != "text":
        return f"the model's {kind}"
    text = block["text"]
    if state := _STATE.match(text):
        return f"state of {state[1]}"
    if role == "user":
        return "the summary" if text.startswith(SUMMARY) else "what you said"
    return "what the model said"
