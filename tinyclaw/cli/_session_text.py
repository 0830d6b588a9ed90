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


def session_text(recording: Recording, path: str) -> str:
    """Facts of the session, then a paragraph a turn."""
    header = recording.parsed.header
    conversation = recording.conversation()
    facts = [
        ("session", recording.session),
        ("title", header.get("title", "")),
        ("created", header.get("created", "")),
        ("transcript", path),
        ("requests", _spent_words(conversation.spent)),
        ("cache", _cache_words(recording.blocks, conversation.spent)),
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
    sent: dict[object, Block] = {}
    for block in blocks:
        if block.kind == "request":
            sent[block.attrs.get("n")] = block
        elif block.kind in ("reply", "side"):
            number = block.attrs.get("n")
            usage, cost = usage_of(block), cost_of(block)
            name = str(number) if block.kind == "reply" else str(block.attrs.get("what"))
            shown = "not known" if cost is None else dollars(cost)
            again = again_words(sent[number]) if block.kind == "reply" and number in sent else ""
            rows.append((name, f"{usage.prompt:,}", f"{usage.cache_read:,}", f"{usage.output:,}", shown, again))
    return "\n".join(line.rstrip() for line in table(rows, columns, right=(0, 1, 2, 3, 4)))


def again_words(request: Block) -> str:
    """Which part of the request before had to be sent again with this one, and why; "" when none."""
    again = request.attrs.get("again")
    if not isinstance(again, int):
        return ""
    return one_line(f"{again:,} tokens ({request.attrs.get('why')}: {request.attrs.get('what')})")


def _spent_words(spent: Spent) -> str:
    cost = dollars(spent.dollars) if spent.dollars or not spent.unpriced else ""
    unknown = f"{spent.unpriced} of a model without a known price" if spent.unpriced else ""
    return " · ".join(part for part in (str(spent.requests), usage_words(spent.usage), cost, unknown) if part)


def _cache_words(blocks: Sequence[Block], spent: Spent) -> str:
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
    return f"{share}; {tokens:,} tokens were sent again ({counts}); show --requests tells when and why"


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
