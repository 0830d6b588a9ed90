"""Frontmatter as text that a person typed: every scalar stays the string that stands in the file.

A block is read whole if YAML can read it. If not, each field is read by itself, so that one fault costs
one field; a field that YAML cannot give in full is taken as plain text, and that is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

Value = str | list["Value"] | dict[str, "Value"]

MAX_BLOCK_CHARACTERS = 64 * 1024
_MAX_DEPTH = 20
_QUOTE = "quote the value"

_KEY = re.compile(r"""(?P<key>"[^"]*"|'[^']*'|[^\s#"'\[\]{},&*!|>%@`?-].*?)[ \t]*:(?=[ \t]|$)""")

# What YAML takes for a line break or refuses, tab and newline apart, is read as a private character and given back.
_FOREIGN_CODES = (*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)
_FOREIGN = re.compile(f"[{''.join(map(chr, _FOREIGN_CODES))}]")
_STAND_IN = re.compile("[\U00100000-\U0010ffff]")
_AWAY = {code: 0x100000 + code for code in _FOREIGN_CODES}
_BACK = {stand_in: code for code, stand_in in _AWAY.items()}


@dataclass(frozen=True)
class Field:
    """One field of a block. Lines count from 0, ``end_line`` is the first that is no longer its own.

    The value begins in line ``colon_line`` behind the colon at ``value_column``. ``span`` is its (line, column,
    end line, end column), None where it takes all the rest of its lines.
    """

    name: str
    value: Value
    line: int
    end_line: int
    colon_line: int
    value_column: int
    span: tuple[int, int, int, int] | None = None


@dataclass(frozen=True)
class Fault:
    """A line, counted from 0, what is wrong there and how to mend it."""

    line: int
    message: str
    mend: str = ""


@dataclass(frozen=True)
class Block:
    """What a frontmatter block says. ``is_mapping`` is False for text that is no frontmatter at all."""

    fields: tuple[Field, ...] = ()
    faults: tuple[Fault, ...] = ()
    is_mapping: bool = True
    is_flow: bool = False


def read_block(text: str) -> Block:
    """Read what stands between the fences, lines ending in ``\\n``. Never raises."""
    if len(text) > MAX_BLOCK_CHARACTERS:
        size = f"the frontmatter is too large ({len(text):,} characters, the limit is {MAX_BLOCK_CHARACTERS:,})"
        return Block(faults=(Fault(0, size, "shorten it or move text into the body"),))
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if _KEY.match(line)]
    try:
        block = _read_whole(text, lines)
    except _Unreadable:
        if not starts:
            return Block(is_mapping=False)
        block = _read_each(lines, starts)
    return _without_duplicates(block)


class _Unreadable(Exception):
    """YAML cannot read a text, or not all of it."""


@dataclass(frozen=True)
class _Node:
    """A value and where it stands. ``fault`` says why the value is not what the person typed."""

    value: Value
    span: tuple[int, int, int, int]
    style: str = ""
    fault: str = ""


def _read_whole(text: str, lines: list[str]) -> Block:
    pairs, is_flow = _parse(text)
    lines_of_keys = [key.span[0] for key, _ in pairs]
    ends = [*lines_of_keys, len(lines)][1:]
    fields, faults = [], []
    for (key, node), end in zip(pairs, ends, strict=True):
        field, fault = _field(key, node, lines, _trimmed_end(lines, key.span[0], max(end, key.span[0] + 1)), is_flow)
        fields.append(field)
        faults += [fault] if fault else []
    return Block(tuple(fields), tuple(faults), is_flow=is_flow)


def _field(key: _Node, node: _Node, lines: list[str], end: int, is_flow: bool) -> tuple[Field, Fault | None]:
    line, column = key.span[2:]
    after_colon = column if is_flow else lines[line].find(":", column) + 1
    name = str(key.value)
    fault = node.fault or (_cut_by_hash(node, lines) if not is_flow else "")
    if not fault or is_flow:
        span = node.span if node.style in ("plain", "quoted") else None
        return Field(name, node.value, key.span[0], end, line, after_colon, span), Fault(line, fault) if fault else None
    field = Field(name, _raw(lines, line, end, after_colon), key.span[0], end, line, after_colon)
    return field, Fault(line, f'"{name}" {fault}', _QUOTE)


def _cut_by_hash(node: _Node, lines: list[str]) -> str:
    """A fault where YAML takes the rest of a plain value for a comment and a person hardly meant one: ``fix #12``."""
    if node.style != "plain" or node.span[0] != node.span[2]:
        return ""
    rest = lines[node.span[2]][node.span[3] :]
    return "holds a # that YAML takes for a comment" if re.match(r"[ \t]+#[^\s#]", rest) else ""


def _read_each(lines: list[str], starts: list[int]) -> Block:
    fields: list[Field] = []
    faults = [
        Fault(number, f'"{line.strip()}" is no field', 'write it as "name: value"')
        for number, line in enumerate(lines[: starts[0]])
        if line.strip() and not line.lstrip().startswith("#")
    ]
    for start, limit in zip(starts, [*starts[1:], len(lines)], strict=True):
        field, found = _read_alone(lines, start, _trimmed_end(lines, start, limit))
        fields.append(field)
        faults += found
    return Block(tuple(fields), tuple(faults))


