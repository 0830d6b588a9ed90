"""Records that matter for a turn are stated once, whole: chosen by the small model, or by their words."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.agent.small import asked, texts, two_models
from tests.messages_api import fault, reply
from tinyclaw.agent.events import Notice
from tinyclaw.agent.session import Session
from tinyclaw.state.transcript.grammar import Block

RECORDS = {
    "tabs-in-go": ("Tabs in Go", "feedback", "Tabs in all Go files, blanks elsewhere."),
    "release-day": ("Release day", "project", "Releases go out on Mondays, never on Fridays."),
    "wiki": ("Where the docs are", "reference", "In the wiki, under Handbook."),
}


@pytest.fixture
def memory(root: Path) -> Path:
    folder = root / ".memory"
    folder.mkdir()
    for slug, (name, kind, text) in RECORDS.items():
        head = f"name: {name}\ndescription: {text}\ntype: {kind}\nupdated: 2026-11-28T09:00:00Z"
        (folder / f"{slug}.md").write_text(f"---\n{head}\n---\n\n{text}\n")
    return folder


def quoted(session: Session) -> list[Block]:
    blocks = [block for group in session.conversation.live_groups for block in group.blocks]
    return [block for block in blocks if block.attrs.get("path") == "(memory)"]


def notices(events) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice)]


def test_what_the_small_model_chooses_is_stated_whole_before_the_first_request(api, start, turn, memory):
    server = api(two_models(["Done.", "Done."], ["release-day\ntabs-in-go", "NONE"]))
    session = start(server)
    events = turn(session, "Write the release notes")
    assert "from memory: Release day, Tabs in Go" in notices(events)
    question, request = server.requests
    assert question["model"] == "claude-haiku-5-5" and "tools" not in question
    assert "Write the release notes" in texts(question)
    assert "release-day: Release day — Releases go out on Mondays, never on Fridays. (project, updated 2026-11-28)" in (
        texts(question)
    )
    said = texts(request)
    assert "## Release day (.memory/release-day.md; project, updated 2026-11-28, 2 days ago)" in said
    assert "may be old" in said and "Tabs in all Go files, blanks elsewhere." in said
    assert said.index('<state path="(memory)"') < said.index("Write the release notes")
    turn(session, "And the same for Go")
    assert len(quoted(session)) == 1 and "tabs-in-go" not in texts(asked(server, small=True)[1])
    assert texts(asked(server, small=False)[1]).startswith(said)


def test_a_record_that_changed_since_may_be_stated_again(api, start, turn, memory):
    server = api(two_models(["Done.", "Done."], ["wiki", "wiki"]))
    session = start(server)
    turn(session, "Where are the docs?")
    (memory / "wiki.md").write_text("---\nname: Where the docs are\ntype: reference\n---\nIn the book.\n")
    turn(session, "And now?")
    assert len(quoted(session)) == 2 and "In the book." in texts(server.requests[-1])


def test_a_record_that_stands_in_view_can_be_corrected_at_once(api, start, turn, memory):
    correct = reply(
        tools=[("remember", {"name": "Release day", "text": "Releases go out on Tuesdays.", "type": "project"})]
    )
    server = api(two_models([correct, "Corrected."], ["release-day"]))
    turn(start(server), "We release on Tuesdays now")
    assert (memory / "release-day.md").read_text().endswith("\nReleases go out on Tuesdays.\n")


@pytest.mark.parametrize(
    "answer",
    [
        "I would read tabs-in-go, I think.",
        "",
        "nope\nneither",
        reply("tabs-in-go", stop_reason="max_tokens"),
        fault(400, "no"),
        fault(404, "model: claude-haiku-5-5"),
    ],
)
def test_without_an_answer_that_can_be_understood_the_words_choose(api, start, turn, memory, answer):
    server = api(two_models(["Done."], [answer]), refusals=True)
    session = start(server)
    turn(session, "Are there tabs in the Go files?")
    assert [block.attrs["revisions"].keys() for block in quoted(session)] == [{".memory/tabs-in-go.md"}]


def test_a_small_model_that_fails_is_not_asked_again_and_that_is_said(api, start, turn, memory):
    server = api(two_models(["One.", "Two."], [fault(404, "no such model")]), refusals=True)
    session = start(server)
    events = turn(session, "What about tabs?")
    (told,) = [text for text in notices(events) if "not asked again" in text]
    assert told.startswith("the small model claude-haiku-5-5 gives no answer, and is not asked again: ")
    turn(session, "And releases?")
    assert len(asked(server, small=True)) == 1 and len(quoted(session)) == 2


def test_words_that_say_little_choose_nothing(api, start, turn, memory):
    server = api([reply("Done.")])
    session = start(server, memory_select="keywords")
    turn(session, "Please fix the test")
    assert quoted(session) == [] and len(server.requests) == 1


def test_nothing_is_chosen_where_that_is_turned_off(api, start, turn, memory):
    server = api([reply("Done.")])
    session = start(server, memory_select="off")
    turn(session, "Are there tabs in the Go files?")
    assert quoted(session) == [] and len(server.requests) == 1


def test_no_question_is_asked_without_records(api, start, turn):
    server = api([reply("Done.")])
    turn(start(server), "Are there tabs in the Go files?")
    assert len(server.requests) == 1


def test_a_limit_keeps_the_last_request_for_the_work(api, start, turn, memory):
    server = api(two_models(["Done."], []))
    session = start(server, max_requests=1)
    events = turn(session, "Are there tabs in the Go files?")
    assert events[-1].reason == "done" and events[-1].requests == 1 and len(quoted(session)) == 1


def test_the_question_is_in_the_record_and_in_the_cost(api, start, turn, memory):
    server = api(two_models(["Done."], ["wiki"]))
    session = start(server)
    events = turn(session, "Where are the docs?")
    (side,) = [block for block in session.transcript.blocks if block.kind == "side"]
    assert (side.attrs["what"], side.attrs["model"], side.text) == ("selection", "claude-haiku-5-5", "wiki")
    assert events[-1].requests == 2 and 0 < side.attrs["cost_usd"] < events[-1].cost_usd


def test_more_than_five_are_never_stated_and_long_ones_are_cut_visibly(api, start, turn, memory):
    slugs = [f"note-{number}" for number in range(8)]
    for slug in slugs:
        (memory / f"{slug}.md").write_text(f"---\nname: {slug}\ntype: project\n---\n{'long ' * 2_000}\n")
    server = api(two_models(["Done."], ["\n".join(slugs)]))
    session = start(server)
    turn(session, "All notes, please")
    (block,) = quoted(session)
    assert len(block.attrs["records"]) == 5 and len(block.text) < 5 * 7_000
    assert "more characters; read .memory/note-0.md for the rest]" in block.text


def test_a_record_that_was_not_stated_whole_is_not_written_over(api, start, turn, memory, root):
    text = "long " * 2_000 + "\n\nTHE END"
    (memory / "big.md").write_text(f"---\nname: Big\ntype: project\n---\n{text}\n")
    correct = reply(tools=[("remember", {"name": "Big", "text": "short", "type": "project"})])
    server = api(two_models([correct, "Sorry.", "Done."], ["big", "NONE"]))
    session = start(server)
    turn(session, "What is big?")
    assert "THE END" in (memory / "big.md").read_text() and "you have not seen" in texts(server.requests[-1])
    turn(session, "Again")
    assert len(quoted(session)) == 1, "it stands in view, cut as it is"


def test_a_secret_is_masked_before_a_record_is_cut(api, start, turn, memory):
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    for at in range(5_962, 6_001, 6):
        (memory / f"at-{at}.md").write_text(f"---\nname: At {at}\ntype: project\n---\n{'x' * (at - 1)} {secret} more\n")
        server = api(two_models(["Done."], [f"at-{at}"]))
        session = start(server)
        turn(session, f"What is at {at}?")
        assert quoted(session) and not any(secret[:n] in str(server.requests) for n in (12, 20, 39))


def test_what_changed_since_is_told_and_what_is_gone_is_not_offered(api, start, turn, memory, root):
    (root / "a.py").write_text("def parse():\n    pass\n")
    head = "type: project\nevidence:\n  - a.py:1 000000000000"
    (memory / "parser.md").write_text(f"---\nname: Parser\n{head}\n---\n`parse` in a.py is slow.\n")
    (memory / "gone.md").write_text("---\nname: Gone\ntype: project\nevidence: b.py\n---\nb.py is slow.\n")
    server = api(two_models(["Done."], ["parser\ngone"]))
    session = start(server)
    turn(session, "Why is it slow?")
    assert "gone" not in texts(server.requests[0]).partition("<records>")[2]
    assert "Verify before use: a.py:1 changed since." in quoted(session)[0].text


def test_no_secret_of_a_record_goes_out(api, start, turn, memory):
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    (memory / "key.md").write_text(f"---\nname: Key\ndescription: {secret}\ntype: reference\n---\nIt is {secret}.\n")
    server = api(two_models(["Done."], ["key"]))
    session = start(server)
    turn(session, "The key?")
    assert quoted(session) and secret not in str(server.requests) and secret not in session.transcript.path.read_text()


def test_of_very_many_records_those_with_the_words_are_offered(api, start, turn, memory):
    for number in range(150):
        head = f"name: filler {number}\ntype: user\nupdated: 2026-11-29T00:00:00Z"
        (memory / f"filler-{number}.md").write_text(f"---\n{head}\n---\nfiller\n")
    server = api(two_models(["Done."], ["tabs-in-go"]))
    session = start(server)
    turn(session, "Are there tabs in the Go files?")
    listed = texts(server.requests[0]).partition("<records>")[2]
    assert "tabs-in-go: Tabs in Go" in listed and listed.count("\n") < 105 and quoted(session)


def test_after_a_summary_a_record_may_be_stated_again(api, start, turn, memory):
    from tinyclaw.agent.compaction import summarize_now

    server = api(two_models(["One.", "Two.", "## Goal\nDocs.", "Three."], ["wiki", "NONE", "wiki"]))
    session = start(server)
    turn(session, "Where are the docs?")
    turn(session, "And more?")
    assert list(summarize_now(session))
    turn(session, "Where were they?")
    assert "In the wiki" in texts(server.requests[-1])


def test_a_text_that_was_written_below_the_last_turn_is_what_is_asked(api, start, turn, memory):
    server = api(two_models(["One.", "Two."], ["NONE", "wiki"]))
    session = start(server)
    turn(session, "Hello")
    with session.transcript.path.open("a") as file:
        file.write("\nWhere are the docs?\n")
    turn(session, None)
    assert "Where are the docs?" in texts(asked(server, small=True)[1]) and len(quoted(session)) == 1


def test_a_resumed_session_and_a_replay_state_the_same(api, start, turn, memory, root):
    server = api(two_models(["One.", "Two.", "Three."], ["wiki", "tabs-in-go", "NONE"]))
    session = start(server)
    turn(session, "Where are the docs?")
    turn(session, "And Go?")
    name = session.transcript.session
    session.close()
    again = start(server, resume=name)
    turn(again, "Thanks")
    assert texts(server.requests[-1]).startswith(texts(asked(server, small=False)[1]))
    again.close()
    recorded = root.parent / "recorded"
    shutil.copytree(root / ".transcripts", recorded)
    replayed = start(server, replay=recorded / again.transcript.path.name, strict=True)
    for text in ("Where are the docs?", "And Go?", "Thanks"):
        ended = turn(replayed, text)[-1]
        assert ended.reason == "done", ended.text
    assert [block.text for block in quoted(replayed)] == [block.text for block in quoted(again)]
