"""Which sessions there are: the folder's listing is the index, the newest is the last one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tinyclaw.errors import UsageError
from tinyclaw.state.transcript.grammar import parse

_HEAD_BYTES = 4096


@dataclass(frozen=True)
class SessionFile:
    """One transcript as a listing shows it. ``modified`` is in seconds since the epoch."""

    path: Path
    id: str
    title: str
    created: str
    size: int
    modified: float


def list_sessions(folder: Path) -> list[SessionFile]:
    """All transcripts in ``folder``, oldest first. Files that cannot be read are listed by their name."""
    if not folder.is_dir():
        return []
    found = [_session(Path(entry.path), entry.stat()) for entry in os.scandir(folder) if _is_transcript(entry)]
    return sorted(found, key=lambda session: (session.id, session.path.name))


def find_session(folder: Path, wanted: str) -> SessionFile:
    """The session called ``last``, or the one whose id or file name is, begins or ends with ``wanted``.

    Raises: UsageError when there is none or more than one; it lists what there is.
    """
    sessions = list_sessions(folder)
    if wanted == "last":
        if not sessions:
            raise UsageError(f'there is no session in {folder} yet; start one with: tinyclaw run "…"')
        return max(sessions, key=lambda session: (session.modified, session.id))
    exact = [session for session in sessions if wanted in (session.id, session.path.name, session.path.stem)]
    close = [session for session in sessions if _matches(session, wanted)]
    matches = exact or close
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise UsageError(f"no session is called {wanted}; see: tinyclaw sessions list")
    raise UsageError(f"{wanted} may mean {', '.join(session.id for session in matches)}; give more of the id")


def _matches(session: SessionFile, wanted: str) -> bool:
    return session.id.startswith(wanted) or session.id.endswith(wanted) or session.path.stem.startswith(wanted)


def _is_transcript(entry: os.DirEntry[str]) -> bool:
    return (
        entry.name.endswith(".md") and ".lost-" not in entry.name and not entry.name.startswith(".") and entry.is_file()
    )


def _session(path: Path, status: os.stat_result) -> SessionFile:
    try:
        with path.open("rb") as file:
            header = parse(file.read(_HEAD_BYTES), path.name).header
    except OSError:
        header = {}
    return SessionFile(
        path,
        header.get("session", path.stem),
        header.get("title", ""),
        header.get("created", ""),
        status.st_size,
        status.st_mtime,
    )
