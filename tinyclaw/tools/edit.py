"""Replace a quoted piece of a file and nothing else."""

from __future__ import annotations

from typing import NamedTuple

from tinyclaw.errors import ToolError
from tinyclaw.state import files
from tinyclaw.state.merge import unified
from tinyclaw.tools._base import ToolContext, tool
from tinyclaw.tools._edit_hints import nearest, numbered
from tinyclaw.tools._edit_match import Found, Span, apart, find, replacement
from tinyclaw.tools._locate import Place, locate, missing, read_file
from tinyclaw.tools._text import Decoded, decode, shown
from tinyclaw.tools._writing import Diff, changes, commit, refuse_approval, refuse_masks, told
from tinyclaw.types import ToolOutput

EDITABLE_BYTES = 50_000_000
CONTEXT_LINES = 2
WINDOW_LINES = 16
NAMED_PLACES = 20


class _Edited(NamedTuple):
    """A file before an edit and after it, and the places that it changes."""

    place: Place
    base: files.FileRead
    before: Decoded
    found: Found
    spans: tuple[Span, ...]
    data: bytes


def _diff(ctx: ToolContext, path: str, old_text: str, new_text: str, replace_all: bool = False) -> str:
    made = _made(ctx, path, old_text, new_text, replace_all)
    return unified(made.before.text, decode(made.data).text, made.place.name)


@tool(effect="write", diff=_diff)
def edit(ctx: ToolContext, path: str, old_text: str, new_text: str, replace_all: bool = False) -> ToolOutput:
    """Replace old_text by new_text in a file; everything else stays byte for byte.

    Quote old_text exactly as the file has it, with just enough lines to stand only once there, or set replace_all.
    Differences in line endings, blanks, quotes and indentation are forgiven where the place is clear. Otherwise you get
    the nearest lines: quote those. An edit works on the file as it is now, and tells what changed since you read it.
    """
    place, base, before, found, spans, data = _made(ctx, path, old_text, new_text, replace_all)
    since = _since(ctx, place, base)
    done = commit(ctx, place, data, base, knows_base=since is not None and since.whole)
    summary = _summary(place, found, len(spans))
    window = _window(before.text, decode(data).text, spans)
    text = f"{summary}\n{window}{told(done.others)}{_told_since(ctx, place, base, since)}"
    return ToolOutput(text, revisions=done.revisions, summary=summary, folder=place.folder)


def _made(ctx: ToolContext, path: str, old_text: str, new_text: str, replace_all: bool) -> _Edited:
    """The edit, not yet written. Raises: ToolError when it is refused."""
    place = locate(ctx.workspace, path)
    _check_arguments(old_text, new_text)
    base = read_file(place, EDITABLE_BYTES)
    if base.data is None:
        raise missing(ctx.workspace, place)
    before = decode(base.data)
    found = find(before.text, old_text.removeprefix("\ufeff") if before.encoding.bom else old_text)
    spans = _chosen(place, before.text, found, old_text, new_text, replace_all)
    data = _spliced(place, base.data, before, [(span, _new(before.text, span, old_text, new_text)) for span in spans])
    refuse_approval(ctx.workspace, place, base.data, data)
    return _Edited(place, base, before, found, spans, data)


def _check_arguments(old_text: str, new_text: str) -> None:
    refuse_masks(old_text)
    refuse_masks(new_text)
    if not old_text:
        raise ToolError("old_text is empty. Quote the text to replace; to make a file or fill an empty one, use write.")
    if old_text == new_text:
        raise ToolError("old_text and new_text are the same, so there is nothing to change.")


def _chosen(place: Place, text: str, found: Found, old: str, new: str, replace_all: bool) -> tuple[Span, ...]:
    if not found.spans:
        raise ToolError(_not_found(place, text, old, new))
    if replace_all:
        return apart(found.spans)
    if len(found.spans) > 1:
        numbers = [_line_of(text, span.start) for span in found.spans[:NAMED_PLACES]]
        more = f" and {len(found.spans) - NAMED_PLACES} more" if len(found.spans) > NAMED_PLACES else ""
        raise ToolError(
            f"old_text stands {len(found.spans)} times in {place.name}, at lines {', '.join(map(str, numbers))}{more}. "
            "Quote more lines around the one you mean, or set replace_all."
        )
    return found.spans


