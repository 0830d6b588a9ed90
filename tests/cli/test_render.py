from __future__ import annotations

import io

import pytest

from tinyclaw.agent.events import (
    FileStated,
    Notice,
    ReplyReceived,
    RequestStarted,
    SessionStarted,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
)
from tinyclaw.cli._render import HEAD_LINES, TAIL_LINES, TextOutput
from tinyclaw.cli._terminal import Terminal
from tinyclaw.types import Retrying, TextDelta, Usage


class Shown:
    """A text output on streams that are, or are not, terminals; ``out`` and ``err`` are what they got."""

    def __init__(self, *, terminal: bool = False, colour: bool = False) -> None:
        self._streams = io.StringIO(), io.StringIO()
        self.output = TextOutput(*(Terminal(stream, terminal, colour, colour) for stream in self._streams))
        self.show(SessionStarted("s", ".transcripts/s.md", "m", False))

    def show(self, *events) -> Shown:
        for event in events:
            self.output.show(event)
        return self

    @property
    def out(self) -> str:
        return self._streams[0].getvalue()

    @property
    def err(self) -> str:
        return self._streams[1].getvalue()


def finished(text="", is_error=False, summary="", headline="bash make"):
    return ToolFinished("1", "bash", headline, text, is_error, summary, 5)


def ended(reason="done", text="Answer."):
    return TurnEnded(reason, text, 2, Usage(10, 5, 90, 0))


def test_a_call_is_one_line_with_its_outcome():
    shown = Shown().show(ToolStarted("1", "read", "read a.py"), finished(summary="42 lines", headline="read a.py"))
    assert shown.err == "✓ read a.py · 42 lines\n"
    shown = Shown().show(ToolStarted("1", "bash", "bash x"), finished("broke\nmore", is_error=True, headline="bash x"))
    assert shown.err == "✗ bash x · broke\n"
    assert Shown().show(finished(summary="exit code 1")).err == "✗ bash make · exit code 1\n"
    assert Shown().show(finished(summary="exit code 0")).err == "✓ bash make · exit code 0\n"


def test_long_output_is_shown_by_its_first_and_last_lines():
    shown = Shown().show(ToolStarted("1", "bash", "bash make"))
    for number in range(100):
        shown.show(ToolProgress("1", f"line {number}\n"))
    lines = shown.show(finished()).err.splitlines()
    assert lines[0] == "· bash make"
    assert lines[HEAD_LINES] == f"  │ line {HEAD_LINES - 1}"
    assert lines[HEAD_LINES + 1] == f"  │ … {100 - HEAD_LINES - TAIL_LINES} more lines"
    assert lines[-2:] == ["  │ line 99", "✓ bash make"]
    assert len(lines) == HEAD_LINES + TAIL_LINES + 3


def test_output_without_a_line_end_is_not_lost():
    shown = Shown().show(ToolStarted("1", "bash", "bash x"), ToolProgress("1", "one\ntwo"), finished())
    assert "  │ one\n  │ two\n" in shown.err
    shown = Shown().show(ToolStarted("1", "bash", "bash x"), ToolProgress("1", "only"), finished())
    assert "  │ only\n" in shown.err


def test_what_tools_and_models_say_is_harmless():
    shown = Shown(terminal=True).show(
        ToolStarted("1", "bash", "bash \x1b[2J"),
        ToolProgress("1", "\x1b[31mred\n"),
        finished(summary="\x1b]0;title\x07", headline="bash \x1b[2J"),
        TextDelta("\x1b"),
        TextDelta("[2J"),
        Notice("\x1b[2J"),
    )
    assert "\x1b" not in shown.out + shown.err
    assert shown.out == "␛[2J\n"


def test_text_streams_to_a_terminal_and_is_not_repeated():
    shown = Shown(terminal=True).show(TextDelta("Ans"), TextDelta("wer."), ended())
    assert shown.out == "Answer.\n"
    assert shown.err == "— 2 requests · 100 in (90 cached) · 5 out · .transcripts/s.md\n"


def test_a_pipe_gets_the_final_answer_and_prose_between_calls_goes_to_stderr():
    shown = Shown().show(
        TextDelta("I look."),
        ReplyReceived(1, "I look.", "tool_use", Usage(), 1),
        TextDelta("Answer."),
        ReplyReceived(2, "Answer.", "end_turn", Usage(), 1),
        ended(),
    )
    assert shown.out == "Answer.\n"
    assert "I look.\n" in shown.err


@pytest.mark.parametrize("reason", ["interrupted", "paused", "limit", "refused", "error"])
def test_what_is_no_answer_goes_to_stderr(reason):
    shown = Shown().show(ended(reason, "what happened"))
    assert shown.out == ""
    assert "tinyclaw: what happened\n" in shown.err


def test_a_file_that_changed_outside_is_told_and_a_first_statement_is_not():
    stated = FileStated("PLAN.md", "whole", "outside")
    shown = Shown().show(stated, RequestStarted(1, 10, {}))
    assert shown.err == ""
    shown.show(FileStated("PLAN.md", "diff", "outside"), FileStated("TODO.md", "diff", "agent"))
    shown.show(FileStated("PLAN.md", "diff", "during"), FileStated("(git)", "diff", "now"))
    assert shown.err.splitlines() == [
        "• PLAN.md changed outside; this request carries it",
        "• PLAN.md changed while a command ran; this request carries it",
    ]


def test_a_retry_says_that_the_text_above_is_void():
    shown = Shown(terminal=True).show(TextDelta("Half"), Retrying("overloaded", 2.0, 1))
    assert shown.out == "Half\n"
    assert shown.err == "… overloaded; try 2 in 2.0 s; the text above is void\n"


def test_a_retry_does_not_repeat_its_reason():
    tries = [Retrying("overloaded", 0.4, 1), Retrying("overloaded", 12.3, 2), Retrying("no connection", 1.0, 3)]
    assert Shown().show(*tries).err.splitlines() == [
        "… overloaded; try 2 in 0.4 s",
        "… the same again; try 3 in 12 s",
        "… no connection; try 4 in 1.0 s",
    ]
    again = Shown().show(tries[0], RequestStarted(2, 10, {}), tries[0]).err.splitlines()
    assert again == ["… overloaded; try 2 in 0.4 s"] * 2


def test_the_transient_line_is_taken_back_before_anything_else_is_shown():
    shown = Shown(terminal=True, colour=True).show(RequestStarted(1, 1000, {}), Notice("look"))
    before, _, behind = shown.err.partition("about 1,000 tokens")
    assert before.startswith("\r\x1b[K")
    assert behind.index("\r\x1b[K") < behind.index("look")
