"""What a content block of a request is, in words for people."""

from __future__ import annotations

import re

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
    if path := stated_path(text):
        return f"the state of {path}"
    return f"the {kind} that begins {text[:_SHOWN_CHARS]!r}" if text else f"the {kind}"


def stated_path(text: str) -> str:
    """The file that a state event's text is about; "" for any other text."""
    state = _STATE.match(text)
    return state[1] if state else ""
