"""The person's answer to the permission question that a paused turn has left in its transcript."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from tinyclaw.agent.recorded import Recording
from tinyclaw.agent.session import image_loader
from tinyclaw.errors import UsageError
from tinyclaw.stamp import stamp
from tinyclaw.state.transcript.grammar import Block, heading
from tinyclaw.state.transcript.sessions import find_session
from tinyclaw.state.transcript.store import Transcript
from tinyclaw.state.workspace import TRANSCRIPTS, Workspace


@dataclass(frozen=True)
class Answered:
    """A session that can go on, and the questions that were answered, as they stand in its transcript."""

    session: str
    questions: tuple[str, ...]


def answer(workspace: Workspace, wanted: str, now: datetime, *, allow: bool) -> Answered:
    """Allow or refuse what the session (``last`` or an id) asks for; ``run --resume`` then goes on.

    Raises: UsageError when it asks for nothing; Locked, StateError.
    """
    path = find_session(workspace.root / TRANSCRIPTS, wanted).path
    transcript = Transcript.open(path, image_loader(workspace))
    try:
        permissions = transcript.conversation.permissions
        waiting = [call.id for call in transcript.conversation.asked_calls if permissions[call.id].allowed is None]
        if not waiting:
            raise UsageError(f"no permission is asked for in {path.name}; see: tinyclaw sessions list")
        at = stamp(now)
        for call in waiting:
            facts = {"what": "answer", "at": at, "id": call, "answer": "allow" if allow else "deny"}
            transcript.append(Block("event", facts, heading=heading(3, "answer")))
        asked = questions(Recording.read(path, lambda path, sha256: None).blocks)
        return Answered(transcript.session, tuple(asked.get(call, call) for call in waiting))
    finally:
        transcript.close()


def questions(blocks: Iterable[Block]) -> dict[str, str]:
    """The permission questions among ``blocks``, by call id: the call, why it is asked, and what it would do."""
    events = (block for block in blocks if block.kind == "event" and block.attrs.get("what") == "permission")
    return {str(block.attrs.get("id")): block.text for block in events}
