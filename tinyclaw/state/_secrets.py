"""Where secrets stand in a text: one table of shapes, and what tells a secret from a name or a placeholder.

A shape costs nothing where its hints don't occur, so ordinary text is searched at the speed of ``str.find``.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

MARK = re.compile(r"\[masked:[a-z0-9-]+\]")
"""A mask in a text; the word after the colon says what was there."""

KEY_BLOCK_CHARS = 16_384
"""No private key block is longer."""

_KNOWN_MIN_CHARS = 8

Match = re.Match[str]


@dataclass(frozen=True)
class _Shape:
    """A family of secrets. ``pattern`` is tried only where one of ``hints`` (lower case) stands.

    The secret is the group that matched, or the whole match without groups; ``accepts`` has the last word.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: str
    accepts: Callable[[Match], bool] = lambda match: True


def find_secrets(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and kind of each secret that its shape or its name gives away; in no order, may overlap."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text.replace("İ", "i").lower()  # the one letter whose lower case is longer
    for shape in _SHAPES:
        for hint in shape.hints:
            position = lowered.find(hint)
            while position >= 0:
                match = _compiled(shape.pattern).match(text, position)
                if match and shape.accepts(match):
                    yield *match.span(match.lastindex or 0), shape.kind
                position = lowered.find(hint, position + 1)


_compiled = cache(re.compile)


def _secret(match: Match) -> str:
    return match[match.lastindex or 0]


def _is_random(match: Match) -> bool:
    return _looks_random(_secret(match))


def _is_key_block(match: Match) -> bool:
    body = re.sub(r"-----(?:BEGIN|END)[A-Z0-9 ]*-----|\\[nr]|\s", "", match[0])
    return re.search(r"[A-Za-z0-9+/]{24}", body) is not None or re.fullmatch(r"[A-Za-z0-9+/]+=*", body) is not None


def _is_url_password(match: Match) -> bool:
    return not _is_placeholder(_secret(match)) and not MARK.search(_secret(match))


def _is_credential(match: Match) -> bool:
    value = _secret(match)
    return _is_basic(value) if match[0].lower().startswith("basic") else _looks_random(value)


def _is_basic(value: str) -> bool:
    """The base64 of ``user:password`` (RFC 7617)."""
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except binascii.Error:
        return False
    return re.fullmatch(rb"[ -~]*:[ -~]*", decoded) is not None


def _is_assigned_secret(match: Match) -> bool:
    value = _secret(match)
    if MARK.search(value) or "://" in value or _is_placeholder(value) or re.match(r"[./~\\]", value):
        return False
    name_head = match.string[max(0, match.start() - 80) : match.start()]
    if _HARMLESS_NAME.search(name_head) or (match["blank"] and not _FLAG.search(name_head)):
        return False
    if match.lastgroup == "bare" and re.fullmatch(r"[A-Za-z_]\w*(?:\.\w+)*", value) and not _mixes(value):
        return False
    return _looks_random(value)


def _is_environment_secret(match: Match) -> bool:
    """``NAME=value`` in capitals at the start of a line, as in a .env file: the value is no expression."""
    value = _secret(match)
    line_start = match.string.rfind("\n", 0, match.start()) + 1
    head = match.string[max(line_start, match.start() - 80) : match.start(1)]
    if not re.fullmatch(r"\s*(?:export\s+)?[A-Z][A-Z0-9_]*=", head) or MARK.search(value):
        return False
    return not (_is_placeholder(value) or _is_plain_word(value) or re.match(r"[./~]|\w+://|\w*\(", value))


def _looks_random(value: str) -> bool:
    """Whether ``value`` has letters and digits mixed as no word, name or number has them."""
    if len(value) < 8 or _is_placeholder(value) or MARK.search(value):
        return False
    if not re.search(r"[0-9]", value) or not re.search(r"[A-Za-z]", value) or _is_named(value):
        return False
    return _entropy_bits(value) >= 2.5


def _is_named(value: str) -> bool:
    """Words and numbers joined by punctuation: skip-test-1, access_token_v2, python3.11."""
    return all(re.fullmatch(r"[A-Za-z]*[0-9]{0,3}|[0-9]+", part) for part in re.split(r"[^A-Za-z0-9]+", value))


def _mixes(value: str) -> bool:
    """Digits inside letters at three places or more, which no identifier has."""
    return len(re.findall(r"[A-Za-z][0-9]+(?=[A-Za-z])", value)) >= 2


def _is_plain_word(value: str) -> bool:
    return re.fullmatch(r"[a-z]{1,11}|[A-Z]{1,11}|[0-9.,:]+", value) is not None


def _is_placeholder(value: str) -> bool:
    return _compiled(_PLACEHOLDER).search(value) is not None


def _entropy_bits(value: str) -> float:
    """Shannon entropy per character."""
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())


def is_secret_variable(name: str, value: str) -> bool:
    """Whether an environment variable's name sounds secret and its value is one: no path, word or placeholder."""
    if len(value) < _KNOWN_MIN_CHARS or not _compiled(_VARIABLE).search(name):
        return False
    return not (_is_placeholder(value) or _is_plain_word(value) or re.match(r"[./~]|\w+://[^@]*$", value))


_VARIABLE = r"(?i)(?:key|token|secret|passw(?:or)?d|passphrase|pwd|credentials?|pat|auth)(?:_?\d+)?$"

_HARMLESS_NAME = re.compile(r"(?i)(?:page|continuation|sync|resume)[_-]?$")
_FLAG = re.compile(r"(?:^|\s)--[a-z-]*$")

