"""Instructions come in as the agent goes where they stand: a whole session against the server."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.agent.test_loop import requests_in, texts
from tests.cli.process import tinyclaw
from tests.messages_api import reply
from tinyclaw.agent.events import FileStated, Notice
from tinyclaw.agent.preview import preview
from tinyclaw.agent.start import Options
from tinyclaw.state.workspace import Workspace

READ = ("read", {"path": "packages/web/src/x.ts"}, "toolu_x")


@pytest.fixture
def monorepo(root: Path) -> Path:
    """A repository with instructions where they count and where they do not."""
    files = {
        "AGENTS.md": "Be brief.\n",
        "packages/AGENTS.md": "Name the package.\n",
        "packages/web/AGENTS.md": "use tabs\n@style.md\n" + "and so on\n" * 20,
        "packages/web/style.md": "Two words a name.\n",
        "packages/web/src/x.ts": "let x = 1\n",
        "packages/web/dist/x.js": "var x = 1\n",
        "packages/web/dist/AGENTS.md": "from an ignored folder\n",
        "packages/api/AGENTS.md": "from another package\n",
        "packages/api/x.py": "x = 1\n",
        "linked/x.py": "x = 1\n",
        ".gitignore": "dist/\n",
    }
    files |= {f"node_modules/p{number}/AGENTS.md": "from a dependency\n" for number in range(300)}
    files |= {"node_modules/p1/index.js": "1\n"}
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    outside = root.parent / "outside.md"
    outside.write_text("from outside\n")
    (root / "linked/AGENTS.md").symlink_to(outside)
    return root


def said(body) -> str:
    """All that a request tells of instructions."""
    return "\n".join([*(block["text"] for block in body["system"]), *texts(body)])


def test_the_rules_of_a_package_are_in_the_next_request_once_its_file_was_read(api, start, turn, monorepo):
    server = api(
        [reply(tools=[READ]), reply(tools=[("glob", {"pattern": "src/*", "path": "packages/web"})]), reply("ok")]
    )
    events = turn(start(server), "look at x")
    first, second, third = map(said, server.requests)
    assert "use tabs" not in first and "Name the package." not in first
    rules = ["Name the package.", "Two words a name.", "use tabs"]
    assert [second.count(rule) for rule in rules] == [third.count(rule) for rule in rules] == [1, 1, 1]
    assert [second.index(rule) for rule in rules] == sorted(second.index(rule) for rule in rules)
    assert server.requests[0]["system"] == server.requests[2]["system"]
    stated = ["packages/AGENTS.md", "packages/web/style.md", "packages/web/AGENTS.md"]
    assert [event.path for event in events if isinstance(event, FileStated)] == stated


def test_nothing_comes_from_dependencies_ignored_folders_other_packages_or_outside(api, start, turn, monorepo):
    calls = [READ] + [
        ("read", {"path": path}) for path in ("node_modules/p1/index.js", "packages/web/dist/x.js", "linked/x.py")
    ]
    server = api([reply(tools=calls), reply("ok")])
    events = turn(start(server), "look")
    told = said(server.requests[1])
    assert "use tabs" in told
    for text in ("from a dependency", "from an ignored folder", "from another package", "from outside"):
        assert text not in told
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert [text for text in notices if text.startswith("linked/AGENTS.md") and "link out of the workspace" in text]


@pytest.mark.parametrize(
    "call",
    [
        ("read", {"path": "packages/api/x.py"}),
        ("read", {"path": "packages/api/x.bin"}),
        ("write", {"path": "packages/api/new.py", "content": "y = 1\n"}),
        ("edit", {"path": "packages/api/x.py", "old_text": "1", "new_text": "2"}),
        ("grep", {"pattern": "x", "path": "packages/api"}),
        ("grep", {"pattern": "x", "path": "packages/api/x.py"}),
        ("glob", {"pattern": "*", "path": "packages/api"}),
        ("glob", {"pattern": "packages/api/*.py"}),
    ],
    ids=lambda call: " ".join((call[0], *map(str, call[1].values()))).replace("\n", ""),
)
def test_every_tool_that_names_a_place_touches_it(api, start, turn, monorepo, call):
    (monorepo / "packages/api/x.bin").write_bytes(b"\0\1\2")
    server = api([reply(tools=[call]), reply("ok")])
    turn(start(server), "go")
    assert said(server.requests[1]).count("from another package") == 1


@pytest.mark.parametrize(
    "call",
    [
        ("read", {"path": "packages/api/none.py"}),
        ("grep", {"pattern": "x"}),
        ("glob", {"pattern": "**/*.py"}),
        ("bash", {"command": "cd packages/api && cat x.py"}),
    ],
    ids=lambda call: call[0],
)
def test_a_call_that_fails_or_looks_everywhere_touches_nothing(api, start, turn, monorepo, call):
    server = api([reply(tools=[call]), reply("ok")])
    turn(start(server), "go")
    assert "from another package" not in said(server.requests[1])


def test_what_a_person_does_to_nested_instructions_is_told_as_their_change(api, start, turn, monorepo):
    rules = monorepo / "packages/web/AGENTS.md"

    def edits(body):
        rules.write_text(rules.read_text().replace("use tabs", "use blanks"))
        return reply(tools=[("glob", {"pattern": "*"})])

    def removes(body):
        rules.unlink()
        return reply(tools=[("glob", {"pattern": "*.md"})])

    server = api([reply(tools=[READ]), edits, removes, reply("ok")])
    turn(start(server), "go")
    edited, gone = texts(server.requests[2])[-1], "\n".join(texts(server.requests[3])[-2:])
    assert '<state path="packages/web/AGENTS.md"' in edited and 'how="diff" changed="outside"' in edited
    assert "+use blanks" in edited and "-use tabs" in edited
    assert gone.count('how="gone" changed="outside"') == 2 and 'path="packages/web/style.md"' in gone


def test_what_a_command_does_to_nested_instructions_is_told_as_during_it(api, start, turn, monorepo):
    remove = ("bash", {"command": "rm packages/web/AGENTS.md packages/web/style.md"})
    server = api([reply(tools=[READ]), reply(tools=[remove]), reply("ok")])
    turn(start(server), "go")
    assert said(server.requests[2]).count('how="gone" changed="during"') == 2


def test_the_agents_own_edit_of_nested_instructions_is_told_by_its_result(api, start, turn, monorepo):
    edit = ("edit", {"path": "packages/web/AGENTS.md", "old_text": "use tabs", "new_text": "use blanks"})
    server = api(
        [reply(tools=[READ]), reply(tools=[("read", {"path": edit[1]["path"]})]), reply(tools=[edit]), reply("ok")]
    )
    turn(start(server), "go")
    assert sum('path="packages/web/AGENTS.md"' in text for text in texts(server.requests[3])) == 1


def test_a_compacted_session_has_nested_instructions_in_its_prefix(api, start, turn, monorepo):
    server = api([reply(tools=[READ]), reply("one"), reply("two"), reply("A summary."), reply("three")])
    session = start(server)
    turn(session, "a")
    turn(session, "b")
    session.ask_summary()
    turn(session, "c")
    last = server.requests[-1]
    assert "A summary." in said(last)
    assert said(last).count("use tabs") == 1 and "use tabs" in "".join(block["text"] for block in last["system"])


def test_every_request_with_nested_instructions_can_be_rebuilt(api, start, turn, monorepo):
    server = api([reply(tools=[READ, ("grep", {"pattern": "x", "path": "packages/api"})]), reply("ok"), reply("two")])
    session = start(server)
    turn(session, "a")
    turn(session, "b")
    assert requests_in(session) == [{k: v for k, v in body.items() if k != "stream"} for body in server.requests]


def test_a_session_resumed_in_a_new_process_sends_what_an_uninterrupted_one_would(api, start, turn, monorepo):
    script = [reply(tools=[READ, ("glob", {"pattern": "packages/api/*"}, "toolu_g")]), reply("one"), reply("two")]
    server = api(script)
    session = start(server, clock=lambda: datetime.now(UTC))
    turn(session, "a")
    turn(session, "b")
    session.close()
    other = api(script)
    where = {"cwd": monorepo, "ANTHROPIC_BASE_URL": other.url, "ANTHROPIC_API_KEY": "x"}
    for command in (("run", "a"), ("run", "--resume", "last", "b")):
        done = tinyclaw(*command, **where)
        assert done.returncode == 0, done.stderr
    assert other.requests == server.requests
    assert said(other.requests[2]).count("use tabs") == 1


def test_context_without_a_session_knows_what_the_transcript_has_touched(api, start, turn, monorepo, tmp_path):
    session = start(api([reply(tools=[READ]), reply("ok")]))
    turn(session, "a")
    session.close()
    options = Options(Workspace.find(monorepo, tmp_path / "user"), dict(os.environ), lambda: datetime.now(UTC))
    resumed = preview(Options(**{**vars(options), "resume": "last"})).working.manifest.entries
    fresh = preview(options).working.manifest.entries
    name = "instructions:packages/web/style.md"
    assert name not in fresh
    entry = resumed[name]
    assert (entry.file, entry.lines, entry.tokens > 0) == ("packages/web/style.md", "1-1", True)


def test_what_was_told_on_the_way_to_one_folder_stands_when_the_session_goes_on_from_another(
    api, start, turn, monorepo, tmp_path
):
    server = api([reply("one"), reply("two"), reply(tools=[READ]), reply("three"), reply("four")])
    deep = Workspace(monorepo, monorepo / "packages/web", tmp_path / "user")
    session = start(server, workspace=deep)
    turn(session, "a")
    session.close()
    again = start(server, resume="last")
    events = turn(again, "b")
    assert [event for event in events if isinstance(event, FileStated)] == []
    assert not any(isinstance(event, Notice) and "packages/" in event.text for event in events)
    turn(again, "c")
    (monorepo / "packages/AGENTS.md").unlink()
    events = turn(again, "d")
    assert [event.path for event in events if isinstance(event, FileStated)] == ["packages/AGENTS.md"]
    again.close()
    bodies = list(map(said, server.requests))
    assert [body.count("use tabs") for body in bodies] == [1] * 5
