"""``.task_outputs/<session>/<n>-<tool>.md``: what a result was too long to carry.

A file holds the text itself and nothing else, masked, so that line numbers and offsets mean what they
meant in the output. Folder and file appear with the first output; numbers go on after a restart and
are never given twice. Every name is portable: it is committed and checked out elsewhere.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tinyclaw.errors import StateError
from tinyclaw.state.redaction import MaskedStream
from tinyclaw.state.workspace import OUTPUTS

IMAGE_SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}
"""The suffix of each media type that the model takes."""

_NAME_CHARS = 60


@dataclass(frozen=True)
class OutputRef:
    """A stored output: its path from the workspace's root, with slashes, and what the file holds."""

    path: str
    bytes: int
    lines: int
    sha256: str


class Outputs:
    """The outputs of one session. ``mask`` is ``Masker.mask``. May be used from several threads."""

    def __init__(self, root: Path, session: str, mask: Callable[[str], str]) -> None:
        self._root = root
        self._folder = root / OUTPUTS / _portable(session)
        self._mask = mask
        self._last = 0
        self._lock = threading.Lock()  # one number, one file

    def put(self, tool: str, text: str) -> OutputRef:
        """Store a whole text. Raises: StateError when the file cannot be written; then nothing is left of it."""
        return self._put(tool, ".md", _encode(self._mask(text)))

    def put_image(self, tool: str, data: bytes, suffix: str) -> OutputRef:
        """Store a picture as it is; ``suffix`` as in ``IMAGE_SUFFIXES``. Raises: StateError as ``put`` does."""
        return self._put(tool, "." + re.sub(r"[^a-z0-9]", "", suffix.lower()), data)

    @contextmanager
    def writer(self, tool: str) -> Iterator[OutputWriter]:
        """A file that grows line by line while something runs; ``.ref`` tells of it after the block.

        Raises: StateError, also from ``write``. What was written before a failure stays.
        """
        path, file = self._create(tool, ".md")
        with file:
            writer = OutputWriter(file, path.relative_to(self._root).as_posix(), self._mask)
            try:
                yield writer
            finally:
                writer.finish()

    def _put(self, tool: str, suffix: str, data: bytes) -> OutputRef:
        path, file = self._create(tool, suffix)
        try:
            with file:
                _write_all(file, data)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise _unwritable(path.relative_to(self._root).as_posix(), error) from error
        lines = _count_lines(data) if suffix == ".md" else 0
        return OutputRef(path.relative_to(self._root).as_posix(), len(data), lines, hashlib.sha256(data).hexdigest())

    def _create(self, tool: str, suffix: str) -> tuple[Path, BinaryIO]:
        with self._lock:
            try:
                self._make_folder()
                while True:
                    self._last += 1
                    path = self._folder / f"{self._last}-{_portable(tool)}{suffix}"
                    try:
                        return path, path.open("xb", buffering=0)
                    except FileExistsError:
                        continue
            except OSError as error:
                raise _unwritable(self._folder.relative_to(self._root).as_posix(), error) from error

    def _make_folder(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        if not self._folder.resolve().is_relative_to(self._root.resolve()):
            raise StateError(f"{OUTPUTS} leads out of the workspace; replace the link by a folder")
        numbers = (re.match(r"(\d+)-", path.name) for path in self._folder.iterdir())
        self._last = max([self._last, *(int(number[1]) for number in numbers if number)])


class OutputWriter:
    """Takes pieces of text; each line reaches the file when it is complete, masked."""

    def __init__(self, file: BinaryIO, path: str, mask: Callable[[str], str]) -> None:
        self._file = file
        self._stream = MaskedStream(mask)
        self._digest = hashlib.sha256()
        self._bytes = self._breaks = 0
        self._last_byte = b"\n"
        self.path = path

    def write(self, text: str) -> None:
        """Raises: StateError when the disk refuses."""
        self._append(self._stream.feed(text))

    def finish(self) -> None:
        """Write what is pending."""
        self._append(self._stream.close())

    @property
    def ref(self) -> OutputRef:
        """What the file holds by now."""
        lines = self._breaks + (self._last_byte != b"\n")
        return OutputRef(self.path, self._bytes, lines, self._digest.hexdigest())

    def _append(self, text: str) -> None:
        data = _encode(text)
        if not data:
            return
        try:
            _write_all(self._file, data)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        self._digest.update(data)
        self._bytes += len(data)
        self._breaks += data.count(b"\n")
        self._last_byte = data[-1:]


def _write_all(file: BinaryIO, data: bytes) -> None:
    """An unbuffered file takes a part when the disk fills up, and says why only when asked again."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _encode(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")


def _count_lines(data: bytes) -> int:
    return data.count(b"\n") + (data != b"" and not data.endswith(b"\n"))


def _portable(name: str) -> str:
    """``name`` as a file name that every system takes: ASCII, not hidden, no reserved word (CON, NUL), not long."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_")[:_NAME_CHARS].rstrip("-_") or "output"
    return f"{plain}-" + "output" if re.fullmatch(r"(?i)con|prn|aux|nul|com\d|lpt\d", plain) else plain


def _unwritable(path: str, error: OSError) -> StateError:
    reason = error.strerror or str(error)
    return StateError(f"{path}: cannot be written ({reason}); free space or make the folder writable")
