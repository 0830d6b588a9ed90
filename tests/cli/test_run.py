from __future__ import annotations

import json
import os
import socket
import subprocess

import pytest

from tests.cli.process import PROGRAM, SECONDS, environment, on_terminal, tinyclaw
from tests.cli.recording import record
from tests.messages_api import reply

WRITE = [("write", {"path": "made.txt", "content": "made\n"})]


def transcript_of(workspace):
    [path] = (workspace / ".transcripts").glob("*.md")
    return path.read_text()


@pytest.fixture
def hello(tmp_path):
    return record(tmp_path / "hello.md", "Hello there.")


def test_standard_output_holds_the_answer_alone(workspace, hello):
    done = tinyclaw("run", "-m", hello, "hi", cwd=workspace)
    assert (done.returncode, done.stdout) == (0, "Hello there.\n")
    assert "1 request" in done.stderr
    assert ".transcripts/" in done.stderr


def test_what_the_model_says_between_calls_is_not_the_answer(workspace, tmp_path):
    (workspace / "a.txt").write_text("x\n")
    model = record(tmp_path / "r.md", [("read", {"path": "a.txt"})], "Done.")
    done = tinyclaw("run", "-m", model, "go", cwd=workspace)
    assert done.stdout == "Done.\n"
    assert "✓ read a.txt" in done.stderr


def test_json_is_one_object_with_the_documented_keys(workspace, hello):
    done = tinyclaw("run", "-m", hello, "--output-format", "json", "hi", cwd=workspace)
    [line] = done.stdout.splitlines()
    result = json.loads(line)
    assert list(result) == ["session", "result", "is_error", "reason", "requests", "usage", "cost_usd", "transcript"]
    assert (result["result"], result["is_error"], result["reason"]) == ("Hello there.", False, "done")
    assert (workspace / result["transcript"]).is_file()
    assert done.stderr == ""


def test_stream_json_is_one_event_a_line_whatever_the_text_holds(workspace, tmp_path):
    model = record(tmp_path / "r.md", "a\u2028b\x85c\nd\x1b[2J")
    done = tinyclaw("run", "-m", model, "--output-format", "stream-json", "hi", cwd=workspace)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["type"] for event in events][:1] == ["session_started"]
    assert events[-1]["type"] == "turn_ended"
    assert events[-1]["text"] == "a\u2028b\x85c\nd\x1b[2J"
    assert len(done.stdout.splitlines()) == done.stdout.count("\n")


# Standard input


def test_piped_text_alone_is_the_prompt(workspace, hello):
    for line in (["run", "-m", hello, "-"], ["run", "-m", hello], ["-m", hello]):
        done = tinyclaw(*line, cwd=workspace, stdin="from the pipe\n")
        assert done.returncode == 0, done.stderr
    for path in (workspace / ".transcripts").glob("*.md"):
        assert "from the pipe" in path.read_text()


def test_piped_text_beside_a_prompt_stands_behind_it(workspace, hello):
    tinyclaw("run", "-m", hello, "sum up", cwd=workspace, stdin="line 1\nline 2\n")
    assert "sum up\n\nline 1\nline 2\n" in transcript_of(workspace)


def test_a_silent_open_pipe_does_not_hold_a_prompt(workspace, hello):
    silent, writer = os.pipe()
    try:
        done = tinyclaw("run", "-m", hello, "hi", cwd=workspace, stdin=silent)
        assert (done.returncode, done.stdout) == (0, "Hello there.\n")
    finally:
        os.close(silent)
        os.close(writer)


