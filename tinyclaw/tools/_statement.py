"""The result of a tool that works on PLAN.md or TODO.md: it states the file, so that nothing else has to."""

from __future__ import annotations

from tinyclaw.errors import StateError, ToolError
from tinyclaw.state import files
from tinyclaw.tools._base import ToolContext
from tinyclaw.tools._locate import Place, locate, read_file
from tinyclaw.tools._text import decode, shown
from tinyclaw.tools._writing import commit, refuse_approval, told
from tinyclaw.types import ToolOutput

STATE_FILE_BYTES = 1 << 20
STATED_CHARACTERS = 12_000
"""A longer file is not stated by the result; the model reads it by pages."""


def open_state_file(ctx: ToolContext, name: str) -> tuple[Place, files.FileRead]:
    """Raises: ToolError when it is no file that can be read."""
    place = locate(ctx.workspace, name)
    return place, read_file(place, STATE_FILE_BYTES)


def save(ctx: ToolContext, place: Place, base: files.FileRead, data: bytes, done: str, changed: str) -> ToolOutput:
    """Write the file and state it: whole when it is short, otherwise ``changed``, the part that is new.

    Raises: ToolError as ``commit``, and when the write would approve a plan.
    """
    refuse_approval(ctx.workspace, place, base.data, data)
    knows = len(data) <= STATED_CHARACTERS or ctx.ledger.seen(place.name) == base.revision
    result = commit(ctx, place, data, base, knows_base=knows)
    headline = f"{done}{told(result.others)}"
    if len(data) > STATED_CHARACTERS:
        return ToolOutput(f"{headline}\n{changed}".rstrip(), revisions=result.revisions, summary=done)
    return stated(ctx, place, result.now, headline, summary=done)


def stated(ctx: ToolContext, place: Place, now: files.FileRead, headline: str = "", summary: str = "") -> ToolOutput:
    """The file's whole text, or where to read it when it is long."""
    text = shown(decode(now.data or b"").text)
    if len(text) > STATED_CHARACTERS:
        note = f"{place.name} has {len(text):,} characters; read it for the whole."
        return ToolOutput(f"{headline}\n{note}".lstrip(), summary=summary or note)
    ctx.ledger.note(place.name, now)
    lead = f"{headline} {place.name} now:".lstrip() if headline else f"{place.name}:"
    body = text if text.strip() else "(empty)"
    return ToolOutput(f"{lead}\n\n{body}", revisions={place.name: now.revision}, summary=summary or place.name)


def refused(error: StateError) -> ToolError:
    """A refusal of the document itself, told to the model."""
    return ToolError(f"{error}. Nothing was changed.")
