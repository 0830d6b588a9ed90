"""What went into a request: every block with its file, lines, revision and cost, and what was left out and why.

The transcript records a manifest as the difference from the request before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from tinyclaw.types import Json

Place = Literal["tools", "prefix", "event", "conversation", "out"]
_COUNTED = ("tools", "prefix", "conversation")
"""What is stated as an event is part of the conversation."""


@dataclass(frozen=True)
class Entry:
    """One block. ``tokens`` is its estimated cost, ``note`` what was cut, or why it is out."""

    place: Place
    tokens: int
    file: str = ""
    lines: str = ""
    revision: str = ""
    note: str = ""

    @classmethod
    def from_json(cls, data: object) -> Entry:
        """What ``to_json`` gave."""
        facts: Json = data if isinstance(data, dict) else {}
        place: Place = facts["in"] if facts.get("in") in get_args(Place) else "out"
        tokens = facts.get("tokens")
        texts = (str(facts.get(key, "")) for key in ("file", "lines", "rev", "note"))
        return cls(place, tokens if isinstance(tokens, int) else 0, *texts)

    def to_json(self) -> Json:
        """The entry without its empty fields."""
        fields: Json = {"file": self.file, "lines": self.lines, "rev": self.revision, "note": self.note}
        return {"in": self.place, "tokens": self.tokens, **{key: value for key, value in fields.items() if value}}


@dataclass(frozen=True)
class Manifest:
    """All entries by id, the request's size in tokens, and whether that was corrected by reported usage.

    ``chars`` is the request's length as JSON, from which later estimates are corrected.
    """

    entries: dict[str, Entry]
    tokens: int
    chars: int
    corrected: bool

    @classmethod
    def from_json(cls, data: Json) -> Manifest:
        """A whole manifest as the fold over a transcript gives it; what a person broke in it is left out."""
        entries = {name: Entry.from_json(entry) for name, entry in data.get("blocks", {}).items()}
        tokens, chars = (value if isinstance(value := data.get(key), int) else 0 for key in ("tokens", "chars"))
        return cls(entries, tokens, chars, data.get("basis") == "reported")

    def scaled(self) -> Manifest:
        """For people: the entries scaled so that those which count once add up to the total.

        As recorded they are estimates by one ratio, so that what did not change does not differ.
        """
        counted = sum(entry.tokens for entry in self.entries.values() if entry.place in _COUNTED)
        scale = self.tokens / counted if counted else 1.0
        entries = {name: replace(entry, tokens=round(entry.tokens * scale)) for name, entry in self.entries.items()}
        return replace(self, entries=entries)

    def to_json(self) -> Json:
        """The whole manifest: ``blocks`` maps ids to entries."""
        basis = "reported" if self.corrected else "estimated"
        blocks = {name: entry.to_json() for name, entry in self.entries.items()}
        return {"tokens": self.tokens, "chars": self.chars, "basis": basis, "blocks": blocks}

    def difference(self, before: Json) -> Json:
        """What a request's record holds: the change from ``before``, itself a whole manifest as JSON."""
        whole = self.to_json()
        blocks, known = whole.pop("blocks"), before.get("blocks", {})
        changed = {name: entry for name, entry in blocks.items() if known.get(name) != entry}
        gone = sorted(set(known) - set(blocks))
        return {**whole, **({"set": changed} if changed else {}), **({"drop": gone} if gone else {})}
