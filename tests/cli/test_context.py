from __future__ import annotations

import json
import re

import pytest

from tests.cli.process import tinyclaw
from tests.cli.recording import record
from tests.cli.turns import turn_in
from tests.messages_api import reply


@pytest.fixture
def filled(workspace):
    tinyclaw("init", "--git", cwd=workspace)
    (workspace / "AGENTS.md").write_text("# Rules\n\nUse tabs.\n")
    return workspace


def rows_of(shown: str) -> dict[str, dict[str, str]]:
    """The table's rows by part: a cell for each column."""
    lines = shown.splitlines()
    at = next(index for index, line in enumerate(lines) if line.startswith("part "))
    names = lines[at].split()
    rows = {}
    for line in lines[at + 1 : lines.index("", at)]:
        name, *cells = re.split(r" {2,}", line.strip())
        rows[line[: len(line) - len(line.lstrip())] + name] = dict(zip(names, [name, *cells], strict=False))
    return rows


def test_context_shows_each_part_with_file_lines_revision_and_tokens(filled):
    row = rows_of(tinyclaw("context", cwd=filled).stdout)["instructions:AGENTS.md"]
    assert (row["file"], row["lines"], len(row["revision"])) == ("AGENTS.md", "1-3", 16)
    assert int(row["tokens"].replace(",", "")) > 0 and row["share"].endswith("%") and "$" in row["cost"]


def test_the_rows_add_up_to_the_total_and_what_is_stated_names_its_file(filled, api):
    server = api([reply("Done.")])
    turn_in(filled, server, "go")
    shown = tinyclaw("context", cwd=filled).stdout
    rows = rows_of(shown)
    tokens = {name: int(row["tokens"].replace(",", "")) for name, row in rows.items()}
    total = re.search(r"([\d,]+) tokens in all \(as corrected by what the provider reported\)", shown)
    assert total is not None
    assert sum(count for name, count in tokens.items() if name[0] != " ") == int(total[1].replace(",", ""))
    assert sum(count for name, count in tokens.items() if name[0] == " ") == tokens["conversation"]
    stated = rows["  state of PLAN.md"]
    assert (stated["file"], len(stated["revision"])) == ("PLAN.md", 16)
    found = json.loads(tinyclaw("context", "--json", cwd=filled).stdout)
    assert sum(part["tokens"] for part in found["parts"]) == found["tokens"]
    assert sum(part["cost_usd"] for part in found["parts"]) == pytest.approx(found["cost_usd"])


def test_the_table_tells_what_the_cache_holds_and_the_bar_is_to_scale(filled, api):
    (filled / "a.txt").write_text("word\n" * 4000)
    server = api([reply(tools=[("read", {"path": "a.txt"})]), reply("Done.")])
    more = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x"}
    assert {row["cached"] for row in rows_of(tinyclaw("context", cwd=filled, **more).stdout).values()} == {"no"}
    turn_in(filled, server, "go")
    shown = tinyclaw("context", cwd=filled, **more).stdout
    rows = rows_of(shown)
    assert (rows["tools"]["cached"], rows["  read a.txt"]["cached"], rows["  what the model said"]["cached"]) == (
        "100%",
        "100%",
        "no",
    )
    bar = shown.splitlines()[2]
    cell = int(re.search(r"one cell is ([\d,]+) tokens", shown)[1].replace(",", ""))
    results = int(re.search(r"R results ([\d,]+)", shown)[1].replace(",", ""))
    assert abs(bar.count("R") * cell - results) <= cell and bar.endswith("… 1,000,000")
    past = tinyclaw("context", "--request", "2", cwd=filled, **more).stdout
    usage = server.usages[1]
    head = past.splitlines()[0]
    assert f"({usage['cache_read_input_tokens']:,} cached)" in head and re.search(r"· \$0\.0\d+$", head)
    assert rows_of(past)["  read a.txt"]["cached"] == "no" and rows_of(past)["base"]["cached"] == "100%"


def test_what_was_sent_again_is_explained(filled, api):
    server = api([reply("Done.")] * 2)
    more = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x"}
    turn_in(filled, server, "go")
    tinyclaw("run", "--resume", "last", "-m", "claude-opus-5-5", "on", cwd=filled, **more)
    second = tinyclaw("context", "--request", "2", cwd=filled).stdout.splitlines()[1]
    assert re.fullmatch(
        r"Sent again of the request before: [\d,]+ tokens \(model: claude-sonnet-5-5 was asked before\)", second
    )


