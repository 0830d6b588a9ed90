"""From the model's calls to their results: visible, permitted, run, bounded, masked, recorded.

Calls run in order; neighbours that only read run side by side. Each result is in the transcript
before the next call that is not its neighbour begins, so that a crash loses at most what was running.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import Any

from tinyclaw.agent.events import Event, PermissionAsked, ToolFinished, ToolProgress, ToolStarted
from tinyclaw.agent.restrictions import refusal
from tinyclaw.agent.session import Question, Session
from tinyclaw.errors import Interrupted, StateError, TinyclawError, ToolError
from tinyclaw.state.outputs import IMAGE_SUFFIXES
from tinyclaw.state.redaction import holds_mask
from tinyclaw.state.transcript.content import image_block, result_block
from tinyclaw.state.transcript.grammar import Block, heading
from tinyclaw.tools._base import Tool, ToolContext
from tinyclaw.tools._bound import bound
from tinyclaw.tools._permissions import decide, denial
from tinyclaw.tools._skills import LOAD_SKILL
from tinyclaw.types import ToolOutput, ToolUse

MAX_RESULT_CHARS = 16_000
MAX_MESSAGE_CHARS = 200_000
REPEATS = 3
"""A call that failed this often in a row, with the same arguments, gets another hint."""
_LEAST_RESULT_CHARS = 2_000


class Paused(TinyclawError):
    """A call needs the person's permission and there is nobody to ask; the question is in the transcript."""


@dataclass(frozen=True)
class _Job:
    """One call with its tool, ready to run; ``output`` is set instead when it is answered without running."""

    call: ToolUse
    tool: Tool | None
    output: ToolOutput | None = None

    @property
    def headline(self) -> str:
        return self.tool.headline(self.call.input) if self.tool else self.call.name

    @property
    def reads(self) -> bool:
        """Whether it may run beside its neighbours; what a skill restricts holds for the call behind it already."""
        return self.tool is not None and self.tool.effect == "read" and self.call.name != LOAD_SKILL


def run_calls(session: Session, calls: Sequence[ToolUse]) -> Iterator[Event]:
    """Answer every call, each with exactly one result in the transcript.

    Raises: Paused after recording the question, with the calls before it answered; Interrupted after
        the remaining calls have been answered as interrupted.
    """
    budget = _Budget()
    jobs = [_prepare(session, call) for call in calls]
    try:
        for reads, neighbours in groupby(jobs, key=lambda job: job.reads):
            for batch in [list(neighbours)] if reads else [[job] for job in neighbours]:
                session.interrupt.check()
                permitted = []
                for job in batch:
                    permitted.append((yield from _permit(session, job)))
                yield from _run_batch(session, permitted, budget)
    except Interrupted:
        open_calls = {call.id for call in session.conversation.pending_calls}
        for job in jobs:
            if job.call.id in open_calls:
                started = job.call.id in budget.started
                text = session.hints.get("interrupted_call" if started else "not_started")
                yield _finish(session, job, ToolOutput(text, is_error=True, summary="interrupted"), 0, budget)
        raise


@dataclass
class _Budget:
    """How much room the results of one message have left, and which calls have begun."""

    left_chars: int = MAX_MESSAGE_CHARS
    started: set[str] = field(default_factory=set)

    def take(self, text: str) -> None:
        self.left_chars = max(0, self.left_chars - len(text))

    @property
    def limit(self) -> int:
        return max(_LEAST_RESULT_CHARS, min(MAX_RESULT_CHARS, self.left_chars))


# Before a call


def _prepare(session: Session, call: ToolUse) -> _Job:
    tool = session.registry.get(call.name)
    if tool is None:
        names = ", ".join(spec.name for spec in session.registry.specs())
        return _Job(call, None, _error(session.hints.get("unknown_tool", name=call.name, tools=names)))
    if session.mode == "plan" and tool.effect not in ("read", "state"):
        return _Job(call, tool, _error(session.hints.get("hidden_tool", name=call.name, mode=session.mode)))
    if holds_mask(json.dumps(call.input, ensure_ascii=False)):
        return _Job(call, tool, _error(session.hints.get("masked_arguments", name=call.name)))
    return _Job(call, tool)


