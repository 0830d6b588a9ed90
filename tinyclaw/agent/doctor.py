"""Checks of every file that a workspace keeps state in, and of what a run needs besides."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from tinyclaw.agent.standing import check_instructions
from tinyclaw.agent.start import limits_of
from tinyclaw.context.source import load_sources
from tinyclaw.context.sources.own import check_source
from tinyclaw.errors import ModelError, StateError
from tinyclaw.state.documents import Document
from tinyclaw.state.files import read
from tinyclaw.state.leftovers import find_leftovers
from tinyclaw.state.memory.folder import Folder
from tinyclaw.state.plan import Plan
from tinyclaw.state.redaction import Masker
from tinyclaw.state.scaffold import ATTRIBUTES, IGNORED, missing_lines
from tinyclaw.state.settings import load_settings
from tinyclaw.state.skills import PATTERNS, PLACES, find_skills
from tinyclaw.state.snapshot import CHAIN, IMPORTS, MAX_STATE_BYTES, NESTED, USER
from tinyclaw.state.todo import Todo
from tinyclaw.state.transcript.fold import conversation_of
from tinyclaw.state.transcript.grammar import FORMAT, parse
from tinyclaw.state.transcript.lock import is_locked
from tinyclaw.state.transcript.prefixes import PrefixStore
from tinyclaw.state.transcript.sessions import list_sessions
from tinyclaw.state.workspace import MEMORY_INDEX, OUTPUTS, OWN_FOLDER, PLAN, TODO, TRANSCRIPTS, Workspace
from tinyclaw.tools._base import load_tools
from tinyclaw.tools._skills import foreign_tools
from tinyclaw.types import Diagnostic

_LINK = re.compile(r"\]\(([^)\s]+\.md)\)")


def examine(workspace: Workspace, environment: Mapping[str, str]) -> list[Diagnostic]:
    """Every fault that was found, in the order of the checks; empty when all is well. Never raises for a bad file."""
    found = [
        *_settings(workspace, environment),
        *_places(workspace),
        *_documents(workspace),
        *_instructions(workspace, environment),
        *_transcripts(workspace),
        *_locks(workspace),
        *_leftovers(workspace),
        *_repository(workspace),
        *_surroundings(workspace, environment),
    ]
    return list(dict.fromkeys(found))


def _settings(workspace: Workspace, environment: Mapping[str, str]) -> Iterator[Diagnostic]:
    try:
        _, diagnostics = load_settings(workspace.root, workspace.user_dir, environment, {})
    except StateError as error:
        yield Diagnostic(f"{OWN_FOLDER}/SETTINGS.md", None, str(error))
        return
    yield from diagnostics


def _places(workspace: Workspace) -> Iterator[Diagnostic]:
    """Whatever is to be a folder is one, or is not there."""
    own = (TRANSCRIPTS, f"{TRANSCRIPTS}/prefixes", OUTPUTS, OWN_FOLDER, str(Path(MEMORY_INDEX).parent))
    for name in (*own, *PLACES):
        place = workspace.root / name
        is_folder = os.path.isdir(place)  # noqa: PTH112 (Path.is_dir raises for what is closed)
        if os.path.lexists(place) and not is_folder:
            yield Diagnostic(name, None, "is no folder", "move it away")
        elif is_folder and not os.access(place, os.R_OK | os.X_OK):
            yield Diagnostic(name, None, "cannot be listed", "give yourself the right to it")


# Documents

_Check = Callable[[bytes, str], list[Diagnostic]]


def _documents(workspace: Workspace) -> Iterator[Diagnostic]:
    checks: dict[str, _Check] = {
        PLAN: lambda data, name: Plan.parse(data, name).diagnostics,
        TODO: lambda data, name: Todo.parse(data, name).diagnostics,
        MEMORY_INDEX: lambda data, name: _index(data, name, workspace.root),
    }
    for path, name in _live_files(workspace):
        is_source = name.startswith(f"{OWN_FOLDER}/sources/")
        check = _source if is_source else checks.get(name, _prose)
        yield from _check_file(path, name, check)
    yield from _skills(workspace)
    yield from Folder(workspace.root, lambda: "").faults()


def _skills(workspace: Workspace) -> Iterator[Diagnostic]:
    catalog, tools = find_skills(workspace, str), load_tools().tools
    yield from catalog.faults
    yield from filter(None, (foreign_tools(skill, tools) for skill in catalog.skills))


def _instructions(workspace: Workspace, environment: Mapping[str, str]) -> Iterator[Diagnostic]:
    try:
        settings, _ = load_settings(workspace.root, workspace.user_dir, environment, {})
    except StateError:
        return  # which the settings' own check has said
    yield from check_instructions(workspace, limits_of(settings), Masker(environment).mask)


def _live_files(workspace: Workspace) -> Iterator[tuple[Path, str]]:
    """Every file that a source reads but skills, and how it is called."""
    for pattern in dict.fromkeys(pattern for source in load_sources() for pattern in source.watches):
        pattern = pattern.removeprefix(IMPORTS)
        if pattern in PATTERNS or pattern.startswith(NESTED):
            continue
        folder, shown = workspace.root, ""
        if pattern.startswith(USER):
            folder, shown, pattern = workspace.user_dir, "~/", pattern.removeprefix(USER)
        if pattern.startswith(CHAIN):
            names = pattern.removeprefix(CHAIN).split("|")
            for link in workspace.chain():
                yield from ((link / name, workspace.relative(link / name)) for name in names)
            continue
        last = pattern.rpartition("/")[2]
        paths = sorted(folder.glob(pattern)) if "*" in last else [folder / pattern]
        yield from ((path, shown + path.relative_to(folder).as_posix()) for path in paths)


def _check_file(path: Path, name: str, check: _Check) -> list[Diagnostic]:
    try:
        data = read(path, limit_bytes=MAX_STATE_BYTES).data
    except StateError as error:
        return [Diagnostic(name, None, str(error).removeprefix(f"{path}: "))]
    if data is None:
        is_link = path.is_symlink()
        return [Diagnostic(name, None, "is a link that leads nowhere", "mend or delete the link")] if is_link else []
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        return [Diagnostic(name, line, "holds a NUL byte, so it is no text", "save it as UTF-8")]
    return check(data, name)


def _prose(data: bytes, name: str) -> list[Diagnostic]:
    return [problem for problem in Document.parse(data, name).diagnostics if "UTF" in problem.message]


def _index(data: bytes, name: str, root: Path) -> list[Diagnostic]:
    """The memory index: every record that it links to is there."""
    faults = _prose(data, name)
    folder = (root / name).parent
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        for target in _LINK.findall(line):
            if ":" not in target and not (folder / target).exists():
                faults.append(Diagnostic(name, number, f"{target} is not there", "restore it or take the line out"))
    return faults


def _source(data: bytes, name: str) -> list[Diagnostic]:
    """A source of the workspace's own: its fields, and a command that waits."""
    document = check_source(Document.parse(data, name))
    if document.fields.get("command"):
        document.complain("command", "is not run", "commands that come with a workspace wait for your trust")
    return document.diagnostics


