"""A request as text for people: the window as a bar, its parts as a table, what was cut or left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tinyclaw.agent.view import View
from tinyclaw.amounts import dollars
from tinyclaw.context.manifest import Entry, Manifest, Place
from tinyclaw.context.parts import MODEL, PERSON, RESULTS, STATED, SUMMARIES, TOOLS, Part
from tinyclaw.width import one_line, table

TALK_ROWS = 12
_BAR_COLUMNS = 100
_CELLS = (10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
"""So many tokens one cell of the bar may stand for."""
_LETTERS = {
    TOOLS: "T",
    "base": "B",
    "environment": "E",
    "instructions": "I",
    "skills": "S",
    "memory": "M",
    STATED: "F",
    PERSON: "Y",
    MODEL: "A",
    RESULTS: "R",
    SUMMARIES: "Z",
}
_OTHER = "O"
_PLACES: dict[Place, str] = {
    "tools": "fixed",
    "prefix": "fixed",
    "event": "in the talk",
    "conversation": "the talk",
    "out": "left out",
}


def manifest_text(view: View, columns: int) -> str:
    """The window as a bar by kind, then each part: tokens, share, what is cached, cost, file, lines, revision."""
    manifest = view.manifest
    basis = "as corrected by what the provider reported" if manifest.corrected else "estimated"
    cost = view.cost_usd(manifest.tokens, view.cached_tokens)
    price = "" if cost is None else f", {dollars(cost)} before it is answered"
    total = (
        f"{manifest.tokens:,} tokens in all ({basis}), {_share(manifest.tokens, view.window_tokens)} of the window, "
        f"{view.cached_tokens:,} of them in the provider's cache{price}; for {view.request.model}"
    )
    notes = [
        f"  {entry.file or name}: {one_line(entry.note)}" for name, entry in manifest.entries.items() if entry.note
    ]
    rows = [line.rstrip() for line in table(list(_rows(view)), columns, right=(1, 2, 3, 4))]
    return "\n".join([*_bar(view, columns), "", *rows, "", total, *(["", "Cut or left out:", *notes] if notes else [])])


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


def _share(tokens: int, whole: int) -> str:
    share = tokens / max(1, whole)
    return f"{share:.1%}" if share < 0.1 else f"{share:.0%}"


# The bar


def _bar(view: View, columns: int) -> Iterator[str]:
    """The window to scale, with the place where the conversation is made smaller; its far end may be cut off."""
    kinds = _kinds(view.parts)
    used, window = view.manifest.tokens, max(view.window_tokens, view.manifest.tokens)
    room = max(min(columns, _BAR_COLUMNS) - 2, 20)
    cell = next((size for size in _CELLS if used <= size * room * 2 // 3), _CELLS[-1])
    cells = "".join(letter * (round(end / cell) - round(start / cell)) for letter, start, end in _spans(kinds)).ljust(
        min(room, round(window / cell)), "·"
    )
    mark = round(view.marks.high / cell)
    if len(cells) > mark:
        cells = f"{cells[:mark]}|{cells[mark + 1 :]}"
    far = f"… {window:,}" if round(window / cell) > room else ""
    yield f"[{cells}{']' if not far else ''}{far}"
    named = [f"{_LETTERS.get(kind, _OTHER)} {kind} {tokens:,}" for kind, tokens in kinds.items()]
    yield f"{' · '.join(named)} · one cell is {cell:,} tokens; made smaller at {view.marks.high:,}"


def _kinds(parts: Sequence[Part]) -> dict[str, int]:
    """Tokens by kind, in the order of the request."""
    found: dict[str, int] = {}
    for part in parts:
        found[part.kind] = found.get(part.kind, 0) + part.tokens
    return found


def _spans(kinds: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    end = 0
    for kind, tokens in kinds.items():
        start, end = end, end + tokens
        yield _LETTERS.get(kind, _OTHER), start, end


# The table


def _rows(view: View) -> Iterator[Sequence[str]]:
    yield "part", "tokens", "share", "cached", "cost", "file", "lines", "revision"
    pinned = [part for part in view.parts if part.is_pinned]
    talk = [part for part in view.parts if not part.is_pinned]
    yield from (_row(view, part, one_line(part.name)) for part in pinned)
    if not talk:
        return
    yield _row(view, _sum("conversation", talk), "conversation")
    shown = talk[:TALK_ROWS] if len(talk) > TALK_ROWS + 1 else talk
    yield from (_row(view, part, f"  {one_line(part.name)}") for part in shown)
    if rest := talk[len(shown) :]:
        yield _row(view, _sum("", rest), f"  {len(rest)} smaller parts")


def _sum(name: str, parts: Sequence[Part]) -> Part:
    return Part(name, name, sum(part.tokens for part in parts), sum(part.cached for part in parts))


def _row(view: View, part: Part, name: str) -> Sequence[str]:
    entry = _entry(view.manifest, part)
    cost = view.cost_usd(part.tokens, part.cached)
    return (
        name,
        f"{part.tokens:,}",
        _share(part.tokens, view.manifest.tokens),
        _share(part.cached, part.tokens) if part.cached else "no",
        "" if cost is None else dollars(cost),
        one_line(entry.file),
        entry.lines,
        entry.revision,
    )


def _entry(manifest: Manifest, part: Part) -> Entry:
    """What the manifest says of a part's file."""
    if part.is_pinned:
        return manifest.entries.get(part.name, Entry("out", 0))
    stated = (entry for entry in manifest.entries.values() if entry.place == "event" and entry.file == part.file)
    return next(stated, Entry("out", 0)) if part.file else Entry("out", 0)
