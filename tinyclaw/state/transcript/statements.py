"""What the conversation has been told of a live file, and how it is told.

A statement's wire text is one element around the file's text, or around a diff of the text as it
was stated before. The element's closing tag carries a word that does not occur in the content, so
that no file can end its own statement.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tinyclaw.state.transcript.block import Block, heading
from tinyclaw.state.transcript.content import text_hash
from tinyclaw.types import Json

How = Literal["whole", "diff", "gone"]
By = Literal["outside", "agent", "during", "now"]
"""Who changed a file. ``during``: it changed while a command of ours ran; ``now``: nobody did, it is only said."""

RECORDS = "(memory)"
"""Stands for a path where memory records are quoted."""

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True)
class Statement:
    """The newest statement of one file in the conversation.

    ``text`` is None where it cannot be rebuilt from the transcript (a tool's result stated it, or a
    person edited it). ``order`` is its place in the file, ``length`` the conversation's length in
    characters before it; ``message`` is its message number, ``since`` that of the whole text that it
    builds on (0 where that is in the prefix).
    """

    revision: str
    text: str | None
    message: int
    order: int
    length: int
    since: int = 0


def state_block(
    path: str, revision: str, by: By, text: str | None, before: str | None, message: int, *, is_cut: bool = False
) -> Block:
    """The event that says what ``path`` is now: whole, as a diff from ``before``, or gone (``text`` is None).

    ``is_cut``: the text is not all of the file.
    """
    how, content = _shortest(text, before)
    facts: Json = {"m": message, "path": path, "rev": revision, "by": by, "how": how}
    if is_cut:
        facts["cut"] = True
    if how == "diff" and before is not None:
        facts["from"] = text_hash(before)
    return Block("state", facts, _wire(path, revision, by, how, content), heading=heading(3, path))


def records_block(
    records: Mapping[str, str], whole: Mapping[str, str], revision: str, text: str, message: int
) -> Block:
    """The event that quotes memory records, once: no statement of what a file says from now on.

    ``records`` are the revisions of all that are quoted, by path, ``whole`` those that are not cut.
    """
    facts: Json = {"m": message, "path": RECORDS, "rev": revision, "by": "now", "how": "whole"}
    known = {"revisions": dict(whole)} if whole else {}
    content = _wire(RECORDS, revision, "now", "whole", text)
    return Block("state", {**facts, "records": dict(records), **known}, content, heading=heading(3, RECORDS))


def stated_text(block: Block, before: str | None) -> str | None:
    """The file's text after this event, or None where that cannot be told."""
    how = block.attrs.get("how")
    content = block.text.partition("\n")[2].rpartition("\n</state ")[0]
    if how == "whole":
        return content
    if how == "diff" and before is not None and block.attrs.get("from") in (None, text_hash(before)):
        return apply_diff(before, content)
    return None


def _shortest(text: str | None, before: str | None) -> tuple[How, str]:
    if text is None:
        return "gone", "(this file is gone, or is no longer among those that are read here)"
    if before is not None and before != text:
        diff = make_diff(before, text)
        if len(diff) < len(text) and apply_diff(before, diff) == text:
            return "diff", diff
    return "whole", text


def _wire(path: str, revision: str, by: By, how: How, content: str) -> str:
    tag = revision[:8]
    while f"</state {tag}" in content:
        tag += "x"
    name = re.sub(r'["<>\x00-\x1f]', "_", path)
    changed = "" if by == "now" else f' changed="{by}"'
    return f'<state path="{name}" revision="{revision}" how="{how}"{changed}>\n{content}\n</state {tag}>'


def make_diff(before: str, after: str) -> str:
    """The hunks of a unified diff with two lines of context, without file names."""
    lines = difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=2)
    return "\n".join(list(lines)[2:])


def apply_diff(before: str, diff: str) -> str | None:
    """``before`` with the hunks of ``diff`` applied, or None when they do not fit it."""
    source = before.split("\n")
    result: list[str] = []
    position = 0
    for line in diff.split("\n") if diff else ():
        if hunk := _HUNK.fullmatch(line):
            start = int(hunk[1]) - (hunk[2] != "0")
            if not position <= start <= len(source):
                return None
            result += source[position:start]
            position = start
        elif line.startswith("+"):
            result.append(line[1:])
        elif line[:1] in (" ", "-") and source[position : position + 1] == [line[1:]]:
            result += [line[1:]] if line[0] == " " else []
            position += 1
        else:
            return None
    return "\n".join(result + source[position:])
