"""Records that say nearly the same, or something else under nearly the same name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from tinyclaw.state.memory.record import Record, identity, words_of

_ALIKE = 0.6
"""The share of their words that two texts have in common when they say nearly the same."""
_RAREST = 4
_MOST_IN_BUCKET = 50


def near_duplicates(records: Sequence[Record]) -> list[list[Record]]:
    """Groups of records of one type whose texts have most words in common; each record is in one group at most."""
    leader: dict[str, str] = {}
    by_slug = {record.slug: record for record in records}
    for first, second in _alike(records, lambda record: f"{record.name} {record.text}"):
        leader[_leader(leader, second.slug)] = _leader(leader, first.slug)
    groups: dict[str, list[Record]] = defaultdict(list)
    for slug in by_slug:
        groups[_leader(leader, slug)].append(by_slug[slug])
    return [group for group in groups.values() if len(group) > 1]


def contradictions(records: Sequence[Record]) -> list[tuple[Record, Record]]:
    """Pairs of one type that are called nearly, not wholly, the same, and whose texts have little in common."""
    pairs = _alike(records, lambda record: record.name)
    return [
        (first, second)
        for first, second in pairs
        if identity(first.name) != identity(second.name) and _share(_words(first.text), _words(second.text)) < _ALIKE
    ]


def _alike(records: Sequence[Record], text: Callable[[Record], str]) -> Iterator[tuple[Record, Record]]:
    """Pairs with most words in common. Only those are compared that share one of their rarest words."""
    words = {record.slug: _words(text(record)) for record in records}
    counts = Counter(word for each in words.values() for word in each)
    buckets: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        shared = sorted((counts[word], word) for word in words[record.slug] if counts[word] > 1)
        for _, word in shared[:_RAREST]:
            buckets[record.type, word].append(record)
    seen: set[tuple[str, str]] = set()
    for bucket in buckets.values():
        for first, second in combinations(bucket[:_MOST_IN_BUCKET], 2):
            pair = (first.slug, second.slug)
            if pair not in seen and _are_alike(words[first.slug], words[second.slug]):
                seen.add(pair)
                yield first, second


def _words(text: str) -> frozenset[str]:
    return frozenset(words_of(text))


def _are_alike(first: frozenset[str], second: frozenset[str]) -> bool:
    """Other figures are another fact, however alike the words are."""
    figures = [{word for word in each if any(map(str.isdigit, word))} for each in (first, second)]
    return figures[0] == figures[1] and _share(first, second) >= _ALIKE


def _share(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / max(1, len(first | second))


def _leader(leader: dict[str, str], slug: str) -> str:
    while slug in leader and leader[slug] != slug:
        slug = leader[slug]
    return slug
