"""The person's answer to the permission question that a paused turn has left in its transcript."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tinyclaw.agent.recorded import Recording
from tinyclaw.agent.session import image_loader
from tinyclaw.errors import UsageError
from tinyclaw.state.transcript.grammar import Block, heading
from tinyclaw.state.transcript.sessions import find_session
from tinyclaw.state.transcript.store import Transcript
from tinyclaw.state.workspace import TRANSCRIPTS, Workspace


@dataclass(frozen=True)
class Approved:
    """A session that can go on, and the questions that were answered with yes, as they stand in its transcript."""

    session: str
    questions: tuple[str, ...]


def approve(workspace: Workspace, wanted: str, now: datetime) -> Approved:
    """Allow what the session (``last`` or an id) asks for; ``run --resume`` then runs it.

    Raises: UsageError when it asks for nothing; Locked, StateError.
    """
    path = find_session(workspace.root / TRANSCRIPTS, wanted).path
    transcript = Transcript.open(path, image_loader(workspace))
    try:
        waiting = _waiting(transcript)
        if not waiting:
            raise UsageError(f"no permission is asked for in {path.name}; see: tinyclaw sessions list")
        at = now.isoformat(timespec="seconds").replace("+00:00", "Z")
        for call in waiting:
            facts = {"what": "answer", "at": at, "id": call, "answer": "allow"}
            transcript.append(Block("event", facts, heading=heading(3, "answer")))
        return Approved(transcript.session, _questions(transcript, waiting))
    finally:
        transcript.close()


def _waiting(transcript: Transcript) -> list[str]:
    """Ids of the calls that wait for an answer."""
    conversation = transcript.conversation
    open_calls = {call.id for call in conversation.pending_calls}
    return [
        known.call for known in conversation.permissions.values() if known.allowed is None and known.call in open_calls
    ]


def _questions(transcript: Transcript, calls: list[str]) -> tuple[str, ...]:
    blocks = Recording.read(transcript.path, lambda path, sha256: None).blocks
    events = [block for block in blocks if block.kind == "event" and block.attrs.get("what") == "permission"]
    return tuple(block.text for block in events if block.attrs.get("id") in calls)
