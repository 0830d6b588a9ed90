"""Frontmatter as the least lenient readers take it: the subset of YAML that StrictYAML accepts.

No flow style, anchors, aliases, tags or duplicate keys, and mappings side by side are indented alike
(https://hitchdev.com/strictyaml/features-removed/). Every scalar is text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tinyclaw.state._yaml import Fault, Value

_MAX_DEPTH = 50
_MEND = "put the value into quotes, or mend the line"
# YAML 1.2, which strict readers follow, takes these for characters as any other, and our parser for line breaks.
_AWAY = {0x85: 0x100085, 0x2028: 0x102028, 0x2029: 0x102029}
_BACK = {stand_in: code for code, stand_in in _AWAY.items()}


@dataclass
class StrictBlock:
    """The fields and their lines, counted from 0, as far as the text is accepted, and why it is not."""

    fields: dict[str, Value] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)


def read_strict_block(text: str) -> StrictBlock:
    """Read the fields in ``text``. Never raises."""
    import yaml

    block = StrictBlock()
    try:
        # Not the fast parser: it takes tabs and other things that strict readers refuse.
        events: list[Any] = list(yaml.parse(text.translate(_AWAY), Loader=yaml.BaseLoader))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position)
        block.faults.append(
            Fault(line, f"holds the control character U+{ord(text[error.position]):04X}", "take it out")
        )
        return block
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        block.faults.append(Fault(line, f"is no valid YAML ({error.problem})", _MEND))
        return block
    inner = [event for event in events if _kind(event) not in ("StreamStart", "StreamEnd", "DocumentEnd")]
    starts = [event for event in inner if _kind(event) == "DocumentStart"]
    content = [event for event in inner if _kind(event) != "DocumentStart"]
    if len(starts) > 1:
        line = starts[1].start_mark.line
        block.faults.append(Fault(line, "holds more than one YAML document", "take the line out"))
    elif not content or _kind(content[0]) != "MappingStart":
        block.faults.append(Fault(0, "the frontmatter holds no fields", 'write "name: value" lines'))
    else:
        reader = _Reader(iter(content), block.faults)
        try:
            block.fields = reader.mapping(next(reader.events), 0, block.lines)
        except _TooDeep as error:
            block.faults.append(Fault(error.args[0], "is nested too deeply", "flatten it"))
    return block


class _TooDeep(Exception):
    """Something in this line is nested deeper than is read."""


@dataclass
class _Reader:
    """Builds values from events and notes what is not accepted. Raises: _TooDeep."""

    events: Iterator[Any]
    faults: list[Fault]

    def mapping(self, start: Any, depth: int, lines: dict[str, int]) -> dict[str, Value]:
        self._check(start, depth)
        values: dict[str, Value] = {}
        indents: list[int] = []
        while _kind(key := next(self.events)) != "MappingEnd":
            name = self._value(key, depth)
            value = next(self.events)
            if _kind(value) == "MappingStart":
                indents.append(value.start_mark.column)
                if indents[-1] != indents[0]:
                    self._fault(value, "is indented by another width than the mapping before it", "indent both alike")
            held = self._value(value, depth)
            if not isinstance(name, str) or name == "<<":
                self._fault(key, "is no plain name of a field", 'write "name: value"')
            elif name in values:
                self._fault(key, f'"{name}" stands here again', "remove one")
            else:
                values[name] = held
                lines[name] = key.start_mark.line
        return values

    def _value(self, event: Any, depth: int) -> Value:
        kind = _kind(event)
        if kind == "MappingStart":
            return self.mapping(event, depth + 1, {})
        self._check(event, depth)
        if kind == "SequenceStart":
            items: list[Value] = []
            while _kind(item := next(self.events)) != "SequenceEnd":
                items.append(self._value(item, depth + 1))
            return items
        return str(event.value).translate(_BACK) if kind == "Scalar" else ""

    def _check(self, event: Any, depth: int) -> None:
        if depth >= _MAX_DEPTH:
            raise _TooDeep(event.start_mark.line)
        if _kind(event) == "Alias":
            self._fault(event, "begins with *, which is a YAML alias", "quote the value")
        elif event.anchor is not None or event.tag is not None:
            self._fault(event, "begins with & or !, which YAML takes for an anchor or a tag", "quote the value")
        elif getattr(event, "flow_style", False):
            self._fault(event, "is in brackets or braces, which strict readers refuse", "write it as text, or in lines")

    def _fault(self, event: Any, message: str, mend: str) -> None:
        self.faults.append(Fault(event.start_mark.line, message, mend))


def _kind(event: Any) -> str:
    return type(event).__name__.removesuffix("Event")
