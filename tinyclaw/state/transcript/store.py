"""The transcript's file: one writer at a time, appended by path, never rewritten, always ready to be edited by hand.

Before each append the file is compared with what we last knew of it (device, inode, size, times;
the content where those differ). What a person changed is parsed again and is the conversation from
then on. Blocks of ours that a stale editor buffer overwrote are not lost: those of the running turn
are appended again, older ones are kept beside the file, and both are said.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tinyclaw.errors import Locked, NewerFormat, StateError
from tinyclaw.state._reading import read
from tinyclaw.state.transcript.bodies import to_json
from tinyclaw.state.transcript.fold import Conversation, ImageLoader, conversation_of
from tinyclaw.state.transcript.grammar import DAMAGED, FORMAT, OUTSIDE, Block, Parsed, parse, render, render_header

MAX_SLUG = 40


class Signature(NamedTuple):
    """What tells that a file is the one we know without reading it."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Signature:
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@dataclass(frozen=True)
class SessionName:
    """``id`` is date, time and four hex digits; ``file`` adds a slug of the title between them."""

    id: str
    file: str

    @classmethod
    def new(cls, stamp: str, title: str, token: str) -> SessionName:
        """``stamp`` is YYYYMMDD-HHMMSS in UTC, ``token`` four hex digits. The file name is portable."""
        slug = re.sub(r"[^a-z0-9]+", "-", title.lower())[:MAX_SLUG].strip("-")
        return cls(f"{stamp}-{token}", "-".join(filter(None, (stamp, slug, token))) + ".md")


