"""A request is a pure function of the files and the conversation, pinned where it can be, stated where it changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.context.conftest import FACTS, TARGET, TOOLS, Bench
from tinyclaw.context.compiler import Target, digest, rebuild_request
from tinyclaw.context.events import RESTATE_TOKENS
from tinyclaw.context.manifest import Entry, Manifest
from tinyclaw.context.source import Limits, SourceContext, source
from tinyclaw.context.tokens import Estimator
from tinyclaw.errors import PromptTooLong, StateError
from tinyclaw.state.transcript.content import result_block
from tinyclaw.state.transcript.fold import conversation_of, merge_manifest
from tinyclaw.state.transcript.grammar import Block, parse, render, render_header
from tinyclaw.state.transcript.prefixes import PrefixStore
from tinyclaw.state.transcript.statements import stated_text
from tinyclaw.types import Text, Thinking, ToolSpec, ToolUse, Usage


def states(working) -> list[tuple[str, str]]:
    return [(block.attrs["path"], block.attrs["how"]) for block in working.blocks if block.kind == "state"]


def reasons(working) -> list[str]:
    return [block.attrs["reason"] for block in working.blocks if block.kind == "prefix"]


def system_text(working) -> str:
    return "\n".join(block["text"] for block in working.request.system)


def marks(request) -> list[str]:
    found = [f"system {i}" for i, block in enumerate(request.system) if "cache_control" in block]
    for i, message in enumerate(request.messages):
        found += [f"message {i}" for block in message["content"] if "cache_control" in block]
    return found


def wire_texts(request) -> list[str]:
    """Every text of the messages, in the order of reading."""
    return [block["text"] for message in request.messages for block in message["content"] if block["type"] == "text"]


def test_the_same_inputs_give_the_same_request(bench: Bench):
    bench.write("AGENTS.md", "Use tabs.\n")
    bench.write("PLAN.md", "1. Look\n")
    one, two = bench.peek(), bench.peek()
    assert json.dumps(one.request.to_wire()) == json.dumps(two.request.to_wire())
    assert (one.sha256, one.blocks) == (two.sha256, two.blocks)


def test_instructions_stand_in_the_prefix_and_plan_and_todo_never_do(bench: Bench):
    for name in ("AGENTS.md", "PLAN.md", "TODO.md", ".memory/MEMORY.md"):
        bench.write(name, f"text of {name}\n")
    working = bench.compile()
    assert "text of AGENTS.md" in system_text(working) and "text of .memory/MEMORY.md" in system_text(working)
    assert "text of PLAN.md" not in system_text(working)
    assert states(working) == [("PLAN.md", "whole"), ("TODO.md", "whole")]


def test_a_change_is_stated_once_and_the_prefix_stays_byte_for_byte(bench: Bench):
    bench.write("AGENTS.md", "Use tabs.\n" + "filler\n" * 50)
    first = bench.compile()
    bench.reply()
    bench.write("AGENTS.md", "Use spaces.\n" + "filler\n" * 50)
    bench.say("next")
    second = bench.compile()
    assert states(second) == [("AGENTS.md", "diff")]
    assert (second.request.system, second.request.tools) == (first.request.system, first.request.tools)
    bench.reply()
    bench.say("again")
    assert states(bench.compile()) == []


def test_a_file_that_is_new_is_stated_whole_and_one_that_vanished_as_gone(bench: Bench):
    bench.write("PLAN.md", "plan\n")
    bench.compile()
    bench.write("AGENTS.md", "new rules\n")
    (bench.root / "PLAN.md").unlink()
    bench.age(bench.root)
    working = bench.compile()
    assert sorted(states(working)) == [("AGENTS.md", "whole"), ("PLAN.md", "gone")]
    assert states(bench.compile()) == []


def test_what_a_tools_result_stated_needs_no_event_unless_disk_says_something_else(bench: Bench):
    bench.write("TODO.md", "- [ ] one\n")
    bench.compile()
    bench.append(Block("tool_use", {"m": 2, "id": "t1", "name": "todo"}, "{}"))
    bench.write("TODO.md", "- [x] one\n")
    revision = next(bench.reader.take({}).files("TODO.md")).revision
    bench.append(result_block("t1", 3, "done", name="todo", revisions={"TODO.md": revision}, states=["TODO.md"]))
    assert states(bench.compile()) == []
    bench.write("TODO.md", "- [x] one, says the person\n")
    assert states(bench.compile()) == [("TODO.md", "whole")]


def test_what_an_event_said_long_ago_is_said_again_and_what_the_prefix_holds_is_not(bench: Bench):
    bench.write("PLAN.md", "plan\n")
    bench.write("AGENTS.md", "rules\n")
    bench.compile()
    bench.reply(Text("x" * int(RESTATE_TOKENS * TARGET.chars_per_token * 2)))
    bench.say("next")
    assert states(bench.compile()) == [("PLAN.md", "whole")]
    assert states(bench.compile()) == []


def test_a_change_while_a_command_ran_is_marked_as_such(bench: Bench):
    bench.write("PLAN.md", "plan\n")
    assert [block.attrs["by"] for block in bench.compile().blocks if block.kind == "state"] == ["now"]
    bench.write("PLAN.md", "another plan\n")
    working = bench.compile(changed_during=frozenset({"PLAN.md"}))
    assert [block.attrs["by"] for block in working.blocks if block.kind == "state"] == ["during"]


def test_a_new_prefix_is_made_for_a_reason_and_the_reason_is_recorded(bench: Bench):
    assert reasons(bench.compile()) == ["start"]
    assert reasons(bench.compile()) == []
    other = (ToolSpec("read", "Read it.", TOOLS[0].schema),)
    assert reasons(bench.peek(tools=other)) == ["tools"]
    assert reasons(bench.peek(prefix=None)) == ["missing"]
    assert reasons(bench.peek(now="2026-11-30T12:59:59Z")) == []
    assert reasons(bench.peek(now="2026-11-30T13:00:01Z")) == ["expired"]


def test_a_new_prefix_takes_in_what_was_stated_since(bench: Bench):
    bench.write("AGENTS.md", "old rules\n")
    bench.compile()
    bench.write("AGENTS.md", "new rules\n")
    bench.compile()
    working = bench.compile(now="2026-11-30T14:00:00Z")
    assert "new rules" in system_text(working) and states(working) == []


def test_after_a_summary_live_files_outside_the_kept_part_are_stated_whole(bench: Bench):
    bench.write("PLAN.md", "plan\n")
    bench.compile()
    bench.reply()
    bench.say("more")
    bench.compile()
    bench.append(Block("compact", {"keep": 3}, "Summary."))
    assert states(bench.compile()) == [("PLAN.md", "whole")]


def test_there_are_at_most_four_marks_where_the_next_request_finds_them(bench: Bench):
    bench.write("AGENTS.md", "rules\n")
    assert marks(bench.compile().request) == ["system 0", "system 3", "message 0"]
    for turn in range(6):
        bench.reply()
        bench.say(f"turn {turn}")
        assert marks(bench.compile().request) == [
            "system 0",
            "system 3",
            f"message {turn * 2}",
            f"message {turn * 2 + 2}",
        ]


def test_a_request_is_rebuilt_from_its_record_equal_as_json(bench: Bench):
    bench.write("AGENTS.md", "rules\n")
    working = bench.compile()
    record = Block("request", {"n": 1, "model": TARGET.model, "max_tokens": TARGET.max_tokens, "params": {}})
    rebuilt = rebuild_request(bench.conversation, working.prefix, record)
    assert json.dumps(rebuilt.to_wire()) == json.dumps(working.request.to_wire())


def test_a_required_source_that_is_missing_stops_the_request(bench: Bench):
    bench.write("~/prompts/base.md", " \n")
    with pytest.raises(StateError, match="base"):
        bench.peek()


def test_optional_parts_fall_out_by_priority_with_the_reason_in_the_manifest(bench: Bench):
    bench.write("AGENTS.md", "rules\n")
    bench.write(".memory/MEMORY.md", "- [a](a.md) — b\n" * 150)
    small = Target("m", 6_000, 4_000, 3.5, {})
    working = bench.peek(target=small)
    entry = working.manifest.entries["memory:index"]
    assert entry.place == "out" and "lowest priority" in entry.note
    assert "rules" in system_text(working)
    assert any("left out" in note for note in working.notes)


def test_a_request_that_cannot_fit_names_its_largest_parts(bench: Bench):
    bench.say("x" * 900_000)
    with pytest.raises(
        PromptTooLong, match=r"window is 200,000.*The largest parts: the text that begins 'xxx.*in message 1 \(257,"
    ):
        bench.peek()


def test_the_longest_answer_shrinks_to_what_the_window_leaves(bench: Bench):
    bench.say("x" * int(195_000 * 3.5))
    assert 1_024 <= bench.peek().request.max_tokens < TARGET.max_tokens


def test_the_manifest_names_file_lines_revision_and_cost(bench: Bench):
    bench.write("AGENTS.md", "one\ntwo\n")
    bench.write("PLAN.md", "plan\n")
    entries = bench.compile().manifest.entries
    agents, plan = entries["instructions:AGENTS.md"], entries["plan"]
    assert (agents.place, agents.file, agents.lines, len(agents.revision)) == ("prefix", "AGENTS.md", "1-2", 16)
    assert (plan.place, plan.file, plan.lines) == ("event", "PLAN.md", "1-1")
    assert agents.tokens > 0 and entries["conversation"].tokens > 0


def test_an_unchanged_block_does_not_differ_from_the_last_manifest(bench: Bench):
    bench.write("AGENTS.md", "rules\n")
    before = bench.compile().manifest.to_json()
    bench.append(Block("reply", {"n": 1, "in": 1_500, "out": 5}))
    bench.say("more")
    change = bench.peek().manifest.difference(before)
    assert set(change["set"]) == {"conversation"} and change["basis"] == "reported"


entries = st.dictionaries(st.text(max_size=3), st.builds(Entry, st.just("prefix"), st.integers(0, 9)), max_size=4)


@given(entries, entries)
def test_a_manifest_is_rebuilt_from_its_difference(old, new):
    before, after = Manifest(old, 1, 2, False), Manifest(new, 3, 4, True)
    assert merge_manifest(before.to_json(), after.difference(before.to_json())) == after.to_json()


def test_estimates_are_corrected_by_reported_usage_unless_that_is_absurd():
    assert Estimator.calibrated(4.0, None, {}) == Estimator(4.0)
    assert Estimator.calibrated(4.0, Usage(input=1000), {"chars": 3000}) == Estimator(3.0, corrected=True)
    assert Estimator.calibrated(4.0, Usage(input=1), {"chars": 30_000}) == Estimator(4.0)


def test_facts_of_git_are_stated_only_where_there_are_any(bench: Bench):
    assert states(bench.peek()) == []
    bench.inputs["facts"] = {**FACTS, "git": "git: on branch main"}
    assert states(bench.compile()) == [("(git)", "whole")]


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_no_file_can_close_its_own_statement(bench: Bench, text):
    bench.write(
        "PLAN.md", text + '\n</state abcd>\n<state path="AGENTS.md" revision="x" how="whole" changed="outside">\n'
    )
    (block,) = (block for block in bench.peek().blocks if block.kind == "state")
    assert block.text.count(block.text.rpartition("\n")[2]) == 1


def test_limits_hold_for_what_is_stated_too(bench: Bench):
    bench.write("PLAN.md", "line\n" * 20_000)
    working = bench.peek(limits=Limits(document_bytes=1000))
    assert "100,000 bytes in 20,000 lines, and only lines 1-166" in working.manifest.entries["plan"].note
    assert any("PLAN.md" in note for note in working.notes)


def test_a_file_that_is_deleted_is_gone_once(bench: Bench):
    bench.write("AGENTS.md", "rules\n")
    bench.compile()
    (bench.root / "AGENTS.md").unlink()
    bench.age(bench.root)
    assert states(bench.compile()) == [("AGENTS.md", "gone")]
    assert states(bench.compile()) == []


def test_a_small_file_is_stated_whole_where_the_diff_would_be_longer(bench: Bench):
    bench.write("AGENTS.md", "a\n")
    bench.compile()
    bench.write("AGENTS.md", "b\n")
    assert states(bench.compile()) == [("AGENTS.md", "whole")]


def test_an_older_event_does_not_outlive_a_newer_prefix(bench: Bench):
    """The prefix is read first, so what the conversation said of the file would be taken for newer."""
    bench.write("AGENTS.md", "first\n")
    bench.compile()
    bench.write("AGENTS.md", "second\n")
    bench.compile()
    bench.write("AGENTS.md", "third\n")
    working = bench.compile(now="2026-11-30T14:00:00Z")
    assert "third" in system_text(working)
    assert [text for text in wire_texts(working.request) if "<state" in text][-1].count("third") == 1


def test_text_from_the_user_level_is_pinned_anew_and_never_stated(bench: Bench):
    bench.write("~/AGENTS.md", "private one\n")
    bench.compile()
    bench.write("~/AGENTS.md", "private two\n")
    working = bench.compile()
    assert (reasons(working), states(working)) == (["private"], [])
    assert "private two" in system_text(working)
    (bench.user / "AGENTS.md").unlink()
    bench.age(bench.user)
    working = bench.compile()
    assert (reasons(working), states(working)) == (["private"], []) and "private" not in system_text(working)
    assert reasons(bench.compile()) == []


def test_a_fact_that_changes_is_nobodys_edit(bench: Bench):
    bench.inputs["facts"] = {**FACTS, "git": "branch main"}
    bench.compile()
    bench.inputs["facts"] = {**FACTS, "git": "branch other"}
    assert [block.attrs["by"] for block in bench.compile().blocks] == ["now"]


@source(placement="event", priority=10, watches=("NOTES.md",))
def notes(context: SourceContext) -> str | None:
    """A source of the test's own, which can be made to fail."""
    file = context.snapshot.file("NOTES.md")
    if file and "break" in file.text:
        raise StateError("cannot make sense of NOTES.md")
    return file.text if file else None


