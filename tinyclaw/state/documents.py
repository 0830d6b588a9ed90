"""Markdown documents with frontmatter: read leniently, edited by spans.

Whatever is wrong with a file, its text is there: as fields where they can be read, otherwise as body.
Each fault is one diagnostic. An edit changes the bytes of its own span and no others.

A frontmatter block opens with ``---`` on the first line that is not blank, and ends at the next line
``---`` or ``...``; blanks may follow both. Without its end, or where it is no YAML mapping, there is no
frontmatter and the whole text is body.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tinyclaw.errors import StateError
from tinyclaw.state._strict_yaml import read_strict_block
from tinyclaw.state._yaml import Block, Field, Value, read_block
from tinyclaw.types import Diagnostic

_OPENING = re.compile(r"\s*^---[ \t]*\r?\n", re.MULTILINE)
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_NEVER = re.compile("[\ud800-\udfff\U00100000-\U0010ffff]")
"""Half surrogates, which no UTF-8 has, and the last private plane, which libyaml misreads."""
_NOT_IN_QUOTES = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class _Frame(NamedTuple):
    """Where the block stands: its first character, the one after its last, and where the body begins."""

    start: int
    end: int
    body: int


@dataclass(frozen=True)
class Document:
    """One Markdown file.

    ``text`` is the whole without byte order mark, ``body`` what follows the frontmatter; both have ``\\n``
    for every CRLF. ``fields`` are the frontmatter's, all scalars as the person typed them, and
    ``field_lines`` their lines in the file, from 1, as is ``body_line``. ``source`` is the text with its
    own line ends. ``newline`` is what new lines end with. What cannot be written back is not ``writable``.
    """

    name: str
    data: bytes
    source: str
    text: str
    body: str
    body_line: int
    fields: Mapping[str, Value]
    field_lines: Mapping[str, int]
    newline: str
    has_bom: bool
    writable: bool
    diagnostics: list[Diagnostic] = field(default_factory=list, compare=False)
    _block: Block = field(default_factory=Block, repr=False)
    _frame: _Frame | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, data: bytes, name: str) -> Document:
        """Read a document. ``name`` stands in the diagnostics. Never raises."""
        source, has_bom, problems = _decode(data, name)
        frame, faults = _find_frame(source)
        block = read_block(_unix(source[frame.start : frame.end])) if frame else Block()
        line = source.count("\n", 0, frame.start) + 1 if frame else 1
        if frame and not block.is_mapping:
            faults.append((line, "the --- block holds no fields, so all is taken as text", 'write "name: value" lines'))
            frame, block = None, Block()
        faults += [(line + fault.line, fault.message, fault.mend) for fault in block.faults]
        body_at = frame.body if frame else 0
        return cls(
            name=name,
            data=data,
            source=source,
            text=_unix(source),
            body=_unix(source[body_at:]),
            body_line=source.count("\n", 0, body_at) + (2 if frame and source[body_at - 1] != "\n" else 1),
            fields={item.name: item.value for item in block.fields},
            field_lines={item.name: line + item.line for item in block.fields},
            newline="\r\n" if source.count("\r\n") * 2 > source.count("\n") else "\n",
            has_bom=has_bom,
            writable=not problems,
            diagnostics=problems + [Diagnostic(name, *fault) for fault in faults],
            _block=block,
            _frame=frame,
        )

    def string(self, name: str, default: str = "") -> str:
        """The field's text; ``default`` where it is missing or, with a diagnostic, blank or no text."""
        value = self.fields.get(name, default)
        if name not in self.fields:
            return default
        if not isinstance(value, str):
            kind = "a list" if isinstance(value, list) else "a mapping"
            self.complain(name, f'"{name}" is {kind}, not text', f'write "{name}: text"')
            return default
        if not value.strip():
            self.complain(name, f'"{name}" is empty', "give it a value or remove the line")
            return default
        return value.strip()

    def choice(self, name: str, allowed: Sequence[str], default: str) -> str:
        """The one of ``allowed`` that the field names, in whatever case; otherwise ``default``, with a diagnostic."""
        value = self.string(name, default)
        if value.casefold() in allowed:
            return value.casefold()
        if value != default:
            self.complain(name, f'"{value}" is no {name}', f"use {', '.join(allowed[:-1])} or {allowed[-1]}")
        return default

    def strings(self, name: str) -> tuple[str, ...]:
        """The texts of a list field; one text counts as a list of one. Anything else gives a diagnostic."""
        value = self.fields.get(name, [])
        if isinstance(value, str):
            return (value,) if value.strip() else ()
        texts = tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
        if len(texts) < len(value):
            self.complain(name, f'"{name}" is not a list of texts', f'write "{name}: [one, two]"')
        return texts

    def complain(self, name: str, message: str, mend: str) -> None:
        """Add a diagnostic about a field, once."""
        problem = Diagnostic(self.name, self.field_lines.get(name), message, mend)
        if problem not in self.diagnostics:
            self.diagnostics.append(problem)

    def set_field(self, name: str, value: str | Sequence[str]) -> bytes:
        """The document's bytes with one field set; the field, or the whole block, is added where it is missing.

        Texts in a sequence are written as a list, a line each.

        Raises: StateError when the file cannot be edited safely as it stands; the text says where and why.
        """
        if not _NAME.fullmatch(name):
            raise StateError(f'"{name}" cannot be the name of a field; use letters, digits, "-", "_" and "."')
        wanted: Value = storable(value) if isinstance(value, str) else [storable(item) for item in value]
        if self.fields.get(name) == wanted:
            return self.data
        self._check_closed()
        found = next((item for item in self._block.fields if item.name == name), None)
        written = _as_yaml(name, wanted, self.newline)
        if self._frame is None:
            edited = self.replaced(0, 0, f"---{self.newline}{name}:{written}{self.newline}---{self.newline}")
        elif found is None:
            edited = self.replaced(self._frame.end, self._frame.end, f"{name}:{written}{self.newline}")
        else:
            edited = self.replaced(*self._value_span(found), written)
        self._check(edited, name, wanted)
        return edited

    def with_body(self, text: str) -> bytes:
        """The document's bytes with another body, in the file's own line ends. Raises: StateError as ``set_field``."""
        self._check_closed()
        start = self._frame.body if self._frame else 0
        return self.replaced(start, len(self.source), text.replace("\n", self.newline))

    def replaced(self, start: int, end: int, text: str) -> bytes:
        """The document's bytes with characters ``start`` up to ``end`` of ``source`` exchanged for ``text``.

        Raises: StateError when the file is not UTF-8: its other bytes could not be kept.
        """
        if not self.writable:
            raise StateError(f"{self.name}: is not UTF-8 and was not changed; save it as UTF-8 first")
        changed = self.source[:start] + text + self.source[end:]
        return (codecs.BOM_UTF8 if self.has_bom else b"") + changed.encode()

    def _check_closed(self) -> None:
        if self._frame is None and (unclosed := _find_frame(self.source)[1]):
            raise StateError(
                f"{self.name}:{unclosed[0][0]}: the frontmatter is never closed; add a line --- below its fields"
            )

    def _value_span(self, found: Field) -> tuple[int, int]:
        """From behind the colon to the value's end, in characters of ``source``."""
        assert self._frame is not None
        lines = self.source[self._frame.start : self._frame.end].split("\n")
        offsets = [self._frame.start]
        for line in lines:
            offsets.append(offsets[-1] + len(line) + 1)
        start = offsets[found.colon_line] + found.value_column
        if found.span is not None:
            return start, offsets[found.span[2]] + found.span[3]
        last = lines[found.end_line - 1].removesuffix("\r")
        return start, offsets[found.end_line - 1] + len(last)

    def _check(self, edited: bytes, name: str, value: Value) -> None:
        """Read what is about to be written: the field must be there, and all else as it was."""
        again = Document.parse(edited, self.name)
        if again.fields != {**self.fields, name: value} or again.body != self.body:
            place = f"{self.name}:{self.field_lines.get(name, 1)}"
            raise StateError(
                f'{place}: "{name}" cannot be set without touching other text; mend the frontmatter by hand'
            )


