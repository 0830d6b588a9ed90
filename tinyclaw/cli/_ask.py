"""Permission questions in the terminal: the whole call, then one key word as the answer."""

from __future__ import annotations

from tinyclaw.agent.session import Answer, Question
from tinyclaw.cli._editor import Editor, EndOfInput, forget_typed
from tinyclaw.cli._terminal import Terminal
from tinyclaw.types import Interrupt
from tinyclaw.width import harmless

_ANSWERS: dict[str, Answer] = {
    "y": "allow",
    "yes": "allow",
    "n": "deny",
    "no": "deny",
    "a": "always",
    "always": "always",
}
_SHOWN_LINES = 200


class TerminalQuestions:
    """Asks on ``screen``. Ctrl-C refuses and interrupts the turn, Ctrl-D refuses."""

    def __init__(self, screen: Terminal, interrupt: Interrupt) -> None:
        self._screen = screen
        self._interrupt = interrupt

    def __call__(self, question: Question) -> Answer:
        forget_typed()
        self._show(question)
        words = f"allow {question.name}? [y]es, [n]o, [a]lways in this session: "
        editor = Editor(self._screen, stop=self._interrupt.is_set)
        while True:
            try:
                answer = _ANSWERS.get(editor.read(words).strip().lower())
            except EndOfInput:
                return "deny"
            if answer is not None:
                return answer

    def _show(self, question: Question) -> None:
        lines = harmless(question.detail).split("\n")
        if len(lines) > _SHOWN_LINES:
            lines = [*lines[:_SHOWN_LINES], f"… {len(lines) - _SHOWN_LINES:,} more lines"]
        head = self._screen.styled(f"? {harmless(question.headline)}", "bold")
        reason = self._screen.styled(f"  ({harmless(question.reason)})", "dim")
        body = "".join(f"  │ {self._line(line)}\n" for line in lines)
        self._screen.write(f"{head}{reason}\n{body}")

    def _line(self, line: str) -> str:
        if line.startswith("+"):
            return self._screen.styled(line, "green")
        return self._screen.styled(line, "red") if line.startswith("-") else line
