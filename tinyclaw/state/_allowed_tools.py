"""What a skill's ``allowed-tools`` say: entries, nothing that restricts, or something that cannot be understood.

It fails closed. Where the head speaks of allowed-tools elsewhere than in the values of its other fields, and no field
of that name was read, it is there in a form that was not understood, and no tool is allowed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator

from tinyclaw.state.documents import Document

_FIELD = "allowed-tools"
_MENTION = r"(?<![\w-])allowed[-_ \t]*tools\b"
_MENTIONED = re.compile(rf"(?i){_MENTION}")
_BEGINS_LINE = re.compile(rf"(?im)^[ \t]*[\"']?{_MENTION}")
_PROPERTY = r"(?<![^\s{,])[&!][^\s{,]*[ \t]+"
_LIKE_A_KEY = re.compile(rf"(?i)(?:\?[ \t]+|{_PROPERTY})[\"']?{_MENTION}|{_MENTION}[\"']?[ \t]*:")
_AS_FIELD = re.compile(
    rf"(?im)^[ \t]*(?:[?{{]|<<).*?{_MENTION}|^[ \t]*(?:[&!]\S*[ \t]+)*[\"']?{_MENTION}[\"']?[ \t]*:"
    rf"|(?<!\S)[&!]!?\w\S*[ \t]+[\"']?{_MENTION}"
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|\n[ \t]*)")
_COMMENT = re.compile(r"(?m)^[ \t]*#.*\n?")
_BLANK_LINE = re.compile(r"\n[ \t]*(?=\n)")
_FOLD = re.compile(r"\n[ \t]+")
_SEPARATORS = re.compile(r"[-_ ]")
_ENTRY = re.compile(r"[^\s,()]+(?:\([^()]*\))?")


def allowed_tools(document: Document) -> tuple[str, ...] | None:
    """The entries; None where nothing is restricted, empty, with a diagnostic, where it cannot be understood."""
    names = [name for name in document.fields if _SEPARATORS.sub("", name.casefold()) == "allowedtools"]
    if not names and not _is_hidden(document):
        return None
    is_clear = len(names) == 1 and _unread_mentions(document) <= 1
    entries = tuple(_entries(document.fields[names[0]])) if is_clear else ()
    if not entries:
        place = names[0] if names else _FIELD
        mend = 'write it once, as in "allowed-tools: Read Bash(git:*)"'
        document.complain(place, "allowed-tools cannot be understood, so while it is active no tool is allowed", mend)
    return entries


def _is_hidden(document: Document) -> bool:
    """Whether a document without that field may have it all the same, in a form that was not read."""
    if document.body == document.text:  # without a head, as where its end was forgotten
        return _AS_FIELD.search(_decoded(document.text)) is not None
    head = document.text.removesuffix(document.body)
    return _unread_mentions(document) > 0 or bool(document.diagnostics and _BEGINS_LINE.search(_decoded(head)))


def _unread_mentions(document: Document) -> int:
    """How often the head speaks of allowed-tools elsewhere than in the values of its fields.

    Where the head has faults, a value may be raw text with a field in it: what looks like one is no value's.
    """
    head = _FOLD.sub(" ", _BLANK_LINE.sub("", _decoded(document.text.removesuffix(document.body))))
    values = [value for name, value in document.fields.items() if name != "<<"]
    texts = [" ".join(_decoded(text).split()) for text in _texts(values)]
    if document.diagnostics:
        texts = [_LIKE_A_KEY.sub("", text) for text in texts]
    return _mentions(head) - sum(map(_mentions, texts))


def _mentions(text: str) -> int:
    return len(_MENTIONED.findall(text))


def _decoded(text: str) -> str:
    """The text without lines that are comments, its escapes as what they stand for."""
    return _ESCAPE.sub(_unescaped, _COMMENT.sub("", text))


def _unescaped(escape: re.Match[str]) -> str:
    code = int(next(filter(None, escape.groups()), "0"), 16)
    return chr(code) if 0 < code <= sys.maxunicode else ""


def _texts(value: object) -> Iterator[str]:
    """Every text in a value of a field, the names in it included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (text for item in value for text in _texts(item))
    elif isinstance(value, dict):
        yield from value
        yield from _texts(list(value.values()))


def _entries(value: object) -> Iterable[str]:
    """The entries of a text with blanks or commas between them, or of a list of such texts; none if in doubt."""
    texts = value if isinstance(value, list) else [value]
    entries: list[str] = []
    for text in texts:
        if not isinstance(text, str) or _ENTRY.sub("", text).strip(", \t\n"):
            return ()
        entries += _ENTRY.findall(text)
    return entries
