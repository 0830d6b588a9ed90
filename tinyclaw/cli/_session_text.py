"""A recorded session in a few lines."""

from __future__ import annotations

from collections.abc import Iterator

from tinyclaw.agent.approval import questions
from tinyclaw.agent.recorded import Recording
from tinyclaw.cli._render import usage_words
from tinyclaw.state.transcript.grammar import Block
from tinyclaw.width import harmless, one_line


def session_text(recording: Recording, path: str) -> str:
    """Facts of the session, then a paragraph a turn."""
    header = recording.parsed.header
    conversation = recording.conversation()
    facts = [
        ("session", recording.session),
        ("title", header.get("title", "")),
        ("created", header.get("created", "")),
        ("transcript", path),
        ("requests", f"{conversation.requests} · {usage_words(conversation.spent)}"),
    ]
    lines = [f"{name + ':':<12}{one_line(value)}" for name, value in facts if value]
    asked = questions(recording.blocks)
    for call in conversation.asked_calls:
        first, *rest = harmless(asked.get(call.id, call.name)).split("\n")
        lines += [f"{'waits for:':<12}permission: {first}", *(f"  │ {line}" for line in rest if line.strip())]
    if conversation.asked_calls:
        lines.append(f"{'':<12}allow it: tinyclaw approve {facts[0][1]}; refuse it: add --deny")
    return "\n".join([*lines, *_turns(recording.blocks)])


def _turns(blocks: tuple[Block, ...]) -> Iterator[str]:
    calls = 0
    answer = ""
    for block in blocks:
        is_text = block.kind == "text"
        if (is_text and block.attrs.get("role") == "user" and block.box is not None) or block.kind == "outside":
            yield ""
            yield f"> {one_line(block.text)}{' (taken out of the conversation)' if block.box is False else ''}"
        elif is_text and block.attrs.get("role") == "assistant":
            answer = block.text
        elif block.kind == "tool_use":
            calls += 1
        elif block.kind == "turn_end":
            reason = str(block.attrs.get("reason", "done"))
            yield f"  {calls} tool call{'s' if calls != 1 else ''}, ended: {reason}"
            if answer.strip():
                yield f"  {one_line(answer)}"
            calls, answer = 0, ""
