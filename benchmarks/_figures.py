"""How figures are shown: a median, and between which values the middle half of the runs lies."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def milliseconds(seconds: Sequence[float]) -> str:
    """``12.3 ms (11.0 to 14.9)`` of some measured seconds, at least two."""
    low, middle, high = (value * 1000 for value in statistics.quantiles(seconds, n=4, method="inclusive"))
    digits = 0 if middle >= 100 else 1
    return f"{middle:.{digits}f} ms ({low:.{digits}f} to {high:.{digits}f})"


def ratio(over: Sequence[float], under: Sequence[float]) -> str:
    """``1.23x`` of two medians."""
    return f"{statistics.median(over) / statistics.median(under):.2f}x"
