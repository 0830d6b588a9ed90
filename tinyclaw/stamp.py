"""Times as they are written in files."""

from __future__ import annotations

from datetime import datetime


def stamp(moment: datetime) -> str:
    """A time with a zone as RFC 3339, in whole seconds."""
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
