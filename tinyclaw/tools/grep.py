"""Search file contents."""

from __future__ import annotations

from typing import Annotated

from tinyclaw.errors import ToolError
from tinyclaw.tools._base import ToolContext, tool
from tinyclaw.tools._search import LEFT_OUT, SECONDS, count, existing, find_lines, folder_of, from_root, notes
from tinyclaw.tools._searcher import Grep, Matches
from tinyclaw.types import ToolOutput

MAX_CONTEXT = 20
MAX_MATCHES = 1_000


@tool(effect="read")
def grep(
    ctx: ToolContext,
    pattern: Annotated[str, "regular expression, Python syntax, matched line by line"],
    path: Annotated[str, "file or folder to search"] = ".",
    glob: Annotated[str, "only files like this: *.py, src/**/*.{ts,tsx}"] = "",
    ignore_case: bool = False,
    context: Annotated[int, "lines to show around each match"] = 0,
    limit: Annotated[int, "most matches to show"] = 100,
) -> ToolOutput:
    """Search file contents; gives `path:line: text`.

    Hidden files are searched; ignored ones (.gitignore) only when `path` names them or a folder of theirs.
    """
    if not pattern:
        raise ToolError("pattern is empty; give what to look for, or use glob to list files.")
    if not (0 <= context <= MAX_CONTEXT and 1 <= limit <= MAX_MATCHES):
        raise ToolError(f"context goes from 0 to {MAX_CONTEXT}, limit from 1 to {MAX_MATCHES}.")
    start = existing(ctx.workspace, path)
    query = Grep(
        str(ctx.workspace.root),
        from_root(ctx.workspace, start),
        LEFT_OUT,
        pattern,
        glob,
        ignore_case,
        context,
        limit,
        SECONDS,
    )
    found = find_lines(query, ctx.interrupt)
    verdict = _verdict(found, glob)
    text = "\n".join([*found.lines, "", verdict] if found.lines else [verdict])
    return ToolOutput(text, summary=verdict.split(" (")[0], folder=folder_of(ctx.workspace, start))


def _verdict(found: Matches, glob: str) -> str:
    """The last line: a hit, a miss, or nothing that could have been hit."""
    left_out = notes(found.ignored, found.binary, found.unreadable)
    if found.more:
        text = f"{count(found.matches, 'match')} shown, there are more: narrow pattern, path or glob"
    elif found.matches:
        text = f"{count(found.matches, 'match')} in {count(found.files, 'file')}"
    else:
        text = f"no matches in {count(found.searched, 'file')}"
        if glob and not found.searched:
            left_out.insert(0, f"no file fits {glob}")
    return f"{text} ({'; '.join(left_out)})" if left_out else text
