from __future__ import annotations

import json
import os
import re

from tests.cli.process import on_terminal, tinyclaw
from tests.cli.recording import record
from tests.messages_api import reply
from tinyclaw.state.transcript.grammar import Block, parse, render, render_header
from tinyclaw.state.transcript.lock import SessionLock
from tinyclaw.width import width

TITLES = [
    "plain words",
    "日本語のとても長い題名を書きました",
    "e\u0301" * 60,
    "\U0001f1ef\U0001f1f5" * 30,
    "x\u202e" * 30,
]


def fill(workspace):
    folder = workspace / ".transcripts"
    folder.mkdir()
    for number, title in enumerate(TITLES):
        header = {"session": f"20260101-00000{number}-aaaa", "title": title, "format": "1"}
        (folder / f"20260101-00000{number}-aaaa.md").write_text(render_header(header))


def test_rows_are_equally_wide_whatever_the_titles_hold(workspace):
    fill(workspace)
    for columns in (40, 20, 1):
        rows = tinyclaw("sessions", "list", cwd=workspace, COLUMNS=str(columns)).stdout.splitlines()
        assert len(rows) == len(TITLES)
        assert {width(row) for row in rows} == {columns}
    assert "…" in rows[0]


def test_the_list_takes_the_terminals_width(workspace):
    fill(workspace)
    with on_terminal("sessions", "list", cwd=workspace, columns=40) as screen:
        assert screen.wait() == 0
    assert {width(row) for row in screen.text.splitlines()} == {40}


def test_the_list_as_json_is_one_object_a_line(workspace):
    fill(workspace)
    lines = tinyclaw("sessions", "list", "--json", cwd=workspace).stdout.splitlines()
    assert [json.loads(line)["title"] for line in lines] == TITLES


def test_show_tells_turns_requests_and_tokens(workspace, tmp_path):
    (workspace / "a.txt").write_text("x\n")
    model = record(tmp_path / "r.md", [("read", {"path": "a.txt"})], "All is read.")
    tinyclaw("run", "-m", model, "read it", cwd=workspace)
    shown = tinyclaw("sessions", "show", cwd=workspace).stdout
    for words in ("title:", "requests:   2 · 20 in · 10 out", "> read it", "1 tool call, ended: done", "All is read."):
        assert words in shown


def test_the_list_tells_how_each_session_stands(workspace, tmp_path):
    ended = record(tmp_path / "a.md", "Done.")
    asks = record(tmp_path / "b.md", [("bash", {"command": "true"})], "Done.")
    short = record(tmp_path / "c.md", [("glob", {"pattern": "*"})])
    for at, model in enumerate((ended, asks, short)):
        tinyclaw("run", "-m", model, f"task {at}", cwd=workspace)
    holder = SessionLock.take(next((workspace / ".transcripts").glob("*task-2*.md")))
    (workspace / ".transcripts/20200101-000000-aaaa.md").write_text(render_header({"format": "1"}))
    (workspace / ".transcripts/20200101-000001-aaaa.md").write_text(
        render_header({"format": "1"}) + render([Block("text", {"m": 1, "role": "user"}, "hi " * 50_000, box=True)])
    )
    found = [json.loads(line) for line in tinyclaw("sessions", "list", "--json", cwd=workspace).stdout.splitlines()]
    assert {each["title"]: each["state"] for each in found} == {
        "": "open",
        "task 0": "done",
        "task 1": "paused",
        "task 2": "running",
    }
    assert found[0]["state"] == "new" and found[1]["state"] == "open"
    holder.release()
    assert "error   task 2" in tinyclaw("sessions", "list", cwd=workspace).stdout


def test_a_session_with_something_to_do_is_open(workspace, tmp_path):
    asks = record(tmp_path / "b.md", [("bash", {"command": "true"})], "Done.")

    def state():
        return json.loads(tinyclaw("sessions", "list", "--json", cwd=workspace).stdout)["state"]

    tinyclaw("run", "-m", asks, "go", cwd=workspace)
    assert state() == "paused"
    tinyclaw("approve", cwd=workspace)
    assert state() == "open"
    tinyclaw("run", "-m", record(tmp_path / "c.md", "Done."), "--resume", "last", cwd=workspace)
    assert state() == "done"
    (path,) = (workspace / ".transcripts").glob("2*.md")
    with path.open("a") as file:
        file.write("And now the docs.\n")
    assert state() == "open"


def test_a_question_whose_block_a_person_deleted_is_still_shown_and_answered(workspace, tmp_path):
    asks = record(tmp_path / "b.md", [("bash", {"command": "true"})], "Done.")
    tinyclaw("run", "-m", asks, "go", cwd=workspace)
    (path,) = (workspace / ".transcripts").glob("2*.md")
    parsed = parse(path.read_bytes(), path.name)
    (question,) = [block for block in parsed.blocks if block.attrs.get("what") == "permission"]
    answer = Block("event", {"what": "answer", "id": question.attrs["id"], "answer": "void"})
    kept = [block for block in parsed.blocks if block is not question]
    path.write_text(render_header(parsed.header) + render([*kept, answer]))
    assert "waits for:  permission: bash" in tinyclaw("sessions", "show", cwd=workspace).stdout
    assert tinyclaw("approve", cwd=workspace).returncode == 0


