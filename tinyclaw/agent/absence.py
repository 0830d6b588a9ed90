"""Why a file, or a text, is not in a request: what became of it, or why it never came in."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import PurePosixPath

from tinyclaw.agent.scene import Scene
from tinyclaw.agent.why import Trace, line_of
from tinyclaw.context.manifest import Entry
from tinyclaw.errors import StateError
from tinyclaw.state.skills import FILE_NAMES
from tinyclaw.state.snapshot import StateFile
from tinyclaw.state.transcript.content import call_of
from tinyclaw.state.transcript.grammar import Block
from tinyclaw.state.transcript.prefixes import Prefix, PrefixBlock
from tinyclaw.state.workspace import MEMORY_INDEX, OUTPUTS, OWN_FOLDER, TRANSCRIPTS
from tinyclaw.tools._search import SECONDS, find_lines
from tinyclaw.tools._searcher import Grep
from tinyclaw.tools._skills import LOAD_SKILL
from tinyclaw.types import Diagnostic, Interrupt, ToolUse

_SAID = frozenset({"text", "tool_use", "tool_result", "state", "thinking", "raw"})
_MOST = 5
_BY_THEMSELVES = (
    "only PLAN.md, TODO.md, the AGENTS.md of the folders from the root down to where you stand and of those that a "
    "call touched, with what they import, the memory's index, the skills' names and descriptions and "
    ".tinyclaw/sources/*.md come in by themselves"
)


def file_named(scene: Scene, text: str) -> str:
    """The workspace's file that ``text`` names, or one that a call of the session named; "" when it is none."""
    try:
        path = scene.workspace.resolve(text)
    except StateError:
        return ""
    name = path.relative_to(scene.workspace.root).as_posix()
    is_file = os.path.isfile(path)  # noqa: PTH113 (Path.is_file raises for a name that is too long)
    is_called = any(_path(scene, call) == name for call, _ in _calls(scene, scene.blocks))
    return name if is_file or is_called or _import_faults(scene, name) else ""


def _import_faults(scene: Scene, name: str) -> list[Diagnostic]:
    """Why instructions that import a file of that name do not bring it in."""
    return [fault for fault in scene.snapshot.import_faults if fault.message.startswith(f"@{name} ")]


def file_traces(scene: Scene, name: str) -> list[Trace]:
    """Where the request has the file itself: in the prefix, as it was stated, or as the model read it."""
    found = []
    for pinned in scene.prefix.blocks:
        if pinned.path == name:
            entry = scene.manifest.entries.get(pinned.id, Entry("out", 0))
            facts = [f"lines {entry.lines}" if entry.lines else "", entry.note]
            what = ", ".join(["in the prefix", *filter(None, facts)])
            found.append(Trace(name, what, scene.since_prefix(_holding(pinned)), ""))
    for block in scene.shown:
        if block.kind == "state" and block.attrs.get("path") == name:
            what = f"stated ({block.attrs.get('how')}), {scene.line(block)}"
            found.append(Trace(name, what, scene.since(block), ""))
    for block in scene.shown:
        records = block.attrs.get("records")
        if block.kind == "state" and isinstance(records, dict) and name in records:
            cut = "" if name in (block.attrs.get("revisions") or {}) else ", cut"
            found.append(Trace(name, f"chosen for the turn{cut}, {scene.line(block)}", scene.since(block), ""))
    for call, _ in _calls(scene, scene.blocks[: scene.end]):
        result = _result(scene, call)
        if (
            _is_read(scene, call, result, name)
            and result is not None
            and not result.attrs.get("is_error")
            and _is_shown(scene, result)
        ):
            found.append(Trace(name, f"read by the model, {scene.line(result)}", scene.since(result), ""))
    return found


def _is_read(scene: Scene, call: ToolUse, result: Block | None, name: str) -> bool:
    """Whether a call was one that shows the file ``name``."""
    if call.name == LOAD_SKILL and result is not None:
        revisions = result.attrs.get("revisions")
        return isinstance(revisions, dict) and name in revisions
    return call.name == "read" and _path(scene, call) == name