def test_context_says_what_was_cut_and_why(filled):
    (filled / "AGENTS.md").write_text("word " * 20_000)
    shown = tinyclaw("context", cwd=filled).stdout
    assert "Cut or left out:" in shown
    assert "AGENTS.md:" in shown.partition("Cut or left out:")[2]


def test_context_as_json_is_the_manifest(filled):
    manifest = json.loads(tinyclaw("context", "--json", cwd=filled).stdout)
    assert manifest["blocks"]["instructions:AGENTS.md"]["file"] == "AGENTS.md"
    assert manifest["session"] is None


def test_looking_writes_nothing(filled):
    before = sorted(filled.rglob("*"))
    for line in ("context", "prompt", "sessions list", "plan show", "doctor"):
        tinyclaw(*line.split(), cwd=filled)
    assert sorted(filled.rglob("*")) == before


def test_prompt_gives_every_request_equal_as_json_to_what_the_server_got(filled, api):
    (filled / "a.txt").write_text("x\n")
    server = api([reply("Look.", tools=[("read", {"path": "a.txt"})]), reply("Done.")])
    turn_in(filled, server, "go")
    for number, body in enumerate(server.requests, 1):
        shown = tinyclaw("prompt", "--request", str(number), cwd=filled)
        request = json.loads(shown.stdout)
        assert {key: request[key] for key in ("tools", "system", "messages")} == {
            key: body[key] for key in ("tools", "system", "messages")
        }
        assert shown.stderr == ""
    assert tinyclaw("prompt", "--request", "9", cwd=filled).returncode == 2


def test_a_past_request_is_shown_with_its_files_its_parts_and_its_cost(filled, tmp_path):
    (filled / "a.txt").write_text("word\n" * 2000)
    model = record(tmp_path / "r.md", [("read", {"path": "a.txt"})], "Hello.")
    tinyclaw("run", "-m", model, "a question", cwd=filled)
    shown = tinyclaw("context", "--request", "2", cwd=filled).stdout
    assert shown.startswith("Request 2 of session 2") and "10 in · 5 out" in shown.splitlines()[0]
    assert "1-3" in shown.partition("instructions:AGENTS.md")[2].splitlines()[0] and "  read a.txt" in shown
    assert "read a.txt" not in tinyclaw("context", "--request", "1", cwd=filled).stdout
    assert tinyclaw("context", "--request", "3", cwd=filled).returncode == 2
    manifest = json.loads(tinyclaw("context", "--request", "2", "--json", cwd=filled).stdout)
    assert manifest["blocks"]["instructions:AGENTS.md"]["lines"] == "1-3"


def test_what_changed_between_two_requests_is_told(filled, tmp_path):
    (filled / "PLAN.md").write_text("# Plan\n\nOne.\n")
    tinyclaw("run", "-m", record(tmp_path / "r.md", "Hello."), "a question", cwd=filled)
    (filled / "PLAN.md").write_text("# Plan\n\nAnother one, much longer than the one before it.\n")
    (filled / "TODO.md").unlink()
    tinyclaw("run", "-m", record(tmp_path / "s.md", "Hello."), "--resume", "last", "go on", cwd=filled)
    lines = tinyclaw("context", "--diff", "1", "2", cwd=filled).stdout.splitlines()
    assert any(line.startswith("~ PLAN.md: revision ") for line in lines)
    assert any(re.fullmatch(r"~ state of PLAN\.md: \d+ tokens, now \d+", line) for line in lines)
    assert any(re.fullmatch(r"\+ what the model said: \d+ tokens", line) for line in lines)
    assert "told: PLAN.md: whole, changed outside" in lines and "told: TODO.md: gone, changed outside" in lines


def test_what_a_clear_and_a_summary_did_between_two_requests_is_told(filled, api):
    for number in range(8):
        (filled / f"{number}.txt").write_text(f"word {number}\n" * 2000)
    reads = [reply(tools=[("read", {"path": f"{number}.txt"})]) for number in range(8)]
    server = api([*reads, reply(tools=[("compact", {})]), reply("## Goal"), reply("Done.")])
    marks = {"TINYCLAW_HIGH_WATER_TOKENS": "20000", "TINYCLAW_LOW_WATER_TOKENS": "2000"}
    turn_in(filled, server, "go", **marks)
    lines = tinyclaw("context", "--diff", "2", "9", cwd=filled).stdout.splitlines()
    assert any(re.fullmatch(r"cleared: \d+ old results", line) for line in lines)
    assert any(line.startswith("+ read 6.txt: ") for line in lines)
    lines = tinyclaw("context", "--diff", "9", "10", cwd=filled).stdout.splitlines()
    assert any(re.fullmatch(r"summarized: all that came before message \d+", line) for line in lines)
    assert any(line.startswith("+ the summary: ") for line in lines)


