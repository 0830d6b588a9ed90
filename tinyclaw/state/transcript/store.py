"""The transcript's file: one writer at a time, appended by path, never rewritten, always ready to be edited by hand.

Before each append the file is compared with what we last knew of it. What a person changed is
parsed again and is the conversation from then on. Blocks of ours that a stale editor buffer
overwrote are not lost: those of the running turn are appended again, older ones are kept beside the
file, and both are said.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tinyclaw.errors import NewerFormat, StateError
from tinyclaw.state.transcript.appending import AppendedFile
from tinyclaw.state.transcript.bodies import to_json
from tinyclaw.state.transcript.fold import Conversation, ImageLoader, Permission, conversation_of
from tinyclaw.state.transcript.grammar import DAMAGED, FORMAT, OUTSIDE, Block, Parsed, parse, render, render_header
from tinyclaw.state.transcript.lock import SessionLock, clear_orphan_locks

MAX_SLUG = 40


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
        self.header: dict[str, str] = {}
        self.conversation = Conversation(load_image=load_image)
        self._file = AppendedFile(path)
        self._lock = lock
        self._load_image = load_image
        self._blocks: list[Block] = []

    @classmethod
    def create(cls, folder: Path, name: SessionName, title: str, created: str, load_image: ImageLoader) -> Transcript:
        """Start a session file. ``created`` is an RFC 3339 time.

        Raises: StateError when the folder cannot be written or the file is there.
        """
        _make_folder(folder)
        clear_orphan_locks(folder)
        path = folder / name.file
        transcript = cls(path, SessionLock.take(path), load_image)
        transcript.header = {"session": name.id, "title": title[:200], "created": created, "format": str(FORMAT)}
        try:
            transcript._file.make(render_header(transcript.header))
        except StateError:
            transcript.close()
            raise
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
    def blocks(self) -> Sequence[Block]:
        """All blocks of the file, in order."""
        return self._blocks

    @property
    def title(self) -> str:
        return self.header.get("title", "")

    def append(self, *blocks: Block, tool_ran: bool = False) -> None:
        """Write blocks behind the last one and take them into the conversation.

        Args:
            tool_ran: a tool of ours ran since the last append, so that a change of the file may be its doing.

        Raises: StateError, with the file as it was, when the disk is full or the file cannot be written.
        """
        text = render(blocks)
        self.refresh(tool_ran=tool_ran)
        while not self._file.append(text):
            self.refresh(tool_ran=tool_ran)
        self._blocks += blocks
        for block in blocks:
            self.conversation.append(block)

    def refresh(self, *, tool_ran: bool = False) -> bool:
        """Parse the file again if somebody changed it; True if the conversation may have changed.

        Raises: StateError, NewerFormat.
        """
        if self._file.is_known():
            return False
        data = self._file.take()
        if data is None:
            self._restore()
        else:
            self._adopt(data, tool_ran=tool_ran)
        return True

    def close(self) -> None:
        """Give the session free for others. Nothing is written."""
        self._lock.release()

    # Loading and editing the past

    def _load(self) -> None:
        data = self._file.take(settled=False)
        if data is None:
            raise StateError(f"{self.path}: is gone")
        self._use(data)

    def _use(self, data: bytes) -> None:
        """Make the conversation out of ``data``."""
        parsed = parse(data, self.path.name)
        self._check_format(parsed)
        self.header = parsed.header
        self._file.crlf = parsed.crlf
        self._blocks = list(parsed.blocks)
        self.conversation = conversation_of(self._blocks, self._load_image)
        self.notices += [str(diagnostic) for diagnostic in parsed.diagnostics]
        self.notices += [f"{self.path.name}: {note}" for note in self.conversation.notes]
        if parsed.torn_at is not None:
            self._record_torn(data, parsed.torn_at)

    def _check_format(self, parsed: Parsed) -> None:
        found = parsed.header.get("format", str(FORMAT))
        if found.isdecimal() and int(found) > FORMAT:
            self._file.forget()
            raise NewerFormat(
                f"{self.path}: has format {found}, this tinyclaw writes format {FORMAT}; update it to go on here"
            )

    def _record_torn(self, data: bytes, place: int) -> None:
        """End an unfinished last block, so that it stays out whatever is appended."""
        line, lost = data.count(b"\n", 0, place) + 1, len(data) - place
        self.append(Block("torn", {"bytes": lost}))
        cut = f"the file's end was cut off; {lost} bytes of an unfinished block are left out"
        self.notices.append(f"{self.path}:{line}: {cut}")

    def _adopt(self, data: bytes, *, tool_ran: bool) -> None:
        """Go on with what somebody made of the file; what they did not know of is not lost."""
        ours, permissions = _ours(self._blocks), self.conversation.permissions
        self._use(data)
        self.notices.append(f"{self.path.name} was changed outside this session; the conversation is what it says now")
        lost_from, turn_start = _first_lost(ours, _ours(self._blocks)), _turn_start(ours)
        older, running = ours[lost_from:turn_start], ours[max(lost_from, turn_start) :]
        if older:
            self._keep_beside(older)
        if running:
            cause = "while a tool ran" if tool_ran else "by a save that did not know them"
            count = f"{len(running)} blocks of the running turn were overwritten {cause}"
            self.notices.append(f"{self.path.name}: {count}; they stand at its end again")
            self.append(*running)
        if tool_ran:
            self._void_answers(permissions)

    def _void_answers(self, before: dict[str, Permission]) -> None:
        """No tool gives a permission: what became allowed while one ran is asked again."""
        for call, now in list(self.conversation.permissions.items()):
            if now.allowed and not (call in before and before[call].allowed):
                self.append(Block("event", {"what": "answer", "id": call, "answer": "void"}, heading="### answer"))
                self.notices.append(f"{self.path.name}: a permission was given while a tool ran; it does not count")

    def _keep_beside(self, blocks: Sequence[Block]) -> None:
        data = render(blocks).encode("utf-8", "surrogateescape")
        beside = self.path.with_suffix(f".lost-{hashlib.sha256(data).hexdigest()[:8]}.md")
        try:
            beside.write_bytes(data)
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
        self._file.make(render_header(self.header) + render(self._blocks))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StateError(
            f"{folder}: cannot be made ({error.strerror}); tinyclaw keeps its transcripts in that folder, "
            "so make room for it, or move away what is in its place"
        ) from error


def _ours(blocks: Iterable[Block]) -> list[Block]:
    return [block for block in blocks if block.kind not in (OUTSIDE, DAMAGED)]


def _turn_start(blocks: Sequence[Block]) -> int:
    """Index of the running turn's first block."""
    return max((index + 1 for index, block in enumerate(blocks) if block.kind == "turn_end"), default=0)


def _first_lost(ours: Sequence[Block], theirs: Sequence[Block]) -> int:
    """Index in ``ours`` behind the last block that ``theirs`` still holds: what follows is missing at the end.

    Blocks that look alike say nothing by themselves; they count where they follow one that is unique.
    """
    mine, found = [_identity(block) for block in ours], [_identity(block) for block in theirs]
    copies, places = Counter(mine), {identity: place for place, identity in enumerate(found)}
    unique = [index for index, identity in enumerate(mine) if copies[identity] == 1 and identity in places]
    index, place = (unique[-1] + 1, places[mine[unique[-1]]] + 1) if unique else (0, 0)
    while index < len(mine) and place < len(found) and mine[index] == found[place]:
        index, place = index + 1, place + 1
    return index


def _identity(block: Block) -> str:
    """What stays of a block when a person edits its body."""
    return f"{block.kind} {to_json(block.facts)}"
