"""One turn from the person's text to the model's own stop."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import pytest

from tests.messages_api import cut, error_event, fault, reply, slow
from tests.tools.test_read import png
from tinyclaw.agent.events import (
    FileStated,
    Notice,
    PermissionAsked,
    ReplyReceived,
    ToolFinished,
    ToolProgress,
    TurnEnded,
)
from tinyclaw.agent.loop import run_turn
from tinyclaw.context.compiler import digest, rebuild_request
from tinyclaw.errors import UsageError
from tinyclaw.state.transcript.fold import conversation_of
from tinyclaw.state.transcript.grammar import parse
from tinyclaw.tools._base import Registry, ToolContext, tool
from tinyclaw.types import Reply, Retrying, TextDelta


def ended(events) -> TurnEnded:
    return events[-1]


def results(body) -> list:
    """All tool results of a request, in order."""
    return [
        block
        for message in body["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "tool_result"
    ]


def texts(body, role="user") -> list[str]:
    return [
        block["text"]
        for message in body["messages"]
        if message["role"] == role
        for block in message["content"]
        if block["type"] == "text"
    ]


def requests_in(session) -> list:
    """Every request that the transcript announces, rebuilt from the file on disk."""
    blocks = parse(session.transcript.path.read_bytes(), "t").blocks
    rebuilt = []
    for index, block in enumerate(blocks):
        if block.kind == "request":
            conversation = conversation_of(blocks[:index], session.conversation.load_image)
            prefix = session.prefixes.load(conversation.prefix)
            request = rebuild_request(conversation, prefix, block)
            assert digest(request, prefix, conversation.messages(request.model).messages) == block.attrs["sha256"]
            rebuilt.append(request.to_wire())
    return rebuilt


def test_a_turn_reads_edits_runs_and_answers(api, start, turn, root: Path):
    (root / "app.py").write_text("def add(a, b):\n    return a - b\n")
    server = api(
        [
            reply("Let me look.", tools=[("read", {"path": "app.py"})]),
            reply(tools=[("edit", {"path": "app.py", "old_text": "a - b", "new_text": "a + b"})]),
            reply(tools=[("bash", {"command": "python3 -c 'import app; print(app.add(1, 2))'"})]),
            reply("Mended."),
        ]
    )
    session = start(server)
    events = turn(session, "mend add")
    assert (root / "app.py").read_text() == "def add(a, b):\n    return a + b\n"
    assert "3" in results(server.requests[-1])[-1]["content"]
    assert (ended(events).reason, ended(events).text, ended(events).requests) == ("done", "Mended.", 4)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Let me look.Mended."
    assert [event.name for event in events if isinstance(event, ToolFinished)] == ["read", "edit", "bash"]


def test_every_request_can_be_rebuilt_from_the_transcript_equal_as_json(api, start, turn, root: Path):
    (root / "AGENTS.md").write_text("Use tabs.\n")
    (root / "PLAN.md").write_text("# Plan\n\n1. Look\n")
    server = api(
        [
            reply("Hm.", thinking="Let me think.", tools=[("read", {"path": "AGENTS.md"}), ("glob", {"pattern": "*"})]),
            reply(tools=[("bash", {"command": "echo more >> PLAN.md; printf 'a\\r\\nb'; exit 3"})]),
            reply("One."),
            reply(tools=[("write", {"path": "new.txt", "content": "```\n<!-- tc:end -->\n```\n"})]),
            reply("Two."),
        ]
    )
    session = start(server)
    turn(session, "first")
    turn(session, "second <!-- tc:text {} -->")
    sent = [{key: value for key, value in body.items() if key != "stream"} for body in server.requests]
    assert requests_in(session) == sent


def test_an_edit_of_the_plan_between_two_requests_is_in_the_next_one_once(api, start, turn, root: Path):
    (root / "PLAN.md").write_text("1. first\n2. second\n3. third\n" + "filler\n" * 30)

    def person_edits(body):
        plan = root / "PLAN.md"
        plan.write_text(plan.read_text().replace("2. second", "2. SOMETHING ELSE"))
        return reply("ok", tools=[("glob", {"pattern": "*"})])

    server = api([person_edits, reply(tools=[("glob", {"pattern": "*.md"})]), reply("done")])
    events = turn(start(server))
    states = [[text for text in texts(body) if text.startswith("<state")] for body in server.requests]
    assert [len(each) for each in states] == [1, 2, 2]
    assert 'how="diff"' in states[1][1] and "+2. SOMETHING ELSE" in states[1][1]
    assert [(event.path, event.how) for event in events if isinstance(event, FileStated)] == [
        ("PLAN.md", "whole"),
        ("PLAN.md", "diff"),
    ]


def test_the_result_of_the_agents_own_plan_tool_is_the_statement(api, start, turn, root: Path):
    (root / "TODO.md").write_text("- [ ] one\n")
    server = api([reply(tools=[("edit", {"path": "TODO.md", "old_text": "[ ]", "new_text": "[x]"})]), reply("done")])
    events = turn(start(server))
    assert [event.how for event in events if isinstance(event, FileStated)] == ["whole"]


def test_the_prefix_stays_byte_for_byte_while_instructions_change(api, start, turn, root: Path):
    (root / "AGENTS.md").write_text("Use tabs.\n")

    def person_edits(body):
        (root / "AGENTS.md").write_text("Use spaces.\n")
        return reply(tools=[("glob", {"pattern": "*"})])

    server = api([person_edits, reply("done")])
    turn(start(server))
    first, second = server.requests
    assert (first["system"], first["tools"]) == (second["system"], second["tools"])
    assert any("Use spaces." in text for text in texts(second))


def test_a_resumed_session_sends_what_an_uninterrupted_one_would(api, start, turn, root: Path):
    (root / "PLAN.md").write_text("plan\n")
    script = [reply("one", thinking="hm"), reply("two"), reply("three")]
    server = api(script)
    session = start(server)
    turn(session, "a")
    session.close()
    resumed = start(server, resume="last")
    turn(resumed, "b")
    other = api(script)
    (root / "other").mkdir()
    whole = start(other)
    turn(whole, "a")
    turn(whole, "b")
    assert other.requests[1] == server.requests[1]


def test_calls_that_only_read_run_side_by_side(api, start, turn):
    meeting = threading.Barrier(2, timeout=10)

    @tool(effect="read")
    def meet(ctx: ToolContext, name: Annotated[str, "who"]) -> str:
        """Wait for the other one."""
        meeting.wait()
        return f"met {name}"

    server = api([reply(tools=[("meet", {"name": "a"}), ("meet", {"name": "b"})]), reply("done")])
    session = start(server)
    session.registry = Registry({"meet": meet})
    turn(session)
    assert [block["content"] for block in results(server.requests[1])] == ["met a", "met b"]


def test_a_tool_that_is_not_there_or_gets_wrong_arguments_is_answered_with_what_to_do(api, start, turn):
    server = api([reply(tools=[("fly", {}), ("read", {"file": "x"})]), reply("done")])
    turn(start(server))
    unknown, wrong = results(server.requests[1])
    assert unknown["is_error"] and "bash" in unknown["content"]
    assert wrong["is_error"] and "path is missing" in wrong["content"] and "file is not an argument" in wrong["content"]


def test_a_fault_of_a_tool_ends_neither_turn_nor_session_and_its_details_are_kept(api, start, turn):
    @tool(effect="read")
    def broken(ctx: ToolContext) -> str:
        """Divide by nothing."""
        return str(1 // 0)

    kept: list[Exception] = []
    session = start(api([reply(tools=[("broken", {})]), reply("I go another way.")]))
    session.registry = Registry({"broken": broken})
    session.report = lambda error: kept.append(error) or "unexpected error; details are in FILE"
    events = turn(session)
    assert ended(events).text == "I go another way."
    assert isinstance(kept[0], ZeroDivisionError) and kept[0].__traceback__ is not None
    assert [event.text for event in events if isinstance(event, Notice)] == ["unexpected error; details are in FILE"]


def test_the_third_equal_failure_in_a_row_gets_another_hint(api, start, turn):
    again = reply(tools=[("read", {"path": "nowhere.txt"})])
    server = api([again, again, again, reply("I give up.")])
    turn(start(server))
    hinted = ["failed 3 times in a row" in block["content"] for block in results(server.requests[-1])]
    assert hinted == [False, False, True]


def test_equal_ids_of_two_calls_are_made_distinct_and_both_run(api, start, turn, root: Path):
    server = api(
        [
            reply(tools=[("bash", {"command": "echo one >> f"}, "t1"), ("bash", {"command": "echo two >> f"}, "t1")]),
            reply("done"),
        ]
    )
    turn(start(server))
    assert (root / "f").read_text() == "one\ntwo\n"
    ids = [block["tool_use_id"] for block in results(server.requests[1])]
    assert len(set(ids)) == 2


@pytest.mark.parametrize("after", [3, 5, -3, -2, -1])
def test_a_stream_that_is_cut_runs_nothing_and_is_asked_for_again(api, start, turn, root: Path, after):
    call = reply("Writing.", tools=[("write", {"path": "a.txt", "content": "abc\n" * 20})])
    server = api([cut(call, after_events=after), reply("nothing to do")])
    events = turn(start(server))
    assert not (root / "a.txt").exists()
    assert any(isinstance(event, Retrying) for event in events)
    assert ended(events).text == "nothing to do"


def test_when_every_try_is_cut_the_turn_ends_with_the_reason_and_can_go_on(api, start, turn):
    server = api([error_event()] * 5 + [reply("back")])
    session = start(server)
    events = turn(session, "hello")
    assert ended(events).reason == "error" and "overloaded" in ended(events).text.lower()
    assert ended(turn(session, None)).text == "back"


def test_a_call_cut_by_the_output_limit_is_not_run_and_three_in_a_row_end_the_turn(api, start, turn, root: Path):
    half = reply(tools=[("write", {"path": "a.txt"})], stop_reason="max_tokens")
    server = api([half, half, half, reply("smaller")])
    session = start(server)
    events = turn(session)
    assert ended(events).reason == "limit"
    assert not (root / "a.txt").exists()
    assert all(block["is_error"] and "output limit" in block["content"] for block in results(server.requests[2]))
    assert ended(turn(session, "again")).text == "smaller"


def test_a_text_cut_by_the_output_limit_is_continued(api, start, turn):
    server = api([reply("first half", stop_reason="max_tokens"), reply("second half")])
    events = turn(start(server))
    assert ended(events).reason == "done"
    assert "Go on exactly where it stopped" in texts(server.requests[1])[-1]


def test_thinking_goes_back_to_the_model_that_was_asked_whatever_name_the_server_gives_it(api, start, turn):
    server = api([reply(thinking="Hm.", tools=[("glob", {"pattern": "*"})]), reply("done")])
    session = start(server)
    real = session.model

    class Gateway:
        """The real client behind a gateway that answers with a dated name."""

        name = real.name

        def stream(self, request, interrupt):
            for event in real.stream(request, interrupt):
                yield replace(event, model=f"{event.model}-20261101") if isinstance(event, Reply) else event

    session.model = Gateway()
    turn(session)
    assert server.requests[1]["messages"][1]["content"][0]["type"] == "thinking"


def test_a_refusal_ends_the_turn_with_its_reason(api, start, turn):
    assert ended(turn(start(api([reply("I can't.", stop_reason="refusal")])))).reason == "refused"


def test_the_limit_of_requests_stops_before_the_next_one(api, start, turn):
    server = api([reply(tools=[("glob", {"pattern": "*"})])] * 3)
    events = turn(start(server, max_requests=2))
    assert (ended(events).reason, len(server.requests)) == ("limit", 2)


def test_a_secret_reaches_neither_model_nor_files(api, start, turn, root: Path):
    key = "sk-ant-api03-" + "Ab3dE5gH" * 11 + "AA"
    (root / ".env").write_text(f"KEY={key}\n")
    server = api(
        [
            reply(tools=[("bash", {"command": "cat .env"}), ("read", {"path": ".env"})]),
            reply(tools=[("bash", {"command": f"echo {key} | wc -c"})]),
            reply("done"),
        ]
    )
    session = start(server)
    turn(session, f"my key is {key}")
    assert key not in session.transcript.path.read_text()
    assert all(key not in str(body) for body in server.requests)
    assert "masked" in results(server.requests[2])[-1]["content"] and results(server.requests[2])[-1]["is_error"]
    stored = [path.read_bytes() for path in root.rglob("*") if path.is_file() and path.name != ".env"]
    assert all(key.encode() not in data for data in stored)


def test_interrupting_a_command_ends_it_and_the_next_turn_is_valid(api, start, turn):
    server = api(
        [
            reply(tools=[("bash", {"command": "echo begun; sleep 30"}), ("bash", {"command": "echo never"})]),
            reply("after"),
        ]
    )
    session = start(server)
    events = []
    for event in run_turn(session, "wait"):
        events.append(event)
        if isinstance(event, ToolProgress):
            began = time.monotonic()
            session.interrupt.set()
    assert time.monotonic() - began < 5
    assert ended(events).reason == "interrupted"
    session.interrupt.clear()
    assert ended(turn(session, "go on")).text == "after"
    first, second = results(server.requests[1])
    assert first["is_error"] and "interrupted" in first["content"].lower()
    assert second["is_error"] and "before this was started" in second["content"]


def test_interrupting_the_stream_keeps_what_was_said(api, start, turn):
    server = api([slow(reply("word " * 200), between_seconds=0.2), reply("after")])
    session = start(server)
    events = []
    for event in run_turn(session, "talk"):
        events.append(event)
        if isinstance(event, TextDelta):
            session.interrupt.set()
    assert ended(events).reason == "interrupted"
    session.interrupt.clear()
    turn(session, "go on")
    assert texts(server.requests[1], "assistant")[0].startswith("word")


def test_what_a_failed_try_had_said_is_not_kept_when_the_next_one_is_interrupted(api, start, turn):
    server = api(
        [cut(reply("first " * 50), after_events=5), slow(reply("second " * 50), between_seconds=0.2), reply("x")]
    )
    session = start(server)
    retried = False
    for event in run_turn(session, "talk"):
        retried = retried or isinstance(event, Retrying)
        if retried and isinstance(event, TextDelta):
            session.interrupt.set()
    session.interrupt.clear()
    turn(session, "go on")
    (said,) = texts(server.requests[-1], "assistant")
    assert said.startswith("second") and "first" not in said


def test_with_nobody_to_ask_the_turn_pauses_and_an_approval_lets_it_go_on(api, start, turn, root: Path):
    server = api([reply(tools=[("bash", {"command": "echo yes > f"}), ("glob", {"pattern": "*"})]), reply("done")])
    session = start(server, permission_mode="ask")
    events = turn(session, "do it")
    assert ended(events).reason == "paused"
    assert [event.name for event in events if isinstance(event, PermissionAsked)] == ["bash"]
    session.close()
    text = session.transcript.path.read_text()
    assert "- [ ] allow" in text
    session.transcript.path.write_text(text.replace("- [ ] allow", "- [x] allow"))
    resumed = start(server, permission_mode="ask", resume="last")
    assert ended(turn(resumed, None)).text == "done"
    assert (root / "f").read_text() == "yes\n"
    assert len(results(server.requests[1])) == 2


def test_a_paused_turn_that_is_not_approved_stays_paused(api, start, turn):
    server = api([reply(tools=[("bash", {"command": "true"})])])
    session = start(server, permission_mode="ask")
    turn(session, "do it")
    session.close()
    assert ended(turn(start(server, permission_mode="ask", resume="last"), None)).reason == "paused"


def test_saying_something_else_refuses_the_open_call(api, start, turn, root: Path):
    server = api([reply(tools=[("bash", {"command": "touch f"})]), reply("fine")])
    session = start(server, permission_mode="ask")
    turn(session, "do it")
    assert ended(turn(session, "no, leave it")).text == "fine"
    assert not (root / "f").exists()
    assert "did not allow" in results(server.requests[1])[0]["content"]


def test_the_persons_answer_is_asked_once_and_always_holds_for_the_session(api, start, turn):
    asked = []

    def answer(question):
        asked.append(question.headline)
        return "always"

    call = reply(tools=[("bash", {"command": "true"})])
    server = api([call, call, reply("done")])
    turn(start(server, permission_mode="ask", ask=answer))
    assert asked == ["bash true"]


def test_a_refused_call_is_answered_as_refused(api, start, turn, root: Path):
    server = api([reply(tools=[("write", {"path": "f", "content": "x"})]), reply("ok")])
    turn(start(server, permission_mode="ask", ask=lambda question: "deny"))
    assert not (root / "f").exists()
    assert results(server.requests[1])[0]["is_error"]


@pytest.mark.parametrize("path", [".tinyclaw/SETTINGS.md", ".transcripts/x.md", ".git/hooks/pre-commit"])
def test_own_files_are_never_written_without_asking_even_in_auto(api, start, turn, root: Path, path):
    server = api([reply(tools=[("write", {"path": path, "content": "x"})])])
    assert ended(turn(start(server))).reason == "paused"
    assert not (root / path).exists()


def test_text_below_the_last_turn_is_the_persons_next_message(api, start, turn):
    server = api([reply("one"), reply("two")])
    session = start(server)
    turn(session, "a")
    session.close()
    with session.transcript.path.open("a") as file:
        file.write("\nAnd what about b?\n")
    assert ended(turn(start(server, resume="last"), None)).text == "two"
    assert texts(server.requests[1])[-1] == "And what about b?"


def test_with_nothing_pending_there_is_nothing_to_go_on_with(api, start, turn):
    session = start(api([reply("one")]))
    turn(session, "a")
    with pytest.raises(UsageError, match="nothing to go on with"):
        list(run_turn(session, None))


def test_an_unticked_turn_is_out_of_the_conversation(api, start, turn):
    server = api([reply("one"), reply("two"), reply("three")])
    session = start(server)
    turn(session, "first question")
    turn(session, "second question")
    text = session.transcript.path.read_text()
    session.transcript.path.write_text(text.replace("- [x] in the conversation", "- [ ] in the conversation", 1))
    events = turn(session, "third question")
    assert texts(server.requests[2]) == ["second question", "third question"]
    assert any("changed outside" in event.text for event in events if isinstance(event, Notice))


def test_what_an_unticked_turn_stated_is_said_again_and_is_nobodys_change(api, start, turn, root: Path):
    (root / "TODO.md").write_text("- [ ] one\n")
    session = start(api([reply("one"), reply("two")]))
    turn(session, "first question")
    text = session.transcript.path.read_text()
    session.transcript.path.write_text(text.replace("- [x] in the conversation", "- [ ] in the conversation", 1))
    stated = [event for event in turn(session, "second question") if isinstance(event, FileStated)]
    assert [(event.path, event.by) for event in stated] == [("TODO.md", "now")]


@pytest.mark.parametrize("resumes", [False, True])
def test_a_file_that_was_read_in_an_unticked_turn_is_not_overwritten_unread(api, start, turn, root: Path, resumes):
    (root / "a.txt").write_text("precious\n")
    whole = {"path": "a.txt", "content": "new\n"}
    server = api(
        [reply(tools=[("read", {"path": "a.txt"})]), reply("seen"), reply(tools=[("write", whole)]), reply("no")]
    )
    session = start(server)
    turn(session, "read it")
    text = session.transcript.path.read_text()
    session.transcript.path.write_text(text.replace("- [x] in the conversation", "- [ ] in the conversation", 1))
    if resumes:
        session.close()
        session = start(server, resume="last")
    turn(session, "write it")
    assert (root / "a.txt").read_text() == "precious\n"
    (result,) = results(server.requests[3])
    assert result["is_error"] and "read" in result["content"]


def test_a_text_written_by_hand_goes_with_a_changed_file_and_both_are_on_record(api, start, turn, root: Path):
    server = api([reply("one"), reply("two")])
    session = start(server)
    turn(session, "first")
    (root / "PLAN.md").write_text("# Plan\n\n1. By hand\n")
    with session.transcript.path.open("a") as file:
        file.write("second, by hand\n")
    turn(session, None)
    assert "second, by hand" in texts(server.requests[1]) and "1. By hand" in str(server.requests[1])
    sent = [{key: request[key] for key in ("system", "messages")} for request in server.requests]
    assert [{key: request[key] for key in ("system", "messages")} for request in requests_in(session)] == sent


@pytest.mark.parametrize("resumes", [False, True])
def test_a_file_that_was_stated_cut_is_not_overwritten(api, start, turn, root: Path, resumes):
    index = root / ".memory/MEMORY.md"
    index.parent.mkdir()
    index.write_text("- one\n")
    whole = {"path": ".memory/MEMORY.md", "content": "new\n"}
    server = api([reply("seen"), reply("seen"), reply(tools=[("write", whole)]), reply("no")])
    session = start(server)
    turn(session)
    index.write_text("- one\n" * 3000)
    turn(session)
    if resumes:
        session.close()
        session = start(server, resume="last")
    turn(session)
    assert index.read_text() == "- one\n" * 3000
    assert results(server.requests[3])[-1]["is_error"]


def test_a_question_shows_the_change_in_its_file(api, start, turn, root: Path):
    lines = [f"line {number}\n" for number in range(1, 10)]
    (root / "a.txt").write_text("".join(lines))
    change = {"path": "a.txt", "old_text": "line 5", "new_text": "five"}
    session = start(api([reply(tools=[("edit", change)])]), permission_mode="ask")
    (asked,) = [event for event in turn(session) if isinstance(event, PermissionAsked)]
    assert asked.detail.splitlines() == [
        "--- a/a.txt",
        "+++ b/a.txt",
        "@@ -2,7 +2,7 @@",
        " line 2",
        " line 3",
        " line 4",
        "-line 5",
        "+five",
        " line 6",
        " line 7",
        " line 8",
    ]


def test_a_call_that_would_be_refused_anyway_is_not_asked_for(api, start, turn, root: Path):
    (root / "unread.txt").write_text("precious\n")
    calls = [
        ("edit", {"path": "no.txt", "old_text": "a", "new_text": "b"}),
        ("write", {"path": "unread.txt", "content": "x"}),
        ("bash", {"command": 7}),
    ]
    server = api([reply(tools=calls), reply("I see.")])
    events = turn(start(server, permission_mode="ask"))
    assert not [event for event in events if isinstance(event, PermissionAsked)]
    said = [block["content"] for block in results(server.requests[1])]
    assert [words in text for words, text in zip(("no.txt", "have not read it", "command is"), said, strict=True)] == [
        True
    ] * 3


def test_long_results_of_one_message_stay_under_its_limit(api, start, turn, root: Path):
    for name in "abcdefgh":
        (root / name).write_text("".join(f"line {n} {name * 40}\n" for n in range(900)))
    server = api([reply(tools=[("read", {"path": name}) for name in "abcdefgh"]), reply("done")])
    turn(start(server))
    contents = [block["content"] for block in results(server.requests[1])]
    assert sum(map(len, contents)) < 220_000
    whole = [content for content in contents if "cut here" not in content]
    assert {len(content) for content in whole} == {max(map(len, contents))} and 0 < len(whole) < 8


def test_a_long_output_is_kept_whole_in_a_file_that_the_result_names(api, start, turn, root: Path):
    server = api([reply(tools=[("bash", {"command": "seq 1 100000"})]), reply("done")])
    turn(start(server))
    result = results(server.requests[1])[0]["content"]
    stored = next((root / ".task_outputs").rglob("*.md"))
    assert stored.relative_to(root).as_posix() in result
    assert stored.read_text().split("\n")[:100000] == [str(n) for n in range(1, 100001)]
    assert len(result) <= 17_000 and "100000" in result


def test_a_rate_limit_is_waited_for_and_said(api, start, turn):
    server = api([fault(429, headers={"retry-after": "1"}), reply("done")])
    began = time.monotonic()
    events = turn(start(server))
    assert time.monotonic() - began >= 1
    assert [event.delay_seconds for event in events if isinstance(event, Retrying)] == [1]
    assert [event.stop_reason for event in events if isinstance(event, ReplyReceived)] == ["end_turn"]


def test_blank_output_and_carriage_returns_reach_the_model_as_they_may(api, start, turn):
    server = api(
        [reply(tools=[("bash", {"command": "true"}), ("bash", {"command": "printf 'a\\0b\\r\\n'"})]), reply("x")]
    )
    turn(start(server))
    assert all(block["content"].strip() for block in results(server.requests[1]))


def test_a_change_while_a_command_ran_is_marked_and_one_before_it_is_the_persons(api, start, turn, root):
    (root / "PLAN.md").write_text("1. Look\n")
    (root / "TODO.md").write_text("- [ ] one\n")

    def person_edits(body):
        (root / "TODO.md").write_text("- [ ] another\n")
        return reply(tools=[("bash", {"command": "echo more >> PLAN.md"})])

    events = turn(start(api([person_edits, reply("done")])))
    changes = {event.path: event.by for event in events if isinstance(event, FileStated)}
    assert changes == {"PLAN.md": "during", "TODO.md": "outside"}


# A picture that the API refuses


@pytest.mark.parametrize("said", ["messages.2.content.1.image.source: image exceeds 5 MB", "Could not process image"])
def test_a_picture_that_the_api_refuses_is_taken_out_and_the_turn_goes_on(api, start, turn, root, said):
    (root / "x.png").write_bytes(png(3, 2))
    (root / "a.txt").write_text("words\n")
    calls = [("read", {"path": "a.txt"}), ("read", {"path": "x.png"})]
    server = api([reply(tools=calls), fault(400, said), reply("Seen."), reply("Hello.")])
    session = start(server)
    events = turn(session)
    assert (events[-1].reason, events[-1].text) == ("done", "Seen.")
    text, picture = server.requests[2]["messages"][2]["content"][:2]
    assert text["content"] == "words"
    assert picture["content"].startswith(
        "x.png: image/png, 3x2 pixels\n[the picture was taken out, for the API refused it:"
    )
    assert "image" in json.dumps(server.requests[1]) and '"image"' not in json.dumps(server.requests[2])
    session.close()
    turn(start(server, resume="last"), "hello")
    assert '"image"' not in json.dumps(server.requests[3]), "also after a resume"


def test_a_refusal_that_is_about_no_picture_stays_one(api, start, turn, root):
    (root / "x.png").write_bytes(png(3, 2))
    server = api([reply(tools=[("read", {"path": "x.png"})]), fault(400, "max_tokens is too large"), reply("Hello.")])
    session = start(server)
    assert turn(session)[-1].reason == "error"
    server.reset([fault(400, "no image model"), reply("Hello.")])
    session = start(api([fault(400, "this model takes no image"), reply("x")]))
    assert turn(session)[-1].reason == "error", "there is none to take out"
