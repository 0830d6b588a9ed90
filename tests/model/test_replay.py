"""A transcript plays the model, in order; strictly, it names what made a request differ."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.context.conftest import TARGET, Bench
from tinyclaw.context.compiler import WorkingSet
from tinyclaw.errors import Interrupted, ReplayError, StateError, UsageError
from tinyclaw.model.replay import ReplayModel, first_difference
from tinyclaw.state.transcript.content import image_block
from tinyclaw.state.transcript.grammar import Block, render, render_header
from tinyclaw.state.transcript.prefixes import PrefixStore
from tinyclaw.types import Interrupt, Json, Raw, Reply, Request, Text, TextDelta, Thinking, ToolUse, Usage

CALL = ToolUse("toolu_1", "read", {"path": "a.py"})


class Recording:
    """A recorded session of two requests: its transcript's file, and the requests as they were sent."""

    def __init__(self, folder: Path) -> None:
        self.user = folder / "user"
        root = folder / "project"
        for each in (root / "sub", self.user):
            each.mkdir(parents=True)
        self.bench = bench = Bench(root, self.user, root)
        bench.write("AGENTS.md", "project rules\n")
        bench.write("~/AGENTS.md", "private rules\n")
        bench.write("PLAN.md", "1. look\n")
        bench.say("mend it")
        self.sent: list[WorkingSet] = [bench.compile()]
        bench.reply(Thinking("Hm.", "c2ln"), Text("I look."), CALL, Raw({"type": "odd", "x": 1}), stop="tool_use")
        bench.result("toolu_1", "x = 1")
        bench.write("PLAN.md", "1. look well\n")
        self.sent.append(bench.compile())
        bench.reply(Text("Done."))
        self.path = root / ".transcripts" / "recorded.md"
        store = PrefixStore(self.path.parent, self.user)
        store.save(self.sent[0].prefix)
        self.save()

    def save(self) -> None:
        header = render_header({"session": "s", "created": "2026-11-30T10:15:00Z", "format": "1"})
        self.path.write_text(header + render(self.bench.blocks))

    def model(self, **facts) -> ReplayModel:
        return ReplayModel(self.path, self.user, **facts)

    @property
    def requests(self) -> list[Request]:
        return [working.request for working in self.sent]


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return Recording(tmp_path)


def play(model: ReplayModel, request: Request) -> Reply:
    *_, last = model.stream(request, Interrupt())
    assert isinstance(last, Reply)
    return last


ANY = Request("m", 1, (), (), ())


def test_replies_come_in_their_order_whole_with_deltas_before_them(recording: Recording):
    model = recording.model()
    delta, first = model.stream(ANY, Interrupt())
    assert delta == TextDelta("I look.")
    assert first == Reply(
        (Thinking("Hm.", "c2ln"), Text("I look."), CALL, Raw({"type": "odd", "x": 1})),
        "tool_use",
        Usage(900, 5),
        "m",
    )
    assert play(model, ANY).content == (Text("Done."),)


def test_it_is_the_recorded_model_at_the_recorded_date(recording: Recording):
    model = recording.model()
    assert (model.name, model.recorded_date) == (TARGET.model, "2026-11-30")


def test_a_replay_that_runs_dry_says_how_many_replies_there_were_and_what_to_do(recording: Recording):
    model = recording.model()
    play(model, ANY), play(model, ANY)
    for _ in range(2):
        with pytest.raises(ReplayError, match=r"recorded\.md holds 2 replies, and one more was asked for; go on with"):
            play(model, ANY)


def test_an_interrupt_comes_before_the_reply_and_loses_none(recording: Recording):
    model, interrupt = recording.model(), Interrupt()
    interrupt.set()
    with pytest.raises(Interrupted):
        list(model.stream(ANY, interrupt))
    assert play(model, ANY).stop_reason == "tool_use"


def test_a_request_that_got_no_reply_plays_none(recording: Recording):
    recording.bench.compile()
    recording.bench.append(Block("text", {"m": 9, "role": "assistant", "partial": True}, "cut"))
    recording.save()
    model = recording.model()
    assert [play(model, ANY).text, play(model, ANY).text] == ["I look.", "Done."]
    with pytest.raises(ReplayError):
        play(model, ANY)


def test_facts_that_a_person_broke_are_lived_with(recording: Recording):
    text = recording.path.read_text().replace('"in": 900', '"in": "many"')
    recording.path.write_text(text)
    assert play(recording.model(), ANY).usage == Usage(0, 5)


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda path: None, UsageError, "there is no such transcript"),
        (Path.mkdir, StateError, "is a folder, not a file"),
        (lambda path: path.write_text("# Notes\n"), UsageError, "holds no reply of a model"),
    ],
    ids=["absent", "folder", "notes"],
)
def test_what_is_no_recording_is_refused_by_name(tmp_path: Path, make: Callable[[Path], object], error, said):
    make(tmp_path / "t.md")
    with pytest.raises(error, match=rf"t\.md: .*{said}"):
        ReplayModel(tmp_path / "t.md", tmp_path)


def test_equal_requests_pass_a_strict_replay(recording: Recording):
    model = recording.model(strict=True)
    assert [play(model, request).text for request in recording.requests] == ["I look.", "Done."]


def test_a_difference_ends_the_replay_before_the_reply(recording: Recording):
    model = recording.model(strict=True)
    with pytest.raises(ReplayError, match=r"request 1 differs from the recorded one: model was .* and is 'other'"):
        play(model, replace(recording.requests[0], model="other"))
    assert play(model, recording.requests[0]).text == "I look."


