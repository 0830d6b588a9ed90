"""A request as people look at it: its parts, what the cache holds of them, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tinyclaw.agent.session import Session
from tinyclaw.context.clearing import WaterMarks
from tinyclaw.context.compiler import WorkingSet
from tinyclaw.context.manifest import Manifest
from tinyclaw.context.parts import Part, parts_of
from tinyclaw.model.prices import Price
from tinyclaw.state.transcript.prefixes import Prefix
from tinyclaw.types import Request, Usage


@dataclass(frozen=True)
class View:
    """A request, its prefix and manifest, and what it is measured by.

    ``cached_tokens``: so many, from its beginning, the provider's cache holds. ``price`` is None where not known.
    """

    request: Request
    prefix: Prefix
    manifest: Manifest
    window_tokens: int
    marks: WaterMarks
    cached_tokens: int
    price: Price | None

    @cached_property
    def parts(self) -> Sequence[Part]:
        """What it is made of; the tokens add up to the manifest's."""
        return parts_of(
            self.request, [block.id for block in self.prefix.blocks], self.manifest.tokens, self.cached_tokens
        )

    def cost_usd(self, tokens: int, cached: int) -> float | None:
        """What so many of its tokens cost, those that the cache holds and the others."""
        if self.price is None:
            return None
        rates = self.price.at(self.manifest.tokens)
        cached = min(cached, tokens)
        return Price((rates,)).cost(Usage(cache_read=cached, cache_write=tokens - cached))


def next_view(session: Session, working: WorkingSet) -> View:
    """The view of an open session's next request."""
    held = session.reuse(working).tokens
    window = session.target.window_tokens
    return View(working.request, working.prefix, working.manifest, window, session.marks, held, session.price)
