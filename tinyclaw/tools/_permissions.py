"""May this call run? Pure: from what the tool declares, what it would touch, and the permission mode.

==============  =====  ======================  =================  =======
mode            read   PLAN.md and TODO.md     write              execute
==============  =====  ======================  =================  =======
read-only       runs   refused                 refused            refused
ask             runs   runs                    asks               asks
accept-edits    runs   runs                    runs               asks
auto            runs   runs                    runs               runs
==============  =====  ======================  =================  =======

Writing tinyclaw's own files (settings, transcripts) or git's asks in every mode but read-only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tinyclaw.errors import StateError
from tinyclaw.state.workspace import OWN_FOLDER, TRANSCRIPTS, Workspace
from tinyclaw.tools._base import Tool
from tinyclaw.types import PermissionMode

Verdict = Literal["allow", "ask", "deny"]
PROTECTED = (OWN_FOLDER, TRANSCRIPTS, ".git", ".mcp.json")

_VERDICTS: dict[PermissionMode, dict[str, Verdict]] = {
    "read-only": {"read": "allow", "state": "deny", "write": "deny", "execute": "deny"},
    "ask": {"read": "allow", "state": "allow", "write": "ask", "execute": "ask"},
    "accept-edits": {"read": "allow", "state": "allow", "write": "allow", "execute": "ask"},
    "auto": {"read": "allow", "state": "allow", "write": "allow", "execute": "allow"},
}


@dataclass(frozen=True)
class Decision:
    """The verdict and its reason, a clause for the person and the model."""

    verdict: Verdict
    reason: str


def decide(tool: Tool, arguments: Mapping[str, Any], mode: PermissionMode, workspace: Workspace) -> Decision:
    """What happens to this call in this mode."""
    verdict = _VERDICTS[mode][tool.effect]
    if tool.effect == "write" and verdict != "deny" and (owner := _protected(arguments, workspace)):
        return Decision("ask", f"{owner} holds tinyclaw's or git's own files")
    return Decision(verdict, f"permission mode is {mode}")


def denial(name: str, reason: str) -> str:
    """The one wording of every refusal, for the model."""
    return f"{name} was not run: {reason}. Do not work around it; go on without it, or say what you need."


def _protected(arguments: Mapping[str, Any], workspace: Workspace) -> str:
    path = arguments.get("path")
    if not isinstance(path, str):
        return ""
    try:
        first = workspace.relative(workspace.resolve(path)).split("/", 1)[0]
    except StateError:
        return ""
    return first if first.lower() in PROTECTED else ""
