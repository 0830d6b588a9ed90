"""The task list in TODO.md: show it, add to it, mark items."""

from __future__ import annotations

import re
from typing import Annotated

from tinyclaw.errors import StateError, ToolError
from tinyclaw.state.todo import Item, Mark, Todo
from tinyclaw.state.workspace import TODO
from tinyclaw.tools._base import ToolContext, tool
from tinyclaw.tools._statement import open_state_file, refused, save, stated
from tinyclaw.tools._writing import refuse_masks
from tinyclaw.types import ToolOutput

_BOX = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+\[[ xX~]\]\s*")
_WORDS: dict[Mark, str] = {" ": "pending", "~": "in progress", "x": "done"}

Items = list[str] | None


@tool(effect="state")
def todo(
    ctx: ToolContext,
    add: Annotated[Items, "texts of new items"] = None,
    under: Annotated[str, "item below which the new ones are nested"] = "",
    in_progress: Items = None,
    done: Items = None,
    pending: Items = None,
) -> ToolOutput:
    """Keep the task list in TODO.md; without arguments, show it.

    Name an item by its text, or by its line number when several read alike. One call may add items and mark others.
    Mark an item done only after you have checked that it is. The person edits the list too; what stands there counts.
    """
    marks: tuple[tuple[Mark, list[str]], ...] = ((" ", pending or []), ("x", done or []), ("~", in_progress or []))
    place, base = open_state_file(ctx, TODO)
    if not add and not any(names for _, names in marks):
        if base.data is None:
            return ToolOutput(f"There is no {TODO} yet; add items to begin one.")
        return stated(ctx, place, base)
    before = base.data or b""
    try:
        data, told = _changed(before, add or [], under, marks)
    except StateError as error:
        raise refused(error) from error
    summary = "; ".join(told)
    return save(ctx, place, base, data, f"{summary}.", "")


def _changed(
    data: bytes, add: list[str], under: str, marks: tuple[tuple[Mark, list[str]], ...]
) -> tuple[bytes, list[str]]:
    told: list[str] = []
    for text in add:
        refuse_masks(text)
        items = Todo.parse(data, TODO)
        words = _BOX.sub("", text, count=1)
        data = items.add(words, under=_find(items, under) if under else None)
        told.append(f'added "{words.strip()}"')
    for mark, names in marks:
        for name in names:
            items = Todo.parse(data, TODO)
            item = _find(items, name)
            data = items.set_mark(item, mark)
            told.append(f'"{item.text}" is {_WORDS[mark]}')
    return data, told


def _find(todo: Todo, name: str) -> Item:
    """The item of that text or line; a part of its text will do where it is in one item only."""
    wanted = " ".join(_BOX.sub("", name, count=1).split())
    if not wanted:
        raise ToolError("An item was named by blank text. Name it by its text or its line number.")
    same = [item for item in todo.items if " ".join(item.text.split()) == wanted]
    if len(same) == 1:
        return same[0]
    if wanted.isdecimal() and not same:
        return todo.at(int(wanted))
    part = [item for item in todo.items if wanted.casefold() in " ".join(item.text.split()).casefold()]
    return part[0] if len(part) == 1 else todo.find(wanted)
