"""What is remembered, from the command line, and how the index follows what people do to the records."""

from __future__ import annotations

import pytest

from tests.cli.process import tinyclaw
from tests.messages_api import reply


@pytest.fixture
def run(workspace):
    """``run("add", …)`` runs a command of the memory."""
    return lambda *words, **given: tinyclaw("memory", *words, cwd=workspace, **given)


def test_a_record_is_added_shown_found_and_forgotten(workspace, run):
    added = run("add", "Tabs in Go", "Tabs in all Go files.", "--type", "feedback")
    assert (added.returncode, added.stderr) == (0, ".memory/tabs-in-go.md: remembered\n")
    assert run("add", "Docs", "-", stdin="In the wiki.\n").returncode == 0
    lines = run("list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["feedback", "project"] and "Tabs in all Go files." in lines[0]
    shown = run("show", "tabs in go")
    assert shown.stdout == "Tabs in all Go files.\n" and ".memory/tabs-in-go.md: feedback, updated 20" in shown.stderr
    assert [line.split()[-1] for line in run("search", "wiki").stdout.splitlines()] == ["wiki."]
    assert run("search", "zebra").returncode == 1
    forgotten = run("forget", "Docs")
    assert forgotten.returncode == 0 and "its file is .memory/.archive/docs-20" in forgotten.stderr
    assert run("show", "Docs").returncode == 2 and "docs" not in (workspace / ".memory/MEMORY.md").read_text()


def test_a_record_that_is_there_is_not_written_over(workspace, run):
    run("add", "Docs", "In the wiki.")
    assert run("add", "docs", "in the  wiki.").stderr == ".memory/docs.md: says this already\n"
    other = run("add", "docs", "On paper.")
    assert other.returncode == 2 and "edit it in an editor" in other.stderr
    assert "In the wiki." in (workspace / ".memory/docs.md").read_text()


def test_the_check_lists_what_is_wrong_and_makes_the_index_anew(workspace, run):
    assert run("check").returncode == 0
    run("add", "Docs", "In the wiki.")
    (workspace / ".memory/broken.md").write_text("---\nname: Broken\n")
    (workspace / ".memory/twin.md").write_text("---\nname: DOCS\ntype: project\n---\nElsewhere.\n")
    (workspace / ".memory/leak.md").symlink_to("/etc/hostname")
    checked = run("check")
    lines = checked.stdout.splitlines()
    assert checked.returncode == 1 and "made anew" in checked.stderr
    assert [line.split(":")[0] for line in lines] == [f"- [ ] .memory/{name}.md" for name in ("broken", "leak", "twin")]
    assert "[DOCS](twin.md)" in (workspace / ".memory/MEMORY.md").read_text()
    assert "made anew" not in run("check").stderr


def test_what_people_do_to_records_reaches_the_next_turn(workspace, run, api):
    run("add", "Docs", "In the wiki.")
    server = api([reply("One."), reply("Two."), reply("Three.")])
    more = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x"}
    tinyclaw("run", "a", cwd=workspace, **more)
    record = workspace / ".memory/docs.md"
    record.write_text(record.read_text().replace("description: In the wiki.", "description: HAND on paper."))
    (workspace / ".memory/new.md").write_text("By hand.\n")
    tinyclaw("run", "--resume", "last", "b", cwd=workspace, **more)
    assert any("HAND on paper." in str(message) for message in server.requests[1]["messages"])
    assert "[new](new.md) — By hand." in (workspace / ".memory/MEMORY.md").read_text()
    record.unlink()
    tinyclaw("run", "--resume", "last", "c", "--permission-mode", "read-only", cwd=workspace, **more)
    assert "docs.md" in (workspace / ".memory/MEMORY.md").read_text(), "nothing is written in that mode"


def test_what_the_model_remembers_is_stated_by_its_result_alone(workspace, api):
    (workspace / ".memory").mkdir()
    (workspace / ".memory/MEMORY.md").write_text("# Memory\n")
    call = ("remember", {"name": "Docs", "text": "In the wiki.", "type": "reference"})
    server = api([reply(tools=[call]), reply("Done.")])
    more = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x"}
    done = tinyclaw("run", "remember it", cwd=workspace, **more)
    assert "remembered: .memory/docs.md" in done.stderr
    result, *others = server.requests[1]["messages"][-1]["content"]
    assert ".memory/docs.md: remembered. In the index:" in result["content"]
    assert not any("MEMORY.md" in str(other) for other in others)
