"""Live files that changed become state events: each change is stated once, where it happened."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import replace

from tinyclaw.context.collection import Collected, Part
from tinyclaw.context.tokens import Estimator
from tinyclaw.state.files import ABSENT
from tinyclaw.state.transcript.fold import Conversation
from tinyclaw.state.transcript.grammar import Block
from tinyclaw.state.transcript.prefixes import Prefix, PrefixBlock
from tinyclaw.state.transcript.statements import By, Statement, state_block, stated_text

RESTATE_TOKENS = 30_000
"""What an event said further back than this is said again in whole."""


def state_events(
    conversation: Conversation,
    prefix: Prefix,
    collected: Collected,
    changed_during: Set[str],
    estimator: Estimator,
) -> Iterator[Block]:
    """One event for each live file whose revision is not the one that was stated last, in the order of reading.

    An event in the conversation comes after the prefix, also after one that was made later; so a new
    prefix does not overrule it. Paths in ``changed_during`` changed while a command of ours ran. What the last
    request knew already, what is said for the first time, and facts that are no files are told as nobody's change.
    """
    number = conversation.last if conversation.awaits_reply else conversation.last + 1
    live = {part.piece.path: part for part in collected.parts if part.piece.path}
    pinned = {block.path: block for block in prefix.blocks if block.path}
    known = {str(entry.get("file")): entry.get("rev") for entry in conversation.manifest.get("blocks", {}).values()}
    for path in dict.fromkeys([*live, *pinned, *conversation.statements]):
        part, said = live.get(path), _last_statement(conversation, path, pinned.get(path))
        if path in collected.unknown:
            continue
        before = said.text if said else None
        revision = part.piece.revision if part else ABSENT
        text = part.piece.text.strip() if part else None
        if revision != (said.revision if said else ABSENT):
            is_told = revision == known.get(path) or not conversation.requests or _is_fact(part) or _arrives(part, said)
            by: By = "now" if is_told else "during" if path in changed_during else "outside"
            yield state_block(path, revision, by, text, before, number, is_cut=_is_cut(part))
        elif part and said and not _stands_in(pinned.get(path), revision) and _is_far(conversation, said, estimator):
            yield state_block(path, revision, "now", text, None, number, is_cut=_is_cut(part))


def _stands_in(pinned: PrefixBlock | None, revision: str) -> bool:
    return pinned is not None and pinned.revision == revision


def _is_far(conversation: Conversation, said: Statement, estimator: Estimator) -> bool:
    return estimator.tokens(conversation.length - said.length) > RESTATE_TOKENS


def _last_statement(conversation: Conversation, path: str, pinned: PrefixBlock | None) -> Statement | None:
    """What was said of a file last: by an event or a tool's result, otherwise by the prefix.

    The fold does not know the prefix, so diffs of a pinned text are resolved here. One from before the
    prefix does not fit it; where it led to the pinned revision, the prefix has its text.
    """
    said = conversation.statements.get(path)
    if pinned is None:
        return said
    if said is None:
        return Statement(pinned.revision, pinned.text, 0, -1, 0)
    if said.revision:
        return said
    text: str | None = pinned.text
    for block in _events_of(conversation, path):
        text = stated_text(block, text)
        revision = str(block.attrs.get("rev", ""))
        if text is None and revision == pinned.revision:
            text = pinned.text
        said = replace(said, revision=revision if text is not None else "", text=text)
    return said


def _events_of(conversation: Conversation, path: str) -> Iterator[Block]:
    for group in conversation.live_groups:
        yield from (block for block in group.blocks if block.kind == "state" and block.attrs.get("path") == path)


def _is_cut(part: Part | None) -> bool:
    return part is not None and bool(part.piece.note)


def _arrives(part: Part | None, said: Statement | None) -> bool:
    return part is not None and part.piece.arrives and said is None


def _is_fact(part: Part | None) -> bool:
    return part is not None and not part.source.watches
