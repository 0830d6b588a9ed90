from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyclaw.errors import Interrupted, ModelError
from tinyclaw.model.retry import PASSING, RetryPolicy, retry_after_seconds, retrying
from tinyclaw.types import Interrupt, Reply, Retrying, TextDelta, Usage

QUICK = RetryPolicy(first_seconds=0.0, longest_seconds=0.0)
DONE = Reply((), "end_turn", Usage(), "m")


class Attempts:
    """Fails with each of the errors in turn, then succeeds."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.count = 0

    def __call__(self):
        self.count += 1
        yield TextDelta("partial")
        if self.failures:
            raise self.failures.pop(0)
        yield DONE


def passing(**fields):
    return ModelError("overloaded", kind="overloaded", **fields)


def test_a_passing_failure_is_announced_and_tried_again():
    attempts = Attempts(passing(), passing())
    events = list(retrying(attempts, QUICK, Interrupt()))
    assert events == [
        TextDelta("partial"),
        Retrying("overloaded", 0.0, 1),
        TextDelta("partial"),
        Retrying("overloaded", 0.0, 2),
        TextDelta("partial"),
        DONE,
    ]


def test_tries_never_exceed_the_policy():
    attempts = Attempts(*[passing() for _ in range(9)])
    with pytest.raises(ModelError, match="gave up after 3 tries"):
        list(retrying(attempts, RetryPolicy(max_tries=3, first_seconds=0.0), Interrupt()))
    assert attempts.count == 3


@pytest.mark.parametrize("kind", ["auth", "billing", "invalid", "not_found"])
def test_a_lasting_failure_is_not_tried_again(kind):
    assert kind not in PASSING
    attempts = Attempts(ModelError("no", kind=kind))
    with pytest.raises(ModelError, match=r"^no$"):
        list(retrying(attempts, QUICK, Interrupt()))
    assert attempts.count == 1


def test_a_wait_that_is_too_long_ends_at_once_and_says_how_long():
    attempts = Attempts(ModelError("slow down", kind="rate_limit", status=429, retry_after_seconds=600))
    with pytest.raises(ModelError, match="slow down; the server asks to wait 600 s") as caught:
        list(retrying(attempts, QUICK, Interrupt()))
    assert attempts.count == 1
    assert (caught.value.kind, caught.value.status, caught.value.retry_after_seconds) == ("rate_limit", 429, 600)


def test_interrupting_ends_the_wait():
    interrupt = Interrupt()
    events = retrying(Attempts(passing(retry_after_seconds=50)), QUICK, interrupt)
    assert next(events) == TextDelta("partial")
    assert next(events) == Retrying("overloaded", 50, 1)
    interrupt.set()
    with pytest.raises(Interrupted):
        next(events)


def test_backoff_doubles_up_to_its_limit():
    policy = RetryPolicy(random=lambda: 0.0)
    assert [policy.delay_seconds(number, None) for number in range(1, 8)] == [0.5, 1, 2, 4, 8, 8, 8]


@given(st.integers(1, 60), st.floats(0, 60), st.floats(0, 1, exclude_max=True))
def test_the_delay_never_undercuts_what_the_server_asks(number, asked, chance):
    policy = RetryPolicy(random=lambda: chance)
    delay = policy.delay_seconds(number, asked)
    backoff = policy.delay_seconds(number, None)
    assert delay == max(asked, backoff)
    assert 0.75 * 0.5 <= backoff <= 8


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9),
        ({"retry-after": formatdate(1_000_030, usegmt=True)}, 30),
        ({"retry-after": formatdate(999_000, usegmt=True)}, 0),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_retry_after_is_seconds_milliseconds_or_a_date(headers, seconds):
    assert retry_after_seconds(headers, now=1_000_000) == seconds
