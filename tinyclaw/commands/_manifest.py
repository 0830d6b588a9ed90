"""A manifest as text for people."""

from __future__ import annotations

from tinyclaw.context.manifest import Entry, Manifest, Place
from tinyclaw.context.wire import shares
from tinyclaw.types import Request
from tinyclaw.width import one_line, table

_PLACES: dict[Place, str] = {
    "tools": "fixed",
    "prefix": "fixed",
    "event": "in the talk",
    "conversation": "the talk",
    "out": "left out",
}


TALK_ROWS = 12


def manifest_text(manifest: Manifest, request: Request, columns: int) -> str:
    """Each block with its file, lines, revision and tokens; below it what was cut or left out, and why."""
    rows = [("block", "tokens", "where", "file", "lines", "revision")]
    for name, entry in manifest.scaled().entries.items():
        rows.append(_row(name, entry))
        if entry.place == "conversation":
            rows += _talk(request, entry.tokens)
    lines = [line.rstrip() for line in table(rows, columns, right=(1,))]
    notes = [
        f"  {entry.file or name}: {one_line(entry.note)}" for name, entry in manifest.entries.items() if entry.note
    ]
    basis = "as corrected by what the provider reported" if manifest.corrected else "estimated"
    total = f"{manifest.tokens:,} tokens in all ({basis}), for {request.model}"
    return "\n".join([*lines, "", total, *(["", "Cut or left out:", *notes] if notes else [])])


def difference_text(before: Manifest, after: Manifest) -> str:
    """What came, went and changed between two requests, a line each, with the tokens."""
    old, new = before.scaled().entries, after.scaled().entries
    lines = [f"+ {_words(name, entry)}" for name, entry in new.items() if name not in old]
    lines += [f"- {_words(name, entry)}" for name, entry in old.items() if name not in new]
    for name, entry in new.items():
        was = old.get(name)
        if was and (was.revision, was.place) != (entry.revision, entry.place):
            lines.append(f"~ {_words(name, entry)}; it was {was.revision or _PLACES[was.place]}")
    return "\n".join([*lines, f"{before.tokens:,} tokens before, {after.tokens:,} after"])


def _words(name: str, entry: Entry) -> str:
    file = f" ({entry.file} {entry.revision})".replace(" )", ")") if entry.file else ""
    return f"{one_line(name)}{one_line(file)}: {entry.tokens:,} tokens, {_PLACES[entry.place]}"


def _talk(request: Request, tokens: int) -> list[tuple[str, str, str, str, str, str]]:
    """What the conversation is made of: its largest parts, and the rest together."""
    parts = list(shares(request.messages).items())
    whole = max(1, sum(length for _, length in parts))
    shown = parts[:TALK_ROWS] if len(parts) > TALK_ROWS + 1 else parts
    if rest := parts[len(shown) :]:
        shown.append((f"{len(rest)} smaller parts", sum(length for _, length in rest)))
    return [
        (f"  {one_line(origin)}", f"{round(tokens * length / whole):,}", "", "", "", "") for origin, length in shown
    ]


def _row(name: str, entry: Entry) -> tuple[str, str, str, str, str, str]:
    tokens = f"{entry.tokens:,}"
    return one_line(name), tokens, _PLACES[entry.place], one_line(entry.file), entry.lines, entry.revision
