"""Once there are many new records the small model is asked which say the same, contradict each other or no longer hold.

What it proposes waits for the person in PROPOSAL.md, or is carried out at once where they have set that.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

from tinyclaw.agent.events import Event, Notice
from tinyclaw.agent.remembering import may_remember, sync_index
from tinyclaw.agent.session import Session
from tinyclaw.agent.side import SideQuestion, ask_small
from tinyclaw.errors import StateError
from tinyclaw.state.memory import proposal
from tinyclaw.state.memory.duplicates import near_duplicates
from tinyclaw.state.memory.proposal import Change, parse_changes
from tinyclaw.state.memory.record import Record
from tinyclaw.state.redaction import holds_mask

THRESHOLD = 12
"""So many new records, and they are looked through."""
_MOST_RECORDS = 60
_NEIGHBOURS = 4
_RECORD_CHARS = 2_000
_ALL_CHARS = 48_000


def consolidate_when_many(session: Session) -> Generator[Event, None, None]:
    """Look the records through where enough are new since the last time; a proposal that waits is waited for.

    Raises: Interrupted, StateError when the transcript cannot be written.
    """
    memory, mode = session.memory, session.habits.consolidate
    if mode == "off" or not may_remember(session) or not memory.files.has_records:
        return
    try:
        if proposal.is_waiting(memory) or memory.looked_up().count_since(proposal.last_made(memory)) < THRESHOLD:
            return
        changes = yield from look_through(session)
        if changes is None:
            return
        proposal.save(memory, changes, session.now)
        if not changes:
            proposal.put_away(memory)
        elif mode == "auto":
            yield from _carried_out(session)
        else:
            yield Notice(
                f"{proposal.PATH} proposes {len(changes)} change{'s' if len(changes) != 1 else ''} to the memory; "
                "look at it, then: tinyclaw memory accept (or reject)"
            )
    except StateError as error:
        session.habits = replace(session.habits, consolidate="off")
        yield Notice(f"the memory cannot be consolidated, and that is not tried again in this session: {error}")


def look_through(session: Session) -> Generator[Event, None, list[Change] | None]:
    """The changes that the small model proposes, none where it proposes none that can be understood.

    None when it could not be asked.

    Raises: Interrupted, StateError.
    """
    parts = _listed(session, _candidates(session))
    text = session.masker.mask("\n\n".join(part for _, part in parts))
    answer = yield from ask_small(session, SideQuestion("consolidation", text))
    if answer is None:
        return None
    changes = parse_changes(answer)
    kept = sound(changes, [record for record, _ in parts])
    for change in changes:
        if change not in kept:
            names = session.masker.mask(", ".join(change.slugs))
            yield Notice(f"a change that the small model proposes is left out, it cannot be right: {names}")
    if not changes and answer.strip() != "NONE":
        yield Notice("the small model's answer about the memory could not be understood")
    return kept


def sound(changes: Sequence[Change], records: Sequence[Record]) -> list[Change]:
    """Those that speak of records that were given, each of one once, and that hold no masked secret."""
    known = {record.slug for record in records}
    taken: set[str] = set()
    kept: list[Change] = []
    for change in changes:
        text = f"{change.note.name}\n{change.note.text}" if change.note else ""
        is_sound = known.issuperset(change.slugs) and taken.isdisjoint(change.slugs) and not holds_mask(text)
        if is_sound and (len(change.slugs) > 1 or change.note is None):
            taken.update(change.slugs)
            kept.append(change)
    return kept


def _carried_out(session: Session) -> Iterator[Notice]:
    for outcome in proposal.accept(session.memory):
        yield Notice(f"memory: {session.masker.mask(outcome.text)}")
    sync_index(session)


def _candidates(session: Session) -> list[Record]:
    """All records where they are few; else the new ones with those that come nearest to them."""
    memory = session.memory
    heads = memory.heads()
    if len(heads) > _MOST_RECORDS:
        newest = sorted(heads, key=lambda head: head.created, reverse=True)[: _MOST_RECORDS // 2]
        near = [hit for head in newest for hit in memory.search(f"{head.name} {head.description}", _NEIGHBOURS).heads]
        heads = list({head.slug: head for head in (*newest, *near)}.values())[:_MOST_RECORDS]
    records = [record for head in heads if (record := memory.files.record(head.slug)) is not None]
    grouped = [record.slug for group in near_duplicates(records) for record in group]
    order = {slug: place for place, slug in enumerate(grouped)}
    return sorted(records, key=lambda record: (order.get(record.slug, len(order)), record.slug))


def _listed(session: Session, records: Sequence[Record]) -> list[tuple[Record, str]]:
    """The records as the small model gets them, each whole: what is not given whole cannot be merged without a loss."""
    parts: list[tuple[Record, str]] = []
    room = _ALL_CHARS
    for record in records:
        standing, place = session.memory.doubts(record)
        rests = f"; rests on {', '.join(each.place for each in record.evidence)}" if record.evidence else ""
        doubt = f" ({place}: {standing})" if standing != "holds" else ""
        facts = f"{record.type}; created {record.created[:10]}, updated {record.updated[:10]}{rests}{doubt}"
        part = f"### {record.slug}\nname: {record.name}\n{facts}\n\n{record.text}"
        if len(part) <= min(room, _RECORD_CHARS):
            room -= len(part)
            parts.append((record, part))
    return parts
