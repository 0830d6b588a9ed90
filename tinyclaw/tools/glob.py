"""List files by name."""

from __future__ import annotations

import re
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Annotated

from tinyclaw.state.wildcards import expand_braces, split_base
from tinyclaw.tools._base import ToolContext, tool
from tinyclaw.tools._search import LEFT_OUT, SECONDS, count, existing, find_files, folder_of, from_root, inside, notes
from tinyclaw.tools._searcher import TOTAL_CHARS, Files, Glob, printable
from tinyclaw.types import ToolOutput

LIMIT = 200


@tool(effect="read")
def glob(
    ctx: ToolContext,
    pattern: Annotated[str, "*.md, src/**/*.{ts,tsx}, **/test_*.py; ** spans folders"],
    path: Annotated[str, "folder that the pattern starts from"] = ".",
) -> ToolOutput:
    """List the files whose path fits a pattern, sorted, at most 200.

    Hidden files are listed; ignored ones (.gitignore) only when the pattern names them or their folder.
    """
    base, rest = split_base(re.sub(r"^(?:\./+)+", "", pattern))
    existing(ctx.workspace, path)
    start = inside(ctx.workspace, str(PurePosixPath(path) / base))
    if not (start.is_dir() or (start.is_file() and not rest)):
        return _result(pattern, Files([], 0, 0, 0), f"there is no {base} in {path}")
    folder = folder_of(ctx.workspace, start)
    if start.is_file():
        return _result(pattern, Files([printable(from_root(ctx.workspace, start))], 1, 0, 0), folder=folder)
    patterns = expand_braces(rest or "**")
    query = Glob(str(ctx.workspace.root), from_root(ctx.workspace, start), LEFT_OUT, patterns, LIMIT, SECONDS)
    return _result(pattern, find_files(query, ctx.interrupt), folder=folder)


def _result(pattern: str, found: Files, reason: str = "", folder: str = "") -> ToolOutput:
    lengths = accumulate(len(path) + 1 for path in found.paths)
    shown = found.paths[: sum(length <= TOTAL_CHARS for length in lengths)]
    if not found.total:
        verdict = f"no files match {pattern}"
    elif len(shown) < found.total:
        verdict = f"{len(shown):,} of {count(found.total, 'file')} shown: narrow the pattern"
    else:
        verdict = count(found.total, "file")
    left_out = [*([reason] if reason else []), *notes(found.ignored, 0, found.unreadable)]
    text = f"{verdict} ({'; '.join(left_out)})" if left_out else verdict
    return ToolOutput("\n".join([*shown, "", text] if shown else [text]), summary=verdict, folder=folder)
