"""Waiting until a file that somebody is saving stands still.

Editors truncate and write, or move away and create; in between the file is half there, empty or
absent. Only time tells such a moment from a state that the person meant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Look = TypeVar("Look")
Sleep = Callable[[float], None]

STILL_SECONDS = 0.05
"""How long content must be unchanged to be taken as whole."""
EMPTY_SECONDS = 0.25
"""How long a file must be empty or absent to be taken as emptied or deleted."""
LONGEST_SECONDS = 1.0
"""The most that anybody waits; a file that changes all the time is not waited for."""
_STEP_SECONDS = 0.01


def stillness(data: bytes | None) -> float:
    """Seconds that ``data`` must stand still before it counts; None is an absent file."""
    return STILL_SECONDS if data else EMPTY_SECONDS


def settle(look: Callable[[], Look], needs: Callable[[Look], float], sleep: Sleep) -> tuple[Look, bool]:
    """Look again and again until the same was seen for as long as it ``needs``, in seconds.

    Returns what was seen last, and False when it did not stand still within ``LONGEST_SECONDS``.
    Time is counted in sleeps, so a busy machine waits longer, never less.
    """
    seen, still, waited = look(), 0.0, 0.0
    while still < needs(seen):
        if waited >= LONGEST_SECONDS:
            return seen, False
        sleep(_STEP_SECONDS)
        waited += _STEP_SECONDS
        before, seen = seen, look()
        still = still + _STEP_SECONDS if seen == before else 0.0
    return seen, True
