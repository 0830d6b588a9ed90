"""How wide text is on a terminal, and text made safe to be shown there.

Widths follow Unicode Standard Annexes 11 (East Asian Width) and 29 (grapheme clusters) as far as
terminals do: wide characters take two columns, what joins the character before it takes none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

ELLIPSIS = "…"

_JOINER, _EMOJI_STYLE = "\u200d", "\ufe0f"
_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: 0x2421}
"""A control character becomes the picture of its name."""
_HARMFUL = (
    *range(0x80, 0xA0),  # C1 controls
    *(0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)),  # changes of direction
    *range(0xD800, 0xE000),  # surrogates
)
_HARMLESS = _PICTURES | dict.fromkeys(_HARMFUL, 0xFFFD)


def harmless(text: str) -> str:
    """``text`` without anything that a terminal obeys: escapes, controls, changes of direction. Lines and tabs stay."""
    return re.sub("\r\n?", "\n", text).translate(_HARMLESS)


def one_line(text: str) -> str:
    """``text`` harmless and in one line, runs of blanks as one."""
    return " ".join(harmless(text).split())


def width(text: str) -> int:
    """The columns that one line of harmless text takes."""
    if text.isascii():
        return len(text)
    return sum(columns for _, columns in _clusters(text))


def cut(text: str, columns: int) -> str:
    """``text`` in at most ``columns`` columns; what is cut ends in ``…``. Joined characters stay together."""
    if width(text) <= columns:
        return text
    if columns < 1:
        return ""
    shown, used = [], 0
    for cluster, wide in _clusters(text):
        if used + wide > columns - 1:
            break
        shown.append(cluster)
        used += wide
    return "".join(shown) + ELLIPSIS


def pad(text: str, columns: int) -> str:
    """``text`` with blanks behind it up to ``columns`` columns."""
    return text + " " * (columns - width(text))


def table(rows: Sequence[Sequence[str]], columns: int, *, right: Sequence[int] = ()) -> list[str]:
    """Rows of one-line cells as lines of at most ``columns`` columns, all equally wide.

    The last cell of each row gives way where there is too little room, then the ones before it.
    ``right`` names the cells, counted from 0, that stand at the right of their column.
    """
    if not rows:
        return []
    widths = [max(width(cell) for cell in cells) for cells in zip(*rows, strict=True)]
    room = columns - 2 * (len(widths) - 1)
    for index in reversed(range(len(widths))):
        widths[index] = max(min(widths[index], room - sum(widths[:index]) - sum(widths[index + 1 :])), 1)
    lines = ("  ".join(_cell(cell, widths[at], at in right) for at, cell in enumerate(row)) for row in rows)
    total = sum(widths) + 2 * (len(widths) - 1)
    return [pad(cut(line, columns), min(total, columns)) for line in lines]


def _cell(text: str, columns: int, right: bool) -> str:
    shown = cut(text, columns)
    return " " * (columns - width(shown)) + shown if right else pad(shown, columns)


def _clusters(text: str) -> Iterator[tuple[str, int]]:
    """The characters as a person counts them, each with its columns."""
    cluster, columns, flags = "", 0, 0
    for char in text:
        is_flag = "\U0001f1e6" <= char <= "\U0001f1ff"
        joins = bool(cluster) and (cluster.endswith(_JOINER) or (is_flag and flags % 2 == 1) or _columns(char) == 0)
        if not joins:
            if cluster:
                yield cluster, columns
            cluster, columns, flags = char, _columns(char), int(is_flag)
            continue
        cluster += char
        flags += is_flag
        if (is_flag or char == _EMOJI_STYLE) and columns == 1:
            columns = 2
    if cluster:
        yield cluster, columns


def _columns(char: str) -> int:
    if " " <= char <= "~":
        return 1
    if unicodedata.category(char) in ("Mn", "Me", "Cf", "Cc", "Zl", "Zp") or "\u1160" <= char <= "\u11ff":
        return 0
    if "\U0001f3fb" <= char <= "\U0001f3ff":
        return 0  # the tone of the emoji before it
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