@dataclass(frozen=True)
class StrictHead:
    """A document's frontmatter as strict readers take it. ``faults`` say why they do not, ``notes`` what they lose."""

    fields: Mapping[str, Value]
    field_lines: Mapping[str, int]
    faults: tuple[Diagnostic, ...]
    notes: tuple[Diagnostic, ...] = ()


def read_strictly(data: bytes, name: str) -> StrictHead:
    """The frontmatter as the reference reader of the Agent Skills spec takes it; ``name`` stands in what is said.

    The text begins with ``---``, and the next ``---`` ends the block wherever it stands. Never raises.
    """
    try:
        text = data.decode().replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return _refused(name, line, f"byte {data[error.start]:02x} is not UTF-8", "save it as UTF-8")
    if not text.startswith("---"):
        if text.startswith("\ufeff"):
            return _refused(name, 1, "begins with a byte order mark", "save it as UTF-8 without one")
        if text.lstrip().startswith("---"):
            return _refused(name, 1, "begins with blank lines or blanks", "begin the file with ---")
        return _refused(name, 1, "has no frontmatter", "begin the file with a line ---, the fields and another ---")
    parts = text.split("---", 2)
    if len(parts) < 3:
        return _refused(name, 1, "the frontmatter is never closed", "add a line --- below its fields")
    block = read_strict_block(parts[1])
    faults = tuple(Diagnostic(name, 1 + fault.line, fault.message, fault.mend) for fault in block.faults)
    notes: tuple[Diagnostic, ...] = ()
    if not parts[1].endswith("\n"):
        line = parts[1].count("\n") + 1
        message = "holds --- in the middle of a line, where strict readers end the frontmatter"
        notes = (Diagnostic(name, line, message, "write it with another dash"),)
    if faults and notes:
        faults, notes = notes, ()
    lines = {field: 1 + line for field, line in block.lines.items()}
    return StrictHead(block.fields, lines, faults, notes)


