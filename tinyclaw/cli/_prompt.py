"""The interactive prompt: text in, a turn out, again; slash commands between."""

from __future__ import annotations

import re
from dataclasses import replace

from tinyclaw.agent.session import Session
from tinyclaw.agent.start import Options, open_session
from tinyclaw.cli._ask import TerminalQuestions
from tinyclaw.cli._editor import Editor, EndOfInput
from tinyclaw.cli._opening import Choices
from tinyclaw.cli._render import TextOutput
from tinyclaw.cli._saves import Saves
from tinyclaw.cli._signals import EXIT_INTERRUPTED, Signals
from tinyclaw.cli._terminal import Terminal, standard_terminals
from tinyclaw.cli._turn import show_turn, started
from tinyclaw.commands._base import CommandContext, LeavePrompt, load_commands
from tinyclaw.errors import TinyclawError
from tinyclaw.state.settings import load_settings
from tinyclaw.width import harmless, one_line

_COMMAND = re.compile(r"/([a-z][a-z0-9_-]*)(?:[ \t]+(.*))?")
_HELLO = "/help shows commands and keys, Ctrl-D leaves."


def interact(choices: Choices) -> int:
    """Run the prompt until the person leaves; returns the exit code.

    Raises: TinyclawError when the session to resume cannot be opened.
    """
    signals = Signals()
    out, err = standard_terminals()
    screen = err if err.is_terminal else out
    questions = TerminalQuestions(screen, signals.interrupt)
    options = choices.options(interrupt=signals.interrupt, ask=questions)
    saves = Saves(options.workspace, is_on=_watches(options))
    prompt = Prompt(options, signals, TextOutput(out, screen), Editor(screen, saves.news), saves)
    try:
        hello = f"tinyclaw in {options.workspace.root}. {_HELLO}"
        if options.resume is not None:
            session = prompt.open("")
            hello += f"\nGoing on with {session.transcript.session}: {one_line(session.transcript.title)}"
        screen.write(screen.styled(hello, "dim") + "\n")
        prompt.answer_open_questions()
        prompt.loop()
    finally:
        prompt.close()
    return EXIT_INTERRUPTED if signals.must_end else 0


def _watches(options: Options) -> bool:
    root, user_dir = options.workspace.root, options.workspace.user_dir
    settings, _ = load_settings(root, user_dir, options.environment, options.flags)
    return settings.watcher == "on"


class Prompt:
    """One run of the prompt. The session is opened at the first text, so that a look around leaves no file."""

    def __init__(self, options: Options, signals: Signals, output: TextOutput, editor: Editor, saves: Saves) -> None:
        self._options = options
        self._signals = signals
        self._output = output
        self._editor = editor
        self._saves = saves
        self._commands = load_commands()
        self._session: Session | None = None

    @property
    def _screen(self) -> Terminal:
        return self._editor.screen

    def loop(self) -> None:
        """Read and run until Ctrl-D, ``/exit`` or a signal that ends the program."""
        while not self._signals.must_end:
            self._saves.begin()
            try:
                text = self._editor.read("> ").strip()
                self._take(text)
            except KeyboardInterrupt:
                continue
            except (EndOfInput, LeavePrompt):
                return
            except TinyclawError as error:
                self._screen.write(f"tinyclaw: {harmless(str(error))}\n")

    def answer_open_questions(self) -> None:
        """Go on with the turn of a resumed session that was left at a permission question."""
        if self._session is not None and self._session.conversation.asked_calls:
            with self._signals.turn():
                show_turn(self._session, None, self._output)

    def open(self, title: str) -> Session:
        """The session, opened if it is not yet. Raises: TinyclawError."""
        if self._session is None:
            options = self._options
            self._session = open_session(replace(options, title=title))
            self._output.show(started(self._session, resumed=options.resume is not None))
        return self._session

    def close(self) -> None:
        self._saves.stop()
        if self._session is not None:
            self._session.close()

    def _take(self, text: str) -> None:
        found = _COMMAND.fullmatch(text)
        if found is not None:
            self._command(found[1], found[2] or "")
        elif text:
            session = self.open(text)
            with self._signals.turn():
                show_turn(session, text, self._output)

    def _command(self, name: str, arguments: str) -> None:
        command = self._commands.get(name)
        if command is None:
            self._screen.write(f"there is no command /{name}; /help shows what there is\n")
            return
        context = CommandContext(self._options, self._session, self._commands, self._screen.columns)
        shown = command.run(context, arguments.strip())
        if shown:
            self._screen.write(harmless(shown) + "\n")
