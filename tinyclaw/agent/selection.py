"""Records that matter for what the person has just asked: chosen from their heads, stated once, whole.

The small model chooses by names and descriptions; where it cannot, the words of the person's text do.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from tinyclaw.agent.events import Event, Notice
from tinyclaw.agent.session import Session
from tinyclaw.agent.side import Question, ask_small
from tinyclaw.state.files import read, revision_of
from tinyclaw.state.memory.record import Head, Record
from tinyclaw.state.transcript.content import is_persons
from tinyclaw.state.transcript.statements import records_block

if TYPE_CHECKING:
    from tinyclaw.state.memory.cache import RecordCache

MOST = 5
_OFFERED = 100
_OFFERED_FIRST = 30
"""Of very many records those that come first in the index are offered whatever the person's words are."""
_ASKED_CHARS = 4_000
_BODY_CHARS = 6_000
_NOTHING = "NONE"


def state_records(session: Session) -> Generator[Event, None, None]:
    """Say what the memory holds about the person's last text, as one state event; nothing where it holds nothing new.

    Raises: StateError, Interrupted.
    """
    text = _asked(session)
    if session.habits.select == "off" or not text:
        return
    if not session.memory.is_there:
        return
    known = session.memory.looked_up()
    offered = _offered(session, text, known)
    if not offered:
        return
    chosen = None
    if session.habits.select == "model":
        chosen = yield from _chosen(session, text, offered)
    if chosen is None:
        slugs = {head.slug for head in offered}
        chosen = [head for head in known.search(text, len(offered), rare=True).heads if head.slug in slugs][:MOST]
    records = [record for head in chosen if (record := session.memory.files.record(head.slug)) is not None]
    if not records:
        return
    revisions = {each.path: read(session.workspace.root / each.path).revision for each in records}
    body = session.masker.mask(
        "\n\n".join((session.hints.get("records"), *(_shown(session, record) for record in records)))
    )
    revision = revision_of(body.encode())
    session.record(records_block(revisions, revision, body, session.conversation.last))
    for path, known_as in revisions.items():
        session.ledger.restore(path, known_as)
    yield Notice(f"from memory: {', '.join(session.masker.mask(each.name) for each in records)}")


def _asked(session: Session) -> str:
    """What the person said last, before any answer to it; "" where a turn is gone on with."""
    groups = session.conversation.live_groups
    if not groups or groups[-1].role != "user" or not session.conversation.awaits_reply:
        return ""
    blocks = groups[-1].blocks
    if any(block.kind in ("tool_result", "state") for block in blocks):
        return ""
    said = [block.text for block in blocks if is_persons(block)]
    return "\n\n".join(said).strip()


def _offered(session: Session, text: str, known: RecordCache) -> list[Head]:
    """The records to choose from: no more than a small model can look through, none that stands in view as it is."""
    memory, shown = session.memory, session.conversation.revisions
    heads = known.ranked(0, _OFFERED + 1)
    if len(heads) > _OFFERED:
        first = heads[:_OFFERED_FIRST]
        found = known.search(text, _OFFERED).heads
        heads = list({head.slug: head for head in (*first, *found)}.values())[:_OFFERED]
    return [
        head
        for head in heads
        if (head.path not in shown or shown[head.path] != read(session.workspace.root / head.path).revision)
        and memory.doubts(head)[0] != "missing"
    ]


def _chosen(session: Session, text: str, offered: Sequence[Head]) -> Generator[Event, None, list[Head] | None]:
    """The small model's choice; None where it makes none that can be understood."""
    question = f"<request>\n{_cut(text, _ASKED_CHARS)}\n</request>\n\n<records>\n{_listed(offered)}\n</records>"
    answer = yield from ask_small(session, Question("selection", session.masker.mask(question), leaves=1))
    if answer is None:
        return None
    known = {head.slug: head for head in offered}
    lines = [line.strip().lstrip("-* ").strip("`") for line in answer.split("\n") if line.strip()]
    named = list({line: known[line] for line in lines if line in known}.values())
    return named[:MOST] if named or lines == [_NOTHING] else None


def _listed(heads: Sequence[Head]) -> str:
    return "\n".join(f"{head.slug}: {head.name} — {head.description} ({_facts(head)})" for head in heads)


def _facts(head: Head) -> str:
    return f"{head.type}, updated {head.updated[:10] or 'at an unknown time'}"


def _shown(session: Session, record: Record) -> str:
    facts = "; ".join((record.path, f"{_facts(record)}{_age(record.updated, session.clock())}"))
    parts = [f"## {record.name} ({facts})", *_doubt(session, record), _cut(record.text, _BODY_CHARS, record.path)]
    return "\n\n".join(parts)


def _doubt(session: Session, record: Record) -> Iterator[str]:
    standing, place = session.memory.doubts(record)
    if standing == "changed":
        yield f"Verify before use: {place} changed since."


def _age(updated: str, now: datetime) -> str:
    """How old a record is, in words; "" where its time cannot be read."""
    try:
        then = datetime.fromisoformat(updated)
    except ValueError:
        return ""
    days = (now.date() - then.date()).days
    return f", {days} day{'s' if days != 1 else ''} ago" if days > 0 else ", today"


def _cut(text: str, limit: int, path: str = "") -> str:
    if len(text) <= limit:
        return text
    rest = f"; read {path} for the rest" if path else ""
    return f"{text[:limit]}\n[… {len(text) - limit:,} more characters{rest}]"