def _not_found(place: Place, text: str, old: str, new: str) -> str:
    done = find(text, new).spans if new.strip() else ()
    hint = f" new_text stands at line {_line_of(text, done[0].start)} already." if len(done) == 1 else ""
    lines = nearest(shown(text), old)
    if not lines:
        return f"old_text is not in {place.name}, and no line is like it.{hint} Read it again, or grep for the place."
    return f"old_text is not in {place.name}.{hint} The nearest lines (quote them without numbers):\n{lines}"


def _new(text: str, span: Span, old: str, new: str) -> str:
    replaced = replacement(text, span, old, new)
    if replaced is None:
        raise ToolError(
            "old_text is in the file with other indentation, and new_text has lines that are indented less than it. "
            f"The file has:\n{numbered(list(span.lines), _line_of(text, span.start))}\nQuote it with this indentation."
        )
    return replaced


def _spliced(place: Place, data: bytes, before: Decoded, changed: list[tuple[Span, str]]) -> bytes:
    """``data`` with new bytes in the place of each span; all others are copied, never encoded again."""
    encoding = before.encoding
    parts: list[bytes] = []
    at_text, at_byte = 0, len(encoding.bom)
    kept = 0
    for span, new in changed:
        start = at_byte + encoding.measure(before.text[at_text : span.start])
        end = start + encoding.measure(before.text[span.start : span.end])
        parts += [data[kept:start], encoding.encode(new)]
        at_text, at_byte, kept = span.end, end, end
    result = b"".join((*parts, data[kept:]))
    if result == data:
        raise ToolError(
            f"{place.name} says this already: with the file's own line endings and indentation nothing changes."
        )
    return result


def _since(ctx: ToolContext, place: Place, now: files.FileRead) -> Diff | None:
    """What somebody changed since the model saw the file; None when that cannot be told."""
    if ctx.ledger.seen(place.name) == now.revision:
        return Diff("", True)
    seen = ctx.ledger.base(place.name)
    if seen is None or seen.data is None or now.data is None:
        return None
    return changes(seen.data, now.data, place.name)


def _told_since(ctx: ToolContext, place: Place, base: files.FileRead, since: Diff | None) -> str:
    if since is not None:
        return (
            f"\nBefore this edit, somebody had changed the file since you saw it:\n{since.text}" if since.text else ""
        )
    if ctx.ledger.seen(place.name) in (None, files.ABSENT):
        return ""
    return "\nBefore this edit, somebody had changed the file since you saw it: read it again to see how."


def _summary(place: Place, found: Found, count: int) -> str:
    places = f"{count} places" if count > 1 else "1 place"
    loosely = f"; old_text differed in {found.rung.differs_in}, which was forgiven" if found.rung.differs_in else ""
    return f"edited {place.name} ({places}{loosely})"


def _window(before: str, after: str, spans: tuple[Span, ...]) -> str:
    """The changed lines as they are now, with a little around them (of the first place, when there are several)."""
    start = spans[0].start
    first = _line_of(before, start)
    end = len(after) - (len(before) - spans[0].end) if len(spans) == 1 else start
    last = _line_of(after, max(start, end))
    lines = [line.removesuffix("\r") for line in shown(after).split("\n")]
    top, bottom = max(1, first - CONTEXT_LINES), min(len(lines), last + CONTEXT_LINES)
    cut = bottom - top + 1 > WINDOW_LINES
    window = numbered(lines[top - 1 : min(bottom, top + WINDOW_LINES - 1)], top)
    return f"{window}\n[lines {top + WINDOW_LINES}-{bottom} not shown]" if cut else window


def _line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
