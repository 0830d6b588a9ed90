"""Records that matter for what the person has just asked: chosen from their heads, stated once, whole.

The small model chooses by names and descriptions; where it cannot, the words of the person's text do.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from tinyclaw.agent.events import Event, Notice
from tinyclaw.agent.session import Session
from tinyclaw.agent.side import SideQuestion, ask_small
from tinyclaw.state.files import revision_of
from tinyclaw.state.memory.evidence import doubt
from tinyclaw.state.memory.record import SHOWN_NAME, Head, Record, cut
from tinyclaw.state.transcript.content import is_persons
from tinyclaw.state.transcript.fold import Conversation
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
    if not session.memory.files.has_records:
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
        chosen = [head for head in known.likely(text, len(offered)) if head.slug in slugs][:MOST]
    records = [record for head in chosen if (record := session.memory.files.record(head.slug)) is not None]
    if not records:
        return
    parts = {record: _shown(session, record) for record in records}
    body = "\n\n".join((session.hints.get("records"), *(part.text for part in parts.values())))
    quoted = {record.path: record.revision for record in records}
    whole = {record.path: record.revision for record, part in parts.items() if part.is_whole}
    session.record(records_block(quoted, whole, revision_of(body.encode()), body, session.conversation.last))
    for path, revision in whole.items():
        session.ledger.restore(path, revision)
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
    heads = known.ranked(0, _OFFERED + 1)
    if len(heads) > _OFFERED:
        first = heads[:_OFFERED_FIRST]
        found = known.search(text, _OFFERED).heads
        heads = list({head.slug: head for head in (*first, *found)}.values())[:_OFFERED]
    shown = session.conversation.revisions | _quoted(session.conversation)
    return [head for head in heads if not _is_in_view(session, head, shown) and _may_hold(session, head)]


def _quoted(conversation: Conversation) -> dict[str, str]:
    """The records that were stated in this conversation, cut ones included, with their revisions."""
    blocks = (block for group in conversation.live_groups for block in group.blocks if block.kind == "state")
    records = (block.attrs.get("records") for block in blocks)
    return {path: rev for each in records if isinstance(each, dict) for path, rev in each.items()}


def _is_in_view(session: Session, head: Head, shown: Mapping[str, str]) -> bool:
    if head.path not in shown:
        return False
    record = session.memory.files.record(head.slug)
    return record is not None and record.revision == shown[head.path]


def _may_hold(session: Session, head: Head) -> bool:
    return session.memory.doubts(head)[0] != "missing"


def _chosen(session: Session, text: str, offered: Sequence[Head]) -> Generator[Event, None, list[Head] | None]:
    """The small model's choice; None where it makes none that can be understood."""
    listed = session.masker.mask(_listed(offered))
    question = f"<request>\n{_cut(text, _ASKED_CHARS)}\n</request>\n\n<records>\n{listed}\n</records>"
    answer = yield from ask_small(session, SideQuestion("selection", question, leaves=1))
    if not answer:
        return None
    known = {head.slug: head for head in offered}
    lines = [line.strip().lstrip("-* ").strip("`") for line in answer.split("\n") if line.strip()]
    named = list({line: known[line] for line in lines if line in known}.values())
    return named[:MOST] if named or lines == [_NOTHING] else None


def _listed(heads: Sequence[Head]) -> str:
    return "\n".join(f"{head.slug}: {head.name} — {head.description} ({_facts(head)})" for head in heads)


def _facts(head: Head) -> str:
    return f"{head.type}, updated {head.updated[:10] or 'at an unknown time'}"


class _Part(NamedTuple):
    """A record as it is stated, and whether that is all of it."""

    text: str
    is_whole: bool


def _shown(session: Session, record: Record) -> _Part:
    """Masked first, and cut then: half of a secret would not be known for one."""
    mask = session.masker.mask
    facts = "; ".join((record.path, f"{_facts(record)}{_age(record.updated, session.clock())}"))
    said = doubt(*session.memory.doubts(record))
    doubts = [f"Verify before use: {said}."] if said else []
    text = mask(record.text)
    parts = [mask(f"## {cut(record.name, SHOWN_NAME)} ({facts})"), *doubts, _cut(text, _BODY_CHARS, record.path)]
    return _Part("\n\n".join(parts), len(text) <= _BODY_CHARS)


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
