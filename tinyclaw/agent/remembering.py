"""What a summary says is worth remembering becomes memory records before the summary takes its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from tinyclaw.agent.events import Notice
from tinyclaw.agent.session import Session
from tinyclaw.errors import StateError
from tinyclaw.state.memory.record import TYPES, Note, RecordType
from tinyclaw.state.redaction import holds_mask
from tinyclaw.state.workspace import MEMORY_INDEX

_HEADING = "## Remember"
_LINE = re.compile(rf"[-*] ({'|'.join(TYPES)}): (.{{1,80}}?) (?:—|–|--|-) (.+)")
_FENCE = re.compile(r"\s*(```|~~~)")
_MOST = 10
"""Of one answer. More than that are no notes but a protocol."""


def split_notes(text: str, source: str) -> tuple[str, list[Note]]:
    """A summary without its section of what to remember, and the notes of that section; other lines in it are none."""
    left: list[str] = []
    section: list[str] = []
    is_fenced = is_within = False
    for line in text.split("\n"):
        is_fenced ^= bool(_FENCE.match(line))
        if line.startswith("## ") and not is_fenced:
            is_within = line.rstrip() == _HEADING
        (section if is_within else left).append(line)
    return "\n".join(left).strip(), notes_in("\n".join(section), source)


def notes_in(text: str, source: str) -> list[Note]:
    """The notes that stand in a text, a line each; other lines are none."""
    found = (_LINE.fullmatch(line.strip()) for line in text.split("\n"))
    notes = [Note(line[2].strip(), cast(RecordType, line[1]), line[3].strip(), source=source) for line in found if line]
    return notes[:_MOST]


def may_remember(session: Session) -> bool:
    """Whether records may be written without anybody asking for it."""
    return session.permission_mode != "read-only" and session.mode != "plan"


def sync_index(session: Session, *, is_turn_begun: bool = False) -> None:
    """Make the index anew where people have written, added or taken away records since it was made.

    While a turn is running no more is looked at than costs little: of very many records only whether there are others.
    """
    if session.permission_mode == "read-only" or (is_turn_begun and not session.memory.index.may_be_stale()):
        return
    try:
        if revision := session.memory.index.refresh():
            session.reader.wrote(MEMORY_INDEX, revision)
    except StateError as error:
        session.notices.append(str(error))


def remember(session: Session, notes: list[Note], by: str) -> Iterator[Notice]:
    """Keep each note for which there is no record yet, and tell the person. A record that is there stays as it is.

    ``by`` says whose notes they are. What cannot be kept is said; the transcript has it.
    """
    if not notes or not may_remember(session):
        return
    memory = session.memory
    is_new = False
    for note in notes:
        if holds_mask(note.name + note.text):
            yield Notice(f'"{note.name}" is not remembered: it holds a secret')
            continue
        try:
            saved = memory.save(note, lambda path: None)
        except StateError as error:
            yield Notice(f'"{note.name}" is worth remembering, and cannot be kept: {error}')
            continue
        if saved.how == "new":
            is_new = True
            yield Notice(f"remembered ({note.type}): {note.name}; {saved.path}")
        elif saved.how == "kept":
            yield Notice(
                f"{saved.path} stays as it is; {by} would say: {note.text} (edit it, or ask for it to be corrected)"
            )
    if is_new:
        sync_index(session)
