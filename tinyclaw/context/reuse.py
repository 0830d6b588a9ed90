"""What the provider's cache holds of a request from the one before it, and why the rest has to be sent again.

The cache holds a request from its beginning to a mark (tools, system, messages), so whatever changes early
costs all that follows (https://platform.claude.com/docs/en/build-with-claude/prompt-caching).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Literal

from tinyclaw.context.compiler import WorkingSet
from tinyclaw.state.transcript.fold import Message
from tinyclaw.state.transcript.prefixes import Prefix

HELD_SECONDS = 300
"""So long the cache holds what was last used, by the marks that are set here."""

Cause = Literal["unknown", "model", "expired", "prefix", "summary", "cleared", "edited"]


@dataclass(frozen=True)
class Sent:
    """A request that was answered: its model, prefix and messages, its size in tokens and characters, its time.

    ``is_edited``: the transcript no longer says what was sent, so ``messages`` are not known.
    """

    model: str
    prefix: Prefix
    messages: tuple[Message, ...]
    tokens: int
    chars: int
    at: datetime
    is_edited: bool = False

    @classmethod
    def of(cls, working: WorkingSet, at: datetime) -> Sent:
        """``working``, sent ``at`` that time."""
        manifest = working.manifest
        model = working.request.model
        return cls(model, working.prefix, working.messages, manifest.tokens, manifest.chars, at)


@dataclass(frozen=True)
class Reuse:
    """``tokens`` that the cache should hold; ``again`` those of the last request that are sent and paid for once more.

    ``why`` is empty where the cache holds all of the last request; ``what`` says more.
    """

    tokens: int
    again: int = 0
    why: Cause | Literal[""] = ""
    what: str = ""


def reuse(before: Sent | None, working: WorkingSet, at: datetime, known: int) -> Reuse:
    """What ``working``, sent ``at`` that time, has in common with the request ``before``; None if not at hand.

    ``known``: the tokens of the session's last request, 0 when it has had none.
    """
    if before is None:
        again = min(known, working.manifest.tokens)
        return Reuse(0, again, "unknown", "what was sent before cannot be rebuilt") if known else Reuse(0)
    tokens = _Tokens(working)
    cause, what = _whole_loss(before, working, at)
    if cause:
        kept = [*_common(before, working.messages), *([working.prefix.length] if cause != "prefix" else [])]
        return Reuse(0, tokens.of(sum(kept)), cause, what)
    if before.is_edited:
        again = min(before.tokens, working.manifest.tokens) - tokens.of(working.prefix.length)
        return Reuse(tokens.of(working.prefix.length), max(0, again), "edited", "the transcript, since then")
    same = sum(1 for _ in takewhile(_equal, zip(before.messages, working.messages, strict=False)))
    held = tokens.of(working.prefix.length + sum(message.length for message in working.messages[:same]))
    if same == len(before.messages):
        return Reuse(held)
    again = tokens.of(sum(_common(before, working.messages[same:])))
    return Reuse(held, again, *_partial_loss(working, same))


class _Tokens:
    """Characters of a request as tokens, by the size that was estimated for all of it."""

    def __init__(self, working: WorkingSet) -> None:
        self._ratio = working.manifest.tokens / max(1, working.manifest.chars)

    def of(self, chars: int) -> int:
        return round(chars * self._ratio)


def _common(before: Sent, messages: Sequence[Message]) -> list[int]:
    """The lengths of the messages that were sent before as they are."""
    known = {message.digest for message in before.messages}
    return [message.length for message in messages if message.digest in known]


def _equal(pair: tuple[Message, Message]) -> bool:
    return pair[0].digest == pair[1].digest


def _whole_loss(before: Sent, working: WorkingSet, at: datetime) -> tuple[Cause | Literal[""], str]:
    """Why nothing of the last request is held."""
    if before.model != working.request.model:
        return "model", f"{before.model} was asked before"
    if (seconds := (at - before.at).total_seconds()) > HELD_SECONDS:
        return "expired", f"{seconds / 60:.0f} minutes had passed"
    if before.prefix.hash != working.prefix.hash:
        reasons = [str(block.attrs.get("reason")) for block in working.blocks if block.kind == "prefix"]
        return "prefix", f"{''.join(reasons[:1])}: {', '.join(_changed(before.prefix, working.prefix))}"
    return "", ""


def _changed(old: Prefix, new: Prefix) -> list[str]:
    """The parts of the prefix that differ, by file where they have one."""
    before, after = ({block.path or block.id: block.text for block in prefix.blocks} for prefix in (old, new))
    names = [name for name in dict.fromkeys((*after, *before)) if before.get(name) != after.get(name)]
    return [*(["tools"] if old.tools != new.tools else []), *names]


def _partial_loss(working: WorkingSet, same: int) -> tuple[Cause, str]:
    """Why the messages from index ``same`` on are not what they were."""
    cleared = [len(block.attrs["results"]) for block in working.blocks if block.kind == "clear"]
    if cleared:
        return "cleared", f"{sum(cleared)} old results"
    if same < len(working.messages) and any(
        block.kind == "compact" for group in working.messages[same].groups for block in group.blocks
    ):
        return "summary", "in the place of what came before"
    number = working.messages[same].number if same < len(working.messages) else 0
    return "edited", f"message {number} of the transcript" if number else "the transcript"