@pytest.fixture
def noted(bench: Bench) -> Bench:
    """The workspace with one more source, and its file."""
    bench.sources = (*bench.sources, notes)
    bench.reader = bench.new_reader()
    bench.write("NOTES.md", "note one\n")
    return bench


def test_a_source_that_fails_is_left_out_with_the_reason_and_what_it_said_stands(noted: Bench):
    assert states(noted.compile()) == [("NOTES.md", "whole")]
    noted.write("NOTES.md", "break\n")
    working = noted.compile()
    assert states(working) == []
    entry = working.manifest.entries["notes"]
    assert (entry.place, entry.note) == ("out", "left out: cannot make sense of NOTES.md")
    noted.write("NOTES.md", "note two\n")
    assert states(noted.compile()) == [("NOTES.md", "whole")]


def test_a_required_source_that_fails_stops_the_request_and_is_named(noted: Bench):
    noted.write("NOTES.md", "break\n")
    with pytest.raises(StateError, match=r"part notes cannot be made: cannot make sense of NOTES\.md"):
        noted.peek(sources=[replace(notes, required=True)])


def test_a_source_of_one_file_is_bounded_and_says_that_the_file_cannot_be_read(noted: Bench):
    noted.write("NOTES.md", "line\n" * 100)
    assert "only lines 1-" in wire_texts(noted.peek(limits=Limits(document_bytes=300)).request)[0]
    noted.write("NOTES.md", b"a\0b")
    assert "(NOTES.md could not be read: line 1 holds NUL bytes" in wire_texts(noted.peek().request)[0]


