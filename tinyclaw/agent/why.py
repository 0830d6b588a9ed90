"""Why a text is in a request, or a file is not: from which file and line, and since which request.

Everything is told from what the transcript, the prefix files and the workspace say; nothing is recorded for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tinyclaw.agent.scene import Scene
from tinyclaw.context.wire import SUMMARY, stated_path
from tinyclaw.prompts import prompt_path
from tinyclaw.state.skills import catalog_of
from tinyclaw.state.transcript.fold import Message
from tinyclaw.state.transcript.grammar import Block
from tinyclaw.state.transcript.prefixes import PrefixBlock
from tinyclaw.state.transcript.statements import RECORDS
from tinyclaw.types import Json, ToolUse

_LINE_CHARS = 160
_NO_PROSE = frozenset({"type", "id", "tool_use_id", "signature", "data", "media_type", "cache_control"})


@dataclass(frozen=True)
class Trace:
    """One place that put a text into a request.

    ``place`` is a file, with its line where that can be told; ``what`` says how it came in; ``since`` is the first
    request that held it, None for one that is not sent yet; ``line`` is the line with the text.
    """

    place: str
    what: str
    since: int | None
    line: str


def traces(scene: Scene, text: str) -> list[Trace]:
    """Every place from which ``text``, to the letter, came into the request, in the order of the request."""
    found = list(_of_tools(scene, text))
    for block in scene.prefix.blocks:
        if text in block.text:
            found.append(_of_prefix(scene, block, text))
    calls: dict[str, ToolUse] = {}
    for message in scene.messages:
        calls |= {call.id: call for call in message.calls}
        for wire in message.wire["content"]:
            if (said := next((leaf for leaf in leaves(wire) if text in leaf), None)) is not None:
                found.append(_of_message(scene, message, wire, said, text, calls))
    return found


def leaves(value: object) -> Iterator[str]:
    """Every text in a piece of a request that a model reads."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in _NO_PROSE:
                yield from leaves(item)


def _of_tools(scene: Scene, text: str) -> Iterator[Trace]:
    for tool in scene.prefix.tools:
        said = next((leaf for leaf in leaves(tool) if text in leaf), None)
        if said is not None:
            since = scene.since_prefix(lambda prefix: any(text in leaf for leaf in leaves(list(prefix.tools))))
            yield Trace(f"the tool {tool['name']}", "as it is described to the model", since, line_of(said, text))


def _of_prefix(scene: Scene, block: PrefixBlock, text: str) -> Trace:
    source = block.id.partition(":")[0]
    line = line_of(block.text, text)
    since = scene.since_prefix(lambda prefix: any(each.id == block.id and text in each.text for each in prefix.blocks))
    path = block.path
    if path.startswith("("):  # the catalog, whose lines name skills
        path = _skill_named(scene, line.removeprefix("- ").partition(":")[0])
    template = prompt_path(scene.workspace.user_dir, source)
    if path:
        place = scene.line_in(path, text)
    else:
        place = f"{template}:{_line_number(block.text, text)}" if template else f"the prompt's part {source}"
    return Trace(place, f"source {source}, in the prefix", since, line)


def _skill_named(scene: Scene, name: str) -> str:
    """The file of the skill that a line of the catalog names, "" when there is none."""
    skill = catalog_of(scene.snapshot).find(name)
    return skill.path if skill is not None else ""


def _of_message(scene: Scene, message: Message, wire: Json, said: str, text: str, calls: dict[str, ToolUse]) -> Trace:
    block = _block_of(message, wire, said)
    since = scene.since(block) if block is not None else None
    here = scene.line(block)
    line = line_of(said, text)
    if (path := stated_path(said)) == RECORDS:
        place = next((place for name in _records(block) if (place := scene.line_in(name, text)) != name), here)
        return Trace(place, f"a record that was chosen for the turn, {here}", since, line)
    if path:
        how = str(block.attrs.get("how", "")) if block is not None else ""
        return Trace(
            scene.line_in(path, text) if path[0] != "(" else here, f"stated ({how}), {scene.line(block)}", since, line
        )
    kind = wire["type"]
    if kind == "tool_result":
        call = calls.get(wire["tool_use_id"])
        path = str(call.input.get("path", "")) if call is not None and call.name == "read" else ""
        place = scene.line_in(path, text) if path else here
        name = call.name if call is not None else "a call"
        return Trace(place, f"the result of {name}{f' {path}, {scene.line(block)}' if path else ''}", since, line)
    if kind == "tool_use":
        return Trace(here, f"the model's call of {wire['name']}", since, line)
    if message.wire["role"] == "assistant":
        return Trace(here, f"the model's {kind}", since, line)
    return Trace(here, "the summary" if said.startswith(SUMMARY) else "you said it", since, line)


def _records(block: Block | None) -> list[str]:
    """The files of the memory records that a block quotes."""
    records = block.attrs.get("records") if block is not None else None
    return list(records) if isinstance(records, dict) else []


def _block_of(message: Message, wire: Json, said: str) -> Block | None:
    """The transcript's block that a piece of a message came from."""
    blocks = [block for group in message.groups for block in group.blocks]
    identity = wire.get("tool_use_id") or wire.get("id")
    if identity:
        kind = wire["type"]
        return next((each for each in blocks if each.kind == kind and each.attrs.get("id") == identity), None)
    return next((each for each in blocks if any(part and (part in said or said in part) for part in each.parts)), None)


def line_of(text: str, part: str) -> str:
    """The line of ``text`` in which ``part`` begins, cut where it is long."""
    at = text.find(part)
    start = text.rfind("\n", 0, at) + 1
    line = text[start:].split("\n", 1)[0].strip()
    return line if len(line) <= _LINE_CHARS else line[: _LINE_CHARS - 1] + "…"


def _line_number(text: str, part: str) -> int:
    return text.count("\n", 0, text.find(part)) + 1
