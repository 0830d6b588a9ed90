"""Secrets become marks before text enters the conversation, so that file, memory and model see the same.

A mark is ``[masked:KIND]``. What is masked: values of the person's own secret variables, keys whose
issuer gave them a recognisable shape, private key blocks, passwords in URLs, credentials in headers,
and strings that look random where they are assigned to a name like ``password``. Hiding ordinary text
is a fault as well: placeholders, code that merely passes a secret on, hashes and identifiers stay.

Masking twice gives the same as masking once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tinyclaw.state._secrets import KEY_BLOCK_CHARS, MARK, find_secrets, is_secret_variable

__all__ = ["MARK", "MaskedStream", "Masker", "holds_mask", "mask"]

_STREAM_LINE_CHARS = 65_536


def mask(text: str) -> str:
    """``text`` with every recognisable secret replaced by its mark; knows no variables of the person."""
    return _NOBODY.mask(text)


def holds_mask(text: str) -> bool:
    """Whether ``text`` holds a mark: such text must not be written to a file or run."""
    return "[masked:" in text and MARK.search(text) is not None


class Masker:
    """Masks what any text may hold, and the values of one person's secret variables wherever they appear.

    ``environment`` is the process's; variables count when their name sounds secret and their value
    has at least 8 characters and is no path, placeholder or plain word.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        known = {value: name for name, value in environment.items() if is_secret_variable(name, value)}
        self._known = [(value, known[value]) for value in sorted(known, key=lambda value: (-len(value), value))]

    def mask(self, text: str) -> str:
        """``text`` with marks for secrets; the very same object when there are none."""
        while (masked := _mask_shapes(self._mask_known(text))) != text:
            text = masked
        return text

    def _mask_known(self, text: str) -> str:
        for value, name in self._known:
            if value in text:
                text = _replace_outside_marks(text, value, re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"))
        return text


def _replace_outside_marks(text: str, value: str, kind: str) -> str:
    """A value may be a word of a mark: DEPLOY_TOKEN=deploy-token."""
    either = re.compile(f"{MARK.pattern}|{re.escape(value)}")
    return either.sub(lambda match: match[0] if MARK.fullmatch(match[0]) else f"[masked:{kind}]", text)


def _mask_shapes(text: str) -> str:
    pieces: list[str] = []
    done = 0
    for start, end, kind in sorted(find_secrets(text), key=lambda span: (span[0], -span[1])):
        if start >= done:
            pieces += (text[done:start], f"[masked:{kind}]")
            done = end
    return "".join(pieces) + text[done:] if pieces else text


class MaskedStream:
    """Masks text that arrives in pieces, line by line, so that no piece boundary can split a secret.

    A private key block is held back until it has ended. ``mask`` is ``Masker.mask``.
    """

    def __init__(self, mask: Callable[[str], str]) -> None:
        self._mask = mask
        self._pending = ""

    def feed(self, piece: str) -> str:
        """Take a piece; give the masked text that is complete by now, possibly none."""
        text = self._pending + piece
        end = _safe_end(text)
        self._pending = text[end:]
        return self._mask(text[:end]) if end else ""

    def close(self) -> str:
        """The masked rest."""
        rest, self._pending = self._pending, ""
        return self._mask(rest)


def _safe_end(text: str) -> int:
    end = text.rfind("\n") + 1
    block = _open_key_block(text[:end])
    if block is not None:
        end = text.rfind("\n", 0, block) + 1
    if len(text) - end <= _STREAM_LINE_CHARS:
        return end
    return text.rfind(" ", end) + 1 or len(text)


def _open_key_block(lines: str) -> int | None:
    """Where a private key begins that has not ended in ``lines`` and may go on in the next one."""
    begin = lines.rfind("-----BEGIN ")
    if begin < 0 or len(lines) - begin > KEY_BLOCK_CHARS or "-----END " in lines[begin:]:
        return None
    opener, *body = lines[begin:].split("\n")
    goes_on = "PRIVATE KEY" in opener and all(_KEY_LINE.fullmatch(line) for line in body)
    return begin if goes_on else None


_KEY_LINE = re.compile(r"\s*(?:\d+\W+)?(?:\S*|[A-Z][A-Za-z-]+: .*)\s*")
_NOBODY = Masker({})
