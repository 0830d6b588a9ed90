"""A recorded session in a few lines, or its requests in a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tinyclaw.agent.approval import questions
from tinyclaw.agent.recorded import Recording
from tinyclaw.amounts import dollars, usage_words
from tinyclaw.state.transcript.fold import conversation_of, cost_of, usage_of
from tinyclaw.state.transcript.grammar import Block
from tinyclaw.types import Spent
from tinyclaw.width import harmless, one_line, table

_NOTABLE_TOKENS = 1_000
"""What the cache holds is an estimate; less than this is no miss."""


def session_text(recording: Recording, path: str, *, is_detailed: bool = False) -> str:
    """Facts of the session, then a paragraph a turn. ``is_detailed``: the table of requests follows."""
    header = recording.parsed.header
    conversation = recording.conversation()
    facts = [
        ("session", recording.session),
        ("title", header.get("title", "")),
        ("created", header.get("created", "")),
        ("transcript", path),
        ("requests", _spent_words(conversation.spent)),
        ("cache", _cache_words(recording.blocks, conversation.spent, is_detailed=is_detailed)),
    ]
    lines = [f"{name + ':':<12}{one_line(value)}" for name, value in facts if value]
    asked = questions(recording.blocks)
    for call in conversation.asked_calls:
        first, *rest = harmless(asked.get(call.id, call.name)).split("\n")
        lines += [f"{'waits for:':<12}permission: {first}", *(f"  │ {line}" for line in rest if line.strip())]
    if conversation.asked_calls:
        lines.append(f"{'':<12}allow it: tinyclaw approve {facts[0][1]}; refuse it: add --deny")
    return "\n".join([*lines, *_turns(recording.blocks)])


def requests_text(blocks: Sequence[Block], columns: int) -> str:
    """A line for each request, those beside the conversation included: tokens, cost, what was sent again and why."""
    rows = [("request", "in", "from cache", "out", "cost", "sent again")]
    sent: dict[str, Block] = {}
    for block in blocks:
        if block.kind == "request":
            sent[str(block.attrs.get("n"))] = block
        elif block.kind in ("reply", "side"):
            number = str(block.attrs.get("n"))
            usage, cost = usage_of(block), cost_of(block)
            name = number if block.kind == "reply" else str(block.attrs.get("what"))
            shown = "not known" if cost is None else dollars(cost)
            again = again_words(sent[number] if block.kind == "reply" and number in sent else block, block)
            rows.append(
                (one_line(name), f"{usage.prompt:,}", f"{usage.cache_read:,}", f"{usage.output:,}", shown, again)
            )
    return "\n".join(line.rstrip() for line in table(rows, columns, right=(0, 1, 2, 3, 4)))


def again_words(request: Block, reply: Block | None) -> str:
    """What of the request before had to be sent again with this one, and why; "" when nothing.

    Beside what was known when it was sent: what the provider's cache should have held and, by the reply, did not.
    """
    again, held = request.attrs.get("again"), request.attrs.get("held")
    words = []
    if isinstance(again, int):
        words.append(f"{again:,} tokens ({request.attrs.get('why')}: {request.attrs.get('what')})")
    missed = held - usage_of(reply).cache_read if isinstance(held, int) and reply is not None else 0
    if isinstance(held, int) and missed > max(_NOTABLE_TOKENS, held // 10):
        words.append(f"about {missed:,} tokens (the provider's cache did not hold them)")
    return one_line("; ".join(words))


def _spent_words(spent: Spent) -> str:
    cost = dollars(spent.dollars) if spent.dollars or not spent.unpriced else ""
    unknown = f"{spent.unpriced} of a model without a known price" if spent.unpriced else ""
    return " · ".join(part for part in (str(spent.requests), usage_words(spent.usage), cost, unknown) if part)


def _cache_words(blocks: Sequence[Block], spent: Spent, *, is_detailed: bool) -> str:
    """How much of all prompts the cache served, and how often part of one was sent again."""
    if not spent.usage.prompt:
        return ""
    causes: Counter[str] = Counter()
    tokens = 0
    for block in blocks:
        if block.kind == "request" and isinstance(block.attrs.get("again"), int):
            causes[str(block.attrs.get("why"))] += 1
            tokens += block.attrs["again"]
    share = f"{spent.usage.cache_read / spent.usage.prompt:.0%} read from it"
    if not causes:
        return share
    counts = ", ".join(f"{cause} {count}" for cause, count in causes.most_common())
    more = "" if is_detailed else "; show --requests tells when and why"
    return f"{share}; {tokens:,} tokens were sent again ({counts}){more}"


def _turns(blocks: tuple[Block, ...]) -> Iterator[str]:
    calls = start = 0
    answer = ""
    for at, block in enumerate(blocks):
        is_text = block.kind == "text"
        if (is_text and block.attrs.get("role") == "user" and block.box is not None) or block.kind == "outside":
            yield ""
            yield f"> {one_line(block.text)}{' (taken out of the conversation)' if block.box is False else ''}"
        elif is_text and block.attrs.get("role") == "assistant":
            answer = block.text
        elif block.kind == "tool_use":
            calls += 1
        elif block.kind == "turn_end":
            spent = conversation_of(blocks[start:at]).spent
            cost = "" if spent.cost_usd is None else f" for {dollars(spent.cost_usd)}"
            reason = str(block.attrs.get("reason", "done"))
            yield f"  {_count(spent.requests, 'request')}{cost}, {_count(calls, 'tool call')}, ended: {reason}"
            if answer.strip():
                yield f"  {one_line(answer)}"
            calls, start, answer = 0, at + 1, ""


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' if number != 1 else ''}"
