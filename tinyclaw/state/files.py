"""Files as bytes: writes that never lose what somebody else saved.

No file system offers compare-and-swap on content. ``write`` therefore compares the file with what the
caller had read, exchanges it with the new version in one step, and compares what came out: whatever
somebody saved in between is in hand then, to be merged or put back. Invariant: content that is not
ours leaves the disk only after it was merged whole, or because its own author replaced it.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tinyclaw.errors import FileChanged, StateError
from tinyclaw.state._displaced import Displaced, take_held
from tinyclaw.state._names import Exchange, claim, exchange
from tinyclaw.state._reading import ABSENT, FileRead, explained, read, revision_of
from tinyclaw.state._temp import fsync_folder, temp_file, turn
from tinyclaw.state.merge import distance, merge3, unified
from tinyclaw.state.settling import Sleep, settle, stillness

__all__ = ["ABSENT", "FileRead", "Rescued", "Written", "read", "recheck_displaced", "revision_of", "write"]

_ATTEMPTS = 20


@dataclass(frozen=True)
class Written:
    """``revision`` is what is on disk now; ``diff`` what somebody else had changed, if it was ``merged``."""

    revision: str
    merged: bool = False
    diff: str = ""


@dataclass(frozen=True)
class Rescued:
    """A save that reached a file only after we had replaced it.

    It was merged into ``path``, or kept as the new file ``saved_as``.
    """

    path: Path
    diff: str
    saved_as: Path | None = None

    def __str__(self) -> str:
        if self.saved_as is None:
            return f"{self.path}: a save that came late was merged in"
        return f"{self.path}: a save that came late could not be merged; it is kept as {self.saved_as.name}"


def write(
    path: Path,
    data: bytes,
    *,
    base: FileRead,
    fsync: bool = False,
    sleep: Sleep = time.sleep,
    exchange: Exchange = exchange,
) -> Written:
    """Make ``data`` the content of ``path``, provided that it still is what ``base`` had read.

    What somebody saved meanwhile is merged in where both edits survive whole. Links are followed, the
    mode is kept, missing folders of a new file are made, and equal content writes nothing. With
    ``fsync`` the file survives a power failure from the return on.

    Raises: FileChanged when the edits overlap or the file was deleted or created meanwhile; StateError
    when the system refuses. The other's version stands then.
    """
    target = Path(os.path.realpath(path))
    with explained(path, "written"):
        if base.data is None:
            target.parent.mkdir(parents=True, exist_ok=True)
        with turn(target.parent, sleep):
            found = read(target)
            if found.revision == base.revision:
                base = found  # a base known by its revision alone is whole again
            elif base.data is None and base.revision != ABSENT:
                raise _refusal(path, False, found.revision, "")
            return _Write(path, target, data, base.data, fsync, sleep, exchange).run()


def recheck_displaced(*, last: bool = False, sleep: Sleep = time.sleep) -> list[Rescued]:
    """Saves that came late: by programs that had a file open when ``write`` replaced it.

    To be called before each compile and, with ``last``, at exit, where writers at work are waited for
    (a second at most). Each such save is merged into its file or kept beside it, and told once.

    Raises: StateError when one can be neither merged nor kept.
    """
    problems: list[StateError] = []
    for held in take_held():
        try:
            _look_again(held, last, sleep)
        except StateError as error:
            problems.append(error)
            held.hold()
        else:
            held.hold_or_close(last=last)
    if problems:
        raise problems[0]
    told = list(_rescued)
    del _rescued[: len(told)]
    return told


_rescued: list[Rescued] = []


@dataclass
class _Write:
    """One ``write``. ``expected`` is what we believe to be on disk, ``wanted`` what is to come there.

    ``stood`` are the versions that somebody could have had in an editor, ``saves`` those that are not
    ours, and ``parents`` says which version was made of which.
    """

    path: Path
    target: Path
    wanted: bytes
    expected: bytes | None
    fsync: bool
    sleep: Sleep
    exchange: Exchange
    stood: list[bytes] = field(default_factory=list)
    saves: list[bytes] = field(default_factory=list)
    parents: dict[bytes, tuple[bytes, ...]] = field(default_factory=dict)
    diffs: list[str] = field(default_factory=list)

    def run(self) -> Written:
        self.stood.append(self.expected or b"")
        for _ in range(_ATTEMPTS):
            found = self._find()
            if found == self.wanted:
                return self._written()
            if found != self.expected:
                if found is None or not self._merge(found):
                    raise self._refused(found)
                self.expected = found
            if self.wanted == self.expected or self._place():
                return self._written()
        raise self._refused(read(self.target).data)

    def _find(self) -> bytes | None:
        """What is on disk; if that is news, once it stands still."""
        found = read(self.target).data
        if found in (self.expected, self.wanted):
            return found
        return settle(lambda: read(self.target).data, stillness, self.sleep)[0]

    def _place(self) -> bool:
        """Put ``wanted`` in the file's place. False: something came between, look again."""
        like = None if self.expected is None else self.target
        try:
            base = ABSENT if self.expected is None else revision_of(self.expected)
            temp = temp_file(self.target, self.wanted, like, self.fsync, base)
        except FileNotFoundError:
            return False
        try:
            if self.expected is None:
                claim(temp, self.target)
            else:
                self.exchange(temp, self.target)
        except (FileNotFoundError, FileExistsError):
            temp.unlink()
            return False
        except BaseException:
            temp.unlink(missing_ok=True)
            raise
        if self.fsync:
            fsync_folder(self.target.parent)
        return self.expected is None or self._compare(temp)

    def _compare(self, temp: Path) -> bool:
        """Whether what came out is what we expected. If not, it is merged into ``wanted``, or put back."""
        try:
            displaced = Displaced.open(temp, self.target)
        except OSError as error:
            self._put_back(temp, None)
            raise StateError(f"{self.path}: is no plain file any more; nothing was written") from error
        if displaced.look() == self.expected or displaced.settled(self.sleep) == self.expected:
            displaced.release()
            return True
        placed = self.wanted
        if not self._merge(displaced.content):
            os.close(displaced.fd)
            raise self._refused(self._put_back(temp, displaced.content))
        displaced.release()
        self.stood.append(placed)
        self.expected = placed
        return False

    def _put_back(self, temp: Path, newest: bytes | None) -> bytes | None:
        """Exchange until what comes out is what we had put in: then the newest save stands. Returns it.

        ``newest`` is what ``temp`` holds, None when that is no plain file.
        """
        placed: bytes | None = self.wanted
        for _ in range(_ATTEMPTS):
            try:
                self.exchange(temp, self.target)
            except FileNotFoundError:
                claim(temp, self.target)
                return newest
            out = Displaced.open(temp, self.target)
            if out.look() == placed or out.settled(self.sleep) == placed:
                out.release()
                return newest
            os.close(out.fd)
            placed, newest = newest, out.content
            self._note(newest)
        _keep_beside(self.target, temp.read_bytes())
        temp.unlink()
        return placed

    def _merge(self, theirs: bytes) -> bool:
        """Take a save into ``wanted``. False: the edits overlap, ``wanted`` is as it was."""
        ancestor = self._note(theirs)
        merged = _merged(ancestor, self.wanted, theirs)
        if merged is None:
            return False
        self.parents.setdefault(merged, (self.wanted, theirs))
        self.wanted = merged
        return True

    def _note(self, save: bytes) -> bytes:
        """Remember a save of somebody else. Returns the version it was made of: the one it differs from least."""
        ancestor = _nearest(self.stood, save)
        self.parents.setdefault(save, (ancestor,))
        self.stood.append(save)
        self.saves.append(save)
        self.diffs.append(_diff(ancestor, save, self.path.name))
        return ancestor

    def _written(self) -> Written:
        return Written(revision_of(self.wanted), bool(self.saves), "".join(self.diffs))

    def _refused(self, newest: bytes | None) -> FileChanged:
        """The error to raise. Saves that the newest was not made of are kept beside the file."""
        line = [newest] if newest is not None else []
        for version in line:
            line += [parent for parent in self.parents.get(version, ()) if parent not in line]
        for save in self.saves:
            if save not in line:
                _keep_beside(self.target, save)
        revision = ABSENT if newest is None else revision_of(newest)
        return _refusal(self.path, self.expected is None, revision, "".join(self.diffs))