def test_the_next_request_is_shown_as_it_will_be_sent_with_old_results_cleared(filled, api):
    for number in range(30):
        (filled / f"{number}.txt").write_text(f"{number} {'word ' * 20}\n" * 200)
    steps = [reply(tools=[("read", {"path": f"{number}.txt"})]) for number in range(30)]
    server = api([*steps, reply("Done."), reply("Again.")])
    more = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x"}
    turn_in(filled, server, "go", TINYCLAW_HIGH_WATER_TOKENS="500000", TINYCLAW_LOW_WATER_TOKENS="400000")
    shown = json.loads(tinyclaw("prompt", cwd=filled, **more).stdout)
    turn_in(filled, server, "more", resume="last")
    results = [
        [block["content"] for message in request["messages"] for block in message["content"] if "tool_use_id" in block]
        for request in (shown, server.requests[-1])
    ]
    assert results[0] == results[1] and any(each.startswith("[cleared") for each in results[0])


def test_prompt_says_that_the_past_was_edited(filled, tmp_path):
    tinyclaw("run", "-m", record(tmp_path / "r.md", "Hello."), "a question", cwd=filled)
    [path] = (filled / ".transcripts").glob("*.md")
    path.write_text(path.read_text().replace("a question", "another question"))
    shown = tinyclaw("prompt", "--request", "1", cwd=filled)
    assert "another question" in shown.stdout
    assert "edited since" in shown.stderr


def test_prompt_without_a_number_is_the_next_request(filled, tmp_path):
    tinyclaw("run", "-m", record(tmp_path / "r.md", "Hello."), "a question", cwd=filled)
    (filled / "PLAN.md").write_text("# Plan\n\nNew step.\n")
    request = json.loads(tinyclaw("prompt", cwd=filled).stdout)
    assert "New step." in json.dumps(request["messages"][-1])
    assert "Hello." in json.dumps(request["messages"])


def test_plan_approve_sets_the_status_and_keeps_the_rest(filled):
    (filled / "PLAN.md").write_bytes(b"---\r\nstatus: draft # mine\r\n---\r\n\r\nText.\r\n")
    assert tinyclaw("plan", "approve", cwd=filled).returncode == 0
    assert (filled / "PLAN.md").read_bytes() == b"---\r\nstatus: approved # mine\r\n---\r\n\r\nText.\r\n"
    shown = tinyclaw("plan", "show", cwd=filled)
    assert (shown.stdout, "approved" in shown.stderr) == ("Text.\n", True)
    (filled / "PLAN.md").write_text("---\nstatus: [draft\n---\n")
    assert "PLAN.md:2:" in tinyclaw("plan", "approve", cwd=filled).stderr
    (filled / "PLAN.md").unlink()
    assert tinyclaw("plan", "show", cwd=filled).returncode == 1
    assert tinyclaw("plan", "approve", cwd=filled).returncode == 2


def test_names_of_files_cannot_steer_the_terminal(filled):
    (filled / ".tinyclaw/sources").mkdir(parents=True, exist_ok=True)
    (filled / ".tinyclaw/sources/\x1b]0;PWNED\x07\x1b[31mred.md").write_text("")
    assert "\x1b" not in tinyclaw("context", cwd=filled).stdout


def test_a_cache_that_held_more_than_was_estimated_costs_nothing_less(filled, tmp_path):
    tinyclaw("run", "-m", record(tmp_path / "r.md", "Hello."), "a question", cwd=filled)
    (path,) = (filled / ".transcripts").glob("2*.md")
    path.write_text(re.sub(r'"cache_read":\d+', '"cache_read":200000', path.read_text()))
    shown = json.loads(tinyclaw("context", "--request", "1", "--json", cwd=filled).stdout)
    assert shown["cost_usd"] > 0 and all(part["cost_usd"] >= 0 for part in shown["parts"])
