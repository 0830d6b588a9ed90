"""What is wrong with the memory, each with its mend."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from tinyclaw.state.memory.duplicates import contradictions, near_duplicates
from tinyclaw.state.memory.evidence import doubt
from tinyclaw.state.memory.record import Record
from tinyclaw.state.memory.store import Memory
from tinyclaw.types import Diagnostic

UNUSED_DAYS = 90
_USE = re.compile(r"^### .*(?:result of recall|\(memory\)) <!-- tc:(?:tool_result|state) .*$", re.MULTILINE)
_NAMED = re.compile(r'"\.memory/([^"/]+)\.md"')


def check(memory: Memory, transcripts: Path, now: datetime) -> Iterator[Diagnostic]:
    """Broken, stale, duplicate, contradictory and unused records, in this order."""
    yield from memory.files.faults()
    records = list(memory.records())
    yield from _stale(memory, records)
    for record in records:
        if memory.holds_secret(f"{record.name}\n{record.description}\n{record.text}"):
            yield Diagnostic(record.path, None, "holds a secret", "take it out, and note where it is kept")
    yield from _duplicates(records)
    for first, second in contradictions(records):
        message = f"says something else than {first.path} under nearly the same name"
        yield Diagnostic(second.path, None, message, "see which one holds, and forget or correct the other")
    yield from _unused(records, used_slugs(transcripts), now)


def _stale(memory: Memory, records: Sequence[Record]) -> Iterator[Diagnostic]:
    for record in records:
        standing, place = memory.doubts(record)
        said = doubt(standing, place)
        if standing == "changed":
            mend = f"if it still holds: {_command('verify', record)}; else correct it or forget it"
            yield Diagnostic(record.path, None, f"is stale: {said}", mend)
        elif standing == "missing":
            mend = f"correct its evidence: lines, or: {_command('forget', record)}"
            yield Diagnostic(record.path, None, f"is out of the index: {said}", mend)
        elif unpinned := [each.place for each in record.evidence if not each.digest]:
            message = f"rests on {', '.join(unpinned)} without a hash, so no change of that shows"
            yield Diagnostic(record.path, None, message, f"if it holds: {_command('verify', record)}")


def _duplicates(records: Sequence[Record]) -> Iterator[Diagnostic]:
    for first, *others in near_duplicates(records):
        for record in others:
            mend = f"tinyclaw memory consolidate, or: {_command('forget', record)}"
            yield Diagnostic(record.path, None, f"says nearly the same as {first.path}", mend)


def _unused(records: Sequence[Record], used: set[str], now: datetime) -> Iterator[Diagnostic]:
    for record in records:
        try:
            age = now - datetime.fromisoformat(record.updated)
        except (ValueError, TypeError):  # no time, or one without a zone
            continue
        if record.slug not in used and age > timedelta(days=UNUSED_DAYS):
            mend = f"if nobody needs it: {_command('forget', record)}"
            yield Diagnostic(record.path, None, f"was read in no session and is {age.days} days old", mend)


def _command(name: str, record: Record) -> str:
    return f"tinyclaw memory {name} {'-- ' if record.slug.startswith('-') else ''}{shlex.quote(record.slug)}"


def used_slugs(transcripts: Path) -> set[str]:
    """The records that some session of a folder of transcripts has recalled or was told."""
    found: set[str] = set()
    for path in transcripts.glob("*.md") if transcripts.is_dir() else ():
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for opener in _USE.findall(text):
            found.update(_NAMED.findall(opener))
    return found
