"""How the indentation of a quote maps to that of the lines it means: a shift, tabs for spaces, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

Reindent = Callable[[str], str | None]
"""A line of the new text as the file would indent it; None when it has no counterpart there."""

_TAB_WIDTHS = (4, 2, 8)


def unchanged(line: str) -> str | None:
    return line


def find_reindent(quoted: Sequence[str], actual: Sequence[str]) -> Reindent | None:
    """The mapping that turns every ``quoted`` line's indentation into that of the ``actual`` line; None if none does.

    Blank lines say nothing and stay as they are.
    """
    pairs = [(_indent(q), _indent(a)) for q, a in zip(quoted, actual, strict=True) if q.strip()]
    for change in _candidates(*pairs[0]) if pairs else iter([unchanged]):
        if all(change(quote) == real for quote, real in pairs):
            return _on_lines(change)
    return None


def _candidates(quote: str, real: str) -> Iterator[Reindent]:
    """Ways to get from one indentation to the other, the plainest first."""
    conversions = [unchanged, *map(_to_tabs, _TAB_WIDTHS), *map(_to_spaces, _TAB_WIDTHS)]
    yield from conversions
    for convert in conversions:
        converted = convert(quote)
        if converted is not None and real.endswith(converted):
            yield _deeper(convert, real[: len(real) - len(converted)])
        elif converted is not None and converted.endswith(real):
            yield _shallower(convert, converted[: len(converted) - len(real)])


def _to_tabs(width: int) -> Reindent:
    return lambda indent: "\t" * (len(indent) // width) + " " * (len(indent) % width) if "\t" not in indent else None


def _to_spaces(width: int) -> Reindent:
    return lambda indent: indent.replace("\t", " " * width)


def _deeper(convert: Reindent, by: str) -> Reindent:
    def change(indent: str) -> str | None:
        converted = convert(indent)
        return None if converted is None else by + converted

    return change


def _shallower(convert: Reindent, by: str) -> Reindent:
    def change(indent: str) -> str | None:
        converted = convert(indent)
        return converted[len(by) :] if converted is not None and converted.startswith(by) else None

    return change


def _on_lines(change: Reindent) -> Reindent:
    def reindent(line: str) -> str | None:
        if not line.strip():
            return line
        indent = _indent(line)
        changed = change(indent)
        return None if changed is None else changed + line[len(indent) :]

    return reindent


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]