@pytest.mark.parametrize("edit", ["gone", "edited"])
def test_a_prefix_that_is_gone_or_edited_is_named(recording: Recording, edit):
    file = recording.path.parent / "prefixes" / f"{recording.sent[0].prefix.hash}.md"
    if edit == "gone":
        file.unlink()
    else:
        file.write_text(file.read_text().replace("project rules", "other rules"))
    with pytest.raises(ReplayError, match=rf"request 1 cannot be compared: .*{file.name} is not there or was edited"):
        play(recording.model(strict=True), recording.requests[0])


def changed(request: Request, old: str, new: str) -> Request:
    """The request with one text exchanged wherever it stands."""
    wire = json.loads(json.dumps([request.tools, request.system, request.messages]).replace(old, new))
    tools, system, messages = (tuple(part) for part in wire)
    return replace(request, tools=tools, system=system, messages=messages)


def content_changed(request: Request, place: tuple[int, int], **fields: object) -> Request:
    messages: list[Json] = json.loads(json.dumps(request.messages))
    message, block = place
    messages[message]["content"][block].update(fields)
    return replace(request, messages=tuple(messages))


DIFFERENCES: dict[str, tuple[Callable[[Request], Request], str]] = {
    "the longest answer": (lambda r: replace(r, max_tokens=1), "max_tokens was 8000 and is 1"),
    "a parameter": (lambda r: replace(r, params={"thinking": {}}), "params was {} and is {'thinking': {}}"),
    "a tool": (lambda r: changed(r, "Read a file.", "Read."), "the tools: read"),
    "another tool": (lambda r: replace(r, tools=(*r.tools, {"name": "grep"})), "the tools: grep"),
    "the base prompt": (
        lambda r: changed(r, "coding agent", "robot"),
        'the source base: at line 1 it said "You are tinyclaw',
    ),
    "instructions": (
        lambda r: changed(r, "project rules", "other rules"),
        "the source instructions:AGENTS.md: at line 3 it said 'ons from AGENTS.md\\n\\nproject rules' and says",
    ),
    "private instructions": (
        lambda r: changed(r, "private rules", "x"),
        "the source instructions:~/AGENTS.md: at line 3",
    ),
    "one source less": (lambda r: replace(r, system=r.system[:-2]), "the source instructions:AGENTS.md has nothing to"),
    "one source more": (
        lambda r: replace(r, system=(*r.system, {"type": "text", "text": "# Memory"})),
        "the text that begins '# Memory' is a new part of the prompt",
    ),
    "a state": (
        lambda r: changed(r, "1. look well", "1. look twice"),
        "message 3, the state of PLAN.md: at line 1 it said",
    ),
    "another state": (
        lambda r: changed(r, '\\"PLAN.md\\"', '\\"TODO.md\\"'),
        "message 1, the state of PLAN.md stood there, and now the state of TODO.md",
    ),
    "a result": (
        lambda r: changed(r, "x = 1", "x = 2"),
        "message 3, the result of toolu_1: at line 1 it said 'x = 1' and",
    ),
    "a result's fate": (
        lambda r: content_changed(r, (2, 0), is_error=True),
        "message 3, the result of toolu_1: the text is the same, and another field differs",
    ),
    "a call": (lambda r: changed(r, '"a.py"', '"b.py"'), "message 2, the call read (toolu_1): at line 1 it said"),
    "what the person said": (lambda r: changed(r, "mend it", "break it"), "message 1, the text that begins 'mend it'"),
    "a role": (
        lambda r: replace(r, messages=({**r.messages[0], "role": "assistant"}, *r.messages[1:])),
        "message 1, its role was user and is assistant",
    ),
    "one block less": (
        lambda r: replace(r, messages=({**r.messages[0], "content": r.messages[0]["content"][:1]}, *r.messages[1:])),
        "message 1, the text that begins 'mend it' is not there now",
    ),
    "one block more": (
        lambda r: replace(
            r,
            messages=(*r.messages[:2], {**r.messages[2], "content": [*r.messages[2]["content"], Text("x").to_wire()]}),
        ),
        "message 3, the text that begins 'x' is new",
    ),
    "one message less": (lambda r: replace(r, messages=r.messages[:1]), "it has 1 messages and had 3"),
}


@pytest.mark.parametrize("kind", DIFFERENCES)
def test_each_kind_of_difference_names_its_source(recording: Recording, kind):
    change, said = DIFFERENCES[kind]
    recorded = recording.requests[1]
    names = [block.id for block in recording.sent[1].prefix.blocks]
    found = first_difference(recorded, change(recorded), names)
    assert found.startswith(said)


def test_cache_marks_make_no_difference(recording: Recording):
    recorded = recording.requests[1]
    bare = json.loads(json.dumps(recorded.messages).replace(', "cache_control": {"type": "ephemeral"}', ""))
    assert first_difference(recorded, replace(recorded, messages=tuple(bare)), ["a"] * 9) == ""


def test_a_picture_of_the_recorded_session_is_compared_as_it_was_sent(recording: Recording):
    bench, picture = recording.bench, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
    bench.write(".task_outputs/s/1.png", picture)
    bench.conversation.load_image = lambda path, sha256: base64.b64encode(picture).decode()
    bench.say("what is in a.png?")
    asked = bench.compile().request
    bench.reply(ToolUse("toolu_2", "read", {"path": "a.png"}))
    bench.result("toolu_2", "a picture")
    sha256 = hashlib.sha256(picture).hexdigest()
    bench.append(image_block("toolu_2", bench.conversation.last, ".task_outputs/s/1.png", "image/png", sha256))
    sent = bench.compile().request
    bench.reply(Text("A cat."))
    recording.save()
    assert "image/png" in json.dumps(sent.messages[-1])
    model = recording.model(strict=True)
    assert [play(model, each).text for each in (*recording.requests, asked, sent)][-1] == "A cat."
