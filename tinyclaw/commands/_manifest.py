"""A request as text for people: the window as a bar, its parts as a table, what was cut or left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tinyclaw.agent.view import View
from tinyclaw.amounts import dollars
from tinyclaw.context.manifest import Entry, Manifest
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
DIFF_ROWS = 15
_SAME_SHARE = 0.05
"""A part's tokens are an estimate; it counts as changed when it has grown or shrunk by more than this."""


def manifest_text(view: View, columns: int) -> str:
    """The window as a bar by kind, then each part: tokens, share, what is cached, cost, file, lines, revision."""
    manifest = view.manifest
    basis = "as corrected by what the provider reported" if manifest.corrected else "estimated"
    cost = view.cost_usd(manifest.tokens, view.cached_tokens)
    price = "" if cost is None else f", {dollars(cost)} before it is answered"
    cached = min(view.cached_tokens, manifest.tokens)
    total = (
        f"{manifest.tokens:,} tokens in all ({basis}), {_share(manifest.tokens, view.window_tokens)} of the window, "
        f"{cached:,} of them in the provider's cache{price}; for {one_line(view.request.model)}"
    )
    noted = [(one_line(entry.file or name), one_line(entry.note)) for name, entry in manifest.entries.items()]
    notes = [f"  {name}: {note}" for name, note in noted if note]
    rows = [line.rstrip() for line in table(list(_rows(view)), columns, right=(1, 2, 3, 4))]
    return "\n".join([*_bar(view, columns), "", *rows, "", total, *(["", "Cut or left out:", *notes] if notes else [])])


def difference_text(before: View, after: View) -> str:
    """What came, went, grew and shrank between two requests, the largest first, and which files differ."""
    old, new = ({(part.kind, part.name): part for part in view.parts} for view in (before, after))
    changes = []
    for key in dict.fromkeys((*new, *old)):
        was, now = (parts[key].tokens if key in parts else 0 for parts in (old, new))
        sign = "~" if was and now else "+" if now else "-"
        if abs(now - was) > _SAME_SHARE * max(was, now):
            size = f"{was:,} tokens, now {now:,}" if was and now else f"{was or now:,} tokens"
            changes.append((abs(now - was), f"{sign} {one_line(key[1])}: {size}"))
    lines = [line for _, line in sorted(changes, reverse=True)[:DIFF_ROWS]]
    more = [f"  and {len(changes) - DIFF_ROWS} smaller changes"] if len(changes) > DIFF_ROWS else []
    files = [
        f"~ {one_line(entry.file)}: revision {one_line(entry.revision)}, was {one_line(known.revision)}"
        for name, entry in after.manifest.entries.items()
        if entry.file and (known := before.manifest.entries.get(name)) and known.revision != entry.revision
    ]
    total = f"{before.manifest.tokens:,} tokens before, {after.manifest.tokens:,} after"
    return "\n".join([*lines, *more, *files, total])


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
        one_line(entry.lines),
        one_line(entry.revision),
    )


def _entry(manifest: Manifest, part: Part) -> Entry:
    """What the manifest says of a part's file."""
    if part.is_pinned:
        return manifest.entries.get(part.name, Entry("out", 0))
    stated = (entry for entry in manifest.entries.values() if entry.place == "event" and entry.file == part.file)
    return next(stated, Entry("out", 0)) if part.file else Entry("out", 0)
