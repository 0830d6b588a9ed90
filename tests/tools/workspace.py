"""A workspace in a folder of the test, and calls of tools in it as dispatch makes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinyclaw.errors import ToolError
from tinyclaw.state.ledger import Ledger
from tinyclaw.state.memory.store import Memory
from tinyclaw.state.outputs import Outputs
from tinyclaw.state.workspace import Workspace
from tinyclaw.tools._base import ToolContext, load_tools
from tinyclaw.types import Interrupt, ToolOutput


@dataclass
class Bench:
    root: Path
    context: ToolContext

    def call(self, tool: str, **arguments: Any) -> ToolOutput:
        found = load_tools().get(tool)
        assert found is not None
        return found.run(self.context, arguments)

    def fails(self, tool: str, **arguments: Any) -> str:
        """The text of the error that the call ends in."""
        try:
            output = self.call(tool, **arguments)
        except ToolError as error:
            return str(error)
        raise AssertionError(f"{tool} did not fail: {output.text}")

    def put(self, name: str, data: bytes | str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def bytes_of(self, name: str) -> bytes:
        return (self.root / name).read_bytes()


def bench(folder: Path) -> Bench:
    folder.mkdir(parents=True, exist_ok=True)
    workspace = Workspace(root=folder.resolve(), cwd=folder.resolve(), user_dir=folder.parent / "user")
    outputs = Outputs(workspace.root, "session", lambda text: text)
    memory = Memory(workspace.root, lambda: "2026-11-30T12:00:00Z", lambda text: context.mask(text))
    jobs: Any = None  # no tool that is tested with this starts any
    context = ToolContext(workspace, Ledger(), outputs, jobs, memory, Interrupt())
    return Bench(workspace.root, context)
