"""Carry any text through Markdown exactly: as plain lines, inside fences, or as a JSON string.

A body is what stands between an opener and ``<!-- tc:end -->``. Plain text and fences are for
people; whatever they cannot carry to the character (carriage returns, controls, half surrogates,
in plain text also blank edges, and the empty text) is a JSON string, marked in the opener.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_JSON_ESCAPES = re.compile("[<>\x7f-\x9f\ud800-\udfff]")
_MARKED = re.compile(r"(?m)^(.*?)(<!-- tc:)")
_ESCAPED = re.compile(r"(?m)^((?:(?!<!-- tc:).)*?)\\(<!-- tc:)")
_FENCE = re.compile(r"(?m)^(`{3,})[^`\n]*$")
_TICKS = re.compile("`+")
MARK = "<!-- tc:"


def to_json(value: Any) -> str:
    """Compact JSON on one line that can stand inside an HTML comment: no ``<``, ``>``, controls or surrogates."""
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    return _JSON_ESCAPES.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def escape(text: str) -> str:
    """Give every line that holds an opener's beginning one backslash before it."""
    return _MARKED.sub(r"\1\\\2", text) if MARK in text else text


def unescape(text: str) -> str:
    """Take one backslash away where ``escape`` gave one."""
    return _ESCAPED.sub(r"\1\2", text) if MARK in text else text


def fits_plain(text: str) -> bool:
    """Whether plain lines carry ``text`` to the character."""
    return bool(text) and text == text.strip() and not _UNSAFE.search(text)


def fits_fence(text: str) -> bool:
    """Whether a fence carries ``text`` to the character."""
    return bool(text) and not _UNSAFE.search(text)


def fence(text: str, language: str) -> str:
    """``text`` between fences longer than any run of backticks in it."""
    longest = max((len(run.group()) for run in _TICKS.finditer(text)), default=0) if "```" in text else 0
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"


def fenced_parts(body: str) -> tuple[str, ...] | None:
    """The texts of a body that is nothing but fences, in order; None when it is anything else."""
    parts: list[str] = []
    position = 0
    while opening := _FENCE.search(body, position):
        if body[position : opening.start()].strip():
            return None
        start = opening.end() + 1
        closing = f"\n{opening.group(1)}\n"
        end = (body + "\n").find(closing, start - 1)
        if end < 0:
            return None
        parts.append(body[start:end])
        position = end + len(closing) - 1
    return tuple(parts) if parts and not body[position:].strip() else None


def write_body(parts: Sequence[str], languages: Sequence[str] | None) -> tuple[str, bool]:
    """A body's lines, and whether it is JSON-encoded.

    ``languages`` names the info string of each fence; None asks for plain text of a single part.
    """
    if languages is None and fits_plain(parts[0]):
        return escape(parts[0]), False
    if languages is not None and all(fits_fence(part) for part in parts):
        return escape("\n\n".join(map(fence, parts, languages))), False
    return to_json(parts[0] if len(parts) == 1 else list(parts)), True


def read_body(body: str, *, encoded: bool, fenced: bool) -> tuple[str, ...]:
    """The parts of a body. What a person has broken is read as plain text, never refused."""
    text = body.strip("\n")
    if encoded:
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        parts = value if isinstance(value, list) else [value]
        return tuple(part if isinstance(part, str) else to_json(part) for part in parts)
    text = unescape(text)
    return (fenced and fenced_parts(text)) or (text.strip(),)