class Transcript:
    """One open session file and the conversation in it.

    Attributes:
        path: the file. ``session`` is its id, ``title`` what it is about.
        conversation: the fold over all blocks.
        notices: what has to be told to the person; whoever shows them empties the list.
    """

    def __init__(self, path: Path, lock: SessionLock, load_image: ImageLoader) -> None:
        self.path = path
        self.notices: list[str] = []
        self._lock = lock
        self._load_image = load_image
        self._blocks: list[Block] = []
        self._turn_start = 0
        self._signature: Signature | None = None
        self._hash = hashlib.sha256()
        self._ends_clean = True
        self.conversation = Conversation(load_image=load_image)
        self.header: dict[str, str] = {}
        self._crlf = False

    @classmethod
    def create(cls, folder: Path, name: SessionName, title: str, created: str, load_image: ImageLoader) -> Transcript:
        """Start a session file. ``created`` is an RFC 3339 time.

        Raises: StateError when the folder cannot be written or the file is there.
        """
        _make_folder(folder)
        _clear_orphan_locks(folder)
        path = folder / name.file
        transcript = cls(path, SessionLock.take(path), load_image)
        transcript.header = {"session": name.id, "title": title[:200], "created": created, "format": str(FORMAT)}
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except OSError as error:
            transcript.close()
            raise StateError(
                f"{path}: the transcript cannot be made ({error.strerror}); free the name or the disk"
            ) from error
        try:
            transcript._write(descriptor, render_header(transcript.header).encode("utf-8", "replace"))
        finally:
            os.close(descriptor)
        return transcript

    @classmethod
    def open(cls, path: Path, load_image: ImageLoader) -> Transcript:
        """Open a session file to go on with it. Damage is kept, repaired for the conversation, and said.

        Raises: Locked, NewerFormat, StateError.
        """
        transcript = cls(path, SessionLock.take(path), load_image)
        try:
            transcript._load()
        except StateError:
            transcript.close()
            raise
        return transcript

    @property
    def session(self) -> str:
        return self.header.get("session") or self.path.stem

    @property
    def title(self) -> str:
        return self.header.get("title", "")

    def append(self, *blocks: Block, tool_ran: bool = False) -> None:
        """Write blocks behind the last one and take them into the conversation.

        Args:
            tool_ran: a tool of ours ran since the last append, so that a change of the file may be its doing.

        Raises: StateError, with the file as it was, when the disk is full or the file cannot be written.
        """
        self.refresh(tool_ran=tool_ran)
        text = render(blocks)
        descriptor = self._open_for_append()
        try:
            status = os.fstat(descriptor)
            if not self._ends_clean:
                text = "\n" + text
            data = (text.replace("\n", "\r\n") if self._crlf else text).encode("utf-8", "surrogatepass")
            self._write(descriptor, data, status.st_size)
        finally:
            os.close(descriptor)
        self._ends_clean = True
        self._take(blocks)

    def refresh(self, *, tool_ran: bool = False) -> bool:
        """Parse the file again if somebody changed it; True if the conversation may have changed."""
        status = self._status()
        if status is not None and Signature.of(status) == self._signature:
            return False
        if status is None:
            self._restore()
            return True
        data = self._read()
        if hashlib.sha256(data).digest() == self._hash.digest():
            self._signature = Signature.of(status)
            return False
        self._adopt(data, status, tool_ran=tool_ran)
        return True

    def close(self) -> None:
        """Give the session free for others. Nothing is written."""
        self._lock.release()

    # Loading and editing the past

    def _load(self) -> None:
        status = self._status()
        if status is None:
            raise StateError(f"{self.path}: is gone")
        data = self._read()
        parsed = parse(data, self.path.name)
        _check_format(parsed, self.path)
        self._use(data, status, parsed)
        if parsed.torn_at is not None:
            lost = len(data) - parsed.torn_at
            self.append(Block("torn", {"bytes": lost}))
            self.notices.append(f"{self.path}: its end was cut off; {lost} bytes of an unfinished block are left out")

    def _use(self, data: bytes, status: os.stat_result, parsed: Parsed) -> None:
        self.header = parsed.header
        self._crlf = parsed.crlf
        self._blocks = list(parsed.blocks)
        self._signature = Signature.of(status)
        self._hash = hashlib.sha256(data)
        self._ends_clean = data.endswith((b"\n\n", b"\r\n\r\n")) or not data
        self.conversation = conversation_of(self._blocks, self._load_image)
        self._turn_start = max((i + 1 for i, block in enumerate(self._blocks) if block.kind == "turn_end"), default=0)
        self.notices += [str(diagnostic) for diagnostic in parsed.diagnostics]
        self.notices += [f"{self.path.name}: {note}" for note in self.conversation.notes]

    def _adopt(self, data: bytes, status: os.stat_result, *, tool_ran: bool) -> None:
        ours, turn_start = self._blocks, self._turn_start
        parsed = parse(data, self.path.name)
        _check_format(parsed, self.path)
        lost_from = _first_lost(ours, parsed.blocks)
        older, running = ours[lost_from:turn_start], ours[max(lost_from, turn_start) :]
        self._use(data, status, parsed)
        self.notices.append(f"{self.path.name} was changed outside this session; the conversation is what it says now")
        if older:
            self._keep_beside(older)
        if running:
            cause = "while a tool ran" if tool_ran else "by a save that did not know them"
            count = f"{len(running)} blocks of the running turn were overwritten {cause}"
            self.notices.append(f"{self.path.name}: {count}; they stand at its end again")
            self.append(*running)

    def _keep_beside(self, blocks: Sequence[Block]) -> None:
        text = render(blocks)
        beside = self.path.with_suffix(f".lost-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}.md")
        try:
            beside.write_text(text, encoding="utf-8", errors="replace", newline="")
        except OSError as error:
            raise StateError(
                f"{beside}: overwritten blocks cannot be kept ({error.strerror}); free space for them"
            ) from error
        self.notices.append(
            f"{self.path.name}: {len(blocks)} blocks are no longer in it; they are kept in {beside.name}"
        )

    def _restore(self) -> None:
        """Write the whole file again: it was deleted while we held the session."""
        self.notices.append(f"{self.path.name} was deleted while the session ran; it is written again")
        _make_folder(self.path.parent)
        blocks, self._blocks, self._hash = self._blocks, [], hashlib.sha256()
        text = render_header(self.header) + render(blocks)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            self._write(descriptor, text.encode("utf-8", "surrogatepass"), 0)
        finally:
            os.close(descriptor)
        self._blocks = blocks

    # Bytes

    def _take(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            self._blocks.append(block)
            self.conversation.append(block)
            if block.kind == "turn_end":
                self._turn_start = len(self._blocks)

    def _status(self) -> os.stat_result | None:
        try:
            return self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateError(f"{self.path}: cannot be looked at ({error.strerror})") from error

    def _read(self) -> bytes:
        data = read(self.path).data
        if data is None:
            raise StateError(f"{self.path}: is gone")
        return data

    def _open_for_append(self) -> int:
        try:
            return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            raise StateError(
                f"{self.path}: the transcript cannot be written ({error.strerror}); mend it, nothing is lost"
            ) from error

    def _write(self, descriptor: int, data: bytes, size: int = 0) -> None:
        """All of ``data`` or nothing of it."""
        written = 0
        try:
            while written < len(data):
                written += os.write(descriptor, data[written:])
        except OSError as error:
            if written:
                os.ftruncate(descriptor, size)
            raise StateError(
                f"{self.path}: {len(data)} bytes could not be added ({error.strerror}); the file is as it was. "
                "Free some space, then go on with: tinyclaw run --resume last"
            ) from error
        self._hash.update(data)
        self._signature = Signature.of(os.fstat(descriptor))


class SessionLock:
    """The right to append to one session file: a lock file beside it, which dies with its process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, transcript: Path) -> SessionLock:
        """Raises: Locked, naming the holder; StateError when the lock file cannot be made."""
        path = transcript.with_suffix(".lock")
        while True:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as error:
                raise StateError(
                    f"{path}: the session cannot be locked ({error.strerror}); give write access to the folder"
                ) from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = os.read(descriptor, 200).decode("utf-8", "replace").strip() or "another process"
                os.close(descriptor)
                raise Locked(
                    f"{transcript.name} is in use by {holder}; end that one first, or start a session of your own"
                ) from None
            if _same_file(descriptor, path):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, f"process {os.getpid()} on {os.uname().nodename}\n".encode())
                return cls(path, descriptor)
            os.close(descriptor)

    def release(self) -> None:
        if self._descriptor is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None


def _clear_orphan_locks(folder: Path) -> None:
    """Take away the locks of processes that were killed before they had made their transcript."""
    for path in folder.glob("*.lock"):
        if not path.with_suffix(".md").exists():
            with suppress(Locked, StateError):
                SessionLock.take(path.with_suffix(".md")).release()


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StateError(
            f"{folder}: cannot be made ({error.strerror}); tinyclaw keeps its transcripts in that folder, "
            "so make room for it, or move away what is in its place"
        ) from error


def _check_format(parsed: Parsed, path: Path) -> None:
    found = parsed.header.get("format", str(FORMAT))
    if found.isdecimal() and int(found) > FORMAT:
        raise NewerFormat(
            f"{path}: has format {found}, this tinyclaw writes format {FORMAT}; update tinyclaw to go on with it"
        )


def _first_lost(ours: Sequence[Block], theirs: Sequence[Block]) -> int:
    """Index in ``ours`` behind the last block that ``theirs`` still holds: what follows is missing at the end."""
    there = {_identity(block) for block in theirs}
    for index in range(len(ours) - 1, -1, -1):
        if ours[index].kind in (OUTSIDE, DAMAGED) or _identity(ours[index]) in there:
            return index + 1
    return 0


def _identity(block: Block) -> str:
    """What stays of a block when a person edits its body."""
    return f"{block.kind} {to_json(block.facts)}"
