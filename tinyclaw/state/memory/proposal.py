"""PROPOSAL.md: changes to the memory that wait for the person, who may edit them first.

A section for each: ``## merge: a, b`` or ``## drop: c``, then ``name:``, ``type:`` and ``why:`` lines, then, for a
merge, the text of the record that takes the place of the others. The head says which revisions the records had.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple, cast

from tinyclaw.errors import FileChanged, StateError
from tinyclaw.state.documents import Document
from tinyclaw.state.files import read, write
from tinyclaw.state.memory.folder import ARCHIVE, MAX_BYTES
from tinyclaw.state.memory.record import FOLDER, PROPOSAL, TYPES, Note, Record, RecordType
from tinyclaw.state.memory.store import Memory
from tinyclaw.types import Diagnostic

PATH = f"{FOLDER}/{PROPOSAL}"
_INTRODUCTION = """# Proposed changes to the memory

`tinyclaw memory accept` carries them out, `tinyclaw memory reject` puts them away. Change them first as you like, or
delete some. Records that are merged or dropped are kept in .memory/.archive/.
"""
_KINDS = ("merge", "drop")
_SECTION = re.compile(r"(?m)^## (\w+): *(.*)$")
_FIELD = re.compile(r"(name|type|why): *(.*)")
_DIGEST_CHARS = 12
_MADE = re.compile(r"proposal-(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)")


@dataclass(frozen=True)
class Change:
    """Records by their slugs, why they should go, and the note that takes their place; None where they are dropped."""

    slugs: tuple[str, ...]
    why: str
    note: Note | None = None

    def __str__(self) -> str:
        head = f"## {'merge' if self.note else 'drop'}: {', '.join(self.slugs)}"
        if self.note is None:
            return f"{head}\nwhy: {self.why}"
        return f"{head}\nname: {self.note.name}\ntype: {self.note.type}\nwhy: {self.why}\n\n{self.note.text}"


class Section(NamedTuple):
    """One change as it stands in a text, from ``start`` to ``end``; what is wrong with it where it is none."""

    start: int
    end: int
    change: Change | None
    problem: Diagnostic | None = None


class Outcome(NamedTuple):
    """What became of one change: a line for the person, and whether it was carried out."""

    text: str
    is_done: bool


def parse_changes(text: str) -> list[Change]:
    """The changes that a text proposes; what is none is left out."""
    return [section.change for section in sections(text) if section.change is not None]


def sections(text: str, first_line: int = 1) -> Iterator[Section]:
    """The parts of a text that propose a change, or mean to; ``first_line`` is the text's in its file."""
    matches = [match for match in _SECTION.finditer(text) if _kind(match[1])]
    ends = [*(match.start() for match in matches[1:]), len(text)]
    for match, end in zip(matches, ends, strict=False):
        slugs = tuple(dict.fromkeys(filter(None, (each.strip(" `") for each in match[2].split(",")))))
        change = _change(match[1], slugs, text[match.end() : end].strip("\n"))
        line = first_line + text.count("\n", 0, match.start())
        if isinstance(change, str):
            yield Section(match.start(), end, None, Diagnostic(PATH, line, change, "mend it, or delete the section"))
        else:
            yield Section(match.start(), end, change)


def _kind(word: str) -> str:
    """The kind of change that a word means, "" where it may be any heading of a text."""
    return next(iter(get_close_matches(word.lower(), _KINDS, n=1)), "")


def _change(kind: str, slugs: tuple[str, ...], text: str) -> Change | str:
    """The change of one section, or what is wrong with it."""
    fields: dict[str, str] = {}
    lines = text.split("\n")
    while lines and (found := _FIELD.fullmatch(lines[0].strip())):
        fields[found[1]] = found[2].strip()
        lines.pop(0)
    body = "\n".join(lines).strip()
    why = fields.get("why", "")
    if kind not in _KINDS:
        return f'"{kind}" is no change; write {" or ".join(_KINDS)}'
    if not slugs:
        return f"names no record to {kind}"
    if kind == "drop":
        return Change(slugs, why)
    if not body or not fields.get("name"):
        return "a merge needs a name: line, and below its fields the text that holds from then on"
    if fields.get("type") not in TYPES:
        return f"type: is one of {', '.join(TYPES)}"
    return Change(slugs, why, Note(fields["name"], cast(RecordType, fields["type"]), body, source="consolidated"))