def _refused(name: str, line: int, message: str, mend: str) -> StrictHead:
    return StrictHead({}, {}, (Diagnostic(name, line, message, mend),))


def storable(text: str) -> str:
    """``text`` as a field can hold it: what YAML cannot carry is replaced by U+FFFD."""
    return _NEVER.sub("\ufffd", text)


def _decode(data: bytes, name: str) -> tuple[str, bool, list[Diagnostic]]:
    """The text without its byte order mark, whether it had UTF-8's, and why it cannot be written back."""
    mend = "save it as UTF-8 to have it edited"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace"), False, [Diagnostic(name, 1, "is UTF-16", mend)]
    has_bom = data.startswith(codecs.BOM_UTF8)
    content = data.removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode(), has_bom, []
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = Diagnostic(name, line, f"byte {content[error.start]:02x} is not UTF-8", mend)
        return content.decode(errors="replace"), has_bom, [problem]


def _find_frame(source: str) -> tuple[_Frame | None, list[tuple[int, str, str]]]:
    opening = _OPENING.match(source)
    if opening is None:
        return None, []
    closing = _CLOSING.search(source, opening.end())
    if closing is None:
        line = source.count("\n", 0, opening.end())
        return None, [
            (line, "the frontmatter is never closed, so all is taken as text", "add a line --- below its fields")
        ]
    return _Frame(opening.end(), closing.start(), closing.end()), []


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def _as_yaml(name: str, value: Value, newline: str) -> str:
    """``value`` as it is written behind the colon, a list with an item a line."""
    if isinstance(value, str):
        return f" {_scalar(name, value)}"
    return "".join(f"{newline}  - {_scalar(name, str(item))}" for item in value) if value else " []"


def _scalar(name: str, value: str) -> str:
    """Plain where that reads back, otherwise quoted."""
    block = read_block(f"{name}: {value}") if "\n" not in value else Block()
    is_plain = value[:1] not in ("", "|", ">") and not block.is_flow
    if is_plain and not block.faults and [item.value for item in block.fields] == [value]:
        return value
    return _NOT_IN_QUOTES.sub(lambda char: f"\\u{ord(char[0]):04x}", json.dumps(value, ensure_ascii=False))
