"""From the path that a model gives to a real file inside the workspace, with errors that help it on."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import NamedTuple

from tinyclaw.errors import StateError, ToolError
from tinyclaw.state import files
from tinyclaw.state.workspace import PLAN, Workspace

LISTED_NAMES = 20


class Place(NamedTuple):
    """A real path inside the workspace, and its name there (posix, from the root)."""

    path: Path
    name: str

    @property
    def folder(self) -> str:
        """The folder it lies in, from the root."""
        return self.name.rpartition("/")[0]


def locate(workspace: Workspace, name: str) -> Place:
    """Raises: ToolError when ``name`` is no path inside the workspace."""
    if name.startswith("~"):
        raise ToolError(f"{name}: a path here is relative to the workspace's root and cannot begin with ~.")
    try:
        path = workspace.resolve(name)
    except (StateError, OSError) as error:
        raise ToolError(f"{error}.") from error
    return Place(path, workspace.relative(path))


def read_file(place: Place, limit_bytes: int) -> files.FileRead:
    """The file as it stands on disk; data None when it is absent.

    Raises: ToolError for a folder, a pipe, an unreadable or too large file.
    """
    try:
        if place.path.is_dir():
            raise ToolError(_folder(place))
        return files.read(place.path, limit_bytes=limit_bytes)
    except (StateError, OSError) as error:
        raise unusable(place, error) from error


def unusable(place: Place, error: Exception) -> ToolError:
    """What the file system answered, told with the path as the model knows it."""
    return ToolError(f"{str(error).replace(str(place.path), place.name)}.")


def missing(workspace: Workspace, place: Place) -> ToolError:
    """The error for a file that is not there, naming what is near."""
    folder, name = place.path.parent, place.path.name
    while not folder.is_dir():
        folder, name = folder.parent, folder.name
    inside = _names(folder)
    near = difflib.get_close_matches(name.casefold(), [entry.casefold() for entry in inside], n=3, cutoff=0.6)
    alike = [entry for entry in inside if entry.rstrip("/").casefold() == name.casefold() or entry.casefold() in near]
    where = workspace.relative(folder)
    hint = f"Near it in {where}/: {', '.join(alike[:3])}." if alike else f"{where}/ holds: {_listed(inside)}."
    return ToolError(f"{place.name} does not exist. {hint} Use glob to find a file by name.")


def is_plan(workspace: Workspace, place: Place) -> bool:
    """Whether the place is PLAN.md, by whatever link or spelling."""
    plan = workspace.root / PLAN
    if place.path == Path(plan).resolve():
        return True
    return place.path.exists() and plan.exists() and place.path.samefile(plan)


def _folder(place: Place) -> str:
    return f"{place.name} is a folder, not a file. It holds: {_listed(_names(place.path))}. Use glob to list more."


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name + "/" * entry.is_dir() for entry in folder.iterdir())
    except OSError:
        return []


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - LISTED_NAMES} more" if len(names) > LISTED_NAMES else ""
    return (", ".join(names[:LISTED_NAMES]) or "nothing") + more
