"""The demo: a real session on a copied example, in which a recorded transcript plays the model."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

from tinyclaw.agent.events import Event, FileStated, ReplyReceived
from tinyclaw.agent.recorded import Recording
from tinyclaw.agent.session import Session, image_loader
from tinyclaw.agent.start import REPLAY, Options, open_session
from tinyclaw.cli._here import now, user_dir
from tinyclaw.cli._output import Output, output_for
from tinyclaw.cli._signals import EXIT_INTERRUPTED, Signals
from tinyclaw.cli._terminal import Terminal, standard_terminals
from tinyclaw.cli._turn import show_turn, started
from tinyclaw.errors import StateError, UsageError
from tinyclaw.state.workspace import PLAN, Workspace, git_root
from tinyclaw.templates import example_path

EXAMPLE = "fix-failing-test"
PROMPT = "A test fails. Follow PLAN.md."
EDIT_AFTER_REPLY = 3
NEW_STEP = "4. An empty basket costs nothing: add a test for that.\n"


def demonstrate(folder: str | None) -> int:
    """Run the demo in ``folder``, or in a new temporary folder; returns the exit code.

    Raises: UsageError when ``folder`` is there already or lies in a repository; StateError when it cannot be made.
    """
    example = example_path(EXAMPLE)
    root = _copy(example / "workspace", folder)
    signals = Signals()
    out, err = standard_terminals()
    err.write(
        "This is a demo: the model's replies are recorded. The reads, edits, searches and test runs are real,\n"
        f"in a copy of an example: {root}\n\n> {PROMPT}\n\n"
    )
    options = Options(
        workspace=Workspace.find(root, user_dir()),
        environment=os.environ,
        clock=now,
        flags={"model": f"{REPLAY}{example / 'transcript.md'}", "permission_mode": "auto"},
        title=PROMPT,
        interrupt=signals.interrupt,
    )
    session = open_session(options)
    person = _Person(root, output_for("text", out, err), err)
    try:
        with signals.turn():
            person.show(started(session, resumed=False))
            code = show_turn(session, PROMPT, person)
    finally:
        session.close()
    if code == 0:
        _show_proof(session, err)
        _tell_where_to_look(session, root, err)
    return EXIT_INTERRUPTED if signals.must_end else code


class _Person:
    """Shows the events as usual and, half way, saves PLAN.md from a second thread as an editor would."""

    def __init__(self, root: Path, output: Output, err: Terminal) -> None:
        self._plan = root / PLAN
        self._output = output
        self._err = err
        self._is_stated_next = False

    def show(self, event: Event) -> None:
        self._output.show(event)
        if isinstance(event, ReplyReceived) and event.number == EDIT_AFTER_REPLY:
            editor = threading.Thread(target=self._edit, name="a person's editor")
            editor.start()
            editor.join()
            self._err.write(f"\n  ✎ somebody saves {PLAN} in an editor, with one more line:\n    {NEW_STEP}\n")
            self._is_stated_next = True
        elif isinstance(event, FileStated) and self._is_stated_next and event.path == PLAN:
            self._err.write("  ✎ the request that now goes out carries that line, as a diff\n\n")
            self._is_stated_next = False

    def end(self) -> None:
        self._output.end()

    def _edit(self) -> None:
        beside = self._plan.with_name(f".{PLAN}.new")
        beside.write_text(self._plan.read_text(encoding="utf-8") + NEW_STEP, encoding="utf-8")
        beside.replace(self._plan)


def _copy(source: Path, folder: str | None) -> Path:
    if folder is None:
        target = Path(tempfile.mkdtemp(prefix="tinyclaw-demo-")) / "project"
    else:
        target = Path(folder).absolute()
    if target.exists():
        raise UsageError(f"{target} is there already; name a folder that is not, or none at all")
    if (repository := git_root(target.parent)) is not None:
        raise UsageError(f"{target} lies in the repository {repository}; the demo needs a folder outside of any")
    try:
        shutil.copytree(source, target)
    except OSError as error:
        raise StateError(f"{target}: the example cannot be copied there ({error}); name another folder") from error
    return target


def _show_proof(session: Session, err: Terminal) -> None:
    """What the transcript says about the request that followed the edit. Raises: StateError when it says otherwise."""
    number = EDIT_AFTER_REPLY + 1
    recording = Recording.read(session.transcript.path, image_loader(session.workspace))
    rebuilt = recording.request(number, session.prefixes)
    blocks = [block for message in rebuilt.request.messages for block in message["content"] if block["type"] == "text"]
    stated = [block["text"] for block in blocks if f"+{NEW_STEP.strip()}" in block["text"]]
    if not (stated and rebuilt.is_exact):
        raise StateError(f"{recording.path}: request {number} does not carry the edit of {PLAN}; please report this")
    err.write(
        f"\nThe proof: request {number}, rebuilt from the transcript and equal to what was sent by its hash, says\n\n"
        f"{textwrap.indent(stated[0].strip(), '    ')}\n"
    )


def _tell_where_to_look(session: Session, root: Path, err: Terminal) -> None:
    program = _program()
    here = f"{program} -C {shlex.quote(str(root))}"
    transcript = session.workspace.relative(session.transcript.path)
    prefix = session.prefixes.folder / f"{session.conversation.prefix}.md"
    request = EDIT_AFTER_REPLY + 1
    err.write(
        "\nAll of it is in files. Look at them in an editor:\n"
        f"  {root / transcript}\n      the session: what was said, called and answered, and what each request held\n"
        f"  {root / PLAN}\n      the plan, with the line that was saved half way\n"
        f"  {prefix}\n      tools and instructions, as the model got them\n"
        "or ask:\n"
        f"  {here} prompt last --request {request}    the request that carried the edit, as it was sent\n"
        f"  {here} context                    what the next request would hold, and what it costs\n"
        f"  {here} sessions show last         the session in short\n\n"
        "The model's part was recorded. With a key of your own it is not: cd into a repository and type\n"
        f'  ANTHROPIC_API_KEY=… {program} run "what should I look at first?"\n'
    )


def _program() -> str:
    """What to type for tinyclaw: its name, or the whole path where the shell would not find it."""
    called = Path(sys.argv[0])
    if called.name != "tinyclaw" or shutil.which("tinyclaw"):
        return "tinyclaw"
    return shlex.quote(str(called.absolute()))
