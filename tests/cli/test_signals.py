from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.process import PROGRAM, SECONDS, environment, on_terminal, tinyclaw
from tests.cli.recording import record
from tests.messages_api import reply, slow
from tinyclaw.state.transcript.fold import conversation_of
from tinyclaw.state.transcript.grammar import parse

SLEEP = [("bash", {"command": "echo $$ > pid; printf 'be%s\\n' gun; sleep 600"})]
"""Its output is not in its text, so that who waits for "begun" waits for the command and not for its headline."""


def blocks_of(workspace):
    [path] = (workspace / ".transcripts").glob("*.md")
    return parse(path.read_bytes(), path.name).blocks


def is_alive(workspace):
    try:
        os.kill(int((workspace / "pid").read_text()), 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def sleeping(workspace, tmp_path):
    """A run on a terminal in which a command sleeps."""
    model = record(tmp_path / "r.md", SLEEP, "Done.")
    with on_terminal("run", "-m", model, "--permission-mode", "auto", "go", cwd=workspace) as screen:
        screen.wait_for("begun")
        yield screen


def test_control_c_ends_the_command_and_the_run_with_130(workspace, sleeping, tmp_path):
    sleeping.interrupt()
    assert sleeping.wait() == 130
    assert not is_alive(workspace)
    blocks = blocks_of(workspace)
    assert [block.attrs["reason"] for block in blocks if block.kind == "turn_end"] == ["interrupted"]
    assert [block.attrs.get("is_error") for block in blocks if block.kind == "tool_result"] == [True]
    done = tinyclaw("run", "-m", record(tmp_path / "n.md", "Next."), "--resume", "last", "go on", cwd=workspace)
    assert (done.returncode, done.stdout) == (0, "Next.\n")


def test_control_c_twice_ends_at_once_and_the_session_resumes(workspace, sleeping, tmp_path):
    sleeping.interrupt()
    sleeping.interrupt()
    began = time.monotonic()
    assert sleeping.wait() == 130
    assert time.monotonic() - began < 5
    done = tinyclaw("run", "-m", record(tmp_path / "n.md", "Next."), "--resume", "last", "go on", cwd=workspace)
    assert (done.returncode, done.stdout) == (0, "Next.\n"), done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_closes_the_turn_first(workspace, sleeping, number):
    sleeping.signal(number)
    assert sleeping.wait() == 130
    assert not is_alive(workspace)
    assert blocks_of(workspace)[-1].attrs["reason"] == "interrupted"


def test_control_c_while_text_streams_keeps_what_was_said(workspace, api):
    words = " ".join(f"word{number}" for number in range(200))
    server = api([slow(reply(words), between_seconds=0.2)])
    more = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x"}
    with on_terminal("run", "go", cwd=workspace, **more) as screen:
        screen.wait_for("word0")
        screen.interrupt()
        assert screen.wait() == 130
    conversation = conversation_of(blocks_of(workspace))
    assert conversation.idle
    assert "word0" in str(conversation.messages("m").messages[-1].wire)


def test_after_an_interrupt_the_prompt_goes_on(workspace, tmp_path):
    model = record(tmp_path / "r.md", SLEEP, "Answered.")
    with on_terminal("-m", model, cwd=workspace, TINYCLAW_PERMISSION_MODE="auto") as screen:
        screen.wait_for("\x1b[?2004h")
        screen.send("sleep\r")
        screen.wait_for("begun")
        screen.interrupt()
        screen.wait_for("\x1b[?2004h", count=2)
        assert not is_alive(workspace)
        screen.send("and now?\r")
        screen.wait_for("Answered.")
        screen.wait_for("\x1b[?2004h", count=3)
        screen.send("\x04")
        assert screen.wait() == 0


@pytest.mark.parametrize("module", ["click", "tinyclaw.cli.run", "tinyclaw.agent.start", "tinyclaw.state.settings"])
def test_control_c_at_any_moment_of_the_start_gives_no_traceback(workspace, module):
    code = f"""
import os, signal, sys
class Presses:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Presses())
from tinyclaw.cli.main import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "-m", "replay:none", "hi"],
        cwd=workspace,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in done.stderr
    assert list(workspace.iterdir()) == []


def test_control_c_in_a_callback_of_the_interpreter_which_swallows_errors_ends_too(workspace):
    code = """
import os, signal, sys, weakref
class Thing: pass
class Presses:
    def find_spec(self, name, path=None, target=None):
        if name == "tinyclaw.cli.run":
            thing = Thing()
            self.callback = weakref.ref(thing, lambda gone: [os.kill(os.getpid(), signal.SIGINT) for _ in range(3)])
sys.meta_path.insert(0, Presses())
from tinyclaw.cli.main import main
main()
"""
    command = [sys.executable, "-c", code, "run", "-m", "replay:none", "hi"]
    done = subprocess.run(command, cwd=workspace, env=environment(), capture_output=True, text=True, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (130, "")


def test_control_c_while_standard_input_is_read_ends_quietly(workspace):
    process = subprocess.Popen(
        [*PROGRAM, "run", "-m", "replay:none", "-"],
        cwd=workspace,
        env=environment(),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write("x" * 1_000_000)  # more than a pipe holds: it is being read
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    error = process.stderr.read()
    assert process.wait(SECONDS) == 130
    assert "Traceback" not in error
    process.stderr.close()