_PLACEHOLDER = (
    r"(?i)^(?:my|some|insert|enter)[-_ ]?[a-z]+[-_ ]|^your"
    r"|^(?:pass(?:word|wd)?|pwd|secret|token|none|null|undefined)$"
    r"|change.?me|example|placeholder|redacted|\.\.\.|…|\*{3}|x{5}"
    r"|^\$|^%|^\{|^<|\$\{|\{\{|<[a-z_ -]+>|^(.)\1*$"
)

_NAME = (
    r"(?i:pass(?:word|wd|phrase)|secret(?:[_-]?(?:access[_-]?)?key)?|token|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|credentials?)(?:[_-]?(?i:\d{1,3}|base|value|prod|production|dev|staging|live|old|new))?"
)
_NAME_HINTS = (
    *("passw", "passphrase", "secret", "token", "credential"),
    *(f"{word}{joint}key" for word in ("api", "access", "private") for joint in ("", "_", "-")),
)
_ASSIGNED = (
    _NAME + r"""(?:\\{0,2}["'`])?\]?(?:[ \t]*:[ \t]*[A-Za-z][\w.\[\]| ]{0,40}(?==))?"""
    r"""[ \t]*(?::=|=>|={1,3}|:|(?P<blank>[ ]))[ \t]*"""
    r"""(?:[bBrRuU]{0,2}\\{0,2}["'`](?P<quoted>[^\s"'`\\]{8,512})(?=\\{0,2}["'`])"""
    r"""|(?P<bare>(?:[^\s"'`,;(){}\[\]<>$&|\\]|&(?![\w.-]+=)){8,512}+)(?![(\[{<$]))"""
)

_ENVIRONMENT_LINE = _NAME + r"""=([^\s"'`$\\][^\s"'`\\]{7,511})(?!\S)"""

_KEY_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"

_SHAPES = (
    _Shape(
        "private-key",
        ("-----begin ",),
        rf"{_KEY_BEGIN}(?:(?!-----BEGIN )[\s\S]){{1,{KEY_BLOCK_CHARS}}}?{_KEY_END}",
        _is_key_block,
    ),
    _Shape(
        "private-key",  # its end was cut off
        ("-----begin ",),
        rf"{_KEY_BEGIN}(?:\s*[A-Z][A-Za-z-]+: [^\n]*\n)*"
        r"""(?:(?:\s|\\[nr]|[0-9→|:+"'>-]){0,40}[A-Za-z0-9+/=]{16,})+(?:\s*[A-Za-z0-9+/=]+\s*\Z)?""",
    ),
    _Shape("anthropic-key", ("sk-ant-",), r"(?<![A-Za-z0-9])sk-ant-(?!(?i:your|my-|xxx))[A-Za-z0-9_-]{10,}"),
    _Shape("openai-key", ("sk-",), r"(?<![A-Za-z0-9_-])sk-(?!ant-)[A-Za-z0-9_-]{20,}", _is_random),
    _Shape("github-token", ("ghp_", "gho_", "ghs_", "ghu_", "ghr_"), r"(?<![A-Za-z0-9])gh[posur]_[A-Za-z0-9]{20,}"),
    _Shape("github-token", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{22,}"),
    _Shape("gitlab-token", ("glpat-",), r"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_-]{16,}"),
    _Shape("aws-key-id", ("akia", "asia"), r"(?<![A-Za-z0-9+/])A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9+/])"),
    _Shape(
        "aws-secret",
        ("aws",),
        r"""(?i:aws[\w .-]{0,20}(?:secret|key)\w{0,12})["']?[ \t]*[:=]+[ \t]*["']?"""
        r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
    ),
    _Shape(
        "slack-token", ("xox", "xapp-"), r"(?<![A-Za-z0-9])(?:xox[abeoprs]|xapp)-(?=[A-Za-z-]*[0-9])[A-Za-z0-9-]{10,}"
    ),
    _Shape("google-key", ("aiza",), r"(?<![A-Za-z0-9+/])AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _Shape("npm-token", ("npm_",), r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}(?![A-Za-z0-9_])"),
    _Shape("pypi-token", ("pypi-",), r"(?<![A-Za-z0-9])pypi-[A-Za-z0-9_-]{32,}", _is_random),
    _Shape("hugging-face-token", ("hf_",), r"(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{30,}"),
    _Shape(
        "stripe-key",
        ("sk_live_", "sk_test_", "rk_live_", "rk_test_"),
        r"(?<![A-Za-z0-9])[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
    ),
    _Shape("jwt", ("eyj",), r"(?<![A-Za-z0-9_+/-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    _Shape("url-password", ("://",), r"""://[^\s/:@"'<>`]*:([^\s/"'<>`]{1,256})@(?=[\w\[$%{.-])""", _is_url_password),
    _Shape(
        "authorization",
        ("bearer ", "basic "),
        r"(?<![A-Za-z0-9_])(?i:bearer|basic) +([A-Za-z0-9._~+/-]{8,}=*)",
        _is_credential,
    ),
    _Shape(
        "authorization",
        ("authorization",),
        r"""(?i:authorization\\{0,2}["']?[ \t]*[:=][ \t]*\\{0,2}["']?(?:token|apikey|key)) +"""
        r"([A-Za-z0-9._~+/-]{8,}=*)",
        _is_credential,
    ),
    _Shape("secret", _NAME_HINTS, _ENVIRONMENT_LINE, _is_environment_secret),
    _Shape("secret", _NAME_HINTS, _ASSIGNED, _is_assigned_secret),
)
