from __future__ import annotations

import time

import pytest

from tests.cli.process import on_terminal, tinyclaw
from tests.cli.recording import record
from tests.messages_api import reply
from tinyclaw.state.transcript.grammar import parse

READY = "Ctrl-D leaves."
PASTE_ON = "\x1b[?2004h"


def said(workspace):
    """What the person said, message by message, over all sessions."""
    paths = sorted((workspace / ".transcripts").glob("*.md"))
    blocks = [block for path in paths for block in parse(path.read_bytes(), path.name).blocks]
    return [block.text for block in blocks if block.kind == "text" and block.attrs["role"] == "user"]


@pytest.fixture
def at_prompt(workspace, tmp_path):
    """Opens a prompt whose model answers with the given steps, and waits until it can be typed at."""

    def open_prompt(*steps, **more):
        model = record(tmp_path / "model.md", *(steps or ["Answered."] * 3))
        return on_terminal("-m", model, *more.pop("arguments", ()), cwd=workspace, **more)

    return open_prompt


def ready(screen, count=1):
    screen.wait_for(PASTE_ON, count=count)


def test_a_text_is_answered_and_control_d_leaves(workspace, at_prompt):
    with at_prompt() as screen:
        ready(screen)
        screen.send("hello\r")
        screen.wait_for("Answered.")
        ready(screen, 2)
        screen.send("\x04")
        assert screen.wait() == 0
    assert said(workspace) == ["hello"]


def test_a_question_that_a_paused_session_left_open_is_put_first(workspace, tmp_path, at_prompt):
    write = [("write", {"path": "made.txt", "content": "made\n"})]
    assert tinyclaw("run", "-m", record(tmp_path / "first.md", write, "x"), "write it", cwd=workspace).returncode == 3
    with at_prompt("Written.", arguments=["--resume", "last"]) as screen:
        screen.wait_for("write it")
        screen.wait_for("allow write?")
        ready(screen)
        screen.send("y\r")
        screen.wait_for("Written.")
        ready(screen, 2)
        screen.send("\x04")
        assert screen.wait() == 0
    assert (workspace / "made.txt").read_text() == "made\n"
    assert said(workspace) == ["write it"]


def test_a_conversation_is_summarized_on_demand(workspace, api):
    server = api([reply("One."), reply("Two."), reply("## Goal\n\nGo on.")])
    more = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x"}
    tinyclaw("run", "first", cwd=workspace, **more)
    tinyclaw("run", "--resume", "last", "second", cwd=workspace, **more)
    with on_terminal("--resume", "last", cwd=workspace, **more) as screen:
        ready(screen)
        screen.send("/compact\r")
        screen.wait_for("summarized in")
        ready(screen, 2)
        screen.send("\x04")
        assert screen.wait() == 0
    (path,) = (workspace / ".transcripts").glob("2*.md")
    (summary,) = [block for block in parse(path.read_bytes(), "t").blocks if block.kind == "compact"]
    assert "Go on." in summary.text and "first" in summary.text


def test_looking_around_leaves_no_session(workspace, at_prompt):
    with at_prompt() as screen:
        ready(screen)
        screen.send("/help\r")
        screen.wait_for("/context")
        ready(screen, 2)
        screen.send("/context\r")
        screen.wait_for("tokens in all")
        ready(screen, 3)
        screen.send("/nosuch\r")
        screen.wait_for("there is no command /nosuch")
        ready(screen, 4)
        screen.send("/exit\r")
        assert screen.wait() == 0
    assert not (workspace / ".transcripts").exists()


def test_a_marked_paste_is_one_message(workspace, at_prompt):
    with at_prompt() as screen:
        ready(screen)
        screen.send("\x1b[200~a\rb\rc\x1b[201~\r")
        screen.wait_for("Answered.")
    assert said(workspace) == ["a\nb\nc"]


def test_lines_in_one_burst_are_one_message_and_never_a_command(workspace, at_prompt):
    with at_prompt() as screen:
        ready(screen)
        screen.send("first\r/exit\rthird\r")
        screen.wait_for("Answered.")
        ready(screen, 2)
        screen.send("/exit\rmore\r")
        screen.wait_for("Answered.", count=2)
    assert said(workspace) == ["first\n/exit\nthird", "/exit\nmore"]


@pytest.mark.parametrize("marks", [("", ""), ("\x1b[200~", "\x1b[201~")])
def test_a_large_paste_is_whole_and_quick(workspace, at_prompt, marks):
    text = "".join(f"line {number} of a long text\r" for number in range(4000))
    with at_prompt() as screen:
        ready(screen)
        began = time.monotonic()
        screen.send(f"{marks[0]}{text}{marks[1]}\r")
        screen.wait_for("request 1")
        assert time.monotonic() - began < 5
    assert said(workspace) == [text.replace("\r", "\n").strip()]


