"""A conversation that grows is made smaller: results are cleared, then a summary takes the place of what is older."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.messages_api import fault, reply
from tinyclaw.agent.compaction import summarize_now
from tinyclaw.agent.events import ConversationSummarized, Notice, ResultsCleared, TurnEnded
from tinyclaw.agent.remembering import split_notes
from tinyclaw.context.clearing import KEPT_MESSAGES, WaterMarks
from tinyclaw.model.replay import ReplayModel
from tinyclaw.state.transcript.fold import conversation_of
from tinyclaw.state.transcript.grammar import parse

RULE = "Never touch legacy/, and keep Python 3.9 working.\nNames stay: `total_v2`."
SUMMARY = "## Goal\n\nMend the totals.\n\n## Open\n\nRun the tests."


def reads(count: int, name: str = "") -> list:
    """Steps that read ``name`` again and again, or one file after the other."""
    return [
        reply(f"Step {number}.", tools=[("read", {"path": name or f"big-{number}.txt"})]) for number in range(count)
    ]


def wire(request) -> str:
    return json.dumps(request["messages"], ensure_ascii=False)


def texts(request) -> list[str]:
    return [
        block["text"]
        for message in request["messages"]
        if message["role"] == "user"
        for block in message["content"]
        if block["type"] == "text"
    ]


def results(request) -> list[str]:
    blocks = (block for message in request["messages"] for block in message["content"])
    return [block["content"] for block in blocks if block["type"] == "tool_result"]


def unmarked(request) -> list:
    """The messages without cache marks."""
    return json.loads(json.dumps(request["messages"]).replace(', "cache_control": {"type": "ephemeral"}', ""))


def asks_for_summary(request) -> bool:
    last = request["messages"][-1]["content"][-1]
    return last.get("text", "").startswith("The conversation above has grown too long")


@pytest.fixture
def big(root: Path) -> Path:
    """Files whose reads take about 4,000 tokens each."""
    for number in range(40):
        (root / f"big-{number}.txt").write_text("".join(f"line {n} of long file {number}\n" for n in range(500)))
    (root / "PLAN.md").write_text("# Plan\n\n1. Look\n")
    return root


def test_old_results_are_cleared_in_few_steps_and_the_recent_ones_stay(api, start, turn, big):
    server = api([*reads(40), reply("Done.")])
    session = start(server)
    events = turn(session, RULE)
    assert server.refused == []
    told = [event.count for event in events if isinstance(event, ResultsCleared)]
    cleared = [sum(result.startswith("[cleared") for result in results(request)) for request in server.requests]
    steps = sorted(set(cleared))
    assert sum(told) == steps[-1] and len(told) == len(steps) - 1
    assert steps[0] == 0 and all(after - before >= 5 for before, after in pairwise(steps)), "each time many at once"
    for request in server.requests:
        recent = results({"messages": request["messages"][-KEPT_MESSAGES:]})
        assert not any(result.startswith("[cleared") for result in recent)
    assert "characters of read" in results(server.requests[-1])[0]
    assert RULE in texts(server.requests[-1])


def test_what_was_cleared_before_is_read_from_the_cache_when_more_is_cleared(api, start, turn, big):
    server = api([*(reads(14) * 3), reply("Done.")])
    for number in range(14):  # tall enough that a cleared step is far from the next one
        (big / f"big-{number}.txt").write_text("".join(f"{n} of {number}, a long line\n" for n in range(1500)))
    turn(start(server), RULE)
    cleared = [sum(result.startswith("[cleared") for result in results(request)) for request in server.requests]
    grew = [at for at in range(1, len(cleared)) if cleared[at] > cleared[at - 1]]
    read = [server.usages[at]["cache_read_input_tokens"] for at in grew]
    assert len(grew) >= 3 and read == sorted(read) and len(set(read)) == len(read), read


def test_an_unchanged_file_is_not_told_twice_while_its_content_is_in_view(api, start, turn, big):
    server = api([*reads(3, "big-1.txt"), reply("Done."), *reads(2, "big-1.txt"), reply("Done.")])
    session = start(server)
    turn(session)
    first, *others = results(server.requests[3])
    assert first.startswith("line 0") and [each.startswith("[unchanged: ") for each in others] == [True, True]
    (big / "big-1.txt").write_text((big / "big-1.txt").read_text().replace("line 7 ", "LINE 7 "))
    turn(session)
    (_, _, _, changed, again) = results(server.requests[6])
    assert "LINE 7 " in changed and again.startswith("[unchanged: ")


def test_a_clear_is_in_the_transcript_and_a_resume_sends_the_same(api, start, turn, big):
    server = api([*reads(40), reply("Done."), reply("Again.")])
    session = start(server)
    turn(session)
    before = session.conversation.messages(session.target.model).messages
    session.close()
    session = start(server, resume="last")
    assert [each.digest for each in session.conversation.messages(session.target.model).messages] == [
        each.digest for each in before
    ]
    path = session.transcript.path
    blocks = parse(path.read_bytes(), "t").blocks
    clears = [block for block in blocks if block.kind == "clear"]
    assert len(conversation_of(blocks).cleared) == sum(len(clear.attrs["results"]) for clear in clears) > 3
    without = conversation_of(block for block in blocks if block.kind != "clear")
    assert without.cleared == {}, "a person who deletes the record has the results back"


def test_what_is_older_is_summarized_and_the_persons_words_stay_word_for_word(api, start, turn, big):
    server = api([*[reply("x" * 20_000, tools=[("glob", {"pattern": "*"})])] * 20, reply("Done.")])
    server.reset(lambda body: reply(SUMMARY) if asks_for_summary(body) else next(steps))
    steps = iter([*[reply("y" * 20_000, tools=[("glob", {"pattern": "*"})])] * 20, reply("Done.")])
    session = start(server, high_water_tokens=40_000, low_water_tokens=15_000)
    events = turn(session, RULE)
    assert events[-1].reason == "done" and server.refused == []
    assert any(isinstance(event, ConversationSummarized) for event in events)
    asked = [index for index, request in enumerate(server.requests) if asks_for_summary(request)]
    first = asked[0]
    before, summary, after = (server.requests[index] for index in (first - 1, first, first + 1))
    assert summary["tools"] == before["tools"] and summary["system"] == before["system"]
    assert unmarked(summary)[: len(before["messages"])] == unmarked(before)
    assert server.usages[first]["cache_read_input_tokens"] > 0.8 * sum(
        server.usages[first][key] for key in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    assert SUMMARY in texts(after)[0] and RULE in texts(after)[0]
    kept = unmarked(after)[1:-1]
    assert kept and kept == unmarked(summary)[-len(kept) - 1 : -1], "the kept suffix is byte for byte"
    assert RULE in "\n".join(texts(server.requests[-1]))
    assert any('<state path="PLAN.md"' in text for text in texts(after)), "live files are said again"


def test_a_summary_can_be_edited_and_deleting_it_brings_everything_back(api, start, turn, big):
    server = api([reply("One."), reply("Two."), reply("Three."), reply(SUMMARY), reply("Four."), reply("Five.")])
    session = start(server)
    for text in ("first", "second", "third"):
        turn(session, text)
    before = session.conversation.messages("m").messages
    list(summarize_now(session))
    path = session.transcript.path
    path.write_text(path.read_text().replace("Mend the totals.", "Mend nothing."))
    turn(session, "fourth")
    assert "Mend nothing." in texts(server.requests[4])[0] and "Mend the totals." not in wire(server.requests[4])
    assert "first" in texts(server.requests[4])[0].splitlines()
    blocks = parse(path.read_bytes(), "t").blocks
    back = conversation_of(block for block in blocks if block.kind != "compact").messages("m").messages
    assert [each.digest for each in back[: len(before)]] == [each.digest for each in before]


NO_HANDOFFS = (
    reply(tools=[("bash", {"command": "touch ran"})]),
    reply("Let me check first.", tools=[("bash", {"command": "touch ran"})]),
    reply("I cannot", stop_reason="refusal"),
    reply("## Goal", stop_reason="max_tokens"),
)


@pytest.mark.parametrize("calls", NO_HANDOFFS)
@pytest.mark.parametrize("second", [SUMMARY, ""])
def test_calls_in_the_answer_are_not_run_and_it_is_asked_once_more_without_tools(api, start, turn, big, second, calls):
    server = api([reply("One."), reply("Two."), calls, reply(second) if second else calls, reply("Three.")])
    session = start(server)
    turn(session, "first")
    turn(session, "second")
    events = list(summarize_now(session))
    assert not (big / "ran").exists()
    assert [request.get("tool_choice") for request in server.requests[2:4]] == [None, {"type": "none"}]
    assert any(isinstance(event, ConversationSummarized) for event in events) == bool(second)
    turn(session, "third")
    assert ("first" in texts(server.requests[4])) == (not second), "a failed summary changes nothing"


def test_after_three_failures_no_summary_is_tried_by_itself(api, start, turn, big):
    server = api([])
    steps = iter([*[reply("y" * 20_000, tools=[("glob", {"pattern": "*"})])] * 12, reply("Done.")])
    server.reset(lambda body: fault(400, "no") if asks_for_summary(body) else next(steps))
    session = start(server, high_water_tokens=20_000, low_water_tokens=2_000)
    events = turn(session)
    assert events[-1].reason == "done"
    said = [event.text for event in events if isinstance(event, Notice) and "could not be summarized" in event.text]
    assert len(said) == 3 and "is as it was" in said[0]


def test_a_prompt_that_is_too_long_for_the_server_is_made_smaller_once(api, start, turn, big):
    server = api([])
    steps = iter([*reads(5), fault(400, "prompt is too long: 9 tokens > 8 maximum"), reply("Done.")])
    server.reset(lambda body: reply(SUMMARY) if asks_for_summary(body) else next(steps))
    session = start(server)
    events = turn(session)
    assert events[-1].reason == "done"
    assert len(wire(server.requests[-1])) < len(wire(server.requests[-2])) / 1.3


def test_a_prompt_that_stays_too_long_ends_with_the_error(api, start, turn, big):
    too_long = fault(400, "prompt is too long: 9 tokens > 8 maximum")
    server = api([reply("One."), too_long, too_long, too_long])
    session = start(server)
    turn(session, "first")
    *_, ended = turn(session, "second")
    assert isinstance(ended, TurnEnded) and ended.reason == "error" and "too long" in ended.text
    assert len(server.refused) == 0 and session.conversation.summary is None


def test_the_model_may_ask_for_a_summary(api, start, turn, big):
    server = api([reply("One."), reply("Now.", tools=[("compact", {})]), reply(SUMMARY), reply("Two.")])
    session = start(server)
    turn(session, "first")
    turn(session, "second")
    assert SUMMARY in texts(server.requests[3])[0]
    assert [message["role"] for message in server.requests[3]["messages"]][:2] == ["user", "assistant"]


def test_a_reply_that_exceeds_the_window_is_gone_on_with_after_a_summary(api, start, turn, big):
    cut = reply("Half of it", stop_reason="model_context_window_exceeded")
    server = api([reply("One."), cut, reply(SUMMARY), reply("The rest.")])
    session = start(server)
    turn(session, "first")
    assert turn(session, "second")[-1].reason == "done"
    assert SUMMARY in texts(server.requests[3])[0]


def test_a_compaction_that_was_killed_between_two_of_its_records_loses_nothing(api, start, turn, big):
    server = api([reply("One."), reply("Two."), reply(SUMMARY), reply("Three.")])
    session = start(server)
    turn(session, "first")
    turn(session, "second")
    whole = session.transcript.path.read_bytes()
    list(summarize_now(session))
    after = session.transcript.path.read_bytes()
    session.close()
    model = session.target.model
    kept = conversation_of(parse(whole, "t").blocks).messages(model).messages
    ends = [at for at in range(len(whole), len(after)) if after[:at].endswith(b"-->\n")]
    for at in [*ends, *range(len(whole), len(after), 37)]:
        found = conversation_of(parse(after[:at], "t").blocks).messages(model).messages
        is_summarized = "Summary of what came before" in json.dumps(found[0].wire)
        assert is_summarized or [each.digest for each in found[: len(kept)]] == [each.digest for each in kept]


def test_a_summary_between_turns_leaves_them_between_turns(api, start, turn, big):
    server = api([reply("One."), reply("Two."), reply(SUMMARY), reply("Three.")])
    session = start(server)
    turn(session, "first")
    turn(session, "second")
    (big / "PLAN.md").write_text("# Plan\n\n1. Another\n")
    list(summarize_now(session))
    assert session.conversation.idle
    with session.transcript.path.open("a") as file:
        file.write("third, by hand\n")
    turn(session, None)
    last = texts(server.requests[3])
    assert "third, by hand" in last and any("1. Another" in text for text in last)


def test_a_summary_of_a_conversation_over_the_window_is_made_in_parts_with_room_to_answer(api, start, turn, big):
    server = api([], models={})
    steps = iter([*[reply("y" * 30_000, tools=[("glob", {"pattern": "*"})])] * 8, reply("Done."), reply("End.")])
    server.reset(lambda body: reply(SUMMARY) if asks_for_summary(body) else next(steps))
    session = start(server, high_water_tokens=900_000)
    turn(session, RULE)
    session.target = replace(session.target, window_tokens=40_000)
    session.marks = WaterMarks(24_000, 3_000)
    assert turn(session, "second")[-1].reason == "done"
    asked = [request for request in server.requests if asks_for_summary(request)]
    assert len(asked) > 1 and {request["max_tokens"] for request in asked} == {8_000}
    assert all(len(wire(request)) / 2.7 < 40_000 for request in asked)
    assert RULE in "\n".join(texts(server.requests[-1]))


def test_a_provider_that_counts_more_than_we_do_is_answered_with_a_summary(api, start, turn, big):
    """After the refusal nothing corrects our estimate, and it is over the window, too."""
    server = api([], models={})
    too_long = fault(400, "prompt is too long: 9 tokens > 8 maximum")
    steps = iter([reply("z" * 150_000), reply("z" * 150_000), too_long, reply("Done.")])
    server.reset(lambda body: reply(SUMMARY) if asks_for_summary(body) else next(steps))
    session = start(server, high_water_tokens=10**6, low_water_tokens=10**6)
    session.target = replace(session.target, window_tokens=95_000, max_tokens=8_000, chars_per_token=3.0)
    turn(session, RULE)
    turn(session, "second")
    assert turn(session, "third")[-1].reason == "done"
    assert session.conversation.summary is not None


def test_the_persons_words_do_not_grow_by_what_the_model_repeats(api, start, turn, big):
    repeated = SUMMARY + "\n\n## In the person's own words\n\nI want a pony."
    server = api([reply("One."), reply("Two."), reply(repeated), reply("Three."), reply(repeated)])
    session = start(server)
    turn(session, RULE)
    turn(session, "second")
    list(summarize_now(session))
    turn(session, "third")
    list(summarize_now(session))
    text = session.conversation.summary.text
    assert text.count(RULE) == 1 and "pony" not in text and text.count("## Goal") == 1


def test_short_words_of_the_person_stay_whole_beside_a_long_one(api, start, turn, big):
    server = api([*[reply("Ok.")] * 32, reply(SUMMARY)])
    session = start(server)
    turn(session, "long " * 6_000)
    rules = [f"rule {number}: never touch part {number}" for number in range(31)]
    for rule in rules:
        turn(session, rule)
    list(summarize_now(session))
    text = session.conversation.summary.text
    assert all(rule in text for rule in rules[:-1]) and "characters left out" in text and len(text) > 20_000


@pytest.mark.parametrize("refused", ["a request", "a summary"])
def test_a_recorded_session_with_refused_requests_is_replayed_to_its_end(api, start, turn, big, refused):
    server = api([])
    no = fault(400, "prompt is too long: 9 tokens > 8 maximum") if refused == "a request" else fault(400, "no")
    long = [reply(f"{number} " + "y" * 30_000) for number in range(8)]
    steps = iter([*long, *([no] if refused == "a request" else []), reply("Done."), reply("End.")])
    refusals = iter([no] if refused == "a summary" else [])
    server.reset(lambda body: next(refusals, reply(SUMMARY)) if asks_for_summary(body) else next(steps))
    high, low = (10**6, 10**6) if refused == "a request" else (20_000, 2_000)
    session = start(server, high_water_tokens=high, low_water_tokens=low)
    said = [f"text {number}" for number in range(10)]
    answers = [turn(session, text)[-1].text for text in said]
    assert session.conversation.summary is not None
    session.model = ReplayModel(session.transcript.path, big / "user")
    session.close()
    again = start(server, high_water_tokens=high, low_water_tokens=low)
    again.model = session.model
    assert [turn(again, text)[-1].text for text in said] == answers
    assert again.conversation.summary is not None


def test_what_a_summary_stands_for_can_be_looked_up(api, start, turn, big):
    (big / "a.txt").write_text("one\nthe NEEDLE is here\n")
    calls = [
        [("search_sessions", {"text": text})] for text in ("the needle", "no such word", " ", "Yes.", "the needle")
    ]
    server = api(
        [
            *reads(1, "a.txt"),
            reply("Seen."),
            reply("Yes."),
            reply(SUMMARY),
            *(reply(tools=each) for each in calls),
            reply("Done."),
        ]
    )
    session = start(server)
    turn(session, "first")
    turn(session, "second")
    list(summarize_now(session))
    turn(session, "where was it?")
    found, none, blank, other, again = results(server.requests[-1])
    assert again == found, "what a search found is not found again"
    transcript = session.workspace.relative(session.transcript.path)
    line = session.transcript.path.read_text().split("\n").index("the NEEDLE is here") + 1
    assert found.split("\n\n") == [f"{transcript}:{line}: the NEEDLE is here", "1 line"]
    assert none.endswith("no line has it")
    assert "not blank" in blank and "Yes." in other


# What is worth remembering is kept before a summary takes the place of what said it

REMEMBER = """
## Remember
- feedback: Tabs in Go — The person wants tabs in all Go files.
- user: no dash here
- wish: Not a type — so it is no record.
- project: Key of the staging server — password [masked:password]

