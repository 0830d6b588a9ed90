"""A manifest as text for people."""

from __future__ import annotations

from tinyclaw.context.manifest import Entry, Manifest, Place
from tinyclaw.types import Request
from tinyclaw.width import one_line, table

_PLACES: dict[Place, str] = {
    "tools": "fixed",
    "prefix": "fixed",
    "event": "in the talk",
    "conversation": "the talk",
    "out": "left out",
}


def manifest_text(manifest: Manifest, request: Request, columns: int) -> str:
    """Each block with its file, lines, revision and tokens; below it what was cut or left out, and why."""
    rows = [("block", "tokens", "where", "file", "lines", "revision")]
    rows += [_row(name, entry) for name, entry in manifest.scaled().entries.items()]
    lines = [line.rstrip() for line in table(rows, columns, right=(1,))]
    notes = [
        f"  {entry.file or name}: {one_line(entry.note)}" for name, entry in manifest.entries.items() if entry.note
    ]
    basis = "as corrected by what the provider reported" if manifest.corrected else "estimated"
    total = f"{manifest.tokens:,} tokens in all ({basis}), for {request.model}"
    return "\n".join([*lines, "", total, *(["", "Cut or left out:", *notes] if notes else [])])


def _row(name: str, entry: Entry) -> tuple[str, str, str, str, str, str]:
    tokens = f"{entry.tokens:,}"
    return one_line(name), tokens, _PLACES[entry.place], one_line(entry.file), entry.lines, entry.revision
