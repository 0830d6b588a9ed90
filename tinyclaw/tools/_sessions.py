"""Looking up in all sessions of the workspace what was said, called and answered, and what was kept beside them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tinyclaw.state.transcript.prefixes import FOLDER
from tinyclaw.state.workspace import OUTPUTS, TRANSCRIPTS
from tinyclaw.tools._search import SECONDS, find_lines
from tinyclaw.tools._searcher import Grep
from tinyclaw.types import Interrupt

_WAS_SAID = r'^(?!.*<!-- tc:|\{"text": ".*"\}$|\.(?:transcripts|task_outputs)/[^\s:]+:\d+: )'
"""Openers and records hold names of files and calls again and again, and nothing that was said.

Earlier searches and what they found would be found again and again, too.
"""


class Found(NamedTuple):
    """Lines as ``path:line: text``; ``more``: there are others."""

    lines: list[str]
    more: bool


def search_sessions(root: Path, text: str, limit: int, interrupt: Interrupt) -> Found:
    """The lines with ``text``, in whatever case: at most ``limit``, those of the transcripts first.

    Raises: ToolError when the search takes too long; Interrupted.
    """
    pattern = f"{_WAS_SAID}.*{re.escape(text)}"
    lines: list[str] = []
    for folder in (TRANSCRIPTS, OUTPUTS):
        if not (root / folder).is_dir():
            continue
        left_out = [f"{TRANSCRIPTS}/{FOLDER}"]
        query = Grep(str(root), folder, left_out, pattern, "", True, 0, limit + 1 - len(lines), SECONDS)
        lines += find_lines(query, interrupt).lines
        if len(lines) > limit:
            return Found(lines[:limit], more=True)
    return Found(lines, more=False)
