"""Where the shipped Markdown lies: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_SHIPPED = _PACKAGE / "_data"


def template_path(name: str) -> Path:
    """The file of a template, ``models.md`` or ``prompts/base.md`` for example; it need not exist."""
    return _root() / "templates" / name


def template_text(name: str) -> str:
    """The text of a template.

    Raises: OSError when there is no template of that name.
    """
    return template_path(name).read_text(encoding="utf-8")


def example_path(name: str) -> Path:
    """The folder of an example workspace; it need not exist."""
    return _root() / "examples" / name


def _root() -> Path:
    return _SHIPPED if _SHIPPED.is_dir() else _PACKAGE.parent
