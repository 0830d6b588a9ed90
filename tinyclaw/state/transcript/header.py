"""The frontmatter of a transcript: plain ``key: value`` lines, read without YAML.

It is written once, with the file. What a person made of it is read as far as it goes.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from tinyclaw.state.transcript.bodies import MARK, to_json

_CLOSED = re.compile(rb"(?m)^---[ \t]*\r?(?:\n|\Z)")
_FIELDS = re.compile(rb"(?:[A-Za-z_]+:[^\n]*\n)*")
_TORN = re.compile(rb"\s*<!-- tc:torn ")


class Header(NamedTuple):
    """The fields, the offset behind them, whether the closing line is there, and where a cut-off last line begins."""

    fields: dict[str, str]
    end: int
    is_closed: bool = True
    torn_at: int | None = None


def render_header(fields: dict[str, str]) -> str:
    """The file's frontmatter: plain values as they are, any other as a JSON string, which is YAML too."""
    lines = (f"{key}: {value if _plain_value(value) else to_json(value)}" for key, value in fields.items())
    return "---\n" + "\n".join(lines) + "\n---\n\n"


def read_header(data: bytes) -> Header:
    """The frontmatter of a file. Where its closing line is missing, it ends with the last ``key: value`` line."""
    start = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    if data[start:] in (b"-", b"--"):
        return Header({}, len(data), False, start)
    first = data.find(b"\n", start) + 1 or len(data)
    if data[start:first].rstrip() != b"---":
        return Header({}, start)
    mark = data.find(MARK.encode(), first)
    if closed := _CLOSED.search(data, first, mark if mark >= 0 else len(data)):
        return Header(_fields(data[first : closed.start()]), closed.end())
    end = _end_of_fields(data, first)
    fields = _fields(data[first:end])
    is_cut = end < len(data) and b"\n" not in data[end:]
    return Header(fields, len(data), False, end) if is_cut else Header(fields, end, False)


def _end_of_fields(data: bytes, first: int) -> int:
    """The end of a header that is not closed. A last line that a ``torn`` record follows was cut off and is none."""
    found = _FIELDS.match(data, first)
    end = found.end() if found else first
    return data.rfind(b"\n", 0, end - 1) + 1 if end > first and _TORN.match(data, end) else end


def _fields(lines: bytes) -> dict[str, str]:
    pairs = (line.partition(":") for line in lines.decode("utf-8", "replace").split("\n"))
    return {key.strip(): _value(value.strip()) for key, colon, value in pairs if colon}


def _value(text: str) -> str:
    if text.startswith('"'):
        try:
            value = json.loads(text)
        except ValueError:
            return text.strip('"')
        return value if isinstance(value, str) else text
    return text


def _plain_value(value: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 ._:/+-]*", value)) and ": " not in value and value == value.strip()
