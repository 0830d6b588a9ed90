"""People save from their own processes, in every editor's way, while the real command line works on the same files."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.campaigns.launcher import Launcher
from tests.messages_api import MessagesApi, reply
from tests.state import test_files
from tinyclaw.state.files import revision_of
from tinyclaw.state.transcript.grammar import parse
from tinyclaw.state.transcript.prefixes import PrefixStore
from tinyclaw.state.transcript.statements import stated_text

FULL = [pytest.mark.campaign, pytest.mark.timeout(900)]
STYLES = ["in-place", "overwrite", "rename", "backup", "two-renames", "anew"]
"""VS Code and a plain program; nano; Emacs with links kept off and most others; vim and Emacs; JetBrains; git."""
LIVE = ["PLAN.md", "TODO.md", "AGENTS.md"]
GAP_SECONDS = 0.2
PLAN = "# Plan\n\n" + "".join(f"- line {number} which is long enough to be torn\n" for number in range(60))


@dataclass(frozen=True)
class Save:
    """One save of a person: what it added, when it had ended (monotonic) and what the file said then."""

    token: str
    ended: float
    revision: str


class People:
    """An editor process for each of some files."""

    def __init__(self, paths: list[Path], style: str, buffer: str, saves: int) -> None:
        self._options = [style, buffer, str(saves), str(GAP_SECONDS)]
        self._paths = paths
        self._editors: dict[str, subprocess.Popen[str]] = {}

    def are_at_work(self) -> bool:
        """Whether anybody is still saving; the first question starts them."""
        if not self._editors:
            program = [sys.executable, str(test_files.PERSON)]
            self._editors = {
                path.name: subprocess.Popen([*program, str(path), *self._options], stdout=subprocess.PIPE, text=True)
                for path in self._paths
            }
        return any(editor.poll() is None for editor in self._editors.values())

    def saves(self) -> dict[str, list[Save]]:
        """The saves of each file, once all have been made."""
        found = {}
        for name, editor in self._editors.items():
            said, _ = editor.communicate()
            assert editor.returncode == 0
            lines = [line.split() for line in said.splitlines()]
            found[name] = [Save(token, float(ended), revision) for token, ended, revision in lines]
        return found


def run(launcher: Launcher, server: MessagesApi, root: Path, watcher: str) -> str:
    """One turn of the real command line; all that it said."""
    environment = {
        **os.environ,
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": "x",
        "TINYCLAW_WATCHER": watcher,
    }
    output = root.with_name("output")
    words = ["run", "--permission-mode", "auto", "go"]
    code = launcher.wait(launcher.start(words, root, environment, output), 300)
    assert code == 0, output.read_text()
    return output.read_text()


@pytest.mark.parametrize("watcher", ["off", pytest.param("on", marks=FULL)])
@pytest.mark.parametrize(
    ("style", "saves"), [("in-place", 6), *(pytest.param(style, 60, marks=FULL) for style in STYLES)]
)
def test_each_request_carries_the_last_finished_save_of_every_live_file(
    tmp_path: Path, launcher: Launcher, style: str, saves: int, watcher: str
):
    root = tmp_path / "work"
    root.mkdir()
    for name in LIVE:
        (root / name).write_text(PLAN)
    people = People([root / name for name in LIVE], style, "stale", saves)

    look = reply(tools=[("glob", {"pattern": "*.md"})])
    ends = iter([look, reply("Done.")])  # one more request after the last save

    def step(body: dict[str, Any]) -> Any:
        return look if people.are_at_work() else next(ends)

    with MessagesApi(step) as server:
        run(launcher, server, root, watcher)
        assert server.refused == []
        answered = [exchange.sent for exchange in server.exchanges]
    carried = revisions_in_requests(root)
    assert len(carried) == len(answered) > 2
    for name, made in people.saves().items():
        texts = {revision_of(text): text for text in texts_of(made)}
        order = [revision_of(PLAN.encode()), *(save.revision for save in made)]
        assert set(order) == set(texts)
        for number, revisions in enumerate(carried):
            before = answered[number - 1] if number else 0.0  # the compile began after that reply was out
            assert before is not None
            finished = sum(save.ended < before for save in made)
            assert revisions[name] in order, f"request {number + 1} carries a torn {name}"
            assert order.index(revisions[name]) >= finished, f"request {number + 1} carries an old {name}"
        assert carried[-1][name] == order[-1]
        assert_stated_whole(root, name, texts)


def texts_of(made: list[Save]) -> Iterator[bytes]:
    """What the file said at the start and after each save."""
    text = PLAN
    yield text.encode()
    for save in made:
        text += f"{save.token}\n"
        yield text.encode()


def revisions_in_requests(root: Path) -> list[dict[str, str]]:
    """For each request the revision of each live file that it carries, by the transcript and the pinned prefix."""
    [path] = (root / ".transcripts").glob("*.md")
    prefixes = PrefixStore(path.parent, root.parent / "user")
    carried: list[dict[str, str]] = []
    known: dict[str, str] = {}
    for block in parse(path.read_bytes(), path.name).blocks:
        if block.kind == "prefix":
            prefix = prefixes.load(block.attrs["hash"])
            assert prefix is not None
            known |= {name: stated.revision for name in LIVE if (stated := prefix.stated(name))}
        elif block.kind == "state":
            known = {**known, block.attrs["path"]: block.attrs["rev"]}
        elif block.kind == "request":
            carried.append(known)
    return carried


def assert_stated_whole(root: Path, name: str, texts: dict[str, bytes]) -> None:
    """Whatever was stated of a file in whole is one of the texts that it had."""
    [path] = (root / ".transcripts").glob("*.md")
    for block in parse(path.read_bytes(), path.name).blocks:
        if block.kind == "state" and (block.attrs["path"], block.attrs["how"]) == (name, "whole"):
            assert (stated_text(block, None) or "").strip() == texts[block.attrs["rev"]].decode().strip()


@pytest.mark.parametrize("buffer", ["stale", pytest.param("reloaded", marks=FULL)])
@pytest.mark.parametrize(
    ("style", "saves"), [("backup", 6), *(pytest.param(style, 60, marks=FULL) for style in STYLES)]
)
def test_no_save_is_lost_while_the_agent_writes_the_same_files_by_every_tool(
    tmp_path: Path, launcher: Launcher, style: str, saves: int, buffer: str
):
    root = tmp_path / "work"
    root.mkdir()
    names = ["PLAN.md", "TODO.md", "AGENTS.md", "app.py"]
    for name in names:
        (root / name).write_text("- [ ] agent: 0\n\n" + PLAN + "\n## A person's part\n\n")
    people = People([root / name for name in names], style, buffer, saves)
    agent = Agent(root, names, random.Random(saves))
    with MessagesApi(lambda body: agent.next() if people.are_at_work() else reply("Done.")) as server:
        said = run(launcher, server, root, "off")
        assert server.refused == []
    [transcript] = (root / ".transcripts").glob("*.md")
    told = transcript.read_text() + said
    for name, made in people.saves().items():
        kept = "".join(path.read_text() for path in root.iterdir() if path.name.startswith(name)) + told
        assert [save.token for save in made if f"{save.token}\n" not in kept] == []
        for path in root.glob(f"{name}.rescued-*"):
            assert path.name in told
    assert len(agent.done) > saves // 4
    assert [path.name for path in root.iterdir() if path.name.startswith(".tinyclaw-")] == []


class Agent:
    """A model that changes one of the files at each turn, by one tool after the other, keeping what it knows of."""

    def __init__(self, root: Path, names: list[str], chance: random.Random) -> None:
        self._root, self._names, self._chance = root, names, chance
        self.done: list[str] = []

    def next(self) -> Any:
        number = len(self.done) + 1
        name = self._chance.choice(self._names)
        ways: list[Callable[[], list[tuple[str, dict[str, Any]]]]] = [
            lambda: [("read", {"path": name})],
            lambda: [
                ("edit", {"path": name, "old_text": f"agent: {self._number(name)}\n", "new_text": f"agent: {number}\n"})
            ],
            lambda: [("write", {"path": name, "content": self._changed(name, number)})],
            lambda: [("bash", {"command": f"echo 'agent appends {number}' >> {name}"})],
            lambda: [("todo", {"add": [f"item {number}"]})],
            lambda: [("plan", {"text": self._changed("PLAN.md", number)})],
        ]
        calls = self._chance.choice(ways)()
        self.done.append(calls[0][0])
        return reply(tools=calls)

    def _text(self, name: str) -> str:
        path = self._root / name
        return path.read_text() if path.exists() else ""

    def _number(self, name: str) -> str:
        return self._text(name).partition("agent: ")[2].partition("\n")[0]

    def _changed(self, name: str, number: int) -> str:
        text = self._text(name)
        return text.replace(f"agent: {self._number(name)}\n", f"agent: {number}\n") or "- [ ] agent: 0\n"
