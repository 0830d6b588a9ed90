"""The person's limits on what one turn may use, checked before each request, those beside the conversation included."""

from __future__ import annotations

from dataclasses import dataclass

from tinyclaw.amounts import dollars
from tinyclaw.context.compiler import LEAST_OUTPUT_TOKENS
from tinyclaw.errors import LimitReached
from tinyclaw.model.prices import Price
from tinyclaw.types import Spent

_PER = 1_000_000
_MARGIN = 1.1
"""A prompt is an estimate: near a size from which on it costs more, the dearer rates are taken."""


@dataclass(frozen=True)
class Allowance:
    """Most requests and most US dollars of one turn; None for no limit."""

    requests: int | None = None
    dollars: float | None = None

    def check(self, spent: Spent) -> None:
        """Raises: LimitReached when nothing is left of what a turn may use."""
        if self.requests is not None and spent.requests >= self.requests:
            raise LimitReached(f"the limit of {self.requests} requests is reached")
        if self.dollars is not None and spent.dollars >= self.dollars:
            raise LimitReached(f"the limit of {dollars(self.dollars)} is reached")

    def answer_tokens(self, wanted: int, prompt: int, held: int, spent: Spent, price: Price | None) -> int:
        """The longest answer, of at most ``wanted`` tokens, with which a request cannot pass the limits.

        What the cache holds is taken as read from it, the rest as written to it.

        Args:
            prompt: the request's tokens, ``held`` those of them that the cache holds.
            spent: what the turn has used so far.

        Raises: LimitReached when there is no room for the request, with the shortest answer that is of any use.
        """
        self.check(spent)
        if self.dollars is None or price is None:
            return wanted
        rates = max(price.at(prompt), price.at(round(prompt * _MARGIN)), key=lambda each: each.input)
        asked = (held * rates.cache_read + (prompt - held) * rates.cache_write) / _PER
        left = self.dollars - spent.dollars - asked
        if rates.output == 0:
            return self._checked(wanted, left >= 0, spent, asked)
        room = int(left * _PER / rates.output)
        least = min(wanted, LEAST_OUTPUT_TOKENS)
        return self._checked(min(wanted, room), room >= least, spent, asked, least * rates.output / _PER)

    def _checked(self, tokens: int, fits: bool, spent: Spent, asked: float, answer: float = 0.0) -> int:
        if not fits:
            assert self.dollars is not None
            raise LimitReached(
                f"the next request might pass the limit of {dollars(self.dollars)}: {dollars(spent.dollars)} are "
                f"spent, it costs about {dollars(asked)} and a short answer {dollars(answer)}"
            )
        return tokens
