"""Tokens and money in words."""

from __future__ import annotations

from tinyclaw.types import Usage

_SMALLEST = 0.0001


def usage_words(usage: Usage) -> str:
    """Tokens in words: ``1,234 in (1,000 cached) · 56 out``."""
    cached = f" ({usage.cache_read:,} cached)" if usage.cache_read else ""
    return f"{usage.prompt:,} in{cached} · {usage.output:,} out"


def dollars(amount: float) -> str:
    """US dollars with four decimals below one dollar, else with two."""
    if 0 < amount < _SMALLEST:
        return f"<${_SMALLEST}"
    return f"${amount:.4f}" if 0 < amount < 1 else f"${amount:,.2f}"
