"""Where the shipped Markdown lies: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from collections.abc import Iterator
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


def table_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a text's Markdown tables, without their heads: the line number, and the cells."""
    is_head = True
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.startswith("|"):
            is_head = True
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not is_head and not all(set(cell) <= set(":-") for cell in cells):
            yield number, cells
        is_head = False


def example_path(name: str) -> Path:
    """The folder of an example workspace; it need not exist."""
    return _root() / "examples" / name


def _root() -> Path:
    return _SHIPPED if _SHIPPED.is_dir() else _PACKAGE.parent
