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
    again = run("forget", "docs")
    assert again.returncode == 0 and "is forgotten already; its file is .memory/.archive/docs-20" in again.stderr
    assert run("forget", "Nothing").returncode == 2
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
    more = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x", "TINYCLAW_MEMORY_SELECT": "off"}
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


@pytest.mark.parametrize("is_there", [True, False])
def test_what_the_model_remembers_is_stated_by_its_result_alone(workspace, api, is_there):
    if is_there:
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


def test_what_a_person_adds_just_before_the_model_remembers_is_told(workspace, api):
    (workspace / ".memory").mkdir()

    def remember(body):
        (workspace / ".memory/mine.md").write_text("---\nname: Mine\ntype: user\n---\nWritten by hand.\n")
        return reply(tools=[("remember", {"name": "Docs", "text": "In the wiki.", "type": "reference"})])

    server = api([remember, reply("Done.")])
    more = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x"}
    assert tinyclaw("run", "remember it", cwd=workspace, **more).returncode == 0
    assert "- [Mine](mine.md)" in str(server.requests[1]["messages"])


def test_a_record_is_verified_by_the_files_as_they_are(workspace, run):
    (workspace / "auth.py").write_text("def parse_token():\n    pass\n")
    run("add", "Tokens", "`parse_token` in auth.py is slow on purpose.")
    (workspace / "auth.py").write_text("def read_token():\n    pass\n")
    checked = run("check")
    assert checked.returncode == 1 and "is stale: auth.py:1-2 changed since" in checked.stdout
    assert "(verify before use: auth.py:1-2 changed since)" in (workspace / ".memory/MEMORY.md").read_text()
    assert run("verify", "Tokens").returncode == 0
    assert run("check").returncode == 0 and "verify" not in (workspace / ".memory/MEMORY.md").read_text()
    run("add", "Wish", "Be brief.", "--type", "user")
    assert "rests on no file" in run("verify", "Wish").stderr


def test_a_proposal_is_made_shown_and_accepted(workspace, run, api):
    for word in ("one", "two"):
        run("add", f"Tabs {word}", f"Tabs in all Go files, said {word}.", "--type", "feedback")
    merge = "## merge: tabs-one, tabs-two\nname: Tabs\ntype: feedback\nwhy: the same\n\nTabs in all Go files."
    server = api([reply(merge)])
    more = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x"}
    assert "no proposal waits" in run("accept").stderr
    proposed = run("consolidate", **more)
    assert proposed.returncode == 0 and proposed.stdout.strip() == merge
    assert (workspace / ".memory/PROPOSAL.md").exists() and "waits; accept or reject" in run(
        "consolidate", **more
    ).stderr
    accepted = run("accept")
    assert accepted.returncode == 0
    assert accepted.stderr.startswith("merged tabs-one, tabs-two into .memory/tabs.md (the same); ")
    assert [line.split()[2] for line in run("list").stdout.splitlines()] == ["Tabs"]
    assert [path.name[:8] for path in sorted((workspace / ".memory/.archive").iterdir())] == [
        "proposal",
        "tabs-one",
        "tabs-two",
    ]


def test_a_rejected_proposal_changes_nothing(workspace, run, api):
    run("add", "Docs", "In the wiki.")
    server = api([reply("## drop: docs\nwhy: old")])
    more = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x"}
    assert run("consolidate", **more).returncode == 0
    rejected = run("reject")
    assert rejected.returncode == 0 and "put away as .memory/.archive/proposal-" in rejected.stderr
    assert (workspace / ".memory/docs.md").exists() and run("reject").returncode == 2


def test_from_remembering_to_forgetting_over_two_sessions(workspace, run, api):
    def note(text: str) -> dict:
        return {"name": "Release day", "text": text, "type": "project"}

    (workspace / "release.py").write_text("def publish():\n    pass\n")
    path = workspace / ".memory/release-day.md"
    steps = [
        reply(tools=[("remember", note("`publish` in release.py runs on Fridays."))]),
        reply("Remembered."),
        reply("release-day"),
        reply(tools=[("recall", {"name": "release day"})]),
        reply(tools=[("remember", note("`publish` in release.py runs on Mondays; until November on Fridays."))]),
        reply("Corrected."),
        reply("NONE"),
        reply(tools=[("forget", {"name": "Release day"})]),
        reply("Forgotten."),
    ]
    server = api(steps)
    more = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x"}
    tinyclaw("run", "Remember: we publish on Fridays", cwd=workspace, **more)
    assert "runs on Fridays." in path.read_text() and "  - release.py:1-2 " in path.read_text()
    second = tinyclaw("run", "We publish on Mondays now, don't we?", cwd=workspace, **more)
    assert "from memory: Release day" in second.stderr
    assert "runs on Fridays." in str(server.requests[3]["messages"]) and "on Mondays; until" in path.read_text()
    (workspace / "release.py").write_text("def ship():\n    pass\n")
    third = tinyclaw("run", "Forget the release day", cwd=workspace, **more)
    assert third.stdout == "Forgotten.\n" and not path.exists()
    assert "(verify before use: release.py:1-2 changed since)" in str(server.requests[7]["system"])
    assert "](release-day.md)" not in (workspace / ".memory/MEMORY.md").read_text()
    kept = "".join(path.read_text() for path in (workspace / ".memory/.archive").iterdir())
    assert "on Mondays; until November" in kept and "runs on Fridays." in kept


def test_a_secret_is_not_added_and_one_in_a_file_is_named_by_the_check(workspace, run):
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    refused = run("add", "Key", f"It is {secret}.")
    assert refused.returncode == 2 and "holds a secret" in refused.stderr
    assert not (workspace / ".memory").exists() or not list((workspace / ".memory").glob("key*"))
    (workspace / ".memory").mkdir(exist_ok=True)
    (workspace / ".memory/key.md").write_text(f"---\nname: Key\ntype: reference\n---\nIt is {secret}.\n")
    checked = run("check")
    assert checked.stdout == "- [ ] .memory/key.md: holds a secret; take it out, and note where it is kept\n"


def test_what_people_do_to_records_in_the_middle_of_a_turn_reaches_the_next_request(workspace, run, api):
    run("add", "Docs", "In the wiki.")
    path = workspace / ".memory/docs.md"

    def edit(body):
        path.write_text(path.read_text().replace("description: In the wiki.", "description: HAND on paper."))
        return reply(tools=[("glob", {"pattern": "*.md"})])

    server = api([edit, reply("Done.")])
    more = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "x", "TINYCLAW_MEMORY_SELECT": "off"}
    assert tinyclaw("run", "a", cwd=workspace, **more).returncode == 0
    assert "HAND on paper." in str(server.requests[1]["messages"])


def test_a_list_says_what_is_doubtful(workspace, run):
    (workspace / "auth.py").write_text("def parse_token():\n    pass\n")
    run("add", "Tokens", "`parse_token` in auth.py is slow on purpose.")
    (workspace / "auth.py").unlink()
    assert "(auth.py:1-2 is gone) `parse_token`" in run("list").stdout
    assert "stale: auth.py:1-2 is gone" in run("show", "Tokens").stderr
    refused = run("verify", "Tokens")
    assert refused.returncode == 2 and "auth.py:1-2 is gone; correct its evidence:" in refused.stderr
