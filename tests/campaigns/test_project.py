"""The main job in a real repository, over the strict server: each request is accepted, and can be shown as sent."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.campaigns.launcher import Launcher
from tests.cli.process import ROOT, environment, tinyclaw

PACKAGES = ["iniconfig", "pathspec"]
FIRST, SECOND, THIRD = "Look around and mark the first definition.", "Now write a test for it.", "Sum up."


@dataclass(frozen=True)
class Project:
    """A repository: its root, a source file with a line that stands in it once, a test file, how its tests are run."""

    root: Path
    source: str
    line: str
    test: str
    command: str


def made_up(folder: Path) -> Project:
    """A small project with a test suite."""
    files = {
        "AGENTS.md": "Keep functions short.\n",
        "shop/__init__.py": "",
        "shop/basket.py": "class Basket:\n    def __init__(self):\n        self.items = []\n\n    def total(self):\n"
        "        return sum(self.items)\n",
        "tests/__init__.py": "",
        "tests/test_basket.py": "import unittest\nfrom shop.basket import Basket\n\n\n"
        "class BasketTest(unittest.TestCase):\n"
        "    def test_empty(self):\n        self.assertEqual(Basket().total(), 0)\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    command = f"{sys.executable} -B -m unittest -v"
    return Project(folder, "shop/basket.py", "class Basket:", "tests/test_basket.py", command)


def from_index(package: str, folder: Path) -> Project:
    """The source of a package that has tests, unpacked from its sdist."""
    download = ["download", "--quiet", "--no-deps", "--no-binary", package, "--dest", str(folder / "sdist"), package]
    done = subprocess.run([sys.executable, "-m", "pip", *download], capture_output=True, text=True, timeout=120)
    if done.returncode:
        pytest.skip(f"{package} cannot be had from the package index: {done.stderr.strip().splitlines()[-1]}")
    [archive] = (folder / "sdist").glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    [root] = folder.glob("*/PKG-INFO")
    root = root.parent
    tests = sorted(path for path in root.rglob("test_*.py"))
    sources = [path for path in sorted(root.rglob("*.py")) if path not in tests and "test" not in path.parts[-2]]
    lines = (
        (path, line)
        for path in sources
        for line in path.read_text().split("\n")
        if line.startswith(("class ", "def ")) and line.endswith(":")
    )
    source, line = next((path, line) for path, line in lines if path.read_text().count(line) == 1)
    library = "src" if (root / "src").is_dir() else "."
    command = (
        f"PYTHONPATH={library} {sys.executable} -m pytest -q -p no:cacheprovider -o addopts= {tests[0].parent.name}"
    )
    return Project(root, source.relative_to(root).as_posix(), line, tests[0].relative_to(root).as_posix(), command)


def script_for(project: Project) -> list[Any]:
    """Three turns of a model that works as models do: several calls at once, mistakes, long outputs, and the plan."""
    marked = f"{project.line}  # marked"

    def calls(*tools: tuple[str, dict[str, Any]], **more: str) -> dict[str, Any]:
        return {"reply": {"tools": tools, **more}}

    return [
        calls(
            ("glob", {"pattern": "**/*.py"}),
            ("grep", {"pattern": "^class "}),
            ("read", {"path": project.source}),
            text="I look around first.",
            thinking="What is here?",
        ),
        calls(("read", {"path": project.test, "limit": 30}), ("read", {"path": "no/such/file.py"})),
        calls(
            ("plan", {"text": "# Plan\n\n1. Mark the definition\n2. Test it\n"}), ("todo", {"add": ["mark", "test"]})
        ),
        calls(("bash", {"command": project.command}), thinking="Do its tests pass?"),
        calls(("edit", {"path": project.source, "old_text": "nowhere to be found", "new_text": "x"})),
        calls(("edit", {"path": project.source, "old_text": project.line, "new_text": marked})),
        calls(("bash", {"command": f"{project.command}; git diff; seq 1 20000"}), ("grep", {"pattern": "# marked"})),
        {"reply": {"text": "Marked; the tests pass."}},
        calls(("read", {"path": "PLAN.md"}), ("todo", {"done": [1]}), ("todo", {"done": ["mark"]})),
        calls(("write", {"path": "tests/test_marked.py", "content": "def test_marked():\n    assert True\n"})),
        calls(("bash", {"command": f"{project.command}; printf '\\e[31mred\\e[0m\\r\\nend'; exit 3"})),
        {"fault": {"status": 529, "headers": {"retry-after": "0"}}},
        {"cut": {"of": "This one never arrives whole.", "after_events": 3}},
        {"reply": {"text": "Tested.", "thinking": "Done, I think."}},
        {"reply": {"text": "A definition is marked and tested."}},
    ]


@contextmanager
def serving(script: list[Any], folder: Path) -> Iterator[str]:
    """The strict server as a process of its own, with its log in ``folder``; gives its address."""
    file = folder / "script.json"
    file.write_text(json.dumps(script))
    command = [sys.executable, "-m", "tests.messages_api", str(file), "--log", str(folder / "log")]
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGTERM)


@pytest.mark.parametrize(
    "package", ["", *(pytest.param(name, marks=[pytest.mark.campaign, pytest.mark.timeout(300)]) for name in PACKAGES)]
)
def test_a_real_repository_is_worked_on_without_a_refused_request(tmp_path: Path, launcher: Launcher, package: str):
    folder = tmp_path / "unpacked"
    folder.mkdir()
    project = from_index(package, folder) if package else made_up(folder)
    git = ["git", "-C", str(project.root)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "Import"], check=True)
    script = script_for(project)
    if not package:  # without what has to be waited for
        script = [step for step in script if "reply" in step]
    with serving(script, tmp_path) as url:
        variables = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "x"}
        for resume, prompt in ([], FIRST), (["--resume", "last"], SECOND), (["--resume", "last"], THIRD):
            run = ["run", "--permission-mode", "auto", *resume, prompt]
            if package:
                done = tinyclaw(*run, cwd=project.root, **variables)
                assert done.returncode == 0, done.stderr
            else:
                output = tmp_path / "output"
                process = launcher.start(run, project.root, environment(**variables), output)
                assert launcher.wait(process) == 0, output.read_text()
            plan = project.root / "PLAN.md"
            plan.write_text(plan.read_text() + f"A person's remark after: {prompt}\n")
    log = tmp_path / "log"
    assert [path.read_text() for path in log.glob("refused-*")] == []
    assert (project.root / project.source).read_text().count("# marked") == 1
    results = max(log.glob("[0-9]*.json")).read_text()
    assert "[exit code 0]" in results and "[exit code 3]" in results and "remark after: Now write" in results
    assert_shown_as_sent(project.root, log, every=1 if package else 12)


def assert_shown_as_sent(root: Path, log: Path, every: int) -> None:
    """``prompt ID --request N`` gives what the server received. A request that was tried again counts once."""
    listed = json.loads(tinyclaw("sessions", "list", "--json", cwd=root).stdout)
    received = [json.loads(path.read_text()) for path in sorted(log.glob("[0-9]*.json"))]
    sent = [body for at, body in enumerate(received) if received[at - 1 : at] != [body]]
    assert len(sent) == 13
    for number, body in list(enumerate(sent, 1))[::every]:
        shown = tinyclaw("prompt", listed["session"], "--request", str(number), cwd=root)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert json.loads(shown.stdout) == {name: value for name, value in body.items() if name != "stream"}
    beyond = tinyclaw("prompt", "last", "--request", str(len(sent) + 1), cwd=root)
    assert beyond.returncode == 2