def _permit(session: Session, job: _Job) -> Generator[Event, None, _Job]:
    """The job as it may run: unchanged, or answered with a refusal. Raises: Paused."""
    if job.output is not None or job.tool is None:
        return job
    if (restricted := refusal(session, job.call)) is not None:
        return replace(job, output=_error(restricted))
    decision = decide(job.tool, job.call.input, session.permission_mode, session.workspace)
    if decision.verdict == "ask" and job.tool.name in session.always:
        return job
    if decision.verdict == "ask":
        return (yield from _ask(session, job, decision.reason))
    if decision.verdict == "deny":
        return replace(job, output=_error(denial(job.headline, decision.reason)))
    return job


def _ask(session: Session, job: _Job, reason: str) -> Generator[Event, None, _Job]:
    call = job.call
    known = session.conversation.permissions.get(call.id)
    allowed = known.allowed if known is not None else None
    if allowed is None:
        try:
            detail = _detail(session, job)
        except (ToolError, StateError) as error:
            return replace(job, output=_error(str(error)))
        if known is None:
            session.record(_permission_block(session, job, reason, detail))
        yield PermissionAsked(call.id, call.name, job.headline, reason, detail)
        if session.ask is None:
            raise Paused(f"{job.headline} needs your permission ({reason})")
        answer = session.ask(Question(call.id, call.name, job.headline, reason, detail))
        session.interrupt.check()
        allowed = answer != "deny"
        if answer == "always":
            session.always.add(call.name)
    session.record(session.event("answer", id=call.id, answer="allow" if allowed else "deny", started=True))
    return job if allowed else replace(job, output=_error(denial(job.headline, "the person said no")))


def _permission_block(session: Session, job: _Job, reason: str, detail: str) -> Block:
    text = f"{job.headline}\n\n{reason}\n\n{detail}"
    attrs = {"what": "permission", "id": job.call.id, "name": job.call.name, "at": session.now}
    return Block("event", attrs, text.strip(), heading=heading(3, f"permission to {job.headline}"), box=False)


def _detail(session: Session, job: _Job) -> str:
    """What a call would do, for the person: the change of a file as a diff, anything else by its arguments.

    Raises: ToolError, StateError when the call would be refused anyway.
    """
    assert job.tool is not None
    diff = job.tool.preview(_context(session), job.call.input)
    if diff is not None:
        return session.masker.mask(diff.rstrip("\n"))
    return "\n".join(f"{name}: {value}" for name, value in job.call.input.items())


def _context(session: Session, emit: Callable[[str], None] = lambda text: None) -> ToolContext:
    return ToolContext(
        workspace=session.workspace,
        ledger=session.ledger,
        outputs=session.outputs,
        jobs=session.jobs,
        memory=session.memory,
        interrupt=session.interrupt,
        emit=emit,
        ask_summary=session.ask_summary,
        mask=session.masker.mask,
        session=session.transcript.session,
    )


# Running


def _run_batch(session: Session, jobs: Sequence[_Job], budget: _Budget) -> Iterator[Event]:
    """Run the jobs side by side; events come as they happen, results are recorded as each job finishes."""
    events: queue.SimpleQueue[Event | tuple[_Job, ToolOutput, int]] = queue.SimpleQueue()
    running = 0
    for job in jobs:
        yield ToolStarted(job.call.id, job.call.name, job.headline, job.call.input)
        if job.output is not None:
            yield _finish(session, job, job.output, 0, budget)
            continue
        assert job.tool is not None
        budget.started.add(job.call.id)
        if job.tool.effect == "execute":
            session.before_command()
        threading.Thread(target=_work, args=(session, job, events), name=f"tool {job.call.name}", daemon=True).start()
        running += 1
    while running:
        item = events.get()
        if isinstance(item, tuple):
            running -= 1
            yield _finish(session, *item, budget)
        else:
            yield item