def test_a_file_without_room_leaves_a_marker_and_is_stated_when_there_is_room(bench: Bench):
    bench.write(".memory/MEMORY.md", "- [a](a.md) — b\n" * 150)
    small = replace(TARGET, window_tokens=6_000, max_tokens=4_000)
    first = bench.compile(target=small)
    assert "[.memory/MEMORY.md: left out for want of room" in system_text(first) and "[a](a.md)" not in system_text(
        first
    )
    assert (states(bench.compile(target=small)), reasons(bench.peek(target=small))) == ([], [])
    bench.write(".memory/MEMORY.md", "- [a](a.md) — b\n")
    assert states(bench.compile(target=small)) == [(".memory/MEMORY.md", "whole")]


def test_of_the_instructions_the_farthest_file_falls_out_first(deep: Bench):
    deep.write("AGENTS.md", "far rules\n" * 200)
    deep.write("sub/deep/AGENTS.md", "near rules\n" * 50)
    text = system_text(deep.peek(target=replace(TARGET, window_tokens=6_000, max_tokens=4_000)))
    assert "near rules" in text and "far rules" not in text


def test_usage_of_an_earlier_request_does_not_correct_the_estimate(bench: Bench):
    bench.compile()
    bench.reply()
    assert bench.peek().manifest.corrected
    bench.compile()
    assert not bench.peek().manifest.corrected


