"""TODO.md: a GitHub task list (https://github.github.com/gfm/#task-list-items-extension-), with ``[~]`` for
an item in progress.

Items stand anywhere in the body outside code fences and comments. One is nested in the item above it
that is indented less. An indented line ``verify: command`` below an item says how to prove it done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from tinyclaw.errors import StateError
from tinyclaw.state.documents import Document
from tinyclaw.types import Diagnostic

Mark = Literal[" ", "x", "~"]
Kind = Literal["prose", "opening", "inside"]
"""A line of the body: text, the first line of a code fence or comment, or one further down in it."""

_BULLET = re.compile(r"(?P<indent>[ \t]*)(?P<bullet>[-*+]|\d{1,9}[.)])(?=[ \t]|$)")
_ITEM = re.compile(_BULLET.pattern + r"[ \t]+\[(?P<mark>[ xX~])\](?:[ \t]+(?P<text>.*))?$")
_NEARLY = re.compile(
    r"[ \t]*(?P<bullet>[-*+]|\d{1,9}[.)])"
    r"(?:[ \t]+\[(?:[ \t]*[^\[\]\s]?[ \t]*)\](?=[ \t]|$)"  # - [y], - [], - [ x]
    r"|[ \t]+\[[ xX~]\](?![ \t(\[:]|$)\S*"  # - [x]text
    r"|\[[ xX~]\](?=[ \t]|$))"  # -[x] text
)
_VERIFY = re.compile(r"[ \t]+(?:[-*+][ \t]+)?verify:[ \t]*(?P<command>\S.*)")
_FENCE = re.compile(r"[ \t]*(?:[-*+][ \t]+)?(?P<fence>`{3,}(?=[^`]*$)|~{3,})")
_BLOCK_START = re.compile(r"[ \t]*(?:#{1,6}[ \t]|[-*+][ \t]|\d{1,9}[.)][ \t]|>|`{3}|~{3}|<!--|(?:[-*_][ \t]*){3,}$)")
_CODE_INDENT = 4


@dataclass(frozen=True)
class Item:
    """A checkbox. ``line`` counts from 1 in the file, ``indent`` in columns; ``parent`` is that item's line."""

    line: int
    text: str
    mark: Mark
    depth: int
    indent: int
    parent: int | None = None
    verify: str | None = None

    @property
    def done(self) -> bool:
        return self.mark == "x"


