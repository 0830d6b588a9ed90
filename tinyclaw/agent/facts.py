"""Named facts for the prompt that are no files: gathered beside the start, renewed after our own git commands."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping


class Facts:
    """Fixed facts, and the text of git's facts from ``probe``, which may take a while and runs in a thread."""

    def __init__(self, fixed: Mapping[str, str], probe: Callable[[], str]) -> None:
        self._facts = dict(fixed)
        self._probe = probe
        self._thread: threading.Thread | None = None
        self.refresh()

    def refresh(self) -> None:
        """Ask git again; the next ``get`` waits for the answer."""
        self._settle()
        self._thread = threading.Thread(target=self._run, name="git facts", daemon=True)
        self._thread.start()

    def get(self) -> Mapping[str, str]:
        """All facts."""
        self._settle()
        return self._facts

    def _settle(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        self._facts["git"] = self._probe()
