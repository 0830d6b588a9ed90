"""Events as text: the answer on standard output, all else on standard error.

On a terminal the answer streams; into a pipe or file goes the final answer alone, once it is whole.
Whatever models and tools say is shown harmless. One transient line at the bottom says what is running.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tinyclaw.agent.events import (
    ConversationSummarized,
    Event,
    FileStated,
    Notice,
    PermissionAsked,
    ReplyReceived,
    RequestStarted,
    ResultsCleared,
    SessionStarted,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
)
from tinyclaw.amounts import dollars, usage_words
from tinyclaw.cli._terminal import Look, Terminal
from tinyclaw.types import Retrying, TextDelta, ThinkingDelta
from tinyclaw.width import cut, harmless, one_line

HEAD_LINES, TAIL_LINES = 10, 5
"""Of a command's output this many first lines are shown as they come, and this many last ones at its end."""

QUESTION_LINES = 40


@dataclass
class _Running:
    """A call under way: what it printed so far that is not shown yet."""

    headline: str
    is_open: bool = False
    shown: int = 0
    partial: str = ""
    held: list[str] = field(default_factory=list)
    left_out: int = 0

    def take(self, text: str) -> list[str]:
        """Take output in; gives the whole lines to show now."""
        *lines, self.partial = (self.partial + harmless(text)).split("\n")
        head = lines[: max(HEAD_LINES - self.shown, 0)]
        self.shown += len(head)
        self._hold(lines[len(head) :])
        return head

    def rest(self) -> list[str]:
        """The last lines, behind a line that says how many are not shown."""
        if self.partial:
            self._hold([self.partial])
        gap = [f"… {self.left_out:,} more lines"] if self.left_out else []
        return gap + self.held

    def _hold(self, lines: list[str]) -> None:
        kept = [*self.held, *lines]
        self.left_out += max(len(kept) - TAIL_LINES, 0)
        self.held = kept[-TAIL_LINES:]


