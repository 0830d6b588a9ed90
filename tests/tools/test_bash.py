from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from contextlib import suppress

import pytest

from tests.tools.shell import alive, shell_bench
from tests.tools.workspace import Bench
from tinyclaw.tools._process import Shell


@pytest.fixture
def ws(tmp_path):
    ws = shell_bench(tmp_path / "ws")
    yield ws
    ws.context.jobs.close()


def run(ws: Bench, command: str, **arguments) -> str:
    return ws.call("bash", command=command, **arguments).text


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("echo out; echo err >&2; echo out2", "out\nerr\nout2\n[exit code 0]"),
        ("true", "(no output)\n[exit code 0]"),
        ("false", "(no output)\n[exit code 1]"),
        ("echo x; exit 7", "x\n[exit code 7]"),
        ("kill -9 $$", "(no output)\n[killed by SIGKILL]"),
        ("echo x > /dev/stderr; echo y | tee /dev/stderr; echo z", "x\ny\ny\nz\n[exit code 0]"),
        ("[[ a == a ]] && echo bash", "bash\n[exit code 0]"),
    ],
)
def test_the_result_is_output_and_exit_code(ws, command, text):
    output = ws.call("bash", command=command)
    assert output.text == text
    assert not output.is_error


@pytest.mark.parametrize(
    "command",
    [
        "cat",
        "read x",
        f"{sys.executable} -c 'input()'",
        "git init -q . && touch a && git add a && git commit",
        "git init -q . && git rebase --continue",
        "sh -c 'read answer < /dev/tty'",
        "vi_or_so() { $EDITOR x; }; vi_or_so",
        "crontab_like() { $VISUAL x; }; crontab_like",
    ],
)
def test_what_asks_gets_no_answer_and_ends(ws, command):
    began = time.monotonic()
    text = run(ws, command, timeout=10)
    assert time.monotonic() - began < 3
    assert command == "cat" or not text.endswith("[exit code 0]")


def test_a_command_has_no_terminal(ws):
    assert run(ws, "test -t 0 || test -t 1 || test -t 2 || echo none").startswith("none\n")
    assert "[exit code 0]" not in run(ws, "exec 3<>/dev/tty")


def test_an_editor_that_git_wants_fails_with_the_way_out(ws):
    run(ws, "git init -q . && touch a && git add a")
    assert "--no-edit" in run(ws, "git commit")
    assert run(ws, "git commit -qm x && git log --oneline | wc -l").split()[0] == "1"


@pytest.mark.parametrize(
    "command",
    [
        "sleep 30 & echo done",
        "setsid sleep 30 & echo done",
        "(sleep 30 </dev/null >/dev/null 2>&1 &) ; echo done",
        "while :; do echo noise; done & echo done; sleep 0.1; { kill $!; wait; } 2>/dev/null",
        "(while :; do sleep 0.001; echo x || exit; done) & echo done",
    ],
)
def test_a_background_child_does_not_hold_the_result(ws, command):
    began = time.monotonic()
    text = run(ws, command + "; echo pid $!")
    assert time.monotonic() - began < 2
    assert "done\n" in text
    assert text.endswith("[exit code 0]")
    for pid in re.findall(r"pid (\d+)", text):
        _kill(int(pid))


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_a_background_child_may_go_on_printing(ws):
    pid = int(run(ws, "(sleep 0.2; echo late; touch survived; sleep 30) & echo $!").split()[0])
    deadline = time.monotonic() + 10
    while not (ws.root / "survived").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert alive(pid)
    _kill(pid)


def test_a_timeout_ends_the_whole_group_and_keeps_the_output(ws):
    began = time.monotonic()
    output = ws.call("bash", command="echo before; sleep 60 & echo $! > pid; wait", timeout=1)
    assert time.monotonic() - began < 3
    assert output.text.startswith("before\n[stopped: it ran longer than 1 s;")
    assert output.is_error
    assert not alive(int((ws.root / "pid").read_text()))


def test_what_ignores_the_polite_signal_is_killed(ws):
    began = time.monotonic()
    output = ws.call("bash", command="trap '' TERM; echo $$; while :; do sleep 0.1; done", timeout=1)
    assert time.monotonic() - began < 5
    assert not alive(int(output.text.split()[0]))


def test_a_polite_end_may_still_print(ws):
    assert "cleaned up" in run(ws, "trap 'echo cleaned up; exit' TERM; while :; do sleep 0.05; done", timeout=1)


def test_a_command_that_the_terminals_interrupt_killed_before_us_counts_as_interrupted(ws):
    shell = Shell("kill -INT $$", ws.context.workspace.root, os.environ)
    while shell._process.poll() is None:
        time.sleep(0.01)
    ws.context.interrupt.set()
    assert shell.follow(lambda data: None, ws.context.interrupt).why == "interrupt"


