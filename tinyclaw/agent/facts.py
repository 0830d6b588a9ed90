"""Named facts for the prompt that are no files: gathered beside the start, renewed after our own git commands.

What takes too long is not waited for: a request goes without it, and says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

SECONDS = 5.0
LATE = "git late"
"""The fact that git's facts are missing, and why."""


class Facts:
    """Fixed facts, and the text of git's facts from ``probe``, which may take a while and runs in a thread.

    ``seconds``: so long it is waited for.
    """

    def __init__(self, fixed: Mapping[str, str], probe: Callable[[], str], seconds: float = SECONDS) -> None:
        self._facts = dict(fixed)
        self._probe = probe
        self._seconds = seconds
        self.refresh()

    def refresh(self) -> None:
        """Ask git again; the next ``get`` waits for the answer. A question that is still open is left to itself."""
        self._asked = _Question(self._probe)
        self._wait = self._seconds

    def get(self) -> Mapping[str, str]:
        """All facts, without git's where these take too long. They are waited for once, later taken when there."""
        if not self._asked.is_answered(self._wait):
            self._wait = 0.0
            return {**self._facts, LATE: f"git has not answered within {self._seconds:g} seconds"}
        self._facts["git"] = self._asked.answer
        return dict(self._facts)


class _Question:
    """One call of ``probe`` in a thread of its own."""

    def __init__(self, probe: Callable[[], str]) -> None:
        self.answer = ""
        self._probe = probe
        self._thread = threading.Thread(target=self._run, name="git facts", daemon=True)
        self._thread.start()

    def is_answered(self, seconds: float) -> bool:
        """Whether the answer is there, after waiting so long for it."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        self.answer = self._probe()