## Look up
Nothing."""


def summarized(start, turn, server, **settings):
    session = start(server, **settings)
    turn(session, "first")
    turn(session, "second")
    return session, list(summarize_now(session))


def test_what_a_summary_finds_worth_remembering_becomes_a_record_and_the_person_is_told(api, start, turn, big):
    server = api([reply("One."), reply("Two."), reply(SUMMARY + "\n" + REMEMBER), reply("Three.")])
    session, events = summarized(start, turn, server, memory_select="off")
    record = (big / ".memory/tabs-in-go.md").read_text()
    assert "type: feedback" in record and record.endswith("\nThe person wants tabs in all Go files.\n")
    assert f"source: session {session.transcript.session}" in record
    said = [event.text for event in events if isinstance(event, Notice) and "remembered" in event.text]
    assert said == [
        "remembered (feedback): Tabs in Go; .memory/tabs-in-go.md",
        '"Key of the staging server" is not remembered: it holds a secret',
    ]
    assert sorted(path.name for path in (big / ".memory").iterdir()) == ["MEMORY.md", "tabs-in-go.md"]
    body = session.conversation.summary.text
    assert "## Remember" not in body and "## Look up\nNothing." in body and "Mend the totals." in body
    turn(session, "third")
    assert any("[Tabs in Go](tabs-in-go.md)" in block["text"] for block in server.requests[3]["system"])
    places = [session.transcript.path.read_text().index(kind) for kind in ("tc:side", "tc:compact")]
    assert places == sorted(places) and REMEMBER.strip() in session.transcript.path.read_text()


@pytest.mark.parametrize("settings", [{"memory_flush": "off"}, {"permission_mode": "read-only"}, {"mode": "plan"}])
def test_nothing_is_remembered_where_that_is_turned_off_or_nothing_may_be_written(api, start, turn, big, settings):
    server = api([reply("One."), reply("Two."), reply(SUMMARY + "\n" + REMEMBER)])
    session, _ = summarized(start, turn, server, **settings)
    assert not (big / ".memory").exists() and session.conversation.summary is not None


def test_a_memory_that_cannot_be_written_does_no_harm_to_the_summary(api, start, turn, big):
    (big / ".memory").write_text("in the way")
    server = api([reply("One."), reply("Two."), reply(SUMMARY + "\n" + REMEMBER)])
    session, events = summarized(start, turn, server)
    assert session.conversation.summary is not None
    assert any("cannot be kept" in event.text for event in events if isinstance(event, Notice))


def test_a_summary_changes_no_record_that_is_there_and_says_what_it_would_say(api, start, turn, big):
    (big / ".memory").mkdir()
    record = big / ".memory/tabs-in-go.md"
    record.write_text("# Tabs in Go\n\nAsk Anna first.\n")
    broken = big / ".memory/zeta.md"
    broken.write_text("---\nname: Zeta\nno end\n")
    lines = (
        "- user: Zeta \u2014 the last letter?",
        "- feedback: tabs-in-go \u2014 Tabs.",
        "- user: Alpha \u2014 likes it.",
    )
    notes = "\n".join(("", "## Remember", *lines))
    server = api([reply("One."), reply("Two."), reply(SUMMARY + notes)])
    session, events = summarized(start, turn, server, memory_select="off")
    assert (
        record.read_text() == "# Tabs in Go\n\nAsk Anna first.\n" and broken.read_text() == "---\nname: Zeta\nno end\n"
    )
    said = [event.text for event in events if isinstance(event, Notice)][1:]
    assert said == [
        ".memory/zeta.md stays as it is; the summary would say: the last letter? "
        "(edit it, or ask for it to be corrected)",
        ".memory/tabs-in-go.md stays as it is; the summary would say: Tabs. (edit it, or ask for it to be corrected)",
        "remembered (user): Alpha; .memory/alpha.md",
    ]
    index = (big / ".memory/MEMORY.md").read_text()
    assert "[Alpha](alpha.md)" in index and "](tabs-in-go.md)" in index and session.conversation.summary is not None


@pytest.mark.parametrize(
    ("text", "left", "names"),
    [
        ("## A\na\n\n## Remember\n## Look up\nfiles\n\n## Z\nz", "## A\na\n\n## Look up\nfiles\n\n## Z\nz", []),
        ("## A\n### Remember\n- user: x \u2014 y", "## A\n### Remember\n- user: x \u2014 y", []),
        ("## A\n```\n## Remember\n```\n## Remember\n* user: x - y", "## A\n```\n## Remember\n```", ["x"]),
        ("## A\na", "## A\na", []),
        ("## Remember\n- user: x \u2014 y", "", ["x"]),
    ],
)
def test_the_section_of_notes_is_taken_out_and_nothing_else(text, left, names):
    found, notes = split_notes(text, "s")
    assert (found, [note.name for note in notes]) == (left, names)
