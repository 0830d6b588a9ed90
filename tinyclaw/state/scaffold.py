"""The files of a workspace, laid where there are none; what a person has is never written over.

Ignore and attribute files get the missing lines at their end and keep every other byte.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from tinyclaw.errors import StateError
from tinyclaw.state.files import read, write
from tinyclaw.state.workspace import INSTRUCTIONS, MEMORY_INDEX, OUTPUTS, OWN_FOLDER, PLAN, TODO, TRANSCRIPTS

LAID = {
    INSTRUCTIONS: "AGENTS.md",
    PLAN: "PLAN.md",
    TODO: "TODO.md",
    MEMORY_INDEX: "MEMORY.md",
    f"{OWN_FOLDER}/SETTINGS.md": "SETTINGS.md",
}
"""Files of a workspace, and the templates (in ``templates/workspace``) that they begin as."""

IGNORED = (
    f"{OUTPUTS}/",
    f"{TRANSCRIPTS}/*.lock",
    f"{OWN_FOLDER}/SETTINGS.local.md",
    f"{OWN_FOLDER}/checkpoints.git",
)
ATTRIBUTES = (f"{TRANSCRIPTS}/** -text",)


def lay(root: Path, template: Callable[[str], str]) -> list[str]:
    """Lay what is missing; gives one sentence for each file that was written, none when all is there.

    Args:
        template: the text of a template by name.

    Raises: StateError when a file cannot be read or written.
    """
    told = []
    for name, origin in LAID.items():
        there = read(root / name)
        if there.data is None:
            write(root / name, template(origin).encode(), base=there)
            told.append(f"{name}: made")
    for name, lines in ((".gitignore", IGNORED), (".gitattributes", ATTRIBUTES)):
        added = _add_lines(root / name, lines)
        if added:
            told.append(f"{name}: added {', '.join(added)}")
    return told


def make_repository(root: Path) -> bool:
    """Run ``git init``; True when it did. Raises: StateError when git is missing or refuses."""
    if (root / ".git").exists():
        return False
    try:
        subprocess.run(["git", "init", "--quiet"], cwd=root, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise StateError("git is not installed; install it, or leave --git out") from None
    except subprocess.CalledProcessError as error:
        raise StateError(f"git init failed in {root}: {error.stderr.strip()}") from error
    return True


def missing_lines(data: bytes | None, lines: tuple[str, ...]) -> list[str]:
    """Those of ``lines`` that the file does not hold, with or without a slash before them."""
    held = {line.strip().lstrip("/") for line in (data or b"").decode("utf-8", "replace").split("\n")}
    return [line for line in lines if line not in held]


def _add_lines(path: Path, lines: tuple[str, ...]) -> list[str]:
    there = read(path)
    missing = missing_lines(there.data, lines)
    if missing:
        before = there.data or b""
        newline = b"\r\n" if b"\r\n" in before else b"\n"
        gap = newline if before and not before.endswith(b"\n") else b""
        added = b"".join(line.encode() + newline for line in missing)
        write(path, before + gap + added, base=there)
    return missing