def file_absence(scene: Scene, name: str) -> list[str]:
    """Why the file is not in the request, a sentence each."""
    reasons = [entry.note for entry in scene.manifest.entries.values() if entry.file == name and entry.place == "out"]
    reasons += [str(fault) for fault in _import_faults(scene, name)]
    reasons += [str(file.problem) for file in scene.files if file.path == name and file.problem]
    about = [found for found in _calls(scene, scene.blocks[: scene.end]) if _path(scene, found[0]) == name]
    reasons += [_fate_of_call(scene, call, block) for call, block in about]
    after = scene.blocks[scene.end :]
    later = [found for found in _calls(scene, after) if _path(scene, found[0]) == name]
    reasons += [f"{call.name} was called for it only later, {scene.place(block)}" for call, block in later[:1]]
    stated = [block for block in after if block.kind == "state" and block.attrs.get("path") == name]
    reasons += [f"it was told for the first time only later, {scene.place(block)}" for block in stated[:1]]
    return reasons or [*_by_place(scene, name)]


def text_absence(scene: Scene, text: str) -> list[str]:
    """Why a text is not in the request: where it is, or was, and what kept it out."""
    having = [block for block in scene.blocks if block.kind in _SAID and any(text in part for part in block.parts)]
    before = {id(block) for block in scene.blocks[: scene.end]}
    hidden = [block for block in having if id(block) in before and not _is_shown(scene, block)]
    later = [block for block in having if id(block) not in before]
    reasons = [f"{scene.place(block)} has it: {_fate(scene, block)}" for block in hidden]
    reasons += [f"{scene.place(block)} has it: it came later" for block in later[:1]]
    reasons += [reason for file in scene.files if text in file.text for reason in _file_has_it(scene, file, text)]
    reasons += [f"{place} has it: of that result only head and tail were sent" for place in _stored(scene, text)]
    return reasons[:_MOST] or [
        "nothing that was said, called or answered in this session has it, nor a live file"
        + ("" if len(text.split()) > 1 else "; and no file here has that name")
    ]


def _file_has_it(scene: Scene, file: StateFile, text: str) -> Iterator[str]:
    place = scene.line_in(file.path, text)
    if file.path.rpartition("/")[2] in FILE_NAMES:
        yield f"{place} has it: of a skill only name and description are in the prompt, until the model loads it"
        return
    entry = next((entry for entry in scene.manifest.entries.values() if entry.file == file.path), None)
    if entry is not None and entry.revision == file.revision:
        yield f"{place} has it: {entry.note or f'of this file lines {entry.lines} are in'}"
    else:
        yield f"{place} has it now: the request was made before that was saved"


def _stored(scene: Scene, text: str) -> list[str]:
    """Where the kept outputs of the workspace have the text."""
    if not (scene.workspace.root / OUTPUTS).is_dir() or "\n" in text:
        return []
    query = Grep(str(scene.workspace.root), OUTPUTS, [], re.escape(text), "", False, 0, _MOST, SECONDS)
    lines = find_lines(query, Interrupt()).lines
    return [":".join(line.split(":")[:2]) for line in lines if line.startswith(OUTPUTS)]


def _calls(scene: Scene, blocks: Sequence[Block]) -> Iterator[tuple[ToolUse, Block]]:
    yield from ((call_of(block), block) for block in blocks if block.kind == "tool_use")


def _holding(pinned: PrefixBlock) -> Callable[[Prefix], bool]:
    return lambda prefix: pinned in prefix.blocks


def _path(scene: Scene, call: ToolUse) -> str:
    """The workspace's file that a call is about, "" when none."""
    path = call.input.get("path")
    try:
        return scene.workspace.relative(scene.workspace.resolve(path)) if isinstance(path, str) else ""
    except StateError:
        return ""


def _result(scene: Scene, call: ToolUse) -> Block | None:
    results = (block for block in scene.blocks[: scene.end] if block.kind == "tool_result")
    return next((block for block in results if block.attrs.get("id") == call.id), None)