def test_closed_input_and_no_terminal_are_no_trouble(workspace, hello):
    for command in ('exec "$@" 0<&-', 'exec setsid "$@" </dev/null'):
        done = subprocess.run(
            ["sh", "-c", command, "sh", *PROGRAM, "run", "-m", hello, "hi"],
            cwd=workspace,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert (done.returncode, done.stdout) == (0, "Hello there.\n"), done.stderr


@pytest.mark.parametrize("line", [[], ["run"], ["run", "-"], ["run", " "]])
def test_no_text_at_all_is_a_usage_error_that_says_what_to_do(workspace, line):
    done = tinyclaw(*line, cwd=workspace)
    assert done.returncode == 2
    assert "tinyclaw run" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (workspace / ".transcripts").exists()


# Ends


def test_a_question_that_nobody_can_answer_pauses_and_an_approval_lets_it_go_on(workspace, tmp_path):
    first = record(tmp_path / "first.md", WRITE, "Written.")
    done = tinyclaw("run", "-m", first, "write it", cwd=workspace)
    assert (done.returncode, done.stdout) == (3, "")
    assert "tinyclaw approve" in done.stderr
    assert not (workspace / "made.txt").exists()

    assert {"  │ +++ b/made.txt", "  │ +made"} <= set(done.stderr.splitlines())
    shown = tinyclaw("sessions", "show", cwd=workspace).stdout
    assert "waits for:  permission: write made.txt" in shown and "  │ +made" in shown
    approved = tinyclaw("approve", cwd=workspace)
    assert (approved.returncode, "made.txt" in approved.stderr) == (0, True)
    second = record(tmp_path / "second.md", "Written.")
    done = tinyclaw("run", "-m", second, "--resume", "last", cwd=workspace)
    assert (done.returncode, done.stdout) == (0, "Written.\n"), done.stderr
    assert (workspace / "made.txt").read_text() == "made\n"
    assert tinyclaw("approve", cwd=workspace).returncode == 2


def test_a_question_can_be_refused(workspace, tmp_path, api):
    tinyclaw("run", "-m", record(tmp_path / "first.md", WRITE, "Written."), "write it", cwd=workspace)
    refused = tinyclaw("approve", "--deny", cwd=workspace)
    assert refused.returncode == 0 and refused.stderr.startswith("refused: write made.txt")
    server = api([reply("Then not.")])
    more = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x"}
    assert tinyclaw("run", "--resume", "last", cwd=workspace, **more).stdout == "Then not.\n"
    result = server.requests[0]["messages"][-1]["content"][0]
    assert result["is_error"] and "the person said no" in result["content"]
    assert not (workspace / "made.txt").exists()


def test_a_resumed_session_keeps_its_model_unless_another_is_chosen(workspace, api):
    server = api([reply("One."), reply("Two."), reply("Three.")])
    more = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x"}
    tinyclaw("run", "-m", "claude-haiku-5-5", "one", cwd=workspace, **more)
    tinyclaw("run", "--resume", "last", "two", cwd=workspace, **more)
    tinyclaw("run", "--resume", "last", "-m", "claude-opus-5-5", "three", cwd=workspace, **more)
    assert [request["model"] for request in server.requests] == ["claude-haiku-5-5"] * 2 + ["claude-opus-5-5"]


def test_a_model_without_a_name_is_wrong_usage(workspace):
    done = tinyclaw("run", "-m", " ", "x", cwd=workspace)
    assert (done.returncode, done.stdout) == (2, "") and "-m NAME" in done.stderr


def test_a_limit_ends_with_code_4(workspace, tmp_path):
    (workspace / "a.txt").write_text("x\n")
    model = record(tmp_path / "r.md", [("read", {"path": "a.txt"})], "Done.")
    assert tinyclaw("run", "-m", model, "--max-requests", "1", "go", cwd=workspace).returncode == 4


def test_a_recording_that_runs_dry_fails_in_one_line(workspace, tmp_path):
    (workspace / "a.txt").write_text("x\n")
    done = tinyclaw("run", "-m", record(tmp_path / "r.md", [("read", {"path": "a.txt"})]), "go", cwd=workspace)
    assert done.returncode == 1
    assert "one more was asked for" in done.stderr and "Traceback" not in done.stderr


def test_resuming_with_nothing_to_do_is_a_usage_error(workspace, hello):
    tinyclaw("run", "-m", hello, "hi", cwd=workspace)
    assert tinyclaw("run", "-m", hello, "--resume", "last", cwd=workspace).returncode == 2
    done = tinyclaw("run", "-m", hello, "--resume", "nosuch", "x", cwd=workspace)
    assert (done.returncode, "sessions list" in done.stderr) == (2, True)


def test_text_written_below_the_last_turn_is_the_next_prompt(workspace, hello):
    tinyclaw("run", "-m", hello, "hi", cwd=workspace)
    [path] = (workspace / ".transcripts").glob("*.md")
    with path.open("a") as file:
        file.write("And now in German.\n")
    done = tinyclaw("run", "-m", hello, "--resume", "last", cwd=workspace)
    assert (done.returncode, done.stdout) == (0, "Hello there.\n"), done.stderr


def test_no_key_is_one_line_with_the_variables_and_the_demo(workspace):
    done = tinyclaw("run", "hi", cwd=workspace)
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert all(word in line for word in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "tinyclaw demo"))


