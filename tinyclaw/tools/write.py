"""Make a file, or replace one whole that the model has read."""

from __future__ import annotations

from typing import NamedTuple

from tinyclaw.errors import ToolError
from tinyclaw.state import files
from tinyclaw.state.merge import unified
from tinyclaw.tools._base import ToolContext, tool
from tinyclaw.tools._edit_match import rewritten
from tinyclaw.tools._locate import Place, locate, read_file
from tinyclaw.tools._text import decode, is_binary
from tinyclaw.tools._writing import changes, commit, refuse_approval, refuse_masks, told
from tinyclaw.types import ToolOutput

WRITABLE_BYTES = 50_000_000


class _Written(NamedTuple):
    """A file before a write and the bytes that it gets."""

    place: Place
    base: files.FileRead
    data: bytes


def _diff(ctx: ToolContext, path: str, content: str) -> str:
    place, base, data = _made(ctx, path, content)
    before = decode(base.data).text if base.data is not None else ""
    return unified(before, decode(data).text, place.name) or f"{place.name}: no change"


@tool(effect="write", diff=_diff)
def write(ctx: ToolContext, path: str, content: str) -> ToolOutput:
    """Create a file (its folders too), or replace the whole of one that you have read and that is unchanged since.

    An existing file keeps its encoding and line endings. To change a part of a file, use edit. If the file changed
    since you read it, you get the difference: read it again and keep what the person did.
    """
    place, base, data = _made(ctx, path, content)
    done = commit(ctx, place, data, base, knows_base=True)
    verb = "created" if base.data is None else "unchanged" if data == base.data else "replaced"
    summary = f"{verb} {place.name} ({_lines(content)}, {len(data):,} bytes)"
    text = summary + told(done.others)
    return ToolOutput(text, revisions=done.revisions, summary=summary, folder=place.folder)


def _made(ctx: ToolContext, path: str, content: str) -> _Written:
    """The write, not yet done. Raises: ToolError when it is refused."""
    place = locate(ctx.workspace, path)
    refuse_masks(content)
    base = read_file(place, WRITABLE_BYTES)
    if base.data is None:
        _check_absent(ctx, place, base)
        data = _new_bytes(content)
    else:
        _check_seen(ctx, place, base, base.data)
        data = _replacing(base.data, content)
    refuse_approval(ctx.workspace, place, base.data, data)
    return _Written(place, base, data)


def _check_absent(ctx: ToolContext, place: Place, now: files.FileRead) -> None:
    if ctx.ledger.seen(place.name) not in (None, files.ABSENT):
        ctx.ledger.note(place.name, now)
        raise ToolError(
            f"{place.name} was deleted since you last saw it, so it was not written. If it shall exist again in spite "
            "of that, write it once more."
        )


def _check_seen(ctx: ToolContext, place: Place, now: files.FileRead, data: bytes) -> None:
    seen = ctx.ledger.seen(place.name)
    if seen == now.revision:
        return
    if is_binary(data):
        raise ToolError(f"{place.name} is a binary file; write replaces text only. Use bash if it has to go.")
    if seen in (None, files.ABSENT):
        raise ToolError(f"{place.name} exists already and you have not read it. Read it first, then write or edit it.")
    base = ctx.ledger.base(place.name)
    diff = changes(base.data, data, place.name).text if base and base.data is not None else ""
    text = f"{place.name} changed since you read it; nothing was written. Read it again and keep these changes."
    raise ToolError(f"{text}\n{diff}".rstrip())


def _replacing(old: bytes, content: str) -> bytes:
    """``content`` in the encoding, with the byte order mark and in the line endings of the file it replaces."""
    before = decode(old)
    if before.encoding.bom:
        content = content.removeprefix("\ufeff")
    return before.encoding.bom + before.encoding.encode(rewritten(before.text, content))


def _new_bytes(content: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            f"content holds half a character ({content[error.start]!r}), which no file can hold."
        ) from error


def _lines(content: str) -> str:
    count = content.count("\n") + (not content.endswith("\n") and content != "")
    return "1 line" if count == 1 else f"{count:,} lines"
