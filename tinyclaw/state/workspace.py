"""Where things are: the workspace's root, the folder we work in, the user's own folder.

The root is the work tree that git would name, or the folder itself outside git. Every path that a
model gives is resolved here, and nothing outside the root ever comes out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tinyclaw.errors import StateError, UsageError

TRANSCRIPTS = ".transcripts"
OUTPUTS = ".task_outputs"
OWN_FOLDER = ".tinyclaw"
MEMORY_INDEX = ".memory/MEMORY.md"
PLAN = "PLAN.md"
TODO = "TODO.md"
INSTRUCTIONS = "AGENTS.md"


@dataclass(frozen=True)
class Workspace:
    """A root (a real path), the folder inside it where the person stands, and the user-level folder."""

    root: Path
    cwd: Path
    user_dir: Path

    @classmethod
    def find(cls, start: Path, user_dir: Path) -> Workspace:
        """The workspace around ``start``: up to the folder that holds ``.git``, otherwise ``start`` itself.

        Raises: UsageError when ``start`` is not a folder that can be entered.
        """
        try:
            cwd = start.resolve(strict=True)
        except (OSError, RuntimeError) as error:
            why = (error.strerror if isinstance(error, OSError) else "") or "its links go in a circle"
            raise UsageError(f"{start}: not a folder that can be opened ({why}); name one with -C DIR") from error
        if not cwd.is_dir():
            raise UsageError(f"{start}: is not a folder; name one with -C DIR")
        return cls(root=git_root(cwd) or cwd, cwd=cwd, user_dir=user_dir)

    def resolve(self, name: str) -> Path:
        """The real path that ``name`` means, relative to the root unless absolute. Links are followed.

        Raises: StateError when it is blank, holds a NUL, or lies outside the root.
        """
        if not name.strip() or "\0" in name:
            raise StateError(f"{name!r} is not a path; give one relative to the workspace's root")
        path = Path(os.path.realpath(self.root / name))
        if not path.is_relative_to(self.root):
            raise StateError(f"{name} lies outside the workspace {self.root}; only files inside it can be used")
        return path

    def relative(self, path: Path) -> str:
        """``path`` as it is written everywhere in state files: relative to the root, with slashes."""
        return path.relative_to(self.root).as_posix()

    def chain(self) -> tuple[Path, ...]:
        """The folders from the root down to where we work, both included."""
        below = self.cwd.relative_to(self.root).parts
        return tuple(self.root.joinpath(*below[:depth]) for depth in range(len(below) + 1))


def git_root(start: Path) -> Path | None:
    """The nearest folder at or above ``start`` with a ``.git`` (a folder, or a worktree's or submodule's file)."""
    for folder in (start, *start.parents):
        if _is_repository(folder / ".git"):
            return folder
    return None


def _is_repository(place: Path) -> bool:
    """Whether git would take ``place`` for a repository: a folder with a HEAD, or a file that leads to one."""
    if place.is_dir():
        return (place / "HEAD").exists() or (place / "HEAD").is_symlink()
    try:
        target = place.read_text(encoding="utf-8", errors="replace") if place.is_file() else ""
    except OSError:
        return False
    leads_to = place.parent / target.removeprefix("gitdir:").strip()
    return target.startswith("gitdir:") and (leads_to / "HEAD").exists()
