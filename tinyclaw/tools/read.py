"""Look at a file: a page of text, or a picture."""

from __future__ import annotations

import io
import os
import stat
from typing import Annotated, BinaryIO

from tinyclaw.errors import ToolError
from tinyclaw.tools import _images
from tinyclaw.tools._base import ToolContext, tool
from tinyclaw.tools._locate import Place, locate, missing, read_file, unusable
from tinyclaw.tools._pages import PAGE_LINES, Page, read_page
from tinyclaw.tools._text import describe_binary, is_binary
from tinyclaw.types import ToolOutput

GATE_BYTES = 256 * 1024
"""A larger file is read by offset and limit only."""

HEAD_BYTES = 64 * 1024
"""What is looked at to tell pictures, text and other data apart."""


@tool(effect="read")
def read(
    ctx: ToolContext,
    path: str,
    offset: Annotated[int | None, "first line, from 1"] = None,
    limit: Annotated[int | None, "number of lines, at most 2000"] = None,
) -> ToolOutput:
    """Read a text file (exactly as it is, without line numbers), or look at a PNG, JPEG, GIF or WebP picture.

    A page has at most 2,000 lines or 50 KB; a note in brackets at its end says how to go on. Lines over 2,000
    characters are cut. Files over 256 KB need offset and limit: grep first for where to look. For folders use glob.
    """
    place = locate(ctx.workspace, path)
    first, lines = _range(offset, limit)
    head, size = _head(ctx, place)
    if _images.media_type(head):
        return _picture(ctx, place, size)
    if is_binary(head, whole=size <= len(head)):
        text = f"{place.name}: {describe_binary(head)}, {size:,} bytes. It cannot be shown as text; use bash."
        return ToolOutput(text, paged=True, summary=text, folder=place.folder)
    if size <= GATE_BYTES:
        page = _whole(ctx, place, first, lines)
    elif offset is None and limit is None:
        raise ToolError(
            f"{place.name} has {size:,} bytes, over the {GATE_BYTES:,} that are read at once. Read a part with offset "
            f"and limit (lines), or grep in it first."
        )
    else:
        page = _stream(ctx, place, first, lines)
    return _page_output(place, page)


def _range(offset: int | None, limit: int | None) -> tuple[int, int]:
    first, lines = 1 if offset is None else offset, PAGE_LINES if limit is None else limit
    if first < 1 or lines < 1:
        raise ToolError(f"offset and limit count lines from 1 (got offset={first}, limit={lines}).")
    return first, lines


def _head(ctx: ToolContext, place: Place) -> tuple[bytes, int]:
    """The first bytes of a plain file and its size; anything else is refused without waiting for it."""
    with _open(ctx, place) as file:
        return file.read(HEAD_BYTES), os.fstat(file.fileno()).st_size


def _open(ctx: ToolContext, place: Place) -> BinaryIO:
    try:
        descriptor = os.open(place.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise missing(ctx.workspace, place) from None
    except OSError as error:
        read_file(place, HEAD_BYTES)  # words the reason
        raise unusable(place, error) from error
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    read_file(place, HEAD_BYTES)  # says what it is
    raise ToolError(f"{place.name} is not a file; list its folder with glob.")


def _whole(ctx: ToolContext, place: Place, first: int, lines: int) -> Page:
    found = read_file(place, GATE_BYTES)
    if found.data is None:
        raise missing(ctx.workspace, place)
    ctx.ledger.note(place.name, found)
    return read_page(io.BytesIO(found.data), first, lines, ctx.interrupt)


def _stream(ctx: ToolContext, place: Place, first: int, lines: int) -> Page:
    with _open(ctx, place) as file:
        page = read_page(file, first, lines, ctx.interrupt)
    ctx.ledger.restore(place.name, page.revision)
    return page


def _picture(ctx: ToolContext, place: Place, size: int) -> ToolOutput:
    _images.check_size(place.name, size)
    found = read_file(place, _images.MAX_BASE64_BYTES)
    picture, image = _images.load(place.name, found.data or b"")
    ctx.ledger.note(place.name, found)
    text = f"{place.name}: {picture.media_type}, {picture.width}x{picture.height} pixels"
    return ToolOutput(text, images=(image,), revisions={place.name: found.revision}, paged=True, summary=text)


def _page_output(place: Place, page: Page) -> ToolOutput:
    known = {place.name: page.revision}
    if page.total == 0:
        return _said(f"{place.name} is empty ({len(page.encoding.bom)} bytes).", known)
    if not page.lines:
        raise ToolError(f"{place.name} has {page.total} lines; offset={page.first} is beyond its end.")
    text = "\n".join(page.lines)
    notes = "\n".join(f"[{note}]" for note in _notes(place, page))
    summary = f"{len(page.lines)} of {page.total} lines"
    return ToolOutput(f"{text}\n\n{notes}" if notes else text, revisions=known, paged=True, summary=summary)


def _notes(place: Place, page: Page) -> list[str]:
    notes = []
    if page.last < page.total:
        notes.append(f"lines {page.first}-{page.last} of {page.total}; go on with offset={page.last + 1}")
    elif page.first > 1:
        notes.append(f"lines {page.first}-{page.last} of {page.total}; the end")
    if page.cut:
        number = next(iter(page.cut))
        rest = f"cut -c2001-4000 in bash after sed -n {number}p shows more"
        notes.append(
            f"{len(page.cut)} lines were cut, the first is line {number} ({page.cut[number]:,} characters); {rest}"
        )
    if page.last == page.total and not page.ends_with_break:
        notes.append("no line break at the end of the file")
    if page.encoding.note:
        notes.append(page.encoding.note)
    if not any(line.strip() for line in page.lines):
        notes.append(f"{place.name} has only blank lines here")
    return notes


def _said(text: str, revisions: dict[str, str] | None = None) -> ToolOutput:
    return ToolOutput(text, revisions=revisions or {}, paged=True, summary=text)