def _fate_of_call(scene: Scene, call: ToolUse, block: Block) -> str:
    result = _result(scene, call)
    at = f"{scene.place(block)} ({_request(scene.since(result) if result is not None else None)})"
    if result is None:
        return f"{at}: {call.name} was called, and was not answered before this request"
    if result.attrs.get("is_error"):
        return f"{at}: {call.name} failed: {line_of(result.text, '')}"
    if call.name != "read":
        return f"{at}: {call.name} changed it; what that answers is not the file's text"
    return f"{at}: it was read; {_fate(scene, result)}"


def _fate(scene: Scene, block: Block) -> str:
    """What became of a block that the request does not show."""
    identity = str(block.attrs.get("id") or "")
    if block.kind == "tool_result" and identity in scene.conversation.cleared:
        clears = [each for each in scene.blocks if each.kind == "clear" and identity in _results(each)]
        since = scene.since(clears[0]) if clears else None
        cleared = f"the result was cleared to save room, {_request(since)}"
    else:
        cleared = ""
    summary = scene.conversation.summary
    number, keep = block.attrs.get("m"), summary.attrs.get("keep") if summary is not None else 0
    if summary is not None and isinstance(number, int) and isinstance(keep, int) and number < keep:
        hidden = f"a summary stands for it, {_request(scene.since(summary))}, {scene.place(summary)}"
        return f"{cleared}; now {hidden}" if cleared else hidden
    if cleared:
        return cleared
    if block.kind == "thinking":
        return "thinking goes back only unchanged, and to the model that it came from"
    return "it was taken out of the conversation (an unticked turn, or a rewind)"


def _results(clear: Block) -> Container[str]:
    results = clear.attrs.get("results")
    return results if isinstance(results, dict) else ()


def _request(number: int | None) -> str:
    return "with the next request" if number is None else f"since request {number}"


def _is_shown(scene: Scene, block: Block) -> bool:
    """Whether the request shows what a block says."""
    if block.kind == "tool_result" and str(block.attrs.get("id")) in scene.conversation.cleared:
        return False
    return any(each is block for each in scene.shown)


def _by_place(scene: Scene, name: str) -> Iterator[str]:
    """Why a file of that name, in that folder, does not come in by itself, and no call asked for it."""
    first, last = PurePosixPath(name).parts[0], PurePosixPath(name).name
    folder = str(PurePosixPath(name).parent)
    if name.startswith(f"{OWN_FOLDER}/sources/"):
        yield "when the request was made it was not there, or not as it is now"
    elif first in (TRANSCRIPTS, OUTPUTS, OWN_FOLDER):
        yield f"{first}/ is tinyclaw's own; nothing in it comes in by itself, and no call of this session read it"
    elif first == PurePosixPath(MEMORY_INDEX).parts[0]:
        yield (
            f"of the memory {MEMORY_INDEX} comes in, and records that are chosen for a turn; this one was not, and no "
            "call of this session read it"
        )
    elif last in FILE_NAMES:
        yield "of a skill only name and description come in; no call of this session loaded it"
    elif last == "CLAUDE.md" and (scene.workspace.root / folder / "AGENTS.md").is_file():
        yield "its folder has an AGENTS.md, which is read in its place"
    elif last in ("AGENTS.md", "CLAUDE.md"):
        yield f"{folder} is not on the way from the root to where you stand ({_stand(scene)})"
        yield _untouched(scene, folder)
    else:
        yield f"no call of this session named it before this request, and {_BY_THEMSELVES}"


def _untouched(scene: Scene, folder: str) -> str:
    """Why the agent's way did not bring the instructions of a folder in."""
    if any(f"{touched}/".startswith(f"{folder}/") for touched in scene.conversation.touched):
        return "a call touched it, but nothing is read that git ignores, or that lies in node_modules or tinyclaw's own"
    return "no call touched it before this request"


def _stand(scene: Scene) -> str:
    return scene.workspace.relative(scene.workspace.cwd)
