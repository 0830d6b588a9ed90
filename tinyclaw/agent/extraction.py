"""At the natural end of a turn the small model is asked what of it is worth remembering; most often nothing is."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from tinyclaw.agent.events import Event
from tinyclaw.agent.remembering import may_remember, notes_in, remember
from tinyclaw.agent.session import Session
from tinyclaw.agent.side import SideQuestion, ask_small
from tinyclaw.state.transcript.content import is_persons
from tinyclaw.state.transcript.fold import Group

_TALK_CHARS = 16_000
_MESSAGE_CHARS = 4_000
_AGENT_CHARS = 1_500
_RESULT_CHARS = 300
_NAMES = 100


def extract(session: Session) -> Generator[Event, None, None]:
    """Keep what the turn that ends now tells and later sessions need, and tell the person of each new record.

    A record that is there stays as it is.

    Raises: StateError, Interrupted.
    """
    if not session.habits.extract or not may_remember(session):
        return
    talk = _talk(session)
    if not talk:
        return
    names = "\n".join(f"- {head.name} — {head.description}" for head in session.memory.heads(_NAMES))
    text = f"<conversation>\n{talk}\n</conversation>\n\n<remembered>\n{names or '(nothing yet)'}\n</remembered>"
    answer = yield from ask_small(session, SideQuestion("extraction", session.masker.mask(text)))
    notes = notes_in(answer or "", f"session {session.transcript.session}")
    yield from remember(session, notes, by="the small model")


def _of_turn(session: Session) -> list[Group]:
    conversation = session.conversation
    return [group for group in conversation.live_groups if group.turn == conversation.turn]


def _talk(session: Session) -> str:
    """The newest part of the conversation as text; "" where the running turn has nothing that the person said."""
    if not any(is_persons(block) for group in _of_turn(session) for block in group.blocks):
        return ""
    parts: list[str] = []
    room = _TALK_CHARS
    for group in reversed(session.conversation.live_groups):
        said = "\n".join(_lines(group))[:_MESSAGE_CHARS]
        room -= len(said)
        if room < 0:
            parts.append("[… earlier messages …]")
            break
        parts += [said] if said else []
    return "\n\n".join(reversed(parts))


def _lines(group: Group) -> Iterator[str]:
    for block in group.blocks:
        if block.kind == "tool_use":
            yield f"[tool] {block.heading.lstrip('# ')}"
        elif block.kind == "tool_result":
            yield f"[result] {_cut(' '.join(block.text.split()), _RESULT_CHARS)}"
        elif is_persons(block):
            yield f"Person: {_cut(block.text.strip(), _MESSAGE_CHARS)}"
        elif block.kind == "text" and group.role == "assistant":
            yield f"Agent: {_cut(block.text.strip(), _AGENT_CHARS)}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} …"
