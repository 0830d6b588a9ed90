"""The workspace's own sources: each file of .tinyclaw/sources/ is a part of the prompt, stated when it changes.

Its frontmatter may give a ``priority`` (0 to 100; the lower one falls out first when room is short), ``required: true``
(no request goes without it) and a ``command``, whose output is the text. A command acts, so it waits until the person
has trusted the workspace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from tinyclaw.context.cut import cut_file
from tinyclaw.context.source import Piece, SourceContext, source
from tinyclaw.state.documents import Document
from tinyclaw.state.snapshot import StateFile

_PATTERN = ".tinyclaw/sources/*.md"
_PRIORITY = 15
_MOST = 100
_FIELDS = ("priority", "required", "command")
_NOT_TRUSTED = "its command is not run: commands that come with a workspace wait for the person's trust"


@source(placement="event", priority=_PRIORITY, watches=(_PATTERN,), order=45)
def own(context: SourceContext) -> Iterator[Piece]:
    """What the workspace adds to the prompt by itself."""
    for file in context.snapshot.files(_PATTERN):
        yield _piece(file, context.limits.document_bytes)
    if unread := context.snapshot.unread.get(_PATTERN, 0):
        yield Piece("own", "", note=f"left out: {unread} more files than are read")


@lru_cache(maxsize=256)
def _piece(file: StateFile, limit_bytes: int) -> Piece:
    name = file.path.rpartition("/")[2].removesuffix(".md")
    document = check_source(Document.parse(file.text.encode(), file.path))
    is_required = document.choice("required", ("true", "false"), "false") == "true"
    priority, command = _priority(document), document.string("command")
    faults = [f"line {each.line}: {each.message}; {each.mend}" for each in document.diagnostics]
    shown = cut_file(replace(file, text=document.body), limit_bytes)
    text = shown.text if document.body.strip() or file.problem is not None else ""
    if command:  # that it is not run is our doing, so it stops no request either
        text, is_required = "", False
        faults.insert(0, f"left out: {_NOT_TRUSTED}")
    elif not text:
        faults.insert(0, "left out: it is empty")
    return Piece(
        id=f"own:{name}",
        text=text,
        path=file.path,
        revision=file.revision,
        lines=_lines(shown.lines, document.body_line - 1) if text else "",
        note="; ".join(filter(None, (shown.note if text else "", *faults))),
        priority=priority,
        required=is_required,
    )


def check_source(document: Document) -> Document:
    """The document, with a diagnostic for each field that means nothing or has no meaning."""
    for field in document.fields:
        if field not in _FIELDS:
            document.complain(field, f'"{field}" means nothing here', f"known are {', '.join(_FIELDS)}")
    document.choice("required", ("true", "false"), "false")
    _priority(document)
    return document


def _lines(shown: str, before: int) -> str:
    """Lines of the body as lines of the file."""
    first, dash, last = shown.partition("-")
    return f"{int(first) + before}-{int(last) + before}" if dash and first.isdecimal() and last.isdecimal() else shown


def _priority(document: Document) -> int:
    text = document.string("priority", str(_PRIORITY))
    if text.isdecimal() and len(text) <= len(str(_MOST)) and int(text) <= _MOST:
        return int(text)
    document.complain("priority", f'"{text[:40]}" is no priority', f"use a whole number from 0 to {_MOST}")
    return _PRIORITY