class TextOutput:
    """Shows a turn's events to a person. ``show`` raises BrokenPipeError when the answer's reader has left."""

    def __init__(self, out: Terminal, err: Terminal) -> None:
        self._out = out
        self._err = err
        self._running: dict[str, _Running] = {}
        self._session: SessionStarted | None = None
        self._first_request = False
        self._transient = False
        self._open_text = False
        self._streamed = ""
        self._retry_reason = ""
        self._asked = ""

    def show(self, event: Event) -> None:
        """Show one event."""
        handler = getattr(self, f"_on_{type(event).__name__}", None)
        if handler is not None:
            handler(event)

    def end(self) -> None:
        """Leave the terminal ready for the next line."""
        self._running.clear()
        self._close_text()
        self._clear_transient()

    # One method for each event that is seen

    def _on_SessionStarted(self, event: SessionStarted) -> None:
        self._session = event
        self._first_request = not event.resumed

    def _on_FileStated(self, event: FileStated) -> None:
        if event.by in ("outside", "during") and not self._first_request:
            what = "was deleted" if event.how == "gone" else "changed"
            what += " outside" if event.by == "outside" else " while a command ran"
            self._line(f"• {event.path} {what}; this request carries it", "yellow")

    def _on_RequestStarted(self, event: RequestStarted) -> None:
        self._first_request = False
        self._streamed = self._retry_reason = ""
        self._show_transient(f"request {event.number}, about {event.tokens:,} tokens")

    def _on_TextDelta(self, event: TextDelta) -> None:
        if not self._out.is_terminal:
            return
        self._clear_transient()
        self._streamed += event.text
        self._out.write(harmless(event.text))
        self._open_text = not event.text.endswith("\n") if event.text else self._open_text

    def _on_ThinkingDelta(self, event: ThinkingDelta) -> None:
        if not self._open_text:
            self._show_transient("thinking")

    def _on_Retrying(self, event: Retrying) -> None:
        void = "; the text above is void" if self._streamed else ""
        reason = "the same again" if event.reason == self._retry_reason else event.reason
        self._retry_reason = event.reason
        wait = f"try {event.attempt + 1} in {event.delay_seconds:.{0 if event.delay_seconds >= 10 else 1}f} s"
        self._line(f"… {reason}; {wait}{void}", "yellow")
        self._streamed = ""

    def _on_ReplyReceived(self, event: ReplyReceived) -> None:
        self._close_text()
        if not self._out.is_terminal and event.stop_reason == "tool_use" and event.text.strip():
            self._line(harmless(event.text.strip()))

    def _on_ToolStarted(self, event: ToolStarted) -> None:
        self._running[event.id] = _Running(event.headline)
        self._show_transient(event.headline)

    def _on_ToolProgress(self, event: ToolProgress) -> None:
        if (running := self._running.get(event.id)) is not None:
            self._output(running, running.take(event.text))

    def _on_ToolFinished(self, event: ToolFinished) -> None:
        running = self._running.pop(event.id, _Running(event.headline))
        self._output(running, running.rest())
        outcome = event.summary or (event.text.strip().split("\n", 1)[0] if event.is_error else "")
        mark = self._err.styled("✗", "red") if _has_failed(event) else self._err.styled("✓", "green")
        said = self._fitted(f"{event.headline}{' · ' if outcome else ''}{outcome}", 2)
        self._line(f"{mark} {said}")
        if self._running:
            self._show_transient(next(reversed(self._running.values())).headline)

    def _on_PermissionAsked(self, event: PermissionAsked) -> None:
        self._clear_transient()
        self._asked = event.detail

    def _on_ConversationSummarized(self, event: ConversationSummarized) -> None:
        self._line(f"• {event}", "yellow")

    def _on_ResultsCleared(self, event: ResultsCleared) -> None:
        self._line(f"• {event}", "dim")

    def _on_Notice(self, event: Notice) -> None:
        self._line(f"• {harmless(event.text)}", "yellow")

    def _on_TurnEnded(self, event: TurnEnded) -> None:
        self._close_text()
        self._clear_transient()
        if event.reason == "done":
            self._answer(event.text)
        else:
            self._line(f"tinyclaw: {harmless(event.text)}", "red" if event.reason == "error" else "yellow")
        if event.reason == "paused":
            self._show_question()
        self._line(self._closing(event), "dim")

    # Writing

    def _answer(self, text: str) -> None:
        """The whole answer, where it has not been streamed."""
        if not self._out.is_terminal and text.strip():
            self._out.write(harmless(text.strip()) + "\n")

    def _show_question(self) -> None:
        """What a call would do that waits for the person, and how to answer."""
        lines = self._asked.split("\n")
        for line in lines[:QUESTION_LINES]:
            self._line(self._fitted(f"  │ {line.expandtabs(4)}"))
        if len(lines) > QUESTION_LINES:
            self._line(f"  │ … {len(lines) - QUESTION_LINES:,} more lines; the transcript has them all")
        name = self._session.session if self._session else "last"
        self._line(f"allow it: tinyclaw approve {name} (refuse it: --deny); then: tinyclaw run --resume {name}")

    def _closing(self, event: TurnEnded) -> str:
        requests = f"{event.requests} request{'s' if event.requests != 1 else ''}"
        cost = dollars(event.cost_usd) if event.cost_usd else ""
        parts = [requests, usage_words(event.usage), cost, self._session.transcript if self._session else ""]
        return "— " + " · ".join(part for part in parts if part)

    def _output(self, running: _Running, lines: list[str]) -> None:
        if lines and not running.is_open:
            running.is_open = True
            self._line(self._fitted(f"· {running.headline}"))
        for line in lines:
            self._line(self._fitted(f"  │ {line.expandtabs(4)}"), "dim")

    def _fitted(self, text: str, used: int = 0) -> str:
        """One harmless line, cut to the terminal's width."""
        line = harmless(text).split("\n", 1)[0]
        return cut(line, max(self._err.columns - used, 20)) if self._err.is_terminal else line

    def _line(self, text: str, look: Look | None = None) -> None:
        self._close_text()
        self._clear_transient()
        self._err.write((self._err.styled(text, look) if look else text) + "\n")

    def _close_text(self) -> None:
        if self._open_text:
            self._out.write("\n")
            self._open_text = False

    def _show_transient(self, text: str) -> None:
        """A last line that anything else replaces; only where a line can be taken back."""
        if self._err.has_colour and not self._open_text:
            line = cut(f"… {one_line(text)}", max(self._err.columns - 1, 1))
            self._err.write(f"\r\x1b[K{self._err.styled(line, 'dim')}")
            self._transient = True

    def _clear_transient(self) -> None:
        if self._transient:
            self._err.write("\r\x1b[K")
            self._transient = False


def _has_failed(event: ToolFinished) -> bool:
    """A command that exits with a code is no error to the model, which reads it; to the person it is."""
    return event.is_error or bool(re.fullmatch(r"exit code [1-9]\d*", event.summary))
