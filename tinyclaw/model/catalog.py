"""What is known of each model, read from the tables of ``templates/models.md``."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Literal, cast, get_args

from tinyclaw.errors import StateError
from tinyclaw.templates import table_rows, template_path, template_text

_FILE = "models.md"
_ANY = "*"
_WIDTH_OF_MODELS = 5
_WIDTH_OF_DEFAULTS = 2

Thinking = Literal["adaptive", "none"]


@dataclass(frozen=True)
class ModelInfo:
    """Limits of one model, in tokens.

    ``is_assumed``: no row names the model, so these are cautious guesses; say so where they matter.
    ``thinking`` is adaptive where the model takes ``{"thinking": {"type": "adaptive"}}``.
    """

    id: str
    context_window: int
    max_output: int
    thinking: Thinking
    characters_per_token: float
    is_assumed: bool = False


def lookup(model_id: str) -> ModelInfo:
    """The row for a model id, whatever the id is."""
    for row in catalog().rows:
        if fnmatchcase(model_id, row.id):
            return ModelInfo(
                model_id, row.context_window, row.max_output, row.thinking, row.characters_per_token, row.id == _ANY
            )
    raise StateError(f"{template_path(_FILE)}: no row `{_ANY}` for models that are not listed; add one")


def default_model(use: Literal["main", "small"]) -> str:
    """The id that is used where no setting names a model."""
    return catalog().defaults[use]


@dataclass(frozen=True)
class Catalog:
    """The file, parsed. The ``id`` of a row is its pattern."""

    rows: tuple[ModelInfo, ...]
    defaults: dict[str, str]


@cache
def catalog() -> Catalog:
    """The shipped catalog, read once.

    Raises: StateError when the installation's file is missing or damaged.
    """
    try:
        text = template_text(_FILE)
    except OSError as error:
        raise StateError(f"{template_path(_FILE)}: {error.strerror}; install tinyclaw again") from error
    return parse_catalog(text)


def parse_catalog(text: str) -> Catalog:
    """Read both tables: rows of five cells are models, rows of two are defaults.

    Raises: StateError that names the line of a row that is neither, or when a default is missing.
    """
    rows: list[ModelInfo] = []
    defaults: dict[str, str] = {}
    for number, cells in table_rows(text):
        if len(cells) == _WIDTH_OF_DEFAULTS:
            defaults[cells[0]] = cells[1].strip("`")
        else:
            rows.append(_row(cells, number))
    if not {"main", "small"} <= defaults.keys():
        raise StateError(f"{template_path(_FILE)}: the table of defaults needs rows for main and small")
    return Catalog(tuple(rows), defaults)


def _row(cells: list[str], number: int) -> ModelInfo:
    place = f"{template_path(_FILE)}:{number}"
    if len(cells) != _WIDTH_OF_MODELS:
        raise StateError(f"{place}: {len(cells)} cells; a model has {_WIDTH_OF_MODELS}")
    pattern, window, output, thinking, ratio = cells
    if thinking not in get_args(Thinking):
        raise StateError(f"{place}: thinking is {thinking!r}; it is adaptive or none")
    try:
        return ModelInfo(pattern.strip("`"), _tokens(window), _tokens(output), cast(Thinking, thinking), float(ratio))
    except ValueError as error:
        raise StateError(f"{place}: {error}") from error


def _tokens(text: str) -> int:
    return int(text.replace(",", ""))
