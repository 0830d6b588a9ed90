"""Prompt templates by name: the person's own version at user level replaces the shipped one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from tinyclaw.errors import StateError
from tinyclaw.templates import template_path
from tinyclaw.width import one_line


def prompt_loader(user_dir: Path) -> Callable[[str], str]:
    """``load(name)`` gives the text of ``prompts/<name>.md``: the one in ``user_dir``, otherwise the shipped one.

    Raises (the loader): StateError when neither can be read, or the one that counts is no text or empty.
    """

    @cache
    def load(name: str) -> str:
        own, shipped = user_dir / "prompts" / f"{name}.md", template_path(f"prompts/{name}.md")
        text = _text(own, "delete the file to have the shipped prompt")
        if text is None:
            text = _text(shipped, "install tinyclaw again")
        if text is None:
            raise StateError(f"{shipped}: is missing; install tinyclaw again")
        return text

    return load


def prompt_path(user_dir: Path, name: str) -> Path | None:
    """The file that ``prompt_loader`` reads for a name; None when there is no such prompt."""
    places = (user_dir / "prompts" / f"{name}.md", template_path(f"prompts/{name}.md"))
    return next((place for place in places if place.is_file()), None)


def unused_prompts(own_folder: Path) -> list[str]:
    """What to tell of prompts in a workspace's own folder: as long as it cannot be trusted, none of them counts."""
    folder = own_folder / "prompts"
    names: list[str] = []
    with suppress(OSError):  # a folder that is closed to us is told of where it is needed
        names = sorted(path.name for path in folder.iterdir() if path.suffix == ".md")
    why = "is not used: prompts that come with a workspace wait for the person's trust; put it into the user level's"
    return [f"{own_folder.name}/prompts/{one_line(name)}: {why} prompts/" for name in names]


def _text(path: Path, mend: str) -> str | None:
    try:
        data = path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise StateError(f"{path}: cannot be read ({error.strerror}); {mend}") from error
    if data is None:
        return None
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise StateError(f"{path}:{line}: is not UTF-8; save it as UTF-8, or {mend}") from error
    if not text.strip():
        raise StateError(f"{path}: is empty; {mend}")
    return text
