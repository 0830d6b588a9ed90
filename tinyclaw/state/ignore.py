"""What .gitignore files leave out, decided as git does, without git.

Rules of a nearer folder go before those of a farther one, a later line before an earlier one, and what
lies in an ignored folder cannot be taken back (https://git-scm.com/docs/gitignore). Whoever asks must
therefore descend from the top and not enter ignored folders.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from typing import NamedTuple

from tinyclaw.state.wildcards import to_regex

IGNORE_FILE = ".gitignore"
_MOST_BYTES = 1_000_000


class _Rule(NamedTuple):
    regex: str
    negated: bool
    folders_only: bool
    on_name: bool


class Rules:
    """The rules of one .gitignore. ``folder`` is where it lies, relative to the root ("" for the root itself)."""

    def __init__(self, folder: str, text: str) -> None:
        self._skip = len(folder) + 1 if folder else 0
        rules = [rule for line in text.removeprefix("\ufeff").split("\n") if (rule := _parse(line))]
        self._rules = [(rule, re.compile(rule.regex, re.DOTALL)) for rule in reversed(rules)]
        self._names = _any(rule.regex for rule in rules if rule.on_name)
        self._paths = _any(rule.regex for rule in rules if not rule.on_name)

    def decide(self, path: str, name: str, is_folder: bool) -> bool | None:
        """Whether ``path`` (from the root, with slashes; ``name`` is its end) is ignored; None if no rule says."""
        path = path[self._skip :]
        if not (self._names.fullmatch(name) or self._paths.fullmatch(path)):
            return None
        for rule, regex in self._rules:
            if (is_folder or not rule.folders_only) and regex.fullmatch(name if rule.on_name else path):
                return not rule.negated
        return None


def is_ignored(chain: Iterable[Rules], path: str, name: str, is_folder: bool) -> bool:
    """The verdict of the first in ``chain`` that has one; nearer folders come first."""
    verdicts = (rules.decide(path, name, is_folder) for rules in chain)
    return next((verdict for verdict in verdicts if verdict is not None), False)


def read_rules(root: str, folder: str, file: str) -> Rules:
    """The rules in ``file`` (from the root) for what lies below ``folder``; none where it cannot be read.

    As git, it follows no link, and it never waits for a pipe.
    """
    try:
        descriptor = os.open(f"{root}/{file}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return Rules(folder, "")
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        data = os.read(descriptor, _MOST_BYTES) if is_file else b""
    except OSError:
        data = b""
    finally:
        os.close(descriptor)
    return Rules(folder, data.decode("utf-8", "surrogateescape"))


def _parse(line: str) -> _Rule | None:
    """One line; None for comments, blanks and what is no valid pattern."""
    line = line.removesuffix("\r")
    text = line.rstrip(" ")
    if text.endswith("\\") and text != line:
        text += " "
    if text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[negated:]
    folders_only = text.endswith("/")
    text = text.removesuffix("/")
    regex = to_regex(text.removeprefix("/"))
    if not regex or not _compiles(regex):
        return None
    return _Rule(regex, negated, folders_only, on_name="/" not in text)


def _compiles(regex: str) -> bool:
    try:
        re.compile(regex)
    except re.error:
        return False
    return True


def _any(regexes: Iterable[str]) -> re.Pattern[str]:
    """One expression for all of them; one that never matches for none."""
    return re.compile("|".join(f"(?:{regex})" for regex in regexes) or r"(?!)", re.DOTALL)
