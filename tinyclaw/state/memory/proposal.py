"""PROPOSAL.md: changes to the memory that wait for the person, who may edit them first.

A section for each: ``## merge: a, b`` or ``## drop: c``, then ``name:``, ``type:`` and ``why:`` lines, then, for a
merge, the text of the record that takes the place of the others. The head says which revisions the records had.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from tinyclaw.errors import FileChanged, StateError
from tinyclaw.state.documents import Document
from tinyclaw.state.files import read, write
from tinyclaw.state.memory.folder import ARCHIVE, MAX_BYTES
from tinyclaw.state.memory.record import FOLDER, PROPOSAL, TYPES, Head, Note, RecordType
from tinyclaw.state.memory.store import Memory
from tinyclaw.types import Diagnostic

PATH = f"{FOLDER}/{PROPOSAL}"
_INTRODUCTION = """# Proposed changes to the memory

`tinyclaw memory accept` carries them out, `tinyclaw memory reject` puts them away. Change them first as you like, or
delete some. Records that are merged or dropped are kept in .memory/.archive/.
"""
_SECTION = re.compile(r"(?m)^## (merge|drop): *(.*)$")
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


@dataclass(frozen=True)
class Proposal:
    """Changes, the revisions of the records that they speak of, and what in the text could not be understood."""

    changes: tuple[Change, ...]
    revisions: Mapping[str, str] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()


class Outcome(NamedTuple):
    """What became of one change: a line for the person, and whether it was carried out."""

    text: str
    is_done: bool


def parse_changes(text: str, first_line: int = 1) -> tuple[list[Change], list[Diagnostic]]:
    """The changes that a text proposes, and what is wrong with others; ``first_line`` is the text's in its file."""
    changes: list[Change] = []
    problems: list[Diagnostic] = []
    matches = list(_SECTION.finditer(text))
    ends = [*(match.start() for match in matches[1:]), len(text)]
    for match, end in zip(matches, ends, strict=False):
        line = first_line + text.count("\n", 0, match.start())
        slugs = tuple(dict.fromkeys(filter(None, (each.strip(" `") for each in match[2].split(",")))))
        change = _change(match[1], slugs, text[match.end() : end].strip("\n"))
        if isinstance(change, str):
            problems.append(Diagnostic(PATH, line, change, "mend it, or delete the section"))
        else:
            changes.append(change)
    return changes, problems


def _change(kind: str, slugs: tuple[str, ...], text: str) -> Change | str:
    """The change of one section, or what is wrong with it."""
    fields: dict[str, str] = {}
    lines = text.split("\n")
    while lines and (found := _FIELD.fullmatch(lines[0].strip())):
        fields[found[1]] = found[2].strip()
        lines.pop(0)
    body = "\n".join(lines).strip()
    why = fields.get("why", "")
    if not slugs:
        return f"names no record to {kind}"
    if kind == "drop":
        return Change(slugs, why)
    if not body or not fields.get("name"):
        return "a merge needs a name: line, and below its fields the text that holds from then on"
    if fields.get("type") not in TYPES:
        return f"type: is one of {', '.join(TYPES)}"
    return Change(slugs, why, Note(fields["name"], cast(RecordType, fields["type"]), body, source="consolidated"))


def load(memory: Memory) -> Proposal | None:
    """The proposal that waits; None where none does. Raises: StateError when it cannot be read."""
    data = read(memory.files.own(PROPOSAL), limit_bytes=MAX_BYTES).data
    if data is None:
        return None
    document = Document.parse(data, PATH)
    changes, problems = parse_changes(document.body, document.body_line)
    named = (text.split() for text in document.strings("records"))
    revisions = {words[0]: words[1] for words in named if len(words) == 2}
    return Proposal(tuple(changes), revisions, (*document.diagnostics, *problems))


def save(memory: Memory, changes: Sequence[Change], now: str) -> None:
    """Write a proposal where none waits. Raises: StateError."""
    path = memory.files.own(PROPOSAL)
    slugs = dict.fromkeys(slug for change in changes for slug in change.slugs)
    records = [f"{slug} {_revision(memory, slug)}" for slug in slugs]
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
    """Carry out the proposal that waits, change by change, and put it into the archive.

    A change that speaks of a record that has changed since, or that cannot be understood, is left out.

    Raises: StateError when there is none, or a file cannot be written.
    """
    proposal = load(memory)
    if proposal is None:
        raise StateError(f"{PATH}: no proposal waits; tinyclaw memory consolidate makes one")
    for problem in proposal.diagnostics:
        yield Outcome(f"left out: {problem}", is_done=False)
    for change in proposal.changes:
        yield carry_out(memory, change, proposal.revisions)
    put_away(memory)


def carry_out(memory: Memory, change: Change, revisions: Mapping[str, str]) -> Outcome:
    """One change, unless one of its records is not what it was. Raises: StateError."""
    names = ", ".join(change.slugs)
    for slug in change.slugs:
        if slug not in revisions or _revision(memory, slug) != revisions[slug]:
            return Outcome(f"left out: {names}: {slug} is not what it was when this was proposed", is_done=False)
    heads = [head for slug in change.slugs if (head := memory.files.record(slug)) is not None]
    if len(heads) < len(change.slugs):
        return Outcome(f"left out: {names}: not all of them are there", is_done=False)
    why = f" ({change.why})" if change.why else ""
    if change.note is None:
        places = [memory.forget(head) for head in heads]
        return Outcome(f"dropped {names}{why}; kept as {', '.join(places)}", is_done=True)
    return _merge(memory, heads, change.note, why)


def _merge(memory: Memory, heads: Sequence[Head], note: Note, why: str) -> Outcome:
    """The new record is written before the old ones go: whatever ends this leaves too much, and not too little."""
    names = ", ".join(head.slug for head in heads)
    holder = memory.find(note.name)
    target = next((head for head in heads if holder is not None and head.slug == holder.slug), None)
    if holder is not None and target is None:
        return Outcome(f"left out: {names}: {holder.path} has the name {note.name!r} already", is_done=False)
    if target is not None:
        memory.files.keep_copy(f"{target.slug}.md")
    saved = memory.save(note, lambda path: read(memory.files.own(path.partition("/")[2])).revision)
    for head in heads:
        if head is not target:
            memory.forget(head)
    return Outcome(f"merged {names} into {saved.path}{why}; the old ones are kept in {FOLDER}/{ARCHIVE}/", is_done=True)


def put_away(memory: Memory) -> str:
    """Move the proposal into the archive; gives its place. Raises: StateError."""
    return memory.files.archive(PROPOSAL)


def last_made(memory: Memory) -> str:
    """When a proposal was made or put away last, as RFC 3339; "" when none ever was."""
    found = next(filter(None, map(_MADE.match, memory.files.archived("proposal-"))), None)
    return "{}-{}-{}T{}:{}:{}Z".format(*found.groups()) if found else ""


def is_waiting(memory: Memory) -> bool:
    return (memory.files.path / PROPOSAL).exists()


def _revision(memory: Memory, slug: str) -> str:
    try:
        return read(memory.files.own(f"{slug}.md"), limit_bytes=MAX_BYTES).revision[:_DIGEST_CHARS]
    except StateError:
        return ""
