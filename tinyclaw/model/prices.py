"""What requests cost, from the table of ``templates/prices.md`` and what a person has set beside it.

Tokens are billed by kind (https://platform.claude.com/docs/en/about-claude/pricing): input that no cache
held, input that was written to the cache or read from it, output. Where prompts above a size cost more,
the size of all that was sent decides, and all of the request costs more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from tinyclaw.errors import StateError
from tinyclaw.templates import table_rows, template_path, template_text
from tinyclaw.types import Usage

_FILE = "prices.md"
_CELLS = 6
_PER = 1_000_000
_WRITE, _READ = 1.25, 0.1
"""What cache writes and reads cost where only the price of input is set, as a share of it."""


@dataclass(frozen=True)
class Rates:
    """US dollars per million tokens, for prompts of more than ``over`` tokens."""

    over: int
    input: float
    cache_write: float
    cache_read: float
    output: float


@dataclass(frozen=True)
class Price:
    """What one model costs: its rates, those for the largest prompts first."""

    rates: tuple[Rates, ...]

    def at(self, prompt_tokens: int) -> Rates:
        """The rates for a prompt of that size."""
        return next((rates for rates in self.rates if prompt_tokens > rates.over), self.rates[-1])

    def cost(self, usage: Usage) -> float:
        """US dollars for one request."""
        rates = self.at(usage.prompt)
        dollars = (
            usage.input * rates.input
            + usage.cache_write * rates.cache_write
            + usage.cache_read * rates.cache_read
            + usage.output * rates.output
        )
        return dollars / _PER


FREE = Price((Rates(0, 0.0, 0.0, 0.0, 0.0),))


@dataclass(frozen=True)
class PriceRow:
    """One row of a table: the rates of the models whose ids fit ``pattern`` (as for file names: ``*``, ``?``)."""

    pattern: str
    rates: Rates


def price_of(model: str, own: Sequence[PriceRow] = ()) -> Price | None:
    """What ``model`` costs, by the person's ``own`` rows or, where none fits, by the shipped table; None if unknown."""
    rows = (*own, *shipped_prices())
    pattern = next((row.pattern for row in rows if fnmatchcase(model, row.pattern)), None)
    if pattern is None:
        return None
    is_own = any(row.pattern == pattern for row in own)
    return Price(tuple(row.rates for row in (own if is_own else rows) if row.pattern == pattern))


@cache
def shipped_prices() -> tuple[PriceRow, ...]:
    """The rows of the shipped table.

    Raises: StateError when the installation's file is missing or damaged.
    """
    try:
        text = template_text(_FILE)
    except OSError as error:
        raise StateError(f"{template_path(_FILE)}: {error.strerror}; install tinyclaw again") from error
    return tuple(_shipped(cells, line) for line, cells in table_rows(text))


def own_prices(text: str) -> tuple[PriceRow, ...]:
    """Rows as a person sets them, separated by semicolons: a pattern, then input and output in US dollars per million.

    Two more figures give cache writes and cache reads; without them they are 1.25 and 0.1 times the input.

    Raises: ValueError in words for the person.
    """
    return tuple(_own(row.split()) for row in text.split(";") if row.strip())


def _shipped(cells: list[str], line: int) -> PriceRow:
    place = f"{template_path(_FILE)}:{line}"
    if len(cells) != _CELLS:
        raise StateError(f"{place}: {len(cells)} cells; a price has {_CELLS}")
    pattern, over, *figures = cells
    try:
        return PriceRow(pattern.strip("`"), Rates(int(over.replace(",", "")), *map(_dollars, figures)))
    except ValueError as error:
        raise StateError(f"{place}: {error}") from error


def _own(words: list[str]) -> PriceRow:
    pattern, *figures = words
    if len(figures) not in (2, 4):
        raise ValueError(
            f'prices: "{" ".join(words)}" is no price; write a model and US dollars per million tokens of input and '
            "output (and of cache writes and reads), as in: my-model* 0.50 2.50"
        )
    dollars = [_dollars(figure) for figure in figures]
    write, read = dollars[2:] or (dollars[0] * _WRITE, dollars[0] * _READ)
    return PriceRow(pattern, Rates(0, dollars[0], write, read, dollars[1]))


def _dollars(text: str) -> float:
    try:
        dollars = float(text.removeprefix("$"))
    except ValueError:
        dollars = -1.0
    if not 0 <= dollars < _PER:
        raise ValueError(f'"{text}" is no price in US dollars')
    return dollars
