"""Which failures are tried again, after how long, and how often."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from itertools import count

from tinyclaw.errors import Interrupted, ModelError, ModelErrorKind
from tinyclaw.types import Interrupt, ModelEvent, Retrying

PASSING: frozenset[ModelErrorKind] = frozenset({"connection", "cut", "overloaded", "rate_limit", "server", "timeout"})
"""Kinds of failure that may be gone at the next try. The others would fail the same way again."""


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential backoff with jitter that never undercuts what the server asks for.

    ``random`` gives a number in [0, 1), by which a quarter of the backoff is shortened.
    """

    max_tries: int = 5
    """All requests for one reply, the first included."""
    first_seconds: float = 0.5
    longest_seconds: float = 8.0
    longest_asked_seconds: float = 60.0
    """A server that asks for a longer wait ends the matter at once, rather than holding the person up."""
    random: Callable[[], float] = random.random

    def delay_seconds(self, failed_try: int, asked_seconds: float | None) -> float:
        """How long to wait after the try of that number (1, 2, …) failed."""
        backoff = min(self.longest_seconds, self.first_seconds * 2.0 ** (failed_try - 1))
        return max(backoff * (1 - self.random() / 4), asked_seconds or 0.0)


def retrying(
    attempt: Callable[[], Iterator[ModelEvent]], policy: RetryPolicy, interrupt: Interrupt
) -> Iterator[ModelEvent]:
    """Yield the events of ``attempt``; after a passing failure say ``Retrying``, wait, and begin anew.

    ``Retrying.attempt`` is the number of the try that failed.

    Raises:
        ModelError: of the last try, with the number of tries; or at once when another try is pointless.
        Interrupted: the person did not want to wait.
    """
    for number in count(1):
        try:
            yield from attempt()
            return
        except ModelError as error:
            failure = error
        _give_up_on(failure, number, policy)
        delay = policy.delay_seconds(number, failure.retry_after_seconds)
        yield Retrying(str(failure), delay, number, failure.lost)
        if interrupt.wait(delay):
            raise Interrupted("interrupted while waiting to try again")


def _give_up_on(failure: ModelError, number: int, policy: RetryPolicy) -> None:
    asked = failure.retry_after_seconds
    if failure.kind not in PASSING:
        raise failure
    if asked is not None and asked > policy.longest_asked_seconds:
        raise _worded(failure, f"the server asks to wait {asked:.0f} s before the next try; run it again after that")
    if number >= policy.max_tries:
        raise _worded(failure, f"gave up after {number} {'try' if number == 1 else 'tries'}")


def _worded(failure: ModelError, end: str) -> ModelError:
    worded = ModelError(
        f"{failure}; {end}",
        kind=failure.kind,
        status=failure.status,
        retry_after_seconds=failure.retry_after_seconds,
    )
    worded.lost = failure.lost
    return worded


def retry_after_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """What the server asks us to wait, from ``retry-after-ms`` or ``retry-after`` (seconds or a date).

    ``now`` is in seconds since the epoch. None: it says nothing, or nothing intelligible.
    https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    return seconds if seconds is not None else _seconds_until(value, now)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _seconds_until(date: str | None, now: float) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date or "").timestamp() - now)
    except (ValueError, OverflowError):
        return None
