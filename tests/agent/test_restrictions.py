"""While a skill is active, its allowed-tools hold for every call, whatever becomes of the session or of the file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.messages_api import reply
from tinyclaw.agent.events import PermissionAsked, ToolFinished, TurnEnded
from tinyclaw.agent.loop import run_turn
from tinyclaw.agent.restrictions import active_skills
from tinyclaw.state.transcript.content import user_text
from tinyclaw.state.transcript.fold import conversation_of
from tinyclaw.state.transcript.grammar import Block

LOAD = ("load_skill", {"name": "look"})
LIST = ("bash", {"command": "ls"})
SUMMARY = "## Goal\n\nGo on."


def skill(name: str, allowed: str | None, body: str = "Look around.") -> str:
    line = "" if allowed is None else f"allowed-tools: {allowed}\n"
    return f"---\nname: {name}\ndescription: Looks.\n{line}---\n\n{body}\n"


@pytest.fixture
def put(root: Path):
    """Writes a skill and gives its file."""

    def write(name: str, allowed: str | None, body: str = "Look around.") -> Path:
        path = root / f"skills/{name}/SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(skill(name, allowed, body))
        return path

    return write


def transcript(session) -> str:
    return session.transcript.path.read_text()


def outcomes(events) -> list[tuple[str, bool]]:
    """Each call that was answered, and whether it was let through."""
    finished = [event for event in events if isinstance(event, ToolFinished)]
    assert all(event.is_error == ("was not run: the skill" in event.text) for event in finished), finished
    return [(event.name, not event.is_error) for event in finished]


def test_only_what_the_skill_allows_runs_until_the_turn_ends(api, start, turn, root, put):
    put("look", "Read Bash(echo:*)")
    (root / "x.txt").write_text("text\n")
    calls = [
        LIST,
        LOAD,
        LIST,
        ("bash", {"command": "echo hi; ls"}),
        ("bash", {"command": "echo hi"}),
        ("read", {"path": "x.txt"}),
        ("glob", {"pattern": "*"}),
        ("load_skill", {"name": "LOOK"}),
        ("write", {"path": "new.txt", "content": "x"}),
    ]
    server = api([*(reply(tools=[call]) for call in calls), reply("Done."), reply(tools=[LIST]), reply("Done.")])
    session = start(server)
    through = [allowed for _, allowed in outcomes(turn(session))]
    assert through == [True, True, False, False, True, True, False, True, False]
    assert not (root / "new.txt").exists()
    assert outcomes(turn(session, "and now?")) == [("bash", True)], "the person's next text ended it"
    assert server.refused == []
    tools = [json.dumps(request["tools"]) for request in server.requests]
    assert len(set(tools)) == 1, "the tools array stays as it is"


def test_the_refusal_says_which_skill_what_it_allows_and_when_that_ends(api, start, turn, put):
    put("look", "Read, Grep")
    server = api([reply(tools=[LOAD]), reply(tools=[LIST]), reply("Done.")])
    refused = [event for event in turn(start(server)) if isinstance(event, ToolFinished)][1]
    assert refused.text.startswith(
        "bash was not run: the skill look, which you loaded, allows only: Read, Grep. That holds until this turn ends."
    )


@pytest.mark.parametrize(("allowed", "is_told"), [("Bash(ls:*)", True), ("Bash(*) Read", False), ("Read", False)])
def test_where_a_pattern_of_the_tool_did_not_fit_the_refusal_says_what_can(api, start, turn, put, allowed, is_told):
    put("look", allowed)
    calls = [("bash", {"command": "ls | head"}), ("glob", {"pattern": "*"})]
    session = start(api([reply(tools=[LOAD]), reply(tools=calls), reply("Done.")]))
    _, command, glob = (event.text for event in turn(session) if isinstance(event, ToolFinished))
    assert ("fits a single command only: without pipes" in command) == is_told
    assert "was not run" in glob and "single command" not in glob


def test_it_holds_for_the_calls_behind_it_in_the_same_message(api, start, turn, put):
    put("look", "Grep")
    server = api([reply(tools=[("glob", {"pattern": "*"}), LOAD, ("glob", {"pattern": "*"}), LIST]), reply("Done.")])
    assert outcomes(turn(start(server))) == [("glob", True), ("load_skill", True), ("glob", False), ("bash", False)]


def test_a_skill_without_allowed_tools_restricts_nothing(api, start, turn, put):
    put("look", None)
    server = api([reply(tools=[LOAD]), reply(tools=[LIST]), reply("Done.")])
    assert outcomes(turn(start(server))) == [("load_skill", True), ("bash", True)]


@pytest.mark.parametrize("allowed", ["", "WebFetch", "[[Bash]]", "Bash (ls)", "{bash: yes}", "'*'"])
def test_what_is_not_understood_allows_nothing(api, start, turn, put, allowed):
    put("look", allowed)
    server = api([reply(tools=[LOAD]), reply(tools=[LIST]), reply("Done.")])
    assert outcomes(turn(start(server))) == [("load_skill", True), ("bash", False)]


def test_a_call_must_be_allowed_by_every_skill_that_is_active(api, start, turn, put):
    put("look", "Bash Glob")
    put("find", "Glob Read")
    names = ["bash", "read", "glob"]
    calls = [LIST, ("read", {"path": "skills/look/SKILL.md"}), ("glob", {"pattern": "*"})]
    server = api(
        [reply(tools=[LOAD]), reply(tools=[("load_skill", {"name": "find"})]), reply(tools=calls), reply("Ok")]
    )
    assert outcomes(turn(start(server)))[2:] == list(zip(names, [False, False, True], strict=True))


def test_reading_a_file_of_a_skill_activates_it_and_a_failed_load_does_not(api, start, turn, root, put):
    put("look", "Grep")
    (root / "skills/look/x.md").write_text("more\n")
    file = ("load_skill", {"name": "look", "file": "x.md"})
    missing = ("load_skill", {"name": "look", "file": "none.md"})
    server = api(
        [reply(tools=[missing]), reply(tools=[LIST]), reply(tools=[file]), reply(tools=[LIST]), reply("Done.")]
    )
    finished = [event for event in turn(start(server)) if isinstance(event, ToolFinished)]
    assert [event.is_error for event in finished] == [True, False, False, True]


@pytest.mark.parametrize("change", ["narrowed", "widened", "gone", "broken", "emptied", "moved"])
def test_a_call_must_be_allowed_by_the_file_as_it_was_loaded_and_as_it_is(api, start, turn, root, put, change):
    path = put("look", "Bash" if change != "widened" else "Grep")

    def edit(body):
        if change == "narrowed":
            put("look", "Grep")
        elif change == "widened":
            put("look", "Bash")
        elif change == "gone":
            path.unlink()
        elif change == "broken":
            path.write_bytes(b"\0")
        elif change == "emptied":
            path.write_text("---\nname: look\ndescription: Looks.\nallowed-tools: Ba")
        else:
            path.parent.rename(root / "skills/other")
        return reply(tools=[LIST])

    server = api([reply(tools=[LOAD]), edit, reply("Done.")])
    finished = [event for event in turn(start(server)) if isinstance(event, ToolFinished)]
    assert finished[1].is_error, finished[1].text
    if change in ("narrowed", "widened"):
        assert "allows only: Grep." in finished[1].text
    if change in ("gone", "broken", "moved"):
        assert "allows only: no tool but load_skill (" in finished[1].text


def test_the_model_cannot_widen_what_it_loaded(api, start, turn, root, put):
    put("look", "Edit")
    widen = ("edit", {"path": "skills/look/SKILL.md", "old_text": "tools: Edit", "new_text": "tools: Edit Bash"})
    server = api([reply(tools=[LOAD]), reply(tools=[widen]), reply(tools=[LOAD]), reply(tools=[LIST]), reply("Done.")])
    finished = [event for event in turn(start(server)) if isinstance(event, ToolFinished)]
    assert [event.is_error for event in finished] == [False, False, False, True]
    assert "tools: Edit Bash" in (root / "skills/look/SKILL.md").read_text()


@pytest.mark.parametrize("name", ["sub/SKILL.md", "skill.md"])
def test_a_file_of_the_skill_that_looks_like_a_skill_does_not_count(api, start, turn, root, put, name):
    other = put("look", "Grep").parent / name
    other.parent.mkdir(exist_ok=True)
    other.write_text(skill("look", "Bash"))
    file = ("load_skill", {"name": "look", "file": name})
    server = api([reply(tools=[file]), reply(tools=[LIST]), reply("Done.")])
    assert outcomes(turn(start(server))) == [("load_skill", True), ("bash", False)]


def test_what_allowed_no_tool_when_it_was_loaded_allows_none_later(api, start, turn, put):
    put("look", "{bash: yes}")

    def mend(body):
        put("look", "Bash")
        return reply(tools=[LIST])

    server = api([reply(tools=[LOAD]), mend, reply("Done.")])
    assert outcomes(turn(start(server))) == [("load_skill", True), ("bash", False)]


def test_it_holds_after_a_resume_of_the_turn(api, start, put, root):
    put("look", "Bash(echo:*)")
    server = api(
        [reply(tools=[LOAD]), reply(tools=[("bash", {"command": "echo hi"})]), reply(tools=[LIST]), reply("ok")]
    )
    session = start(server, permission_mode="ask")
    events = list(run_turn(session, "go on"))
    assert events[-1].reason == "paused" and [event.name for event in events if isinstance(event, PermissionAsked)] == [
        "bash"
    ]
    session.close()
    again = start(server, resume="last", permission_mode="auto")
    events = list(run_turn(again, None))
    assert isinstance(events[-1], TurnEnded) and outcomes(events) == [("bash", True), ("bash", False)]


def test_it_never_grants_a_permission(api, start, turn, put):
    put("look", "Bash")
    server = api([reply(tools=[LOAD]), reply(tools=[LIST]), reply("Done.")])
    events = turn(start(server, permission_mode="ask", ask=lambda question: "deny"))
    assert [event.name for event in events if isinstance(event, PermissionAsked)] == ["bash"]


def test_nobody_is_asked_about_a_call_that_a_skill_does_not_allow(api, start, turn, put):
    put("look", "Grep")
    server = api([reply(tools=[LOAD]), reply(tools=[LIST]), reply("Done.")])
    events = turn(start(server, permission_mode="ask"))
    assert not any(isinstance(event, PermissionAsked) for event in events)


def test_it_holds_when_a_summary_has_taken_the_place_of_the_call(api, start, turn, put):
    put("look", "Grep compact", body="Look around. " * 3)
    grep = ("grep", {"pattern": "Look"})
    steps = iter([*(reply(tools=[call]) for call in (LOAD, grep, grep, ("compact", {}), LIST)), reply("Done.")])

    def answer(body):
        last = body["messages"][-1]["content"][-1]
        return reply(SUMMARY) if last.get("text", "").startswith("The conversation above has grown") else next(steps)

    session = start(api(answer))
    assert outcomes(turn(session))[-1] == ("bash", False)
    sent = [call.name for message in session.conversation.messages("m").messages for call in message.calls]
    assert session.conversation.summary is not None and "load_skill" not in sent


def test_between_turns_no_skill_is_active(api, start, turn, put):
    put("look", "Grep")
    session = start(api([reply(tools=[LOAD]), reply("Done.")]))
    turn(session)
    assert active_skills(session.conversation) == ()


def test_the_persons_next_text_ends_it_even_where_the_end_of_the_turn_was_taken_out():
    call, result = (
        {"m": 2, "id": "t1", "name": "load_skill"},
        {"m": 3, "id": "t1", "skill": "skills/x/SKILL.md", "allowed": ["Read"]},
    )
    blocks = [
        user_text("first", 1, "now"),
        Block("tool_use", call, '{"name": "x"}'),
        Block("tool_result", result, "Skill x"),
        user_text("[a background command ended]", 3, "now", opens_turn=False),
    ]
    assert active_skills(conversation_of(blocks)) == (("x", "skills/x/SKILL.md", ("Read",)),)
    assert active_skills(conversation_of([*blocks, user_text("second", 5, "now")])) == ()


@pytest.mark.parametrize("named", ["", "/tmp/SKILL.md", "../SKILL.md"])
def test_a_result_that_no_longer_names_the_skills_file_allows_nothing(api, start, put, tmp_path, named):
    put("look", "Bash")
    (tmp_path / "SKILL.md").write_text(skill("look", "Bash"))
    session = start(api([reply(tools=[LOAD]), reply(tools=[LIST]), reply("Done.")]))
    finished = []
    for event in run_turn(session, "go on"):
        if isinstance(event, ToolFinished):
            finished.append(event)
            text, count = re.subn(r'"skill":\s*"[^"]*"', f'"skill":"{named}"', transcript(session), count=1)
            assert count == 1
            session.transcript.path.write_text(text)
    assert [event.is_error for event in finished] == [False, True]
    assert "no tool but load_skill (" in finished[1].text


@pytest.mark.parametrize("allowed", ["null", '"Bash"', "[]", "[1]", '["Grep"]'])
def test_what_was_recorded_as_allowed_holds_as_it_stands_and_what_is_no_list_allows_nothing(api, start, put, allowed):
    put("look", "Bash")
    session = start(api([reply(tools=[LOAD]), reply(tools=[LIST]), reply("Done.")]))
    for event in run_turn(session, "go on"):
        if isinstance(event, ToolFinished) and event.name == "load_skill":
            text, count = re.subn(r'"allowed":\s*\["Bash"\]', f'"allowed":{allowed}', transcript(session), count=1)
            assert count == 1
            session.transcript.path.write_text(text)
        elif isinstance(event, ToolFinished):
            assert event.is_error


def test_a_skill_of_the_user_restricts_as_one_of_the_workspace(api, start, turn, tmp_path):
    path = tmp_path / "user/skills/look/SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(skill("look", "Grep"))
    server = api([reply(tools=[LOAD]), reply(tools=[LIST]), reply("Done.")])
    assert outcomes(turn(start(server))) == [("load_skill", True), ("bash", False)]


def test_a_skill_that_is_loaded_again_unchanged_is_not_sent_again(api, start, turn, put):
    put("look", None, body="Look around.\n" * 300)
    server = api([reply(tools=[LOAD]), reply(tools=[LOAD]), reply("Done.")])
    first, second = (event.text for event in turn(start(server)) if isinstance(event, ToolFinished))
    assert "Look around." in first and second.startswith("[unchanged: ")
