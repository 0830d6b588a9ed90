"""Wildcards of glob patterns and .gitignore lines, as regular expressions over paths with slashes.

``*`` and ``?`` stay within a name and match dots too, ``**`` as a whole name spans folders, ``[a-z]`` and
``[!a-z]`` are classes, a backslash takes the meaning away (https://git-scm.com/docs/gitignore).
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"(?P<many>\*+)|(?P<one>\?)|\[(?P<negated>[!^]?)(?P<members>\]?(?:\\.|[^\]\\])*)\]|\\?(?P<plain>.)", re.DOTALL
)
_MEMBER = re.compile(r"\\(.)|(-)|(.)", re.DOTALL)
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_WILD = re.compile(r"[*?\[{\\]")
_MOST_ALTERNATIVES = 200


def to_regex(pattern: str) -> str:
    """A regular expression that matches the whole path, to be compiled with ``re.DOTALL``."""
    *folders, name = re.sub(r"(?:^|(?<=/))\*\*/(?:\*\*/)+", "**/", pattern).split("/")
    above = "".join("(?:.*/)?" if folder == "**" else _name_regex(folder) + "/" for folder in folders)
    return above + (".+" if name == "**" else _name_regex(name))


def expand_braces(pattern: str) -> list[str]:
    """``*.{ts,tsx}`` as ``*.ts`` and ``*.tsx``; what would become more than 200 patterns stays as it is."""
    patterns = [pattern]
    while any(_BRACES.search(each) for each in patterns):
        expanded = [variant for each in patterns for variant in _expand_one(each)]
        if len(expanded) > _MOST_ALTERNATIVES:
            return [pattern]
        patterns = expanded
    return patterns


def split_base(pattern: str) -> tuple[str, str]:
    """The leading folders that hold no wildcard, and the rest: ``src/a/*.py`` as ``src/a`` and ``*.py``."""
    parts = pattern.split("/")
    plain = next((index for index, part in enumerate(parts) if _WILD.search(part)), len(parts))
    return "/".join(parts[:plain]) or ("/" if plain and pattern.startswith("/") else ""), "/".join(parts[plain:])


def _expand_one(pattern: str) -> list[str]:
    braces = _BRACES.search(pattern)
    if braces is None:
        return [pattern]
    before, after = pattern[: braces.start()], pattern[braces.end() :]
    return [before + choice + after for choice in braces[1].split(",")]


def _name_regex(name: str) -> str:
    return _TOKEN.sub(_token_regex, name)


def _token_regex(token: re.Match[str]) -> str:
    if token["many"]:
        return "[^/]*"
    if token["one"]:
        return "[^/]"
    if token["plain"]:
        return re.escape(token["plain"])
    members = _MEMBER.sub(lambda member: member[2] or re.escape(member[1] or member[3]), token["members"])
    return f"(?!/)[{'^' if token['negated'] else ''}{members}]"
