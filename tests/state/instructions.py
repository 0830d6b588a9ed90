"""A workspace whose instructions are read as a session reads them."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tinyclaw.state.live import LiveFiles
from tinyclaw.state.snapshot import MAX_STATE_BYTES, SnapshotReader
from tinyclaw.state.workspace import Workspace

USER, CHAIN, NESTED = "@user:AGENTS.md", "@chain:AGENTS.md|CLAUDE.md", "@nested:AGENTS.md|CLAUDE.md"


class Tree:
    """A folder to write into, and a reader that was started at its root or in ``cwd`` below it."""

    def __init__(self, folder: Path, cwd: str = "") -> None:
        self.root, self.user = folder / "project", folder / "user"
        for each in (self.root / cwd, self.user):
            each.mkdir(parents=True, exist_ok=True)
        workspace = Workspace(self.root, self.root / cwd, self.user)
        live = LiveFiles(time.time, lambda seconds: None, limit_bytes=MAX_STATE_BYTES)
        self.reader = SnapshotReader(workspace, live, str, (USER, CHAIN, NESTED, "PLAN.md"), time.time)

    def write(self, path: str, text: str | bytes = "") -> Path:
        """Save a file as it was a while ago; without a text it holds its own name."""
        place = self.user / path[2:] if path.startswith("~/") else self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else (text or f"text of {path}\n").encode())
        past = time.time() - 100
        os.utime(place, (past, past))
        return place

    def link(self, path: str, target: str | Path) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)

    def paths(self, *touched: str) -> list[str]:
        """The files of instructions, in the order in which they are told, after these folders were touched."""
        return [file.path for file in self.reader.take({}, touched).files(USER, CHAIN, NESTED)]

    def faults(self, *touched: str) -> list[str]:
        """What is not imported, and why."""
        return [str(fault) for fault in self.reader.take({}, touched).import_faults]
