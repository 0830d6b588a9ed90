"""Rules of the house that can be stated exactly."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tinyclaw
from tinyclaw.context.source import load_sources
from tinyclaw.tools._base import load_tools

PACKAGE = Path(tinyclaw.__file__).parent
LAYERS = ("", "state", "context", "model", "tools", "agent", "commands", "cli", "__main__")
"""From the ground up; the modules beside the packages are the ground."""
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "_data" not in path.parts)


def layer_of(module: str) -> int:
    parts = module.split(".")[1:]
    return LAYERS.index(parts[0]) if parts and parts[0] in LAYERS else 0


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tinyclaw"):
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("tinyclaw")}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_point_downward_only(path: Path):
    own = layer_of(".".join(("tinyclaw", *path.relative_to(PACKAGE).with_suffix("").parts)))
    assert [name for name in imported(path) if layer_of(name) > own] == []


def test_importing_the_package_has_no_effects_and_loads_nothing_slow():
    code = "import sys, tinyclaw; print(sorted(set(sys.modules) & {'anthropic', 'click', 'yaml', 'git', 'watchdog'}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_tool_tells_the_model_what_it_does():
    registry = load_tools()
    assert [spec.name for spec in registry.specs()] == [
        "bash",
        "compact",
        "edit",
        "forget",
        "glob",
        "grep",
        "load_skill",
        "plan",
        "read",
        "recall",
        "remember",
        "search_sessions",
        "todo",
        "write",
    ]
    assert all(len(spec.description) > 40 and spec.schema["type"] == "object" for spec in registry.specs())


def test_every_source_says_what_it_is():
    assert all(source.function.__doc__ for source in load_sources())


def test_a_tool_and_a_source_are_one_new_file_each(tmp_path: Path):
    """Drop both files into a copy of the package and see them in the first request of a session."""

    shutil.copytree(PACKAGE, tmp_path / "tinyclaw", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PACKAGE.parent / "templates", tmp_path / "templates")
    (tmp_path / "tinyclaw/tools/word_count.py").write_text(
        '''from tinyclaw.tools._base import ToolContext, tool


@tool(effect="read")
def word_count(ctx: ToolContext, path: str) -> str:
    """Count the words of a text file of the workspace."""
    return str(len(ctx.workspace.resolve(path).read_text().split()))
'''
    )
    (tmp_path / "tinyclaw/context/sources/contributing.py").write_text(
        '''from tinyclaw.context.source import SourceContext, source


@source(placement="prefix", priority=30, watches=("CONTRIBUTING.md",))
def contributing(context: SourceContext) -> str | None:
    """The project's rules for contributions."""
    file = context.snapshot.file("CONTRIBUTING.md")
    return file.text if file else None
'''
    )
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "CONTRIBUTING.md").write_text("Sign your commits.\n")
    code = f"""
import json
from datetime import UTC, datetime
from pathlib import Path
from tinyclaw.agent.start import Options, open_session
from tinyclaw.state.workspace import Workspace
where = Workspace.find(Path({str(workspace)!r}), Path({str(tmp_path / "user")!r}))
session = open_session(Options(where, {{"ANTHROPIC_API_KEY": "x"}}, lambda: datetime.now(UTC)))
request = session.compile().request
print(json.dumps([[tool["name"] for tool in request.tools], [block["text"] for block in request.system]]))
session.close()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert '"word_count"' in done.stdout and "Sign your commits." in done.stdout
