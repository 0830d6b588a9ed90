"""Signed thinking: what was issued comes back unchanged, to the same model, or is refused."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterable
from typing import Any

_KEY = b"messages-api"


def sign(model: str, thinking: str) -> str:
    """The signature of a text; the same in every process, so that a restarted server knows it again."""
    digest = hmac.digest(_KEY, f"{model}\0{thinking}".encode(), "sha256")
    return base64.b64encode(digest).decode()


class Signatures:
    """The thinking that this server issued. ``known`` holds further (thinking, signature) pairs, good for any model."""

    def __init__(self, known: Iterable[tuple[str, str]] = ()) -> None:
        self._known = set(known)
        self._issued: set[tuple[str, str, str]] = set()

    def note(self, model: str, content: Iterable[dict[str, Any]]) -> None:
        """Remember the thinking of a message that is about to be sent."""
        for block in content:
            if block["type"] == "thinking":
                self._issued.add((model, block["thinking"], block["signature"]))

    def knows(self, model: str, thinking: str, signature: str) -> bool:
        return (
            (thinking, signature) in self._known
            or (model, thinking, signature) in self._issued
            or hmac.compare_digest(sign(model, thinking).encode(), signature.encode())
        )
