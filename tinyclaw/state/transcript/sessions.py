"""Which sessions there are: the folder's listing is the index, the newest is the last one."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tinyclaw.errors import StateError, UsageError
from tinyclaw.state.transcript.grammar import Block, parse
from tinyclaw.state.transcript.lock import is_locked

_HEAD_BYTES = 4096
_OPENER = re.compile(rb"^(?:#{1,6} [^<\\\n]*)?<!-- tc:(?!end)", re.MULTILINE)
_TIME = re.compile(_OPENER.pattern + rb'[^\n]*"at": ?"([0-9T:+Z.-]+)"', re.MULTILINE)
_TAIL_BYTES = (1 << 16, 1 << 20)


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
    """All transcripts in ``folder``, oldest first. Files that cannot be read are listed by their name.

    Raises: StateError when ``folder`` cannot be listed.
    """
    try:
        with os.scandir(folder) as entries:
            found = [_session(entry) for entry in entries if _is_transcript(entry)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StateError(
            f"{folder}: cannot be listed ({error.strerror}); tinyclaw keeps its transcripts in that folder, "
            "so mend its permissions, or move away what is in its place"
        ) from error
    return sorted(found, key=lambda session: (session.id, session.path.name))


def find_session(folder: Path, wanted: str) -> SessionFile:
    """The session whose id or file name is, begins or ends with ``wanted``; ``last`` is the one that recorded
    something last.

    Raises: UsageError when there is none or more than one; it lists what there is. StateError as ``list_sessions``.
    """
    sessions = list_sessions(folder)
    if wanted == "last":
        if not sessions:
            raise UsageError(f'there is no session in {folder} yet; start one with: tinyclaw run "…"')
        return max(sessions, key=lambda session: (_last_time(session), session.modified, session.id))
    exact = [session for session in sessions if wanted in (session.id, session.path.name, session.path.stem)]
    close = [session for session in sessions if _matches(session, wanted)]
    matches = exact or close
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise UsageError(f"no session is called {wanted}; see: tinyclaw sessions list")
    raise UsageError(f"{wanted} may mean {', '.join(session.id for session in matches)}; give more of the id")


def how_it_stands(session: SessionFile) -> str:
    """One word: ``running`` in some process, ``new``, ``open`` (something is still to be done: a turn was cut off, a
    question is answered, a text stands below the last turn), ``paused`` for a permission, or how the last turn ended.

    No more of the file's end is read than it takes, however long the session is.
    """
    if is_locked(session.path):
        return "running"
    for size in (*_TAIL_BYTES, session.size + 1):
        if state := _state(parse(_tail(session.path, size), session.path.name).blocks):
            return state
        if size > session.size:
            break
    return "new"


def _state(blocks: Sequence[Block]) -> str:
    """How a session with these last blocks stands, "" when they do not tell."""
    answered: set[object] = set()
    for block in reversed(blocks):
        what = block.attrs.get("what") if block.kind == "event" else None
        if block.kind == "turn_end":
            return str(block.attrs.get("reason", "done"))
        if what == "answer":
            answered.add(block.attrs.get("id"))
        elif what == "permission":
            return "open" if block.box or block.attrs.get("id") in answered else "paused"
        elif block.kind != "event" and block.text.strip():
            return "open"
    return ""


def _tail(path: Path, size: int) -> bytes:
    """The last blocks of a plain file, about ``size`` bytes."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:  # noqa: PTH123 (a descriptor has no path)
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return b""
            file.seek(max(0, status.st_size - size))
            data = file.read(size)
    except OSError:
        return b""
    if status.st_size <= size:
        return data
    opener = _OPENER.search(data)
    return data[opener.start() :] if opener else b""


def _last_time(session: SessionFile) -> str:
    """When the session last recorded something, as it says itself: a file's times change with every checkout."""
    for size in (_HEAD_BYTES, *_TAIL_BYTES):
        if times := _TIME.findall(_tail(session.path, size)):
            return str(times[-1].decode())
        if size > session.size:
            break
    return session.created


def _matches(session: SessionFile, wanted: str) -> bool:
    return session.id.startswith(wanted) or session.id.endswith(wanted) or session.path.stem.startswith(wanted)


def _is_transcript(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".md") and ".lost-" not in entry.name and not entry.name.startswith(".")


def _session(entry: os.DirEntry[str]) -> SessionFile:
    path = Path(entry.path)
    try:
        status = entry.stat()
    except OSError:  # a link that leads nowhere
        status = entry.stat(follow_symlinks=False)
    header = _header(path) if stat.S_ISREG(status.st_mode) else {}
    return SessionFile(
        path,
        header.get("session", path.stem),
        header.get("title", ""),
        header.get("created", ""),
        status.st_size,
        status.st_mtime,
    )


def _header(path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            return parse(file.read(_HEAD_BYTES), path.name).header
    except OSError:
        return {}
