"""A picture that the API refuses is taken out of the conversation; it would fail every request from then on."""

from __future__ import annotations

import re

from tinyclaw.agent.session import Session
from tinyclaw.context.compiler import WorkingSet
from tinyclaw.errors import ModelError
from tinyclaw.state.transcript.grammar import Block
from tinyclaw.types import Json

_BAD_REQUEST = 400
_IMAGE = re.compile(r"\bimages?\b", re.IGNORECASE)
_PLACE = re.compile(r"\bmessages\.(\d+)\.content\.(\d+)")
_REASON_CHARS = 300


def clear_refused_pictures(session: Session, working: WorkingSet, error: ModelError) -> bool:
    """Record that the pictures which ``error`` is about are no longer sent; False when it is about none.

    The API names the place of a block that it refuses; where it names none, the newest pictures are meant.
    """
    if error.status != _BAD_REQUEST or not _IMAGE.search(str(error)):
        return False
    refused = _refused(working, str(error))
    if not refused:
        return False
    reason = " ".join(str(error).split())[:_REASON_CHARS]
    markers = {
        call: f"{text}\n[the picture was taken out, for the API refused it: {reason}]" for call, text in refused.items()
    }
    tokens = working.manifest.tokens
    session.record(Block("clear", {"results": markers, "before": tokens, "after": tokens}))
    return True


def _refused(working: WorkingSet, error: str) -> dict[str, str]:
    """The calls whose results' pictures are meant, and the text beside them."""
    messages = [message.wire["content"] for message in working.messages]
    if place := _PLACE.search(error):
        message, block = int(place[1]), int(place[2])
        named = messages[message][block : block + 1] if message < len(messages) else []
        if found := _with_pictures(named):
            return found
    return next((found for content in reversed(messages) if (found := _with_pictures(content))), {})


def _with_pictures(content: list[Json]) -> dict[str, str]:
    found = {}
    for block in content:
        parts = block.get("content")
        if (
            block["type"] == "tool_result"
            and isinstance(parts, list)
            and any(part["type"] == "image" for part in parts)
        ):
            found[block["tool_use_id"]] = "\n".join(part["text"] for part in parts if part["type"] == "text")
    return found