@dataclass(frozen=True)
class Todo:
    """The items of one document, in the order of the file."""

    document: Document
    items: tuple[Item, ...]

    @classmethod
    def parse(cls, data: bytes, name: str = "TODO.md") -> Todo:
        """Read a task list. Never raises; what is nearly a checkbox becomes a diagnostic."""
        return cls.of(Document.parse(data, name))

    @classmethod
    def of(cls, document: Document) -> Todo:
        """The task list in a document that was read already."""
        return cls(document, _read_items(document))

    @property
    def diagnostics(self) -> list[Diagnostic]:
        return self.document.diagnostics

    def at(self, line: int) -> Item:
        """The item in a line of the file. Raises: StateError when there is none."""
        for item in self.items:
            if item.line == line:
                return item
        raise StateError(f"{self.document.name}:{line}: no checkbox stands there; {self._known()}")

    def find(self, text: str, ordinal: int | None = None) -> Item:
        """The item of that text, blanks apart; ``ordinal`` (from 1) picks one of several alike.

        Raises: StateError when there is none, or more than one and no ordinal.
        """
        wanted = " ".join(text.split())
        found = [item for item in self.items if " ".join(item.text.split()) == wanted]
        if not found:
            raise StateError(f'{self.document.name}: no item reads "{wanted}"; {self._known()}')
        if ordinal is None and len(found) > 1:
            lines = ", ".join(str(item.line) for item in found)
            raise StateError(f'{self.document.name}: "{wanted}" stands in lines {lines}; say which one')
        if not 1 <= (ordinal or 1) <= len(found):
            raise StateError(f'{self.document.name}: "{wanted}" stands there {len(found)} times, not {ordinal}')
        return found[(ordinal or 1) - 1]

    def require(self, item: Item) -> None:
        """Raises: StateError when ``item`` is not of this list."""
        if self.at(item.line) != item:
            place = f"{self.document.name}:{item.line}"
            raise StateError(f'{place}: "{item.text}" no longer stands there; read the file again')

    def set_mark(self, item: Item, mark: Mark) -> bytes:
        """The file's bytes with one box changed: a single character.

        Raises: StateError when ``item`` is not of this list, or the file is not UTF-8.
        """
        self.require(item)
        if item.mark == mark:
            return self.document.data
        lines = self.document.source.split("\n")
        match = _ITEM.match(lines[item.line - 1].removesuffix("\r"))
        assert match is not None
        at = _offset(lines, item.line - 1) + match.start("mark")
        return self.document.replaced(at, at + 1, mark)

    def add(self, text: str, *, under: Item | None = None, after: Item | None = None, verify: str = "") -> bytes:
        """The file's bytes with one more open item: last ``under`` an item, right ``after`` one, or last of all.

        Raises: StateError for blank text, an item that is not of this list, or a file that is not UTF-8.
        """
        words = " ".join(text.split())
        if not words:
            raise StateError(f"{self.document.name}: an item needs a text")
        lines = self.document.source.split("\n")
        place = _place(self, lines, under, after)
        own = [f"{place.indent}{place.bullet} [ ] {words}"]
        if verify.strip():
            inner = place.indent + " " * (len(place.bullet) + 1)
            own.append(f"{inner}verify: {' '.join(verify.split())}")
        edited = _insert(self.document, lines, place, own)
        texts = sorted([item.text for item in self.items] + [words])
        if sorted(item.text for item in Todo.parse(edited, self.document.name).items) != texts:
            raise StateError(f"{self.document.name}: the new item would not be one there; close what is open above it")
        return edited

    def _known(self) -> str:
        if not self.items:
            return "it has no checkboxes"
        return "its items are " + "; ".join(f'{item.line}: "{item.text}"' for item in self.items[:20])


@dataclass(frozen=True)
class _Place:
    """Where and how a new item stands: before line ``before`` (from 0), ``is_apart`` behind a blank line."""

    before: int
    indent: str
    bullet: str
    is_apart: bool = False


def _read_items(document: Document) -> tuple[Item, ...]:
    items: list[Item] = []
    above: list[Item] = []  # the items that the next one may be nested in
    is_list = was_blank = False
    for number, line, kind in _body_lines(document):
        match = _ITEM.match(line) if kind == "prose" else None
        indent = _columns(line)
        if match and (is_list or indent < _CODE_INDENT):
            while above and above[-1].indent >= indent:
                above.pop()
            parent = above[-1].line if above else None
            item = Item(number, (match["text"] or "").strip(), _mark(match["mark"]), len(above), indent, parent)
            items.append(item)
            above.append(item)
        elif kind == "prose":
            if above and indent > above[-1].indent and not items[-1].verify:
                items[-1] = replace(items[-1], verify=_verify(line))
            _complain_of_box(document, number, line)
        if _BULLET.match(line):
            is_list = is_list or indent < _CODE_INDENT
        elif line.strip() and not indent and kind != "inside" and (was_blank or _BLOCK_START.match(line)):
            is_list = False
            above.clear()
        was_blank = not line.strip()
    return tuple(items)


def _body_lines(document: Document) -> Iterator[tuple[int, str, Kind]]:
    """The body's lines without their ends, numbered from 1 in the file; which are code or comment is told."""
    closing: re.Pattern[str] | None = None
    for number, raw in enumerate(document.source.split("\n")[document.body_line - 1 :], document.body_line):
        line = raw.removesuffix("\r")
        if closing is not None:
            yield number, line, "inside"
            closing = None if closing.search(line) else closing
            continue
        closing = _closing_of(line)
        yield number, line, "opening" if closing else "prose"