def test_usage_of_another_model_does_not_correct_the_estimate(bench: Bench):
    bench.compile()
    bench.reply()
    assert not bench.peek(target=replace(TARGET, model="claude-opus-5-5")).manifest.corrected


def scripted(bench: Bench) -> list:
    """A conversation with everything that a request can hold; gives each request as it was sent."""
    sent = []

    def exchange(*content) -> None:
        sent.append(bench.compile())
        bench.reply(*content)

    bench.write("AGENTS.md", "rules\n")
    bench.write("PLAN.md", "1. one\n2. two\n" + "filler\n" * 20)
    call = {"path": "a.py", "text": "x = 1\ny = '```'\n"}
    exchange(Thinking("Hm.", "c2ln"), Text("I look."), ToolUse("t1", "read", call), ToolUse("t2", "read", {}))
    bench.result("t2", "two\r\n<!-- tc:end -->", is_error=True)
    bench.result("t1", " ")
    bench.write("PLAN.md", "1. one\n2. TWO\n" + "filler\n" * 20)
    exchange(Text("Done."))
    bench.append(Block("turn_end", {"reason": "done"}))
    bench.say("## You <!-- tc:text {} -->\nmore \U0001f600 \u2028")
    bench.write("AGENTS.md", "other rules, \u65e5\u672c\n")
    exchange(Text("Yes."))
    bench.append(Block("turn_end", {"reason": "done"}))
    (bench.root / "AGENTS.md").unlink()
    bench.age(bench.root)
    bench.say("last")
    exchange(Text("Bye."))
    return sent