def test_controls_of_a_paste_are_removed(workspace, at_prompt):
    with at_prompt() as screen:
        ready(screen)
        screen.send("\x1b[200~red \x1b[31mtext\x1b[0m\0 \x07end\x1b[201~\r")
        screen.wait_for("Answered.")
    assert said(workspace) == ["red text end"]


def test_a_line_can_be_edited_and_recalled(workspace, at_prompt):
    with at_prompt() as screen:
        ready(screen)
        screen.send("wrong\x15helo\x1b[D\x1b[Dl\x1b[Fé日x\x7f\r")
        screen.wait_for("Answered.")
        ready(screen, 2)
        screen.send("\x1b[A!\r")
        screen.wait_for("Answered.", count=2)
    assert said(workspace) == ["hello é日".replace(" ", ""), "helloé日!"]


def test_control_c_clears_the_line(workspace, at_prompt):
    with at_prompt() as screen:
        ready(screen)
        screen.send("not this")
        screen.wait_for("not this")
        screen.interrupt()
        ready(screen, 2)
        screen.send("but this\r")
        screen.wait_for("Answered.")
    assert said(workspace) == ["but this"]


def test_control_c_twice_within_a_second_ends_with_130(workspace, at_prompt):
    with at_prompt() as screen:
        ready(screen)
        screen.interrupt()
        ready(screen, 2)
        screen.interrupt()
        assert screen.wait() == 130


def test_a_permission_is_asked_with_the_whole_call_and_each_answer_counts(workspace, at_prompt):
    calls = [[("write", {"path": f"{name}.txt", "content": f"text of {name}\n"})] for name in "abcd"]
    with at_prompt(*calls, "Done.") as screen:
        ready(screen)
        screen.send("write\r")
        screen.wait_for("text of a")
        ready(screen, 2)
        screen.send("n\r")
        screen.wait_for("text of b")
        ready(screen, 3)
        screen.send("what?\r")
        ready(screen, 4)
        screen.send("y\r")
        screen.wait_for("text of c")
        ready(screen, 5)
        screen.send("a\r")
        screen.wait_for("Done.")
    assert sorted(path.name for path in workspace.glob("*.txt")) == ["b.txt", "c.txt", "d.txt"]


def test_control_c_at_a_question_refuses_and_interrupts_the_turn(workspace, at_prompt):
    with at_prompt([("write", {"path": "a.txt", "content": "x"})], "Done.", "Never mind.") as screen:
        ready(screen)
        screen.send("write\r")
        screen.wait_for("allow write?")
        ready(screen, 2)
        screen.interrupt()
        screen.wait_for("interrupted")
        ready(screen, 3)
        screen.send("go on\r")
        screen.wait_for("Done.")
    assert not (workspace / "a.txt").exists()


def test_a_session_is_resumed_by_name(workspace, at_prompt):
    with at_prompt() as screen:
        ready(screen)
        screen.send("first\r")
        screen.wait_for("Answered.")
        ready(screen, 2)
        screen.send("\x04")
        screen.wait()
    with at_prompt(arguments=["--resume", "last"]) as screen:
        ready(screen)
        screen.send("second\r")
        screen.wait_for("Answered.")
    assert said(workspace) == ["first", "second"]
    assert len(list((workspace / ".transcripts").glob("*.md"))) == 1


def test_a_save_while_the_prompt_waits_is_told(workspace, at_prompt):
    with at_prompt() as screen:
        ready(screen)
        number = 0
        while "PLAN.md was saved" not in screen.text:
            (workspace / "PLAN.md").write_text(f"# Plan {number}\n")
            number += 1
            screen._read(0.3)
            assert number < 60
        screen.send("go\r")
        screen.wait_for("Answered.")


def test_a_missing_key_is_told_and_the_prompt_goes_on(workspace):
    with on_terminal(cwd=workspace) as screen:
        ready(screen)
        screen.send("hello\r")
        screen.wait_for("ANTHROPIC_API_KEY")
        ready(screen, 2)
        screen.send("\x04")
        assert screen.wait() == 0


def test_a_dumb_terminal_is_never_sent_an_escape_code(workspace, at_prompt):
    with at_prompt(TERM="dumb") as screen:
        screen.wait_for("> ")
        screen.send("hello\r")
        screen.wait_for("Answered.")
        screen.wait_for("> ", count=2)
        screen.send("/exit\r")
        assert screen.wait() == 0
    assert "\x1b" not in screen.text
    assert said(workspace) == ["hello"]


def test_the_prompt_without_a_terminal_to_show_it_on_is_a_usage_error(workspace, tmp_path):
    files = {"stdout": tmp_path / "out", "stderr": tmp_path / "err"}
    with on_terminal(cwd=workspace, files=files) as screen:
        assert screen.wait() == 2
    assert "tinyclaw run" in (tmp_path / "err").read_text()
    assert tinyclaw(cwd=workspace).returncode == 2
