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
_MOST_DIGITS = 9
_HEAD = """\
# Models

What servers say of their models, in tokens. tinyclaw asks a server when a conversation grows, and again a week after
the date. Change a row, or delete the file to have all asked again.

| server | model | context window | max output | date |
|---|---|---:|---:|---|
"""
_TABLE_HEAD = _HEAD.split("\n")[-3]


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
        """Keep what the server says now: in the rows of its models, others behind them. All else stays as it is.

        Raises: StateError when the file is no UTF-8 text, or cannot be written.
        """
        there = read(self._path, limit_bytes=_MAX_BYTES)
        try:
            text = (there.data or _HEAD.encode()).decode("utf-8")
        except UnicodeDecodeError as error:
            raise StateError(f"{self._path}: is not UTF-8, and is left as it is; save it as UTF-8") from error
        newline = "\r\n" if "\r\n" in text else "\n"
        lines = text.split(newline)
        left = {model: str(_Row(self._server, model, limits, today.isoformat())) for model, limits in found.items()}
        if _TABLE_HEAD not in lines:
            lines += [*([""] if lines[-1] else []), *_HEAD.rstrip("\n").split("\n")[-2:], ""]
        last = lines.index(_TABLE_HEAD)
        while last + 1 < len(lines) and lines[last + 1].startswith("|"):
            last += 1
        for at, line in enumerate(lines):
            row = _row([cell.strip() for cell in line.strip().strip("|").split("|")]) if line.startswith("|") else None
            if row is not None and row.server == self._server and row.model in left:
                lines[at] = left.pop(row.model)
        lines[last + 1 : last + 1] = [left[model] for model in sorted(left)]
        write(self._path, newline.join(lines).encode(), base=there)

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
    text = (data or b"").decode("utf-8-sig", "replace").replace("\r\n", "\n")
    return [row for _, cells in table_rows(text) if (row := _row(cells)) is not None]


def _row(cells: list[str]) -> _Row | None:
    if len(cells) != _CELLS:
        return None
    window, output = (_number(cell) for cell in cells[2:4])
    return _Row(cells[0], cells[1].strip("`"), Limits(window, output), cells[4]) if window and output else None


def _number(text: str) -> int:
    """Tokens as people write them; 0 for what is none."""
    plain = text.replace(",", "").replace("_", "")
    return int(plain) if plain.isdecimal() and len(plain) <= _MOST_DIGITS else 0