def test_a_question_longer_than_what_is_read_first_is_seen(workspace, tmp_path):
    asks = record(tmp_path / "b.md", [("write", {"path": "a.txt", "content": "line\n" * 30_000})], "Done.")
    assert tinyclaw("run", "-m", asks, "go", cwd=workspace).returncode == 3
    assert json.loads(tinyclaw("sessions", "list", "--json", cwd=workspace).stdout)["state"] == "paused"


def test_a_pipe_among_the_sessions_is_listed_and_not_waited_for(workspace):
    fill(workspace)
    for name in ("pipe.md", "20260101-000000-aaaa.lock"):
        os.mkfifo(workspace / ".transcripts" / name)
    assert len(tinyclaw("sessions", "list", cwd=workspace).stdout.splitlines()) == len(TITLES) + 1


def test_a_search_finds_what_was_said_called_and_answered_and_what_was_kept_beside(workspace, tmp_path):
    (workspace / "a.txt").write_text("the answer is 42\n")
    calls = [("read", {"path": "a.txt"}), ("bash", {"command": "seq -f 'number %g' 1 9000"})]
    model = record(tmp_path / "r.md", calls, "It says forty-two.")
    tinyclaw("run", "-m", model, "--permission-mode", "auto", "look for the ANSWER", cwd=workspace)
    for text, folder in (("the answer", ".transcripts/"), ("FORTY-two.", ".transcripts/"), ("number 4321", ".task_")):
        found = tinyclaw("sessions", "search", text, cwd=workspace)
        assert found.returncode == 0 and all(line.startswith(folder) for line in found.stdout.splitlines())
    assert len(tinyclaw("sessions", "search", "the answer", cwd=workspace).stdout.splitlines()) >= 2
    nothing = tinyclaw("sessions", "search", "answer (is", cwd=workspace)
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert tinyclaw("sessions", "search", '"sha256":', cwd=workspace).returncode == 1, "records are not what was said"
    assert tinyclaw("sessions", "search", " ", cwd=workspace).returncode == 2
    cut = tinyclaw("sessions", "search", "number", "--limit", "3", cwd=workspace)
    assert len(cut.stdout.splitlines()) == 3 and "--limit" in cut.stderr


def test_no_sessions_and_unknown_ones_say_what_to_do(workspace):
    assert "tinyclaw run" in tinyclaw("sessions", "list", cwd=workspace).stderr
    assert tinyclaw("sessions", "show", cwd=workspace).returncode == 2


def test_show_tells_what_it_cost_and_what_was_sent_again(workspace, api):
    server = api([reply(tools=[("glob", {"pattern": "*"})]), reply("Done."), reply("Again."), reply("Again.")])
    more = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x"}
    ran = tinyclaw("run", "go", cwd=workspace, **more)
    path = next((workspace / ".transcripts").glob("*.md"))
    path.write_text(path.read_text().replace("\nDone.\n", "\nAll is done.\n"))
    tinyclaw("run", "--resume", "last", "again", cwd=workspace, **more)
    tinyclaw("run", "--resume", "last", "-m", "claude-opus-5-5", "again", cwd=workspace, **more)
    shown = tinyclaw("sessions", "show", "--requests", cwd=workspace).stdout
    turn = re.search(r"2 requests for (\$0\.\d{4}), 1 tool call, ended: done", shown)
    assert turn and f" · {turn[1]} · " in ran.stderr
    assert re.search(r"requests: +4 · .* · \$0\.\d{4}\n", shown)
    assert "tokens were sent again (model 1)" in shown
    table = shown.splitlines()[-5:]
    assert table[0].split() == ["request", "in", "from", "cache", "out", "cost", "sent", "again"]
    assert [line.split()[0] for line in table[1:]] == ["1", "2", "3", "4"]
    assert "(model: claude-sonnet-5-5 was asked before)" in table[4] and "(" not in "".join(table[1:4])


def test_what_the_cache_should_have_held_and_did_not_is_told(workspace, api):
    first, second = api([reply("word " * 4_000), reply("Yes.")]), api([reply("Again.")])
    for server, words in ((first, ["go"]), (first, ["--resume", "last", "on"]), (second, ["--resume", "last", "on"])):
        tinyclaw("run", *words, cwd=workspace, ANTHROPIC_BASE_URL=server.url, ANTHROPIC_API_KEY="x")
    lines = tinyclaw("sessions", "show", "--requests", cwd=workspace).stdout.splitlines()[-3:]
    assert ["did not hold them" in line for line in lines] == [False, False, True]
