"""Prompt size and prompt cache, as the API reports them in ``usage``.

A token is four characters of compact JSON. Caching follows
https://platform.claude.com/docs/en/build-with-claude/prompt-caching: the prefix runs through tools, system and
messages; an entry is written at each mark and nowhere else; a mark looks back over 20 positions, its own
included; a hit refreshes the entry. The model is part of every prefix, tool_choice and thinking of the
messages' part. Key order counts, as it does for the API: a client that shuffles keys misses the cache.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

Json = dict[str, Any]

CHARS_PER_TOKEN = 4
LOOKBACK_BLOCKS = 20
MINIMUM_TOKENS = 1024
TTL_SECONDS = {"5m": 300.0, "1h": 3600.0}


class Mark(NamedTuple):
    """A cache_control mark: the position of its block and how long an entry lives."""

    position: int
    ttl: str


@dataclass
class Prompt:
    """The blocks of a request in cache order, each with the digest and the size of the prefix that it ends."""

    digests: list[bytes] = field(default_factory=list)
    chars: list[int] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    _salt: bytes = b""

    @property
    def tokens(self) -> int:
        return self.tokens_at(len(self.chars) - 1) if self.chars else 0

    def tokens_at(self, position: int) -> int:
        return self.chars[position] // CHARS_PER_TOKEN

    def salt(self, value: object) -> None:
        """Let what follows depend on a value that is no block and has no size."""
        self._salt = _compact(value)

    def add(self, level: str, block: Json) -> None:
        bare, ttl = _unmarked(block)
        data = _compact(bare)
        before = self.digests[-1] if self.digests else b""
        self.digests.append(blake2b(b"%b\0%b\0%b\0%b" % (before, self._salt, level.encode(), data)).digest())
        self.chars.append((self.chars[-1] if self.chars else 0) + len(data))
        self._salt = b""
        if ttl:
            self.marks.append(Mark(len(self.digests) - 1, ttl))


def measure(body: Json) -> Prompt:
    """The prompt of a request that keeps the rules; one pass over its blocks."""
    prompt = Prompt()
    prompt.salt(body.get("model"))
    for tool in body.get("tools") or ():
        prompt.add("tools", tool)
    for block in as_blocks(body.get("system") or ()):
        prompt.add("system", block)
    prompt.salt([body.get("model"), body.get("tool_choice") or {"type": "auto"}, body.get("thinking")])
    for message in body["messages"]:
        for block in as_blocks(message["content"]):
            prompt.add(message["role"], block)
    if body.get("cache_control") and prompt.digests:
        prompt.marks.append(Mark(len(prompt.digests) - 1, body["cache_control"].get("ttl") or "5m"))
    return prompt


def as_blocks(content: Any) -> list[Json]:
    """Content as blocks: a string is short for one text block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


class PromptCache:
    """The prefixes that are cached now. ``clock`` gives seconds; the lock keeps entries and usage consistent."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[bytes, tuple[float, str]] = {}

    def account(self, prompt: Prompt) -> Json:
        """Serve the prompt: the input part of its usage. Reads, refreshes and writes entries."""
        with self._lock:
            now = self._clock()
            read = max((self._read(prompt, mark.position, now) for mark in prompt.marks), default=0)
            written = self._write(prompt, read, now)
        cached = read + sum(written.values())
        return {
            "input_tokens": prompt.tokens - cached,
            "cache_creation_input_tokens": sum(written.values()),
            "cache_read_input_tokens": read,
            "cache_creation": {f"ephemeral_{ttl}_input_tokens": tokens for ttl, tokens in written.items()},
        }

    def _read(self, prompt: Prompt, mark: int, now: float) -> int:
        for position in range(mark, max(-1, mark - LOOKBACK_BLOCKS), -1):
            expires, ttl = self._entries.get(prompt.digests[position], (0.0, ""))
            if ttl and expires > now:
                self._entries[prompt.digests[position]] = (now + TTL_SECONDS[ttl], ttl)
                return prompt.tokens_at(position)
        return 0

    def _write(self, prompt: Prompt, read: int, now: float) -> dict[str, int]:
        written = dict.fromkeys(TTL_SECONDS, 0)
        done = read
        for position, ttl in prompt.marks:
            tokens = prompt.tokens_at(position)
            if tokens >= MINIMUM_TOKENS and tokens > done:
                self._entries[prompt.digests[position]] = (now + TTL_SECONDS[ttl], ttl)
                written[ttl] += tokens - done
                done = tokens
        return written


def _unmarked(block: Json) -> tuple[Json, str]:
    """The block without cache_control, its own and that of blocks inside it; and the mark's time to live, if any."""
    marks = list(_marks(block))
    if not marks:
        return block, ""
    bare = {key: value for key, value in block.items() if key != "cache_control"}
    if isinstance(bare.get("content"), list):
        bare["content"] = [{k: v for k, v in inner.items() if k != "cache_control"} for inner in bare["content"]]
    return bare, marks[-1].get("ttl") or "5m"


def _marks(block: Json) -> Iterator[Json]:
    inner = block.get("content")
    for holder in (*(inner if isinstance(inner, list) else ()), block):
        if holder.get("cache_control"):
            yield holder["cache_control"]


def _compact(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
