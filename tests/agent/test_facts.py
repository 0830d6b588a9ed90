"""Facts that take long are not waited for."""

from __future__ import annotations

import threading
import time

import pytest

from tests.context.conftest import FACTS, Bench
from tests.context.conftest import bench as bench
from tinyclaw.agent.facts import LATE, Facts


def test_what_is_asked_is_there_with_the_fixed_facts():
    facts = Facts({"Date": "today"}, lambda: "branch main")
    assert facts.get() == {"Date": "today", "git": "branch main"}


def test_what_takes_too_long_is_missed_once_and_taken_when_it_is_there():
    answered = threading.Event()
    answers = iter(["branch main", "branch other"])

    def probe() -> str:
        answered.wait(10)
        return next(answers)

    facts = Facts({}, probe, seconds=0.05)
    assert facts.get() == {LATE: "git has not answered within 0.05 seconds"}
    began = time.monotonic()
    facts.get()
    assert time.monotonic() - began < 0.04, "it is waited for once"
    answered.set()
    while LATE in facts.get():
        time.sleep(0.001)
    assert facts.get() == {"git": "branch main"}


def test_a_request_goes_without_late_facts_says_so_and_what_was_said_before_stands(bench: Bench):
    bench.inputs["facts"] = {**FACTS, "git": "branch main"}
    bench.compile()
    bench.inputs["facts"] = {**FACTS, "git": "branch main", LATE: "git has not answered within 5 seconds"}
    working = bench.compile()
    assert working.manifest.entries["git"].note == "left out: git has not answered within 5 seconds"
    assert [block for block in working.blocks if block.kind == "state"] == []


@pytest.mark.parametrize("seconds", [0.05])
def test_a_question_that_is_asked_again_meanwhile_does_not_mix_up_the_answers(seconds):
    hold = threading.Event()
    asked: list[int] = []

    def probe() -> str:
        asked.append(1)
        number = len(asked)
        if number == 1:
            hold.wait(10)
        return f"answer {number}"

    facts = Facts({}, probe, seconds=seconds)
    facts.get()
    facts.refresh()
    assert facts.get()["git"] == "answer 2"
    hold.set()
    time.sleep(0.05)
    assert facts.get()["git"] == "answer 2", "the older answer came later"
