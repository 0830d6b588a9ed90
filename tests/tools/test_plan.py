from __future__ import annotations

import pytest

from tests.tools.workspace import Bench, bench
from tinyclaw.state.files import revision_of

PLAN = "---\n# mine\nstatus: draft # for now\nowner: me\n---\n\n# Plan\n\n1. one\n"


@pytest.fixture
def ws(tmp_path) -> Bench:
    return bench(tmp_path / "ws")


def test_a_plan_is_begun_as_a_draft(ws):
    assert "no PLAN.md yet" in ws.call("plan").text
    output = ws.call("plan", text="# Plan\n\n1. one", goal="tests pass")
    assert ws.bytes_of("PLAN.md") == b"---\nstatus: draft\ngoal: tests pass\n---\n\n# Plan\n\n1. one\n"
    assert output.text.startswith("PLAN.md: text, goal set. PLAN.md now:\n\n---\nstatus: draft\n")
    assert output.revisions == {"PLAN.md": revision_of(ws.bytes_of("PLAN.md"))}


def test_shown_without_arguments(ws):
    ws.put("PLAN.md", PLAN)
    output = ws.call("plan")
    assert output.text == f"PLAN.md:\n\n{PLAN}"
    assert output.revisions == {"PLAN.md": revision_of(PLAN.encode())}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_new_text_leaves_the_frontmatter(ws, newline):
    ws.put("PLAN.md", b"\xef\xbb\xbf" + PLAN.replace("\n", newline).encode())
    ws.call("plan", text="# Other\n\n- two\n")
    head = PLAN[: PLAN.index("# Plan")]
    assert ws.bytes_of("PLAN.md") == b"\xef\xbb\xbf" + f"{head}# Other\n\n- two\n".replace("\n", newline).encode()


def test_a_status_leaves_all_else(ws):
    ws.put("PLAN.md", PLAN)
    ws.call("plan", status="done")
    assert ws.bytes_of("PLAN.md").decode() == PLAN.replace("draft", "done")


def test_a_goal_is_set_and_taken_back(ws):
    ws.put("PLAN.md", PLAN)
    ws.call("plan", goal="all: green")
    assert "all: green" in ws.bytes_of("PLAN.md").decode()
    ws.call("plan", goal="")
    assert "green" not in ws.bytes_of("PLAN.md").decode()


def test_a_frontmatter_without_a_line_below_takes_a_text(ws):
    ws.put("PLAN.md", "---\nstatus: draft\n---")
    ws.call("plan", text="x")
    assert ws.bytes_of("PLAN.md") == b"---\nstatus: draft\n---\n\nx\n"


def test_no_argument_approves_a_plan(ws):
    ws.put("PLAN.md", PLAN)
    assert "status" in ws.fails("plan", status="approved")
    assert "frontmatter" in ws.fails("plan", text="---\nstatus: approved\n---\nx")
    assert ws.bytes_of("PLAN.md") == PLAN.encode()
    (ws.root / "PLAN.md").unlink()
    assert "frontmatter" in ws.fails("plan", text="\ufeff---\nstatus: approved\n---\nx")
    assert not (ws.root / "PLAN.md").exists()


def test_an_approved_plan_stays_approved_until_it_is_done(ws):
    ws.put("PLAN.md", PLAN.replace("draft", "approved"))
    ws.call("plan", text="next")
    assert b"status: approved" in ws.bytes_of("PLAN.md")
    ws.call("plan", status="done")
    assert "Only the person approves" in ws.fails("edit", path="PLAN.md", old_text="done", new_text="approved")


def test_a_plan_that_cannot_be_edited_safely_is_not_touched(ws):
    for data in (b"---\nstatus: draft\n---\ncaf\xe9\n", b"---\nstatus: draft\n"):
        ws.put("PLAN.md", data)
        ws.fails("plan", status="done")
        assert ws.bytes_of("PLAN.md") == data


def test_a_mask_is_refused(ws):
    assert "mask" in ws.fails("plan", text="[masked:token]")
    assert "mask" in ws.fails("plan", goal="[masked:token]")
