"""A session wires a workspace, a transcript, a model and the tools together.

It is what every front end holds. ``compile`` makes the next request out of the files, ``record``
writes blocks; the loop and the dispatch use both and nothing else writes the transcript.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

from tinyclaw.agent.budgets import Budgets
from tinyclaw.agent.facts import Facts
from tinyclaw.agent.hints import Hints
from tinyclaw.agent.sight import folders_in_sight
from tinyclaw.agent.spending import Allowance
from tinyclaw.context.clearing import WaterMarks
from tinyclaw.context.compiler import Inputs, Target, WorkingSet, compile_request
from tinyclaw.context.reuse import Reuse, Sent, reuse
from tinyclaw.context.source import Limits, Source
from tinyclaw.errors import LimitReached, StateError
from tinyclaw.model.base import Model
from tinyclaw.model.prices import Price
from tinyclaw.stamp import stamp
from tinyclaw.state.files import read, recheck_displaced
from tinyclaw.state.ledger import Ledger
from tinyclaw.state.memory.store import Memory
from tinyclaw.state.outputs import Outputs
from tinyclaw.state.redaction import Masker
from tinyclaw.state.snapshot import Snapshot, SnapshotReader
from tinyclaw.state.transcript.fold import Conversation, spent_in
from tinyclaw.state.transcript.grammar import Block, heading
from tinyclaw.state.transcript.prefixes import Prefix, PrefixStore
from tinyclaw.state.transcript.store import Transcript
from tinyclaw.state.workspace import MEMORY_INDEX, PLAN, TODO, Workspace
from tinyclaw.tools._base import Registry
from tinyclaw.tools._jobs import Jobs
from tinyclaw.types import Interrupt, Mode, PermissionMode, Spent, ToolOutput, Usage

Answer = Literal["allow", "deny", "always"]


@dataclass(frozen=True)
class Question:
    """A permission question: the call in one line, why it is asked, and what the call would do in detail."""

    call: str
    name: str
    headline: str
    reason: str
    detail: str


AskPerson = Callable[[Question], Answer]
_ALWAYS_LIVE = frozenset((PLAN, TODO, MEMORY_INDEX))
"""Stated when they change, and so when a tool makes them."""


@dataclass(frozen=True)
class SmallModel:
    """The model for small questions beside the conversation, and what it costs; None when that is not known."""

    model: Model
    price: Price | None


@dataclass(frozen=True)
class MemoryHabits:
    """What is done by itself about the memory; see the settings of these names."""

    flush: bool = False
    select: Literal["model", "keywords", "off"] = "off"
    extract: bool = False
    consolidate: Literal["propose", "auto", "off"] = "off"


@dataclass
class Session:
    """One conversation in one workspace. See ``agent.start`` for how one is made.

    Attributes:
        report: keeps the details of a fault of ours and says in one line where they are.
        ask: asks the person for a permission; None when there is nobody to ask (the turn then pauses).
        clock: the time now, with a time zone.
        facts: named facts for the prompt that are no files.
        habits: what is done by itself about the memory.
        small: the model for small questions; None where there is none, or it gave no answer.
        always: tools that the person has allowed for the rest of the session.
        marks: the sizes above and down to which the conversation is made smaller.
        price: what the model costs; None when that is not known.
        allowance: what one turn may use; ``spent``: what the running one has used, whatever becomes of the transcript.
        budgets: learns the limits of the server's models; None where there is no server.
        sent: the last request that was answered, as the provider's cache holds it.
        failed_summaries: how many have failed in a row.
        is_summary_asked: one is to be made before the next request.
    """

    workspace: Workspace
    transcript: Transcript
    model: Model
    target: Target
    registry: Registry
    sources: tuple[Source, ...]
    reader: SnapshotReader
    prefixes: PrefixStore
    ledger: Ledger
    outputs: Outputs
    jobs: Jobs
    memory: Memory
    masker: Masker
    prompts: Callable[[str], str]
    clock: Callable[[], datetime]
    facts: Facts
    permission_mode: PermissionMode = "ask"
    mode: Mode = "default"
    limits: Limits = field(default_factory=Limits)
    marks: WaterMarks = field(default_factory=WaterMarks)
    price: Price | None = None
    allowance: Allowance = field(default_factory=Allowance)
    habits: MemoryHabits = field(default_factory=MemoryHabits)
    small: SmallModel | None = None
    ask: AskPerson | None = None
    report: Callable[[Exception], str] = repr
    interrupt: Interrupt = field(default_factory=Interrupt)
    always: set[str] = field(default_factory=set)
    notices: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    failed_summaries: int = 0
    is_summary_asked: bool = False
    budgets: Budgets | None = None
    spent: Spent = field(default_factory=Spent)
    sent: Sent | None = None
    _said: set[str] = field(default_factory=set)
    _followed: Conversation | None = None
    _before_command: Snapshot | None = None
    _live: frozenset[str] = _ALWAYS_LIVE

    @property
    def conversation(self) -> Conversation:
        return self.transcript.conversation

    @cached_property
    def hints(self) -> Hints:
        return Hints(self.prompts)

    @property
    def now(self) -> str:
        """The time as RFC 3339, in whole seconds."""
        return stamp(self.clock())

    def record(self, *blocks: Block, tool_ran: bool = False) -> None:
        """Append to the transcript. Raises: StateError."""
        self.transcript.append(*blocks, tool_ran=tool_ran)
        for block in blocks:
            self.spent += spent_in(block)

    def record_lost(self, lost: Usage | None, by: SmallModel | None = None) -> None:
        """Write down an answer that broke off, which is billed; None where none had begun. Raises: StateError."""
        if lost is not None:
            self.record(self.side("lost", lost, by=by, stop="broken off"))

    def side(self, what: str, usage: Usage, text: str = "", by: SmallModel | None = None, **facts: object) -> Block:
        """The record of a call beside the conversation, with what it answered; ``by`` is None for the main model."""
        cost = cost_of(usage, by.price if by else self.price)
        attrs = {
            "what": what,
            "model": by.model.name if by else self.target.model,
            "in": usage.input,
            "cache_read": usage.cache_read,
            "cache_write": usage.cache_write,
            "out": usage.output,
            **({} if cost is None else {"cost_usd": cost}),
            **facts,
        }
        title = f"{what}, as the model wrote it" if text else ""
        return Block("side", attrs, *([text] if text else []), heading=heading(3, title) if text else "")

    def refresh(self) -> None:
        """Take in what a person made of the transcript: what is no longer in it, the model has not seen.

        Raises: StateError.
        """
        self.transcript.refresh()
        if self.conversation is not self._followed:
            self._followed = self.conversation
            self.ledger.reset(self.conversation.revisions)

    def event(self, what: str, text: str = "", **facts: object) -> Block:
        """An event block: a record that is never sent."""
        attrs = {"what": what, "at": self.now, **facts}
        return Block("event", attrs, *([text] if text else []), heading=heading(3, what.replace("_", " ")))

    def snapshot(self) -> Snapshot:
        """What the files say now."""
        snapshot = self.reader.take(self.facts.get(), self._in_sight())
        self._live = frozenset(file.path for file in snapshot.files(*snapshot.found)) | _ALWAYS_LIVE
        return snapshot

    @property
    def live_paths(self) -> frozenset[str]:
        """The files that are stated to the model whenever they change."""
        return self._live

    def compile(self, *, may_exceed: bool = False, clears_all: bool = False) -> WorkingSet:
        """The next request, out of the files as they are on disk now.

        Args:
            may_exceed: make it even if it does not fit the model's window.
            clears_all: clear every result that may be cleared.

        Raises: StateError, PromptTooLong.
        """
        self.refresh()
        self._note_rescued()
        snapshot = self.snapshot()
        during = changed_paths(self._before_command, snapshot)
        self._before_command = None
        working = compile_request(
            Inputs(
                snapshot=snapshot,
                conversation=self.conversation,
                prefix=self._pinned(),
                sources=self.sources,
                tools=self.registry.specs(),
                prompts=self.prompts,
                target=self.target,
                limits=self.limits,
                mode=self.mode,
                now=self.now,
                marks=WaterMarks(0, 0) if clears_all else self.marks,
                may_exceed=may_exceed,
                changed_during=during,
            )
        )
        self._say_once(working.notes)
        return working

    def reuse(self, working: WorkingSet) -> Reuse:
        """What the provider's cache holds of a request that is sent now."""
        known = self.conversation.manifest.get("tokens")
        return reuse(self.sent, working, self.clock(), known if isinstance(known, int) else 0)

    def answer_tokens(self, wanted: int, prompt: int, held: int) -> int:
        """See ``Allowance.answer_tokens``. Raises: LimitReached."""
        return self.allowance.answer_tokens(wanted, prompt, held, self.spent, self.price)

    def afford_again(self, lost: Usage | None, wanted: int, prompt: int) -> None:
        """Before a request is tried again whose answer broke off: what that cost is spent, and what is left must do.

        Raises: LimitReached.
        """
        if lost is not None and self.answer_tokens(wanted, prompt, prompt) < wanted:
            raise LimitReached(
                "the answer broke off, and what is left of the limit on the cost is not enough for another"
            )

    def cost(self, usage: Usage) -> float | None:
        """What the main model took for it, in US dollars; None when the price is not known."""
        return cost_of(usage, self.price)

    def pin(self, prefix: Prefix) -> None:
        """Write the prefix file, unless it is there. Raises: StateError."""
        self.prefixes.save(prefix)

    def before_command(self) -> None:
        """Remember the live documents, so that a change during a command is told from one before it."""
        if self._before_command is None:
            self._before_command = self.reader.take_documents(self._in_sight())

    def after_call(self, arguments: Mapping[str, Any], output: ToolOutput) -> None:
        """Take in what a call has changed: own writes need not be waited for, git is asked again after its commands."""
        for path, revision in output.revisions.items():
            self.reader.wrote(path, revision)
        if "git" in str(arguments.get("command", "")):
            self.facts.refresh()

    def ask_summary(self) -> None:
        """Have the conversation summarized before the next request."""
        self.is_summary_asked = True

    def take_notices(self) -> list[str]:
        """What the person has to be told since the last call, in order."""
        told = [*self.transcript.notices, *self.notices]
        self.transcript.notices.clear()
        self.notices.clear()
        return [self.masker.mask(text) for text in told]

    def close(self) -> None:
        """End background commands and give the transcript free. What is displaced is looked at once more."""
        self.jobs.close()
        self._note_rescued(last=True)
        self.transcript.close()

    def _in_sight(self) -> tuple[str, ...]:
        return folders_in_sight(self.conversation, self._pinned())

    def _pinned(self) -> Prefix | None:
        return self.prefixes.load(self.conversation.prefix) if self.conversation.prefix else None

    def _say_once(self, notes: Iterable[str]) -> None:
        for note in notes:
            if note not in self._said:
                self._said.add(note)
                self.notices.append(note)

    def _note_rescued(self, *, last: bool = False) -> None:
        self.notices += [str(rescued) for rescued in recheck_displaced(last=last)]


def cost_of(usage: Usage, price: Price | None) -> float | None:
    """US dollars, rounded to a millionth of a cent; None when the price is not known."""
    return None if price is None else round(price.cost(usage), 8)


def changed_paths(before: Snapshot | None, after: Snapshot) -> frozenset[str]:
    """The files that ``before`` looked for and whose revision differs in ``after``."""
    if before is None:
        return frozenset()
    old = {file.path: file.revision for file in before.files(*before.found)}
    new = {file.path: file.revision for file in after.files(*before.found)}
    return frozenset(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))


def image_loader(workspace: Workspace) -> Callable[[str, str], str | None]:
    """Loads a stored picture as base64; None when it is gone or is no longer the one that was stored."""

    def load(path: str, sha256: str) -> str | None:
        try:
            data = read(workspace.resolve(path)).data
        except StateError:
            return None
        if data is None or hashlib.sha256(data).hexdigest() != sha256:
            return None
        return base64.b64encode(data).decode("ascii")

    return load
