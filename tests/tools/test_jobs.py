from __future__ import annotations

import os
import time

import pytest

from tests.tools.shell import alive, shell_bench
from tests.tools.workspace import Bench
from tinyclaw.errors import StateError, ToolError
from tinyclaw.state.outputs import Outputs
from tinyclaw.state.redaction import mask
from tinyclaw.tools._jobs import Jobs


@pytest.fixture
def ws(tmp_path):
    ws = shell_bench(tmp_path / "ws")
    yield ws
    ws.context.jobs.close()


def wait_for_text(ws: Bench, path: str, text: str) -> None:
    deadline = time.monotonic() + 10
    while text not in (ws.root / path).read_text():
        assert time.monotonic() < deadline, f"{text} never came"
        time.sleep(0.01)


def test_output_can_be_read_while_the_job_runs(ws):
    job = ws.context.jobs.start("echo ready; sleep 60")
    wait_for_text(ws, job.path, "ready\n")
    assert job.ended is None
    assert ws.context.jobs.running() == [job]
    assert "is running" in str(job)


def test_an_ended_job_is_announced_once(ws):
    jobs = ws.context.jobs
    first, second = jobs.start("exit 3"), jobs.start("sleep 60")
    assert first.wait(10)
    assert jobs.finished() == [first]
    assert "Job 1 (exit 3) has ended: exit code 3" in str(first)
    assert jobs.finished() == []
    assert jobs.running() == [second]


def test_close_ends_every_job_and_its_children_at_once(ws):
    jobs = ws.context.jobs
    started = [jobs.start(f"trap '' TERM; sleep 60 & echo child $!; wait; sleep 60 # {n}") for n in range(3)]
    for job in started:
        wait_for_text(ws, job.path, "child")
    began = time.monotonic()
    jobs.close()
    assert time.monotonic() - began < 5
    children = [int((ws.root / job.path).read_text().split()[1]) for job in started]
    assert not any(alive(pid) for pid in (*children, *(job.group for job in started)))
    assert [str(job.ended) for job in started] == ["killed by SIGKILL"] * 3


def test_the_output_is_masked(tmp_path):
    jobs = Jobs(tmp_path, os.environ, Outputs(tmp_path, "s", mask))
    job = jobs.start("printf 'url https://me:%s@host/x\\n' pa55w0rd-Zx81")
    assert job.wait(10)
    assert "pa55w0rd" not in (tmp_path / job.path).read_text()
    assert "[masked:" in (tmp_path / job.path).read_text()


def test_what_cannot_be_started_or_recorded_is_no_job(ws):
    with pytest.raises(ToolError, match="NUL"):
        ws.context.jobs.start("echo \0")
    (ws.root / ".task_outputs").rename(ws.root / "elsewhere")
    ws.put(".task_outputs", "in the way")
    with pytest.raises(StateError):
        ws.context.jobs.start("echo never")
    assert ws.context.jobs.running() == []
