"""Where a conversation may be cut in two, so that a summary can stand for its older part."""

from __future__ import annotations

from collections.abc import Sequence

from tinyclaw.state.transcript.fold import Message


def cut_before(messages: Sequence[Message], index: int) -> int:
    """The greatest valid cut at or before ``index``: the kept part begins with its message; 0 when there is none.

    A kept part never begins with results, whose calls would be gone.
    """
    for at in range(min(index, len(messages) - 1), 0, -1):
        message = messages[at]
        if message.number and not any(block["type"] == "tool_result" for block in message.wire["content"]):
            return at
    return 0
