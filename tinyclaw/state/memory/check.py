"""What is wrong with the memory, each with its mend."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from tinyclaw.state.memory.duplicates import contradictions, near_duplicates
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
    yield from _duplicates(records)
    for first, second in contradictions(records):
        message = f"says something else than {first.path} under nearly the same name"
        yield Diagnostic(second.path, None, message, "see which one holds, and forget or correct the other")
    yield from _unused(records, used_slugs(transcripts), now)


def _stale(memory: Memory, records: Sequence[Record]) -> Iterator[Diagnostic]:
    for record in records:
        standing, place = memory.doubts(record)
        if standing == "changed":
            mend = f"if it still holds: tinyclaw memory verify {record.slug}; else correct it or forget it"
            yield Diagnostic(record.path, None, f"is stale: {place} changed since", mend)
        elif standing == "missing":
            mend = f"correct its evidence: lines, or: tinyclaw memory forget {record.slug}"
            yield Diagnostic(record.path, None, f"is out of the index: {place} is gone", mend)


def _duplicates(records: Sequence[Record]) -> Iterator[Diagnostic]:
    for first, *others in near_duplicates(records):
        for record in others:
            mend = f"tinyclaw memory consolidate, or: tinyclaw memory forget {record.slug}"
            yield Diagnostic(record.path, None, f"says nearly the same as {first.path}", mend)


def _unused(records: Sequence[Record], used: set[str], now: datetime) -> Iterator[Diagnostic]:
    for record in records:
        try:
            age = now - datetime.fromisoformat(record.updated)
        except (ValueError, TypeError):  # no time, or one without a zone
            continue
        if record.slug not in used and age > timedelta(days=UNUSED_DAYS):
            mend = f"if nobody needs it: tinyclaw memory forget {record.slug}"
            yield Diagnostic(record.path, None, f"was read in no session and is {age.days} days old", mend)


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