def test_an_unreachable_server_fails_with_its_address(workspace):
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    done = tinyclaw(
        "run", "hi", cwd=workspace, ANTHROPIC_BASE_URL=url, ANTHROPIC_API_KEY="key-value", TINYCLAW_MAX_TRIES="1"
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert url in done.stderr
    assert "Traceback" not in done.stderr
    assert "key-value" not in done.stderr + transcript_of(workspace)


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_workspace_that_cannot_be_written_is_named(workspace, hello):
    workspace.chmod(0o555)
    done = tinyclaw("run", "-m", hello, "hi", cwd=workspace)
    workspace.chmod(0o755)
    assert (done.returncode, ".transcripts" in done.stderr) == (1, True)


def test_a_file_in_the_place_of_the_transcripts_is_named(workspace, hello):
    (workspace / ".transcripts").write_text("in the way")
    done = tinyclaw("run", "-m", hello, "hi", cwd=workspace)
    assert (done.returncode, done.stdout) == (1, "")
    assert ".transcripts" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk_leaves_the_transcript_as_it_was(workspace, hello):
    limited = subprocess.run(
        ["bash", "-c", 'trap "" XFSZ; ulimit -f 1; exec "$@"', "sh", *PROGRAM, "run", "-m", hello, "x" * 3000],
        cwd=workspace,
        env=environment(PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert limited.returncode == 1, limited.stderr
    assert "the file is as it was" in limited.stderr
    assert len(limited.stderr.splitlines()) == 1


def test_a_second_process_is_told_who_holds_the_session(workspace, hello, tmp_path):
    import fcntl

    tinyclaw("run", "-m", hello, "hi", cwd=workspace)
    [path] = (workspace / ".transcripts").glob("*.md")
    with path.with_suffix(".lock").open("w") as lock:
        lock.write("process 4711 on somewhere\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = tinyclaw("run", "-m", hello, "--resume", "last", "x", cwd=workspace)
    assert (done.returncode, "process 4711" in done.stderr) == (1, True)


# Terminals and colour


@pytest.mark.parametrize("more", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}, {"NO_COLOR": ""}])
def test_files_and_pipes_never_get_an_escape_code(workspace, tmp_path, more):
    model = record(tmp_path / "r.md", [("read", {"path": "a\x1b[2J.txt"})], "clear \x1b[2J end")
    files = {"stdout": tmp_path / "out", "stderr": tmp_path / "err"}
    with on_terminal("run", "-m", model, "go", cwd=workspace, files=files, **more) as screen:
        assert screen.wait() == 0
    for path in files.values():
        assert b"\x1b" not in path.read_bytes()
    assert files["stdout"].read_text() == "clear ␛[2J end\n"
    assert "clear \\u001b[2J end" in transcript_of(workspace)


@pytest.mark.parametrize(
    ("more", "coloured"),
    [({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_a_terminal_gets_colour_unless_it_is_not_wanted(workspace, hello, more, coloured):
    with on_terminal("run", "-m", hello, "go", cwd=workspace, **more) as screen:
        assert screen.wait() == 0
    assert "Hello there." in screen.text
    assert ("\x1b[2m" in screen.text) is coloured
    assert ("\x1b" in screen.text) is coloured


def test_one_stream_on_a_terminal_does_not_colour_the_other(workspace, hello, tmp_path):
    with on_terminal("run", "-m", hello, "go", cwd=workspace, files={"stderr": tmp_path / "err"}) as screen:
        assert screen.wait() == 0
    assert b"\x1b" not in (tmp_path / "err").read_bytes()
    assert "Hello there." in screen.text


def test_text_streams_to_a_terminal_while_it_comes(workspace, api):
    seen = []

    def second(body):
        screen.wait_for("First words.")
        seen.append(screen.text)
        return reply("Second words.")

    server = api([reply("First words.", tools=[("glob", {"pattern": "*"})]), second])
    more = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x"}
    with on_terminal("run", "go", cwd=workspace, **more) as screen:
        assert screen.wait() == 0
    assert "Second" not in seen[0]
    assert screen.text.count("Second words.") == 1


def test_a_reader_that_leaves_ends_quietly(workspace, hello):
    done = subprocess.run(
        ["sh", "-c", '"$@" | head -c 0', "sh", *PROGRAM, "run", "-m", hello, "hi"],
        cwd=workspace,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    assert "tc:turn_end" in transcript_of(workspace)


def test_changed_window_sizes_do_no_harm(workspace, hello):
    with on_terminal("run", "-m", hello, "go", cwd=workspace, columns=1) as screen:
        for columns in (5, 200, 1):
            screen.resize(columns)
        assert screen.wait() == 0
