"""The simulated prompt cache reports what the API would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.messages_api.cache import MINIMUM_TOKENS, PromptCache, measure

Json = dict[str, Any]
BLOCK_CHARS = 6000


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def request(*texts: str, marks: tuple[int, ...] = (-1,), ttl: str | None = None, **fields: Any) -> Json:
    """One user message with a text block for each text, marked at ``marks``."""
    blocks: list[Json] = [{"type": "text", "text": text} for text in texts]
    for mark in marks:
        blocks[mark]["cache_control"] = {"type": "ephemeral"} | ({"ttl": ttl} if ttl else {})
    return {"model": "m", "messages": [{"role": "user", "content": blocks}], **fields}


def big(letter: str) -> str:
    return letter * BLOCK_CHARS


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> PromptCache:
    return PromptCache(clock)


def split(cache: PromptCache, body: Json) -> tuple[int, int, int]:
    """(input, written, read) tokens."""
    usage = cache.account(measure(body))
    return usage["input_tokens"], usage["cache_creation_input_tokens"], usage["cache_read_input_tokens"]


def test_a_prefix_is_written_once_and_then_read(cache: PromptCache):
    first, second = big("a"), big("b")
    _, written, read = split(cache, request(first))
    assert (written > BLOCK_CHARS // 4, read) == (True, 0)
    rest, more, again = split(cache, request(first, second))
    assert (rest, again) == (0, written)
    assert more == measure(request(first, second)).tokens - written


def test_what_follows_the_last_mark_is_plain_input(cache: PromptCache):
    body = request(big("a"), big("b"), marks=(0,))
    rest, written, _ = split(cache, body)
    assert rest + written == measure(body).tokens
    assert rest > BLOCK_CHARS // 4


def test_marks_themselves_are_not_part_of_the_prefix(cache: PromptCache):
    _, written, _ = split(cache, request(big("a")))
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": big("r")}]}
    body = request(big("a"), marks=(0,))
    body["messages"][0]["content"].append(result | {"cache_control": {"type": "ephemeral"}})
    plain = request(big("a"), marks=())
    plain["messages"][0]["content"].append(result)
    assert split(cache, body)[2] == written
    assert measure(body).digests == measure(plain).digests


def test_a_string_is_the_same_as_one_text_block():
    body = request("hello", marks=())
    assert measure(body | {"messages": [{"role": "user", "content": "hello"}]}).digests == measure(body).digests


def test_below_the_minimum_nothing_is_cached(cache: PromptCache):
    body = request("x" * (MINIMUM_TOKENS * 4 - 100))
    assert split(cache, body) == split(cache, body) == (measure(body).tokens, 0, 0)


def test_an_entry_lives_five_minutes_and_a_hit_refreshes_it(cache: PromptCache, clock: Clock):
    body = request(big("a"))
    _, tokens, _ = split(cache, body)
    clock.now = 299
    assert split(cache, body)[2] == tokens
    clock.now = 299 + 299
    assert split(cache, body)[2] == tokens
    clock.now += 300
    assert split(cache, body) == (0, tokens, 0)


def test_an_entry_of_an_hour_lives_an_hour_and_is_reported_apart(cache: PromptCache, clock: Clock):
    body = request(big("a"), ttl="1h")
    usage = cache.account(measure(body))
    assert usage["cache_creation"] == {
        "ephemeral_5m_input_tokens": 0,
        "ephemeral_1h_input_tokens": usage["cache_creation_input_tokens"],
    }
    clock.now = 3599
    assert split(cache, body)[1] == 0


@pytest.mark.parametrize(("blocks_later", "hit"), [(19, True), (20, False)])
def test_a_mark_looks_back_over_twenty_positions(cache: PromptCache, blocks_later: int, hit: bool):
    _, written, _ = split(cache, request(big("a")))
    later = [f"step {number}" for number in range(blocks_later)]
    assert split(cache, request(big("a"), *later))[2] == (written if hit else 0)


def test_an_earlier_mark_finds_what_a_later_one_no_longer_reaches(cache: PromptCache):
    _, written, _ = split(cache, request(big("a")))
    later = [f"step {number}" for number in range(40)]
    assert split(cache, request(big("a"), *later, marks=(0, -1)))[2] == written


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"model": "other"}, "nothing"),
        ({"tools": [{"name": "other", "input_schema": {}}]}, "nothing"),
        ({"system": "other"}, "tools"),
        ({"tool_choice": {"type": "none"}}, "system"),
        ({"thinking": {"type": "adaptive"}}, "system"),
        ({"tool_choice": {"type": "auto"}}, "messages"),
        ({"max_tokens": 7}, "messages"),
    ],
)
def test_a_change_voids_its_own_level_and_those_after_it(cache: PromptCache, change: Json, kept: str):
    tools = [{"name": "t", "description": big("t"), "input_schema": {}, "cache_control": {"type": "ephemeral"}}]
    system = [{"type": "text", "text": big("s"), "cache_control": {"type": "ephemeral"}}]
    body = request(big("m"), tools=tools, system=system)
    prompt = measure(body)
    cache.account(prompt)
    expected = {"nothing": 0, "tools": prompt.tokens_at(0), "system": prompt.tokens_at(1), "messages": prompt.tokens}
    assert split(cache, body | change)[2] == expected[kept]


def test_the_automatic_mark_stands_on_the_last_block(cache: PromptCache):
    body = request(big("a"), marks=()) | {"cache_control": {"type": "ephemeral"}}
    assert split(cache, body)[1] == measure(body).tokens


@given(sizes=st.lists(st.integers(1, 9000), min_size=1, max_size=30), data=st.data())
def test_every_token_is_counted_exactly_once(sizes: list[int], data: st.DataObject):
    cache = PromptCache(Clock())
    for end in range(1, len(sizes) + 1):
        texts = [f"{size}".ljust(size, "x") for size in sizes[:end]]
        marks = data.draw(st.sets(st.integers(0, end - 1), max_size=4))
        body = request(*texts, marks=tuple(marks))
        figures = split(cache, body)
        assert sum(figures) == measure(body).tokens
        assert min(figures) >= 0
