"""What a summary says is worth remembering becomes memory records before the summary takes its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast, get_args

from tinyclaw.agent.events import Notice
from tinyclaw.agent.session import Session
from tinyclaw.errors import StateError
from tinyclaw.state.memory import Memory, Note, RecordType
from tinyclaw.state.redaction import holds_mask
from tinyclaw.state.workspace import MEMORY_INDEX

_HEADING = "## Remember"
_LINE = re.compile(rf"[-*] ({'|'.join(get_args(RecordType))}): (.{{1,80}}?) (?:—|–|--|-) (.+)")
_MOST = 10


def split_notes(text: str, source: str) -> tuple[str, list[Note]]:
    """A summary without its section of what to remember, and the notes of that section; other lines in it are none."""
    if f"{_HEADING}\n" not in text:
        return text, []
    before, _, behind = text.partition(f"{_HEADING}\n")
    section, _, rest = behind.partition("\n## ")
    found = (_LINE.fullmatch(line.strip()) for line in section.split("\n"))
    notes = [Note(line[2].strip(), cast(RecordType, line[1]), line[3].strip(), source=source) for line in found if line]
    left = before.rstrip() + (f"\n\n## {rest}" if rest else "")
    return left.strip(), [note for note in notes if not holds_mask(note.name + note.text)][:_MOST]


def remember(session: Session, notes: list[Note]) -> Iterator[Notice]:
    """Keep the notes, and tell the person of each that is new. What cannot be kept is said; the transcript has it."""
    if not notes or not session.remembers or session.permission_mode == "read-only":
        return
    memory = Memory(session.workspace.root, lambda: session.now)
    try:
        saved = memory.save(*notes)
        session.reader.wrote(MEMORY_INDEX, memory.write_index())
    except StateError as error:
        yield Notice(f"what is worth remembering could not all be kept: {error}")
        return
    for note, record in zip(notes, saved, strict=True):
        if record.how != "same":
            yield Notice(f"remembered ({record.how}, {note.type}): {note.name}; .memory/{record.slug}.md")