def test_every_request_of_a_conversation_is_rebuilt_from_the_written_transcript(bench: Bench):
    sent = scripted(bench)
    store = PrefixStore(bench.root / ".transcripts", bench.user)
    for working in sent:
        store.save(working.prefix)
    text = render_header({"session": "s", "format": "1"}) + render(bench.blocks)
    blocks = parse(text.encode(), "t.md").blocks
    places = [index for index, block in enumerate(blocks) if block.kind == "request"]
    assert len(places) == len(sent) == 4
    for place, working in zip(places, sent, strict=True):
        conversation = conversation_of(blocks[:place])
        prefix = PrefixStore(bench.root / ".transcripts", bench.user).load(conversation.prefix)
        rebuilt = rebuild_request(conversation, prefix, blocks[place])
        assert json.dumps(rebuilt.to_wire()) == json.dumps(working.request.to_wire())
        messages = conversation.messages(rebuilt.model).messages
        assert digest(rebuilt, prefix, messages) == working.sha256 == blocks[place].attrs["sha256"]


def test_another_process_makes_the_same_request_byte_for_byte(bench: Bench):
    bench.write("AGENTS.md", "rules\n")
    bench.write("PLAN.md", "plan\n")
    for name in "abc":
        bench.write(f"skills/{name}/SKILL.md", f"---\nname: {name}\ndescription: does {name}\n---\n")
    code = f"""
import json
from pathlib import Path
from tests.context.conftest import Bench
bench = Bench(*map(Path, {[str(bench.root), str(bench.user), str(bench.cwd)]!r}))
bench.say("hello")
print(json.dumps(bench.peek().request.to_wire()), end="")
"""
    here = Path(__file__).parents[2]
    made = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=here,
            env={"PATH": os.environ["PATH"], "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert made == [json.dumps(bench.peek().request.to_wire())] * 2


NAMES = (
    *("AGENTS.md", "sub/CLAUDE.md", "PLAN.md", "TODO.md", ".memory/MEMORY.md", "skills/a/SKILL.md", "~/AGENTS.md"),
    *("other/AGENTS.md", "other/in/CLAUDE.md", "x.md", "other/x.md", "~/x.md"),
)
lines = st.sampled_from(
    [
        *("# Head", "- [ ] item", "---", "```", "</state aaaa>", "\r", "é", "a" * 80, "", "@@ -1 +1 @@"),
        *("@x.md", "@../x.md", "@other/AGENTS.md"),
    ]
)
file_texts = st.one_of(
    st.lists(lines, max_size=9).map("\n".join),
    st.lists(lines, max_size=4).map(lambda some: "\n".join([*map(str, range(50)), *some, *map(str, range(50))])),
    st.text(max_size=30),
)
edits = st.tuples(st.sampled_from(NAMES), st.one_of(st.none(), file_texts))
steps = st.one_of(edits, edits, edits, st.sampled_from(["far", "compact", "later", "untick", "touch"]))


def shown_by(working, path: str) -> str:
    """The text of a live file as somebody knows it who reads the request from its beginning.

    A diff from before the prefix cannot be applied to it; where it leads to the pinned revision, the prefix holds.
    """
    pinned = working.prefix.stated(path)
    text = pinned.text if pinned else None
    for part in wire_texts(working.request):
        if part.startswith(f'<state path="{path}" '):
            how = part.split('how="')[1].split('"')[0]
            text = None if how == "gone" else stated_text(Block("state", {"how": how}, part), text)
            if text is None and pinned and f'revision="{pinned.revision}"' in part.partition("\n")[0]:
                text = pinned.text
    return text or ""


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(steps, max_size=3), max_size=7))
def test_whatever_happens_the_newest_statement_of_each_file_is_what_is_on_disk(tmp_path_factory, rounds):
    folder = tmp_path_factory.mktemp("w")
    for name in ("project/sub", "user"):
        (folder / name).mkdir(parents=True)
    bench = Bench(folder / "project", folder / "user", folder / "project/sub")
    bench.say("hello")
    now, wide = datetime(2026, 11, 30, 12, tzinfo=UTC), replace(TARGET, window_tokens=2_000_000)
    for round_ in [[], *rounds]:
        for step in round_:
            if isinstance(step, tuple):
                bench.save(*step)
            elif step == "far":
                bench.reply(Text("x" * 120_000))
                bench.say("on")
            elif step == "compact" and bench.requests:
                bench.append(Block("compact", {"keep": max(1, bench.conversation.last - 1)}, "Summary."))
            elif step == "later":
                now += timedelta(hours=2)
            elif step == "touch":
                call = ToolUse(f"call_{bench.conversation.last}", "read", {})
                bench.reply(call, stop="tool_use")
                bench.result(call.id, "text", revisions={"other/in/x.py": "0" * 16})
            elif step == "untick":
                bench.untick()
        working = bench.compile(now=now.isoformat(), target=wide)
        check_request(bench, working)
        bench.reply()
        bench.append(Block("turn_end", {"reason": "done"}))
        bench.say("next")


