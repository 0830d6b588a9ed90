"""A hint that files were saved. The digest is the truth: nothing is wrong when the hint is missing or false.

A few folders are watched, each without what lies below it. A thread of its own loads the watching
library, so that starting costs nothing, and looks after the watches: a folder that is removed and made
again silently loses its watch otherwise, and the system may refuse watches or run out of them.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tinyclaw.types import Diagnostic

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers.api import BaseObserver, EventEmitter, ObservedWatch

_CHECK_SECONDS = 1.0
_STOP_SECONDS = 1.0
_SAVES = frozenset({"created", "modified", "moved", "deleted"})
"""Reading a file gives events as well (opened, closed_no_write): a compile must not wake itself."""

_NOISE = re.compile(r".*~|\.#.*|#.*#|4913|.*\.sw[a-z]|\.goutputstream-.*|.*___jb_[a-z]+___|\.tinyclaw-.*")
"""What vim, Emacs, JetBrains, GNOME's editor and our own atomic writes put beside a file while saving it."""


def is_editor_noise(name: str) -> bool:
    """Whether a file of that name is an editor's (or our own) temporary companion of another file."""
    return _NOISE.fullmatch(name) is not None


@dataclass(frozen=True)
class _Watched:
    """A watch that stands. ``identity`` is the folder's device and inode when it was set."""

    identity: tuple[int, int]
    watch: ObservedWatch
    emitter: EventEmitter


class Watcher:
    """Collects the paths that were saved below ``folders`` (not recursively) and are ``interesting``.

    ``interesting`` is called from another thread and must not raise. A folder that appears, vanishes or
    is replaced counts as saved itself, since what happened in it meanwhile is unknown.

    Attributes:
        ready: set when the watches stand for the first time, or can't.
    """

    def __init__(
        self,
        folders: Iterable[Path],
        interesting: Callable[[Path], bool],
        *,
        check_seconds: float = _CHECK_SECONDS,
    ) -> None:
        self.ready = threading.Event()
        self._folders = tuple(dict.fromkeys(folders))
        self._interesting = interesting
        self._check_seconds = check_seconds
        self._watched: dict[Path, _Watched] = {}
        self._observer: BaseObserver | None = None
        self._handler: FileSystemEventHandler | None = None
        self._thread = threading.Thread(target=self._look_after, name="watcher", daemon=True)
        self._failure: Diagnostic | None = None
        self._changed: set[Path] = set()
        self._lock = threading.Lock()  # _changed and the event that says it is not empty
        self._has_changes = threading.Event()
        self._wake = threading.Event()
        self._stopping = False

    def start(self) -> None:
        """Begin in the background; ``ready`` says when."""
        self._thread.start()

    def stop(self) -> None:
        """End; at most a second."""
        self._stopping = True
        self._wake.set()
        self._has_changes.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def take(self) -> frozenset[Path]:
        """The paths saved since the last call."""
        with self._lock:
            changed = frozenset(self._changed)
            self._changed.clear()
            if not self._stopping:
                self._has_changes.clear()
        return changed

    def wait(self, seconds: float) -> bool:
        """Sleep until something is saved; False when ``seconds`` passed first."""
        self._has_changes.wait(seconds)
        return bool(self._changed)

    def healthy(self) -> bool:
        """Whether every folder that exists is being watched right now."""
        return self.ready.is_set() and self._failure is None and all(map(self._stands, self._folders))

    def diagnostic(self) -> Diagnostic | None:
        """Why saves are not noticed at once, if the system refused."""
        return self._failure

    # The rest runs in the watcher's own threads.

    def _look_after(self) -> None:
        try:
            self._open_observer()
            while not self._stopping and self._failure is None:
                self._renew()
                self.ready.set()
                self._wake.wait(self._check_seconds)
                self._wake.clear()
        except (ImportError, OSError, RuntimeError) as error:
            self._failure = _refused(self._folders, error)
        finally:
            self.ready.set()
            self._close_observer()

    def _open_observer(self) -> None:
        from watchdog.events import FileSystemEventHandler
        from watchdog.observers import Observer

        note = self._note

        class Handler(FileSystemEventHandler):
            def on_any_event(self, event: FileSystemEvent) -> None:
                note(event)

        self._handler = Handler()
        observer = Observer()
        observer.daemon = True
        observer.start()
        self._observer = observer

    def _close_observer(self) -> None:
        self._watched.clear()
        if self._observer is not None:
            self._observer.stop()
            self._observer.join(_STOP_SECONDS)

    def _renew(self) -> None:
        for folder in self._folders:
            if self._stands(folder):
                continue
            self._drop(folder)
            self._set(folder)
            if self.ready.is_set():
                self._add(folder)

    def _stands(self, folder: Path) -> bool:
        watched = self._watched.get(folder)
        if watched is None:
            return _identity(folder) is None
        return watched.emitter.is_alive() and watched.identity == _identity(folder)

    def _drop(self, folder: Path) -> None:
        watched = self._watched.pop(folder, None)
        shared = watched is not None and any(other.watch == watched.watch for other in self._watched.values())
        if watched is not None and not shared and self._observer is not None:
            self._observer.unschedule(watched.watch)

    def _set(self, folder: Path) -> None:
        identity = _identity(folder)
        if identity is None or self._observer is None or self._handler is None:
            return
        try:
            watch = self._observer.schedule(self._handler, os.path.realpath(folder))
        except (FileNotFoundError, NotADirectoryError):
            return  # gone again; the next round looks
        emitter = next(emitter for emitter in self._observer.emitters if emitter.watch == watch)
        self._watched[folder] = _Watched(identity, watch, emitter)

    def _note(self, event: FileSystemEvent) -> None:
        if event.event_type not in _SAVES:
            return
        paths = {Path(os.fsdecode(name)) for name in (event.src_path, event.dest_path) if name}
        for folder, watched in tuple(self._watched.items()):
            real = Path(watched.watch.path)
            for path in paths:
                if path.parent == real:
                    self._add(folder / path.name)
                elif path == real and event.event_type != "modified":
                    self._wake.set()

    def _add(self, path: Path) -> None:
        if is_editor_noise(path.name) or not (path in self._folders or self._interesting(path)):
            return
        with self._lock:
            self._changed.add(path)
            self._has_changes.set()


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        status = folder.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None


def _refused(folders: tuple[Path, ...], error: Exception) -> Diagnostic:
    reason = getattr(error, "strerror", None) or str(error)
    return Diagnostic(
        str(folders[0]) if folders else ".",
        None,
        f"saves are not noticed at once ({reason}); files are checked at each turn instead",
        "on Linux raise fs.inotify.max_user_watches and max_user_instances",
    )
