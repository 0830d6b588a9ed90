"""PLAN.md is a document with a status, a goal and steps."""

from __future__ import annotations

import pytest

from tinyclaw.state.plan import Plan

PLAN = b"---\nstatus: draft  # draft, approved or done\ngoal: tests pass\n---\n# Plan\n\n1. [x] look\n2. [ ] mend\n"


def test_status_goal_body_and_steps_are_read():
    plan = Plan.parse(PLAN)
    assert (plan.status, plan.goal, plan.body) == ("draft", "tests pass", "# Plan\n\n1. [x] look\n2. [ ] mend\n")
    assert [(step.text, step.done) for step in plan.steps] == [("look", True), ("mend", False)]
    assert plan.diagnostics == []


@pytest.mark.parametrize("data", [b"", b"# Plan\n", b"---\nstatus: draft\n---\n", b"---\ngoal:\n---\n"])
def test_a_plan_without_a_status_is_a_draft_without_a_goal(data):
    plan = Plan.parse(data)
    assert (plan.status, plan.goal, plan.diagnostics) == ("draft", "", [])


@pytest.mark.parametrize("typed", ["Approved", "APPROVED", '"approved"', "approved # by me"])
def test_a_status_is_read_as_people_write_it(typed):
    assert Plan.parse(f"---\nstatus: {typed}\n---\n".encode()).status == "approved"


@pytest.mark.parametrize("typed", ["yes", "approve", "approved?", "[approved]", "approved #1"])
def test_what_is_not_clearly_approved_is_a_draft_and_said(typed):
    plan = Plan.parse(f"---\nstatus: {typed}\n---\n".encode())
    assert plan.status == "draft"
    assert any(str(diagnostic).startswith("PLAN.md:2: ") for diagnostic in plan.diagnostics)


def test_a_status_changes_one_word():
    assert Plan.parse(PLAN).set_status("approved") == PLAN.replace(b"status: draft ", b"status: approved ")


def test_a_goal_changes_one_line():
    assert Plan.parse(PLAN).set_goal("docs: too") == PLAN.replace(b"goal: tests pass", b'goal: "docs: too"')


def test_a_goal_is_added_and_taken_back():
    data = Plan.parse(b"# Plan\n").set_goal("all green")
    assert data == b"---\ngoal: all green\n---\n# Plan\n"
    assert Plan.parse(Plan.parse(data).set_goal("")).goal == ""
    assert Plan.parse(b"# Plan\n").set_goal("") == b"# Plan\n"