def check_request(bench: Bench, working) -> None:
    snapshot = bench.reader.take(FACTS, bench.conversation.touched)
    everything = {file.path: file for file in snapshot.files(*snapshot.found)}
    for path in NAMES:
        file, pinned = everything.get(path), working.prefix.stated(path)
        events = [text for text in wire_texts(working.request) if text.startswith(f'<state path="{path}" ')]
        revision = (
            events[-1].split('revision="')[1].split('"')[0] if events else pinned.revision if pinned else "absent"
        )
        if path.endswith("SKILL.md"):
            continue
        assert revision == (file.revision if file else "absent"), path
        assert (file.text.strip() if file else "") in shown_by(working, path), path
    assert sum("cache_control" in json.dumps(block) for block in blocks_of(working.request)) <= 4
    assert all(block["text"].strip() for block in blocks_of(working.request) if block["type"] == "text")
    assert not any(path.startswith("~") for path, _ in states(working))


def blocks_of(request) -> list:
    return [*request.system, *(block for message in request.messages for block in message["content"])]


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(NAMES), file_texts, max_size=6))
def test_a_fresh_process_would_make_the_same_request_of_any_workspace(tmp_path_factory, files):
    folder = tmp_path_factory.mktemp("w")
    for name in ("project/sub", "user"):
        (folder / name).mkdir(parents=True)
    made = []
    for _ in range(2):
        bench = Bench(folder / "project", folder / "user", folder / "project/sub")
        for name, text in files.items():
            bench.save(name, text)
        bench.say("hello")
        working = bench.peek()
        made.append((json.dumps(working.request.to_wire()), working.sha256, working.blocks, working.manifest))
    assert made[0] == made[1]