def _work(session: Session, job: _Job, events: queue.SimpleQueue[Any]) -> None:
    """The thread of one call: its last word is always the output."""
    assert job.tool is not None
    context = _context(session, lambda text: events.put(ToolProgress(job.call.id, text)))
    began = time.monotonic()
    try:
        output = job.tool.run(context, job.call.input)
    except (ToolError, StateError) as error:
        output = _error(str(error))
    except Interrupted:
        output = _error(session.hints.get("interrupted_call"), summary="interrupted")
    except Exception as error:  # the tool boundary: a fault of ours must not end the person's turn
        session.notices.append(session.report(error))
        output = _error(
            session.hints.get("internal_error", name=job.call.name, error=f"{type(error).__name__}: {error}")
        )
    events.put((job, output, round((time.monotonic() - began) * 1000)))


def _finish(session: Session, job: _Job, output: ToolOutput, milliseconds: int, budget: _Budget) -> ToolFinished:
    """Record the result and give its event."""
    text = whole = session.masker.mask(output.text)
    if output.is_error:
        text += _repeat_hint(session, job.call)
    else:
        session.failures.clear()
    if output.paged:
        text = _shorter_page(text, max(_LEAST_RESULT_CHARS, budget.left_chars))
    else:
        text = bound(text, session.outputs, job.call.name, budget.limit)
    if text == whole and output.shown and not output.is_error:
        output = replace(output, revisions={**output.revisions, **output.shown})
        for path, revision in output.shown.items():
            session.ledger.restore(path, revision)
    same = _same_result(session, job, text) if output.paged and not output.is_error and not output.images else None
    if same:
        text = session.hints.get("unchanged", count=f"{len(text):,}", headline=same.headline)
    budget.take(text)
    blocks = _result_blocks(session, job, output, text, milliseconds, same.call.id if same else "")
    session.record(*blocks, tool_ran=True)
    session.after_call(job.call.input, output)
    return ToolFinished(job.call.id, job.call.name, job.headline, text, output.is_error, output.summary, milliseconds)


def _same_result(session: Session, job: _Job, text: str) -> _Job | None:
    """An earlier call whose result is sent whole and is this very text, None when there is none."""
    if len(text) < _LEAST_RESULT_CHARS:
        return None
    for before, message in reversed(list(pairwise(session.conversation.messages(session.target.model).messages))):
        for block in message.wire["content"]:
            if block["type"] == "tool_result" and block["content"] == text and block["tool_use_id"] != job.call.id:
                call = next(call for call in before.calls if call.id == block["tool_use_id"])
                return _Job(call, session.registry.get(call.name))
    return None


def _result_blocks(
    session: Session, job: _Job, output: ToolOutput, text: str, milliseconds: int, same: str
) -> list[Block]:
    conversation = session.conversation
    number = conversation.groups[-1].number if conversation.groups else 1
    number += conversation.groups[-1].role == "assistant"
    writes = job.tool is not None and job.tool.effect in ("state", "write")
    states = [path for path in output.revisions if writes and path in session.live_paths]
    is_known = output.folder in {path.rpartition("/")[0] for path in output.revisions}
    facts = {
        "ms": milliseconds,
        "revisions": dict(output.revisions),
        "states": states,
        "folder": "" if is_known else output.folder,
        "same_as": same,
        "skill": output.skill,
        "allowed": None if output.allowed is None else list(output.allowed),
    }
    blocks = [result_block(job.call.id, number, text, name=job.call.name, is_error=output.is_error, **facts)]
    for image in output.images:
        stored = session.outputs.put_image(job.call.name, b64decode(image.data), IMAGE_SUFFIXES[image.media_type])
        blocks.append(image_block(job.call.id, number, stored.path, image.media_type, stored.sha256))
    return blocks


def _repeat_hint(session: Session, call: ToolUse) -> str:
    key = f"{call.name} {json.dumps(call.input, sort_keys=True)}"
    session.failures[:] = [*(each for each in session.failures if each == key), key]
    count = len(session.failures)
    return f"\n\n{session.hints.get('repeated', count=count)}" if count >= REPEATS else ""


def _shorter_page(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    kept = text[:limit].rpartition("\n")[0] or text[:limit]
    return (
        f"{kept}\n[page cut here: the results of this message together are at their limit; read on in another message]"
    )


def _error(text: str, summary: str = "") -> ToolOutput:
    return ToolOutput(text, is_error=True, summary=summary)