def _refusal(path: Path, was_absent: bool, revision: str, diff: str) -> FileChanged:
    if revision == ABSENT:
        what, mend = "was deleted since it was read", "it was not made again; write it as a new file if it is to exist"
    elif was_absent:
        what, mend = "was created by somebody else meanwhile", "nothing was written; read it first"
    else:
        what, mend = "changed since it was read", "the change stands and nothing was written; read it again"
    return FileChanged(f"{path}: {what}; {mend}", diff=diff, revision=revision)


def _look_again(held: Displaced, last: bool, sleep: Sleep) -> None:
    before = held.content
    if last:
        held.outlast_writers(sleep)
    elif held.look() != before:
        held.settled(sleep)
    late, held.content = held.content, before
    if late != before:
        _save_late(held.target, before, late, sleep)
    held.content = late


def _save_late(target: Path, before: bytes, late: bytes, sleep: Sleep) -> None:
    """Bring a save home that went into a displaced file, where ``before`` stood."""
    diff = _diff(before, late, target.name)
    with suppress(StateError):
        current = read(target)
        if current.data == late:
            return
        merged = _merged(before, current.data, late) if current.data is not None else None
        if merged is not None:
            write(target, merged, base=current, sleep=sleep)
            _rescued.append(Rescued(target, diff))
            return
    with explained(target, "rescued"):
        _keep_beside(target, late, diff)


def _keep_beside(target: Path, content: bytes, diff: str = "") -> None:
    """Save ``content`` as a new file, named after its revision, next to ``target``, and have that told."""
    name = target.with_name(f"{target.name}.rescued-{revision_of(content)}")
    temp = temp_file(name, content, target if target.exists() else None, fsync=True)
    try:
        claim(temp, name)
    except FileExistsError:
        temp.unlink()
    _rescued.append(Rescued(target, diff, name))


def _nearest(versions: list[bytes], content: bytes) -> bytes:
    """The version that differs least from ``content``, the earliest of equals."""
    text = _text(content)
    known = [version for version in versions if _text(version) is not None]
    if text is None or len(known) < 2:
        return versions[0]
    return min(known, key=lambda version: distance(version.decode(), text))


def _merged(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    texts = [_text(content) for content in (base, ours, theirs)]
    if None in texts:
        return None
    merged = merge3(*(text for text in texts if text is not None))
    return None if merged is None else merged.encode()


def _diff(old: bytes, new: bytes, name: str) -> str:
    """Empty for what is not UTF-8."""
    before, after = _text(old), _text(new)
    return "" if before is None or after is None else unified(before, after, name)


def _text(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
