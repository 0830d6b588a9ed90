"""Prompt templates by name: the person's own version at user level replaces the shipped one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from tinyclaw.errors import StateError
from tinyclaw.templates import template_path, template_text


def prompt_loader(user_dir: Path) -> Callable[[str], str]:
    """``load(name)`` gives the text of ``prompts/<name>.md``: the one in ``user_dir``, otherwise the shipped one.

    Raises (the loader): StateError when neither can be read.
    """

    @cache
    def load(name: str) -> str:
        own = user_dir / "prompts" / f"{name}.md"
        try:
            return own.read_text(encoding="utf-8-sig") if own.is_file() else template_text(f"prompts/{name}.md")
        except (OSError, UnicodeDecodeError) as error:
            place = own if own.is_file() else template_path(f"prompts/{name}.md")
            raise StateError(
                f"{place}: the prompt cannot be read ({error}); mend it or install tinyclaw again"
            ) from error

    return load