# Transcripts


def _transcripts(workspace: Workspace) -> Iterator[Diagnostic]:
    folder = workspace.root / TRANSCRIPTS
    prefixes = PrefixStore(folder, workspace.user_dir)
    try:
        sessions = list_sessions(folder)
    except StateError:
        return  # which the folder's own check has said
    for session in sessions:
        yield from _transcript(session.path, workspace.relative(session.path), prefixes)


def _transcript(path: Path, name: str, prefixes: PrefixStore) -> Iterator[Diagnostic]:
    try:
        data = read(path).data
    except StateError as error:
        yield Diagnostic(name, None, str(error).removeprefix(f"{path}: "))
        return
    if data is None:
        yield Diagnostic(name, None, "is a link that leads nowhere", "mend or delete the link")
        return
    parsed = parse(data, name)
    version = parsed.header.get("format", "")
    if version != str(FORMAT):
        said = f"has format {version}" if version else "has no format in its frontmatter"
        yield Diagnostic(
            name, 1, f"{said}, this tinyclaw writes {FORMAT}", "update tinyclaw, or restore the first lines"
        )
    yield from parsed.diagnostics
    if parsed.torn_at is not None:
        line = data.count(b"\n", 0, parsed.torn_at) + 1
        yield Diagnostic(name, line, "its last block was cut off", "resume the session, or delete that block")
    conversation = conversation_of(parsed.blocks)
    for note in conversation.notes:
        yield _placed(name, note)
    if conversation.prefix and prefixes.load(conversation.prefix) is None:
        place = f"{TRANSCRIPTS}/prefixes/{conversation.prefix}.md"
        yield Diagnostic(
            place, None, f"is gone or was changed, {name} names it", "restore it; a resume makes a new one"
        )


def _placed(name: str, note: str) -> Diagnostic:
    found = re.match(r"line (\d+): (.*)", note, re.DOTALL)
    return Diagnostic(name, int(found[1]), found[2]) if found else Diagnostic(name, None, note)


def _locks(workspace: Workspace) -> Iterator[Diagnostic]:
    for path in sorted((workspace.root / TRANSCRIPTS).glob("*.lock")):
        if not is_locked(path.with_suffix(".md")):
            message = "was left by a process that is gone"
            yield Diagnostic(workspace.relative(path), None, message, "it does no harm; delete it")


def _leftovers(workspace: Workspace) -> Iterator[Diagnostic]:
    """Hidden files of writes that a crash cut short; a session's start clears those where it was writing."""
    for folder, below, _ in os.walk(workspace.root):
        below[:] = [name for name in below if name not in (".git", "node_modules")]
        with suppress(OSError):
            for path in find_leftovers(Path(folder)):
                message = "is left of a write that was cut short and may hold somebody's save"
                yield Diagnostic(workspace.relative(path), None, message, "look into it, then delete it")


# Around the workspace


def _repository(workspace: Workspace) -> Iterator[Diagnostic]:
    if shutil.which("git") is None:
        yield Diagnostic("git", None, "is not installed", "install it to have its facts in the prompt")
    if not (workspace.root / ".git").exists() or not (workspace.root / TRANSCRIPTS).is_dir():
        return
    for name, lines in ((".gitignore", IGNORED), (".gitattributes", ATTRIBUTES)):
        try:
            missing = missing_lines(read(workspace.root / name).data, lines)
        except StateError as error:
            yield Diagnostic(name, None, str(error).removeprefix(f"{workspace.root / name}: "))
            continue
        if missing:
            yield Diagnostic(name, None, f"lacks {', '.join(missing)}", "add it with: tinyclaw init")


def _surroundings(workspace: Workspace, environment: Mapping[str, str]) -> Iterator[Diagnostic]:
    from tinyclaw.model.connection import Endpoint

    if not os.access(workspace.root, os.W_OK):
        yield Diagnostic(
            str(workspace.root), None, "cannot be written", "give write access; transcripts are kept there"
        )
    try:
        Endpoint.from_environment(environment)
    except ModelError as error:
        yield Diagnostic("environment", None, str(error))
