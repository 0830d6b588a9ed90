"""Checks of all instructions that a workspace holds: what they import and cannot have, and what of them is cut."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from tinyclaw.context.source import Limits, SourceContext, load_sources
from tinyclaw.state.live import LiveFiles
from tinyclaw.state.nested import CLOSED
from tinyclaw.state.snapshot import IMPORTS, MAX_STATE_BYTES, NESTED, Snapshot, SnapshotReader
from tinyclaw.state.workspace import Workspace
from tinyclaw.tools._walk import Walk
from tinyclaw.types import Diagnostic


def check_instructions(workspace: Workspace, limits: Limits, mask: Callable[[str], str]) -> Iterator[Diagnostic]:
    """What would be told to the person in a session that touched each folder with instructions, one after the other.

    The whole workspace is walked through. What is wrong with a file of the chain itself is not repeated here.
    """
    (source,) = (each for each in load_sources() if each.name == "instructions")
    live = LiveFiles(time.time, time.sleep, limit_bytes=MAX_STATE_BYTES)
    reader = SnapshotReader(workspace, live, mask, source.watches, time.time)
    told: set[str] = set()
    for folder in ("", *_folders(workspace, source.watches)):
        snapshot = reader.take({}, (folder,))
        yield from snapshot.import_faults
        problems = _problems(snapshot)
        for piece in source.pieces(SourceContext(snapshot, limits, "default", str)):
            if piece.text and piece.path not in told:
                told.add(piece.path)
                if problem := problems.get(piece.path):
                    yield problem
                elif piece.note.startswith("cut:"):
                    yield Diagnostic(piece.path, None, piece.note)


def _folders(workspace: Workspace, patterns: tuple[str, ...]) -> list[str]:
    """Every folder that holds instructions and may bring them in."""
    names = {name for each in patterns for name in each.rpartition(":")[2].split("|")}
    files = Walk(str(workspace.root), "", []).files(lambda path: path.rpartition("/")[2] in names)
    folders = dict.fromkeys(file.path.rpartition("/")[0] for file in files)
    return [folder for folder in folders if CLOSED.isdisjoint(folder.split("/"))]


def _problems(snapshot: Snapshot) -> dict[str, Diagnostic]:
    """What is wrong with files that only imports or touches bring in, by path."""
    nested = [pattern for pattern in snapshot.found if pattern.startswith(IMPORTS + NESTED)]
    brought = {*snapshot.importers, *(file.path for file in snapshot.files(*nested))}
    files = snapshot.files(*snapshot.found)
    return {file.path: file.problem for file in files if file.problem is not None and file.path in brought}