def _read_alone(lines: list[str], start: int, end: int) -> tuple[Field, list[Fault]]:
    """One field by itself: as YAML, as YAML once leading tabs are spaces, or as plain text."""
    before = [""] * start
    own = lines[start:end]
    untabbed = [re.sub(r"^[ ]*\t[ \t]*", lambda lead: lead[0].expandtabs(4), line) for line in own]
    for attempt in (own, untabbed):
        try:
            block = _read_whole("\n".join([*before, *attempt, ""]), before + attempt)
        except _Unreadable:
            continue
        if len(block.fields) == 1:
            tab = next(
                (start + i for i, (line, other) in enumerate(zip(own, attempt, strict=True)) if line != other), None
            )
            tabs = [] if tab is None else [Fault(tab, "is indented by a tab", "indent it by spaces")]
            field = block.fields[0]
            return replace(field, end_line=end, span=None if tabs else field.span), [*tabs, *block.faults]
    key = _KEY.match(lines[start])
    assert key is not None
    name = key["key"].strip("\"'")
    field = Field(name, _raw(lines, start, end, key.end()), start, end, start, key.end())
    return field, [Fault(start, f'"{name}" is no valid YAML and is taken as plain text', _QUOTE)]


def _raw(lines: list[str], line: int, end: int, column: int) -> str:
    """A field's text as it stands, its lines joined by blanks as YAML would fold them."""
    return " ".join(
        part for part in (lines[line][column:].strip(), *(text.strip() for text in lines[line + 1 : end])) if part
    )


def _trimmed_end(lines: list[str], start: int, end: int) -> int:
    """``end`` without the blank lines and unindented comments before it."""
    while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    return end


def _without_duplicates(block: Block) -> Block:
    """The first of several fields of one name counts: it is the one that people see first."""
    first: dict[str, Field] = {}
    faults = list(block.faults)
    for field in block.fields:
        if field.name in first:
            lines_up = field.line - first[field.name].line
            message = f'"{field.name}" stands here again; the first one, {lines_up} lines up, counts'
            faults.append(Fault(field.line, message, "remove one"))
        first.setdefault(field.name, field)
    return Block(
        tuple(first.values()), tuple(sorted(faults, key=lambda fault: fault.line)), block.is_mapping, block.is_flow
    )


def _parse(text: str) -> tuple[list[tuple[_Node, _Node]], bool]:
    """Keys and values in the order of the text, and whether the mapping is in braces.

    Raises: _Unreadable when the text is no YAML mapping.
    """
    from frontmatter.default_handlers import YAMLHandler
    from yaml import YAMLError

    if _STAND_IN.search(text):
        raise _Unreadable("holds characters of private plane 16")
    readable = text.translate(_AWAY) if _FOREIGN.search(text) else text
    try:
        found: tuple[list[tuple[_Node, _Node]], bool] | None = YAMLHandler().load(readable, Loader=_loader())
    except (YAMLError, ValueError) as error:
        raise _Unreadable(str(error)) from error
    if found is None:
        raise _Unreadable("no mapping")
    return found


@cache
def _loader() -> Any:
    """A YAML loader that answers with ``_parse``'s pairs; made once, as importing yaml is slow."""
    import yaml

    base = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

    class TextLoader(base):  # type: ignore[misc, valid-type]
        def get_single_data(self) -> tuple[list[tuple[_Node, _Node]], bool] | None:
            return _Events(self.get_event).document()

    return TextLoader


@dataclass(frozen=True)
class _Events:
    """Builds values from YAML's events: aliases are never followed, depth is bounded, scalars stay text."""

    get_event: Callable[[], Any]

    def document(self) -> tuple[list[tuple[_Node, _Node]], bool] | None:
        """The pairs of the one mapping, or None when the text is something else."""
        self.get_event()  # the stream begins
        if _kind(self.get_event()) == "StreamEnd":
            return [], False
        event = self.get_event()
        if _kind(event) != "MappingStart":
            return None
        pairs = list(self._pairs(0))
        self.get_event()  # the document ends
        return (pairs, bool(event.flow_style)) if _kind(self.get_event()) == "StreamEnd" else None

    def _pairs(self, depth: int) -> Iterator[tuple[_Node, _Node]]:
        while _kind(event := self.get_event()) != "MappingEnd":
            key = self._node(event, depth)
            if not isinstance(key.value, str) or key.fault:
                raise _Unreadable("a key that is no plain text")
            yield key, self._node(self.get_event(), depth)

    def _items(self, depth: int) -> Iterator[_Node]:
        while _kind(event := self.get_event()) != "SequenceEnd":
            yield self._node(event, depth)

    def _node(self, event: Any, depth: int) -> _Node:
        if depth > _MAX_DEPTH:
            raise _Unreadable("nested too deeply")
        kind, start, end = _kind(event), event.start_mark, event.end_mark
        span = (start.line, start.column, end.line, end.column)
        if kind == "Alias":
            return _Node("", span, fault="uses a YAML alias and is taken as plain text")
        fault = "begins with & or ! and is taken as plain text" if event.anchor or event.tag else ""
        if kind == "Scalar":
            return _Node(event.value.translate(_BACK), span, _STYLES.get(event.style, "plain"), fault)
        style = "flow" if event.flow_style else "block"
        if kind == "SequenceStart":
            items = list(self._items(depth + 1))
            return _Node([item.value for item in items], span, style, _first_fault(fault, items))
        pairs = list(self._pairs(depth + 1))
        values = {str(key.value): value.value for key, value in reversed(pairs)}  # the first of equal keys counts
        ordered = {str(key.value): values[str(key.value)] for key, _ in pairs}
        return _Node(ordered, span, style, _first_fault(fault, [value for _, value in pairs]))


_STYLES = {"'": "quoted", '"': "quoted", "|": "block", ">": "block"}


def _kind(event: Any) -> str:
    return type(event).__name__.removesuffix("Event")


def _first_fault(own: str, children: list[_Node]) -> str:
    return own or next((child.fault for child in children if child.fault), "")
