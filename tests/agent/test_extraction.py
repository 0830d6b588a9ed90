"""What a turn tells and later sessions need becomes records at its end; most often nothing does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.small import asked, texts, two_models
from tests.messages_api import fault, reply, slow
from tinyclaw.agent.events import Notice, ReplyReceived
from tinyclaw.agent.loop import run_turn

ON = {"memory_extract": "on", "memory_select": "off"}
LINE = "- feedback: Tabs in Go — The person wants tabs in all Go files, for the linter insists."


def notices(events) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice)]


def records(root: Path) -> list[str]:
    return sorted(path.name for path in (root / ".memory").glob("*.md")) if (root / ".memory").exists() else []


def test_what_the_person_said_becomes_a_record_and_they_are_told(api, start, turn, root):
    server = api(two_models(["Done."], [LINE]))
    session = start(server, **ON)
    events = turn(session, "Always use tabs in Go, the linter insists")
    assert notices(events) == ["remembered (feedback): Tabs in Go; .memory/tabs-in-go.md"]
    assert records(root) == ["MEMORY.md", "tabs-in-go.md"]
    assert "[Tabs in Go](tabs-in-go.md)" in (root / ".memory/MEMORY.md").read_text()
    question = texts(asked(server, small=True)[0])
    assert "Person: Always use tabs in Go, the linter insists\n" in question and "Agent: Done." in question
    kinds = [block.kind for block in session.transcript.blocks]
    assert kinds.index("side") < kinds.index("turn_end") and events[-1].requests == 2 and events[-1].text == "Done."


@pytest.mark.parametrize(
    "answer",
    [
        "NONE",
        "",
        "I think nothing is worth keeping.",
        "- secret: Key — hunter2",
        "- user Anna — no colon",
        '{"records": []}',
        reply(LINE, stop_reason="max_tokens"),
        fault(400, "no"),
    ],
)
def test_an_answer_that_names_nothing_or_cannot_be_understood_does_no_harm(api, start, turn, root, answer):
    server = api(two_models(["Done."], [answer]), refusals=True)
    events = turn(start(server, **ON), "Always use tabs in Go")
    assert records(root) == [] and events[-1].reason == "done" and events[-1].text == "Done."


def test_names_that_are_there_are_given_and_none_is_written_over(api, start, turn, root):
    (root / ".memory").mkdir()
    mine = "---\nname: Tabs in Go\ntype: feedback\ndescription: mine\n---\nOnly where Anna says so.\n"
    (root / ".memory/tabs-in-go.md").write_text(mine)
    server = api(two_models(["Done."], [LINE]))
    events = turn(start(server, **ON), "Always use tabs in Go")
    assert (root / ".memory/tabs-in-go.md").read_text() == mine
    assert "- Tabs in Go — mine" in texts(asked(server, small=True)[0])
    assert notices(events)[0].startswith(".memory/tabs-in-go.md stays as it is; the small model would say: The person")


def test_the_same_again_makes_no_second_record(api, start, turn, root):
    server = api(two_models(["Done.", "Done."], [LINE, LINE.replace("Tabs in Go", "tabs  in go")]))
    session = start(server, **ON)
    turn(session, "Always use tabs in Go")
    before = (root / ".memory/tabs-in-go.md").read_bytes()
    assert notices(turn(session, "I said tabs")) == []
    assert records(root) == ["MEMORY.md", "tabs-in-go.md"] and (root / ".memory/tabs-in-go.md").read_bytes() == before


def test_what_the_model_remembered_by_itself_is_given_as_remembered(api, start, turn, root):
    note = {"name": "Tabs in Go", "text": "Tabs.", "type": "feedback"}
    line = "- user: Role — The person is the release manager."
    server = api(two_models([reply(tools=[("remember", note)]), "Done."], [line]))
    turn(start(server, **ON), "Always use tabs in Go. I am the release manager.")
    assert "- Tabs in Go — Tabs." in texts(asked(server, small=True)[0])
    assert records(root) == ["MEMORY.md", "role.md", "tabs-in-go.md"]


@pytest.mark.parametrize(
    "settings", [{"memory_extract": "off"}, {"permission_mode": "read-only"}, {"mode": "plan"}, {"max_requests": 1}]
)
def test_nothing_is_asked_where_nothing_may_be_kept(api, start, turn, root, settings):
    server = api(two_models(["Done."], []))
    events = turn(start(server, **{**ON, **settings}), "Always use tabs in Go")
    assert len(server.requests) == 1 and records(root) == [] and events[-1].reason == "done"


def test_a_turn_that_did_not_end_by_itself_is_not_looked_at(api, start, turn, root):
    server = api(two_models([reply("No.", stop_reason="refusal")], []))
    assert turn(start(server, **ON), "Always use tabs in Go")[-1].reason == "refused"
    assert asked(server, small=True) == []


def test_an_interrupt_at_the_end_ends_the_looking_alone(api, start, root):
    server = api(two_models(["Done."], [slow(reply(LINE), first_byte_seconds=20)]))
    session = start(server, **ON)
    events = []
    for event in run_turn(session, "Always use tabs in Go"):
        events.append(event)
        if isinstance(event, ReplyReceived):
            session.interrupt.set()
    assert events[-1].reason == "done" and events[-1].text == "Done." and records(root) == []
    assert "interrupted; what is worth remembering was not looked for" in notices(events)


def test_a_long_conversation_is_given_by_its_end_and_results_in_short(api, start, turn, root):
    (root / "big.txt").write_text("line of a file\n" * 900)
    server = api(two_models([reply(tools=[("read", {"path": "big.txt"})]), "word " * 5_000, "Done."], ["NONE", "NONE"]))
    session = start(server, **ON)
    turn(session, "Read it")
    turn(session, "The last thing that I say")
    first, second = (texts(body) for body in asked(server, small=True))
    assert first.count("line of a file") < 40 and "[tool] read big.txt" in first
    assert "Person: The last thing that I say" in second and len(second) < 20_000


def test_a_secret_reaches_neither_the_question_nor_a_record(api, start, turn, root):
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    server = api(two_models(["Done."], [f"- reference: Key — It is {secret}."]))
    events = turn(start(server, **ON), f"My key is {secret}")
    assert secret not in str(server.requests) and records(root) == []
    assert notices(events) == ['"Key" is not remembered: it holds a secret']


def test_a_record_about_code_is_pinned_to_it(api, start, turn, root):
    (root / "auth.py").write_text("def parse_token():\n    pass\n")
    line = "- project: Tokens — `parse_token` in auth.py is slow on purpose, against guessing."
    turn(start(api(two_models(["Done."], [line])), **ON), "It is slow on purpose")
    assert "\nevidence:\n  - auth.py:1-2 " in (root / ".memory/tokens.md").read_text()
