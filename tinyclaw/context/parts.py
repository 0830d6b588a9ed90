"""What a request is made of, by kind and by origin, and how much of it the provider's cache holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tinyclaw.context.wire import SUMMARY, stated_path
from tinyclaw.state.transcript.fold import canonical
from tinyclaw.types import Json, Request

TOOLS, STATED, PERSON, MODEL, RESULTS, SUMMARIES = (
    "tools",
    "files as stated",
    "you",
    "the model",
    "results",
    "the summary",
)


@dataclass(frozen=True)
class Part:
    """All that comes from one origin: a source of the prefix by its id, a file, a call (``read src/a.py``), a speaker.

    ``kind`` groups origins, ``file`` is the stated file. ``tokens`` are estimated, ``cached`` those of them that the
    cache holds. ``is_pinned``: it stands in the prefix.
    """

    kind: str
    name: str
    tokens: int
    cached: int
    file: str = ""
    is_pinned: bool = False


def parts_of(request: Request, sources: Sequence[str], tokens: int, cached: int) -> list[Part]:
    """The parts of a request of that many ``tokens``, whose first ``cached`` ones the cache holds; they add up.

    ``sources`` are the ids of the system blocks. Parts of the prefix come first, in order, then the largest first.
    """
    pieces = [*_pinned(request, sources), *_said(request.messages)]
    whole = max(1, sum(length for _, length in pieces))
    found: dict[tuple[str, str], Part] = {}
    chars = end = 0
    for part, length in pieces:
        start, chars = end, chars + length
        end = round(tokens * chars / whole)
        held = max(0, min(end, cached) - start)
        known = found.get((part.kind, part.name), part)
        found[part.kind, part.name] = replace(known, tokens=known.tokens + end - start, cached=known.cached + held)
    return sorted(found.values(), key=lambda part: (not part.is_pinned, 0 if part.is_pinned else -part.tokens))


def _pinned(request: Request, sources: Sequence[str]) -> Iterator[tuple[Part, int]]:
    yield Part(TOOLS, TOOLS, 0, 0, is_pinned=True), len(canonical(request.tools))
    for index, block in enumerate(request.system):
        name = sources[index] if index < len(sources) else f"part {index + 1}"
        yield Part(name.partition(":")[0], name, 0, 0, is_pinned=True), len(canonical(_unmarked(block)))


def _said(messages: Iterable[Json]) -> Iterator[tuple[Part, int]]:
    calls: dict[str, str] = {}
    for message in messages:
        for block in message["content"]:
            if block["type"] == "tool_use":
                calls[block["id"]] = _headline(block)
            yield _part(block, message["role"], calls), len(canonical(_unmarked(block)))


def _part(block: Json, role: str, calls: dict[str, str]) -> Part:
    kind = block["type"]
    if kind == "tool_result":
        return Part(RESULTS, calls.get(block["tool_use_id"], RESULTS), 0, 0)
    if role == "assistant":
        name = {"text": "what the model said", "tool_use": "the model's calls"}.get(kind, f"the model's {kind}")
        return Part(MODEL, name, 0, 0)
    text = str(block.get("text", ""))
    if path := stated_path(text):
        return Part(STATED, f"state of {path}", 0, 0, path)
    return Part(SUMMARIES, SUMMARIES, 0, 0) if text.startswith(SUMMARY) else Part(PERSON, "what you said", 0, 0)


def _unmarked(block: Json) -> Json:
    return {key: value for key, value in block.items() if key != "cache_control"}


def _headline(call: Json) -> str:
    first = next((value for value in call["input"].values() if isinstance(value, str)), json.dumps(call["input"]))
    return f"{call['name']} {first}".split("\n", 1)[0].strip()