def test_an_interrupt_ends_the_command_within_a_moment(ws):
    pids: list[int] = []
    set_at: list[float] = []

    def on_output(text: str) -> None:
        pids.append(int(text))
        set_at.append(time.monotonic())
        threading.Timer(0, ws.context.interrupt.set).start()

    ws.context.emit = on_output
    output = ws.call("bash", command="sleep 60 & echo $!; wait")
    assert time.monotonic() - set_at[0] < 0.5
    assert output.is_error
    assert output.text.endswith("[stopped: the person interrupted it]")
    assert not alive(pids[0])


def test_output_is_emitted_while_the_command_runs(ws):
    pieces: list[str] = []

    def on_output(text: str) -> None:
        pieces.append(text)
        ws.put("seen", "")

    ws.context.emit = on_output
    text = run(ws, "echo first; until [ -e seen ]; do sleep 0.01; done; echo second", timeout=20)
    assert "".join(pieces) == "first\nsecond\n"
    assert text.endswith("[exit code 0]")


def test_progress_and_colours_are_reduced_to_what_a_terminal_shows(ws):
    text = run(
        ws,
        r"for n in $(seq 1 100); do printf '\r%d%%' $n; done; printf '\033[31mred\033[0m\r\nline\r\n\033]0;title\007'",
    )
    assert text == "100%red\nline\n[exit code 0]"


def test_a_character_that_a_buffer_divides_stays_whole(ws):
    assert "é" in run(ws, "head -c 4095 /dev/zero | tr '\\0' a; printf '\\303'; sleep 0.1; printf '\\251'")


@pytest.mark.parametrize("command", [r"printf 'A\377\376B'", r"printf 'A\0B'"])
def test_bytes_that_are_no_text_do_no_harm(ws, command):
    text = run(ws, command)
    assert re.fullmatch("A\ufffd*B\n\\[exit code 0\\]", text)


def test_binary_output_is_one_line(ws):
    ws.put("x.bin", os.urandom(100_000))
    text = run(ws, "cat x.bin")
    assert re.fullmatch(r"\[binary output, 100,000 bytes, [^\n]*\]\n\[exit code 0\]", text)


def test_a_long_output_is_kept_whole_beside_the_result(ws):
    output = ws.call("bash", command="echo head; yes | head -c 3000000; echo tail; exit 3")
    assert len(output.text) <= 16_000
    assert output.text.startswith("head\ny\n")
    assert output.text.endswith("tail\n[exit code 3]")
    path = re.search(r"\.task_outputs/\S+\.md", output.text)
    assert path
    assert ws.bytes_of(path[0]) == b"head\n" + b"y\n" * 1_500_000 + b"tail\n"


def test_each_call_starts_at_the_root_with_the_same_environment(ws):
    (ws.root / "sub").mkdir()
    assert run(ws, "cd sub; pwd").startswith(f"{ws.root}/sub\n")
    assert run(ws, "pwd").startswith(f"{ws.root}\n")
    run(ws, "export A=1")
    assert run(ws, "echo [$A]").startswith("[]\n")


def test_our_keys_and_the_git_variables_of_a_hook_stay_out(tmp_path):
    leaked = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_AUTH_TOKEN": "t", "GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "/x"}
    ws = shell_bench(tmp_path / "ws", **leaked, MINE="kept")
    lines = run(ws, "env").split("\n")
    assert "MINE=kept" in lines
    assert not [line for line in lines if line.partition("=")[0] in leaked]
    assert {"TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "NO_COLOR=1"} <= set(lines)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"command": "echo a\0b"}, "NUL"),
        ({"command": "echo \ud83d"}, "could not be started"),
        ({"command": "true", "timeout": 0}, "1 to 600"),
        ({"command": "true", "timeout": 601}, "1 to 600"),
        ({"command": ": " + "x" * 3_000_000}, "write it to a file"),
    ],
)
def test_what_cannot_run_is_an_error_with_its_reason(ws, arguments, reason):
    assert reason in ws.fails("bash", **arguments)


def test_a_background_command_returns_at_once_and_tells_how_to_follow_and_stop_it(ws):
    text = run(ws, "echo up; sleep 60", background=True)
    path, group = re.search(r"(\.task_outputs/\S+\.md)", text), re.search(r"`kill -- -(\d+)`", text)
    assert path
    assert group
    (job,) = ws.context.jobs.running()
    run(ws, f"kill -- -{group[1]}")
    assert job.wait(10)
    assert str(job.ended) == "killed by SIGTERM"
    assert ws.bytes_of(path[1].rstrip(".")) == b"up\n"
    assert ws.context.jobs.finished() == [job]


def test_a_background_command_that_ends_at_once_is_told_of_at_once(ws):
    assert "has ended: exit code 127" in run(ws, "no-such-program", background=True)
    assert ws.context.jobs.finished() == []