def save(memory: Memory, changes: Sequence[Change], now: str) -> None:
    """Write a proposal where none waits. Raises: StateError."""
    path = memory.files.own(PROPOSAL)
    slugs = dict.fromkeys(slug for change in changes for slug in change.slugs)
    found = filter(None, map(memory.files.record, slugs))
    records = [f"{record.slug} {record.revision[:_DIGEST_CHARS]}" for record in found]
    text = "\n\n".join((f"\n{_INTRODUCTION}".rstrip("\n"), *map(str, changes))) + "\n"
    data = Document.parse(text.encode(), PATH).set_field("made", now)
    data = Document.parse(data, PATH).set_field("records", records)
    there = read(path, limit_bytes=MAX_BYTES)
    if there.data is not None:
        raise StateError(f"{PATH}: another proposal waits; accept or reject it first")
    try:
        write(path, data, base=there)
    except FileChanged as error:
        raise StateError(f"{PATH}: another proposal was made meanwhile") from error


def accept(memory: Memory) -> Iterator[Outcome]:
    """Carry out the proposal that waits, change by change. What is done is taken out of it, and all of it archived.

    A change that speaks of a record that has changed since, or that cannot be understood, is left out, and waits on.

    Raises: StateError when there is none, or a file cannot be written.
    """
    path = memory.files.own(PROPOSAL)
    there = read(path, limit_bytes=MAX_BYTES)
    if there.data is None:
        raise StateError(f"{PATH}: no proposal waits; tinyclaw memory consolidate makes one")
    document = Document.parse(there.data, PATH)
    named = (text.split() for text in document.strings("records"))
    revisions = {words[0]: words[1] for words in named if len(words) == 2}
    done: list[Section] = []
    waiting = 0
    for section in sections(document.body, document.body_line):
        outcome = _outcome(memory, section, revisions)
        done += [section] if outcome.is_done else []
        waiting += not outcome.is_done
        yield outcome
    if not waiting:
        put_away(memory)
        return
    memory.files.keep_copy(PROPOSAL)
    body = document.body
    for section in reversed(done):
        body = body[: section.start] + body[section.end :]
    write(path, document.with_body(body), base=there)


def _outcome(memory: Memory, section: Section, revisions: Mapping[str, str]) -> Outcome:
    if section.change is None:
        return Outcome(f"left out: {section.problem}", is_done=False)
    try:
        return carry_out(memory, section.change, revisions)
    except StateError as error:
        return Outcome(f"left out: {', '.join(section.change.slugs)}: {error}", is_done=False)


def carry_out(memory: Memory, change: Change, revisions: Mapping[str, str]) -> Outcome:
    """One change, unless one of its records is not what it was; those that the person added are as they are.

    Raises: StateError.
    """
    names = ", ".join(change.slugs)
    records: list[Record] = []
    for slug in change.slugs:
        record = memory.files.record(slug) or memory.find(slug)  # a person may write its name, too
        if record is None:
            return Outcome(f"left out: {names}: there is no record {slug}", is_done=False)
        if not record.revision.startswith(revisions.get(slug, "")):
            mend = f"delete it from the head of {PATH} if the change is still right"
            return Outcome(f"left out: {names}: {slug} has changed since this was proposed; {mend}", is_done=False)
        records.append(record)
    why = f" ({change.why})" if change.why else ""
    if change.note is not None:
        return _merge(memory, records, change.note, why)
    places = [memory.forget(record) for record in records]
    return Outcome(f"dropped {names}{why}; kept as {', '.join(places)}", is_done=True)


def _merge(memory: Memory, records: Sequence[Record], note: Note, why: str) -> Outcome:
    """The new record is written before the old ones go: whatever ends this leaves too much, and not too little."""
    names = ", ".join(record.slug for record in records)
    known = {record.path: record.revision for record in records}
    saved = memory.save(note, known.get)
    if saved.how == "kept":
        return Outcome(f"left out: {names}: {saved.path} has the name {note.name!r} already", is_done=False)
    stays = [record for record in records if record.slug != saved.slug and not _is_put_away(memory, record)]
    more = f"; {', '.join(record.path for record in stays)} changed meanwhile and stays" if stays else ""
    kept = f"the old ones are kept in {FOLDER}/{ARCHIVE}/"
    return Outcome(f"merged {names} into {saved.path}{why}; {kept}{more}", is_done=True)


def _is_put_away(memory: Memory, record: Record) -> bool:
    try:
        memory.files.archive(f"{record.slug}.md", record.revision)
    except FileChanged:
        return False
    return True


def put_away(memory: Memory) -> str:
    """Move the proposal into the archive; gives its place. Raises: StateError."""
    return memory.files.archive(PROPOSAL)


def last_made(memory: Memory) -> str:
    """When a proposal was made or put away last, as RFC 3339; "" when none ever was."""
    found = next(filter(None, map(_MADE.match, memory.files.archived("proposal-"))), None)
    return "{}-{}-{}T{}:{}:{}Z".format(*found.groups()) if found else ""


def is_waiting(memory: Memory) -> bool:
    """Whether one is there, or something else has its name."""
    return os.path.lexists(memory.files.path / PROPOSAL)