def _closing_of(line: str) -> re.Pattern[str] | None:
    """What ends the fence or the comment that ``line`` opens, None when it opens none."""
    if fence := _FENCE.match(line):
        return re.compile(rf"^[ \t]*{fence['fence'][0]}{{{len(fence['fence'])},}}[ \t]*$")
    if line.lstrip().startswith("<!--") and "-->" not in line:
        return re.compile("-->")
    return None


def _columns(line: str) -> int:
    """How far a line is indented; a tab goes to the next multiple of 4."""
    return len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())


def _mark(char: str) -> Mark:
    return "~" if char == "~" else " " if char == " " else "x"


def _verify(line: str) -> str | None:
    match = _VERIFY.match(line)
    if match is None:
        return None
    command = match["command"].strip()
    in_code = len(command) > 2 and command[0] == command[-1] == "`" and "`" not in command[1:-1]
    return command[1:-1] if in_code else command


def _complain_of_box(document: Document, number: int, line: str) -> None:
    match = _NEARLY.match(line)
    if match:
        shown = match[0].strip()
        bullet = match["bullet"]
        mend = f'use "{bullet} [ ]" or "{bullet} [x]"'
        document.diagnostics.append(Diagnostic(document.name, number, f'"{shown}" is not a checkbox', mend))


def _place(todo: Todo, lines: list[str], under: Item | None, after: Item | None) -> _Place:
    neighbour = after or _last(todo, under)
    if neighbour is not None:
        match = _bullet_of(todo, lines, neighbour)
        return _Place(_end(todo, neighbour), match["indent"], _next_bullet(match["bullet"]))
    if under is not None:
        match = _bullet_of(todo, lines, under)
        bullet = match["bullet"]
        return _Place(_end(todo, under), match["indent"] + " " * (len(bullet) + 1), bullet if bullet in "-*+" else "-")
    end = len(lines) if lines[-1] else len(lines) - 1
    return _Place(end, "", "-", is_apart=end >= todo.document.body_line and bool(lines[end - 1].strip()))


def _last(todo: Todo, under: Item | None) -> Item | None:
    """The last item directly under ``under``, or at the top."""
    parent = under.line if under else None
    return next((item for item in reversed(todo.items) if item.parent == parent), None)


def _bullet_of(todo: Todo, lines: list[str], item: Item) -> re.Match[str]:
    todo.require(item)
    match = _BULLET.match(lines[item.line - 1])
    assert match is not None
    return match


def _next_bullet(bullet: str) -> str:
    return bullet if bullet in "-*+" else f"{int(bullet[:-1]) + 1}{bullet[-1]}"


def _end(todo: Todo, item: Item) -> int:
    """The line, from 0, behind the last one that belongs to ``item``, its nested items included."""
    end, was_blank = item.line, False
    for number, line, kind in _body_lines(todo.document):
        if number <= item.line:
            continue
        if line.strip():
            is_lazy = not was_blank and kind == "prose" and not _BLOCK_START.match(line)
            if kind != "inside" and _columns(line) <= item.indent and not is_lazy:
                break
            end = number
        was_blank = not line.strip()
    return end


def _insert(document: Document, lines: list[str], place: _Place, own: list[str]) -> bytes:
    newline = document.newline
    text = newline.join([""] * place.is_apart + own)
    if place.before == len(lines):  # behind a last line without an end
        return document.replaced(len(document.source), len(document.source), newline + text)
    at = _offset(lines, place.before)
    return document.replaced(at, at, text + newline)


def _offset(lines: list[str], number: int) -> int:
    """Where a line, counted from 0, begins in the text that was split."""
    return sum(len(line) + 1 for line in lines[:number])
