"""Whatever lies where state should be, whatever the surroundings: no traceback, no hang, no loss, and it is said."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import pytest

from tests.campaigns.launcher import Launcher
from tests.messages_api import MessagesApi, reply
from tinyclaw.state.transcript.grammar import parse

FULL = [pytest.mark.campaign, pytest.mark.timeout(1500)]
SECONDS = 10.0
RUN = ["run", "--permission-mode", "auto"]
LIVE = ["AGENTS.md", "PLAN.md", "TODO.md", ".memory/MEMORY.md", ".tinyclaw/SETTINGS.md", "skills/a/SKILL.md"]
TRANSCRIPT = ".transcripts/20260101-000000-x-aaaa.md"
FOLDERS = [".transcripts", ".task_outputs", ".tinyclaw", ".memory", "skills"]
COMMANDS = {
    "doctor": ["doctor"],
    "context": ["context"],
    "sessions list": ["sessions", "list"],
    "sessions show": ["sessions", "show"],
    "resume": [*RUN, "--resume", "last", "hi"],
    "run": [*RUN, "hi"],
}


def unreadable(place: Path) -> None:
    place.write_text("secret\n")
    place.chmod(0)


def latin1(place: Path) -> None:
    place.write_bytes(b"---\nname: caf\xe9\n---\n\ncaf\xe9\n")


def binary(place: Path) -> None:
    place.write_bytes(b"\x7fELF\0\0\1\2" * 100)


def huge(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(64 << 20)


def pipe(place: Path) -> None:
    os.mkfifo(place)


def folder(place: Path) -> None:
    place.mkdir()


def closed_folder(place: Path) -> None:
    place.mkdir(mode=0)


def dangling(place: Path) -> None:
    place.symlink_to("nowhere/at/all")


def loop(place: Path) -> None:
    place.symlink_to(place.name)


FAULTS = [unreadable, latin1, binary, huge, pipe, folder, closed_folder, dangling, loop]
PAIRS = [
    (name, fault)
    for name, fault in product([*LIVE, TRANSCRIPT, *FOLDERS], FAULTS)
    if name not in FOLDERS or fault is not folder
]
"""A folder in the place of a folder is how it is meant to be."""
SOME = [PAIRS[number] for number in range(0, len(PAIRS), 2 * len(FAULTS) + 1)]


@dataclass
class Here:
    """A workspace with what runs in it."""

    root: Path
    launcher: Launcher
    url: str
    variables: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, **more: int) -> tuple[int, str]:
        """The exit code and all that was said; the process must end in time and speak to people."""
        environment = {
            **os.environ,
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "x",
            "TINYCLAW_MAX_TRIES": "1",
            **self.variables,
        }
        environment = {name: value for name, value in environment.items() if value}
        output = self.root.with_name("output")
        process = self.launcher.start(list(arguments), self.root, environment, output, **more)
        code = self.launcher.wait(process, SECONDS)
        said = output.read_text(errors="replace")
        assert code in (0, 1, 2, 3, 4), f"{arguments} ended with {code}: {said}"
        assert "Traceback" not in said and "unexpected error" not in said, said
        return code, said


@pytest.fixture
def here(tmp_path: Path, launcher: Launcher) -> Iterator[Here]:
    root = tmp_path / "work"
    root.mkdir()
    with MessagesApi(lambda body: reply("Done.")) as server:
        yield Here(root, launcher, server.url)
        assert server.refused == []


@pytest.mark.parametrize(
    ("name", "fault"),
    [*SOME, *(pytest.param(*pair, marks=FULL) for pair in PAIRS if pair not in SOME)],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_whatever_stands_in_the_place_of_a_state_file_is_said_and_kept(here: Here, name: str, fault: Callable):
    place = here.root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    fault(place)
    before = state_of(place)
    said = {}
    for command, arguments in COMMANDS.items():
        _, said[command] = here.run(*arguments)
        after = state_of(place)
        if name == TRANSCRIPT and command == "resume":
            assert after >= before
            before = after
        assert after == before
    assert name in said["doctor"]
    if name in LIVE and fault is not dangling:
        assert place.name in said["run"]


def state_of(place: Path) -> tuple[int, int, int]:
    """Which file it is, of which kind and size, links not followed."""
    status = place.lstat()
    return status.st_ino, status.st_mode, status.st_size


@pytest.mark.parametrize(
    "variables",
    [
        {"HOME": "", "PATH": "/nonexistent"},
        *(
            pytest.param({name: value}, marks=FULL)
            for name in ("HOME", "PATH")
            for value in ("/nonexistent", "relative", "")
        ),
    ],
    ids=str,
)
def test_without_a_home_or_git_all_goes_on(here: Here, variables: dict[str, str]):
    here.variables = {"XDG_CONFIG_HOME": "", **variables}
    for name, arguments in COMMANDS.items():
        code, said = here.run(*arguments)
        assert code == 0 or name in ("doctor", "resume", "sessions show"), said
    assert here.run(*RUN, "--resume", "last", "hi")[0] == 0


@pytest.mark.parametrize("git", [["init", "--bare", "."], pytest.param(["init", "."], marks=FULL)], ids=" ".join)
def test_a_bare_or_empty_repository_is_a_folder_like_any_other(here: Here, git: list[str]):
    subprocess.run(["git", *git], cwd=here.root, check=True, capture_output=True)
    for name in ("run", "resume", "context", "sessions list", "sessions show"):
        code, said = here.run(*COMMANDS[name])
        assert code == 0, said
    here.run("doctor")


def test_a_workspace_that_cannot_be_written_is_named(here: Here):
    here.root.chmod(0o555)
    try:
        for name, arguments in COMMANDS.items():
            code, said = here.run(*arguments)
            assert code == 0 or name not in ("context", "sessions list"), said
            assert name not in ("run", "doctor") or (code == 1 and str(here.root) in said)
    finally:
        here.root.chmod(0o755)
    assert list(here.root.iterdir()) == []


def test_an_unreachable_server_and_a_missing_key_are_said_and_the_session_goes_on_later(here: Here):
    with socket.create_server(("127.0.0.1", 0)) as free:
        nowhere = f"http://127.0.0.1:{free.getsockname()[1]}"
    here.variables = {"ANTHROPIC_BASE_URL": nowhere}
    code, said = here.run(*RUN, "remember the milk")
    assert (code, nowhere in said) == (1, True), said
    here.variables = {"ANTHROPIC_API_KEY": ""}
    code, said = here.run(*RUN, "--resume", "last", "hi")
    assert (code, "ANTHROPIC_API_KEY" in said) == (1, True), said
    here.variables = {}
    assert here.run(*RUN, "--resume", "last", "hi")[0] == 0


@pytest.mark.parametrize("step", [5000, pytest.param(97, marks=FULL)])
def test_a_disk_that_fills_up_at_any_byte_leaves_whole_blocks_and_says_so(
    tmp_path: Path, launcher: Launcher, step: int
):
    script = [
        reply("Let me look. " * 400, tools=[("bash", {"command": "seq 2000"}), ("glob", {"pattern": "*"})]),
        reply(tools=[("write", {"path": "made.txt", "content": "line\n" * 50})]),
        reply("Done."),
    ]
    full = 0
    for number, limit in enumerate(range(14_000, 24_000, step)):
        root = tmp_path / str(number)
        root.mkdir()
        with MessagesApi(script) as server:
            here = Here(root, launcher, server.url)
            code, said = here.run(*RUN, "go", file_bytes=limit)
            assert (code == 0) == ("turn_end" in whole_blocks(root)[-1:])
            full += code != 0
            if code != 0:
                assert "the file is as it was" in said and "--resume last" in said, said
                server.reset(lambda body: reply("Done."))
                assert here.run(*RUN, "--resume", "last", "hi")[0] == 0
            assert server.refused == []
    assert full > 0


def whole_blocks(root: Path) -> list[str]:
    """The kinds of the transcript's blocks, of which none is torn."""
    [path] = (root / ".transcripts").glob("*.md")
    parsed = parse(path.read_bytes(), path.name)
    assert (parsed.torn_at, parsed.diagnostics) == (None, ())
    return [block.kind for block in parsed.blocks]
