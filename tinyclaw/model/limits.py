"""What servers say of their models' limits, kept at user level so that a session need not wait for the answer.

A server is asked beside the work, once a conversation has grown or a model is not known, and again after a week. The
file is a Markdown table that people can read, edit and delete.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from tinyclaw.errors import StateError
from tinyclaw.state.files import read, write
from tinyclaw.templates import table_rows

FILE = "MODELS.md"
FRESH_DAYS = 7
_MAX_BYTES = 1 << 20
_CELLS = 5
_HEAD = """\
# Models

What servers say of their models, in tokens. tinyclaw asks a server when a conversation grows, and again a week after
the date. Change a row, or delete the file to have all asked again.

| server | model | context window | max output | date |
|---|---|---:|---:|---|
"""


@dataclass(frozen=True)
class Limits:
    """A model's context window and longest answer, in tokens."""

    context_window: int
    max_output: int


@dataclass(frozen=True)
class _Row:
    server: str
    model: str
    limits: Limits
    asked: str

    def __str__(self) -> str:
        window, output = f"{self.limits.context_window:,}", f"{self.limits.max_output:,}"
        return f"| {self.server} | `{self.model}` | {window} | {output} | {self.asked} |"


class LimitsFile:
    """The file in ``folder``, and what it says of one ``server``, a base URL without credentials."""

    def __init__(self, folder: Path, server: str) -> None:
        self._path = folder / FILE
        self._server = server

    def of(self, model: str) -> Limits | None:
        """The limits of a model; None when they are not known."""
        return next((row.limits for row in self._own_rows() if row.model == model), None)

    def is_fresh(self, today: date) -> bool:
        """Whether the server was asked within the last week."""
        asked = max((row.asked for row in self._own_rows()), default="")
        try:
            return abs((today - date.fromisoformat(asked)).days) < FRESH_DAYS
        except ValueError:
            return False

    def learn(self, found: Mapping[str, Limits], today: date) -> None:
        """Keep what the server says now, in the place of what it said before. Raises: StateError."""
        there = read(self._path, limit_bytes=_MAX_BYTES)
        others = [row for row in _rows(there.data) if row.server != self._server]
        own = [_Row(self._server, model, limits, today.isoformat()) for model, limits in sorted(found.items())]
        text = _HEAD + "".join(f"{row}\n" for row in (*others, *own))
        write(self._path, text.encode(), base=there)

    def _own_rows(self) -> list[_Row]:
        try:
            data = read(self._path, limit_bytes=_MAX_BYTES).data
        except StateError:  # without it the shipped table holds
            return []
        return [row for row in _rows(data) if row.server == self._server]


def limits_from(answer: object) -> dict[str, Limits]:
    """The limits in the answer to ``GET /v1/models`` (https://platform.claude.com/docs/en/api/models-list).

    Models of which it says none, as other servers' lists do, are left out.
    """
    listed = answer.get("data") if isinstance(answer, dict) else None
    found = {}
    for model in listed if isinstance(listed, list) else ():
        facts = model if isinstance(model, dict) else {}
        name, window, output = facts.get("id"), _count(facts.get("max_input_tokens")), _count(facts.get("max_tokens"))
        if isinstance(name, str) and not set(name) & {"|", "`", "\n"} and window and output:
            found[name] = Limits(window, output)
    return found


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _rows(data: bytes | None) -> list[_Row]:
    """The rows of the file; one that a person broke is left out."""
    found = []
    for _, cells in table_rows((data or b"").decode("utf-8-sig", "replace").replace("\r\n", "\n")):
        if len(cells) != _CELLS:
            continue
        window, output = (cell.replace(",", "") for cell in cells[2:4])
        if window.isdecimal() and output.isdecimal() and int(window) and int(output):
            limits = Limits(int(window), int(output))
            found.append(_Row(cells[0], cells[1].strip("`"), limits, cells[4]))
    return found
