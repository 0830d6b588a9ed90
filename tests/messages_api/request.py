"""A request as the rules see it: its body, and its messages merged into turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from tests.messages_api.cache import as_blocks

Json = dict[str, Any]

OLDER_MODELS = ("claude-haiku-4-5", "claude-opus-4-5", "claude-sonnet-4-5")
TOOL_NAME = "^[a-zA-Z0-9_-]{1,128}$"


class Placed(NamedTuple):
    """A content block and where it stands, in the API's notation (``messages.3.content.0``)."""

    where: str
    role: str
    block: Json


class Turn(NamedTuple):
    """Consecutive messages of one role, which the API takes as one. ``where`` is the first of them."""

    where: str
    role: str
    blocks: list[Placed]

    def of_type(self, kind: str) -> list[Placed]:
        return [placed for placed in self.blocks if placed.block["type"] == kind]


@dataclass(frozen=True)
class Received:
    """What a rule judges. ``turns`` and ``blocks`` may be used once the rules on shape hold.

    ``knows_thinking`` tells whether the server issued this thinking: model, text, signature.
    """

    body: Json
    counting: bool = False
    knows_thinking: Callable[[str, str, str], bool] = lambda model, thinking, signature: True

    @cached_property
    def blocks(self) -> list[Placed]:
        """The blocks of all messages, in order, without those inside tool results."""
        return [
            Placed(f"messages.{number}.content.{index}", message["role"], block)
            for number, message in enumerate(self.body["messages"])
            for index, block in enumerate(as_blocks(message["content"]))
        ]

    @cached_property
    def turns(self) -> list[Turn]:
        turns: list[Turn] = []
        for number, message in enumerate(self.body["messages"]):
            if not turns or turns[-1].role != message["role"]:
                turns.append(Turn(f"messages.{number}", message["role"], []))
            for index, block in enumerate(as_blocks(message["content"])):
                turns[-1].blocks.append(Placed(f"messages.{number}.content.{index}", message["role"], block))
        return turns

    @property
    def all_blocks(self) -> Iterator[Placed]:
        """The blocks of all messages with those inside tool results, each before the result that holds it."""
        for placed in self.blocks:
            yield from inner_blocks(placed)
            yield placed

    @property
    def tools(self) -> list[Json]:
        return self.body.get("tools") or []

    @property
    def system(self) -> list[Json]:
        return as_blocks(self.body.get("system") or [])

    @property
    def placed_system(self) -> list[Placed]:
        return [Placed(f"system.{index}", "system", block) for index, block in enumerate(self.system)]

    @property
    def thinking_type(self) -> str:
        return str((self.body.get("thinking") or {}).get("type", "disabled"))

    @property
    def takes_old_options(self) -> bool:
        """Whether the model is of the generation that accepts prefill, sampling options and a thinking budget."""
        return str(self.body["model"]).startswith(OLDER_MODELS)


Rule = Callable[[Received], Iterator[str]]
"""Yields the message of each fault that it finds; nothing when the request keeps the rule."""


def inner_blocks(placed: Placed) -> Iterator[Placed]:
    """The blocks inside a tool result; nothing for any other block."""
    content = placed.block.get("content") if placed.block["type"] == "tool_result" else None
    for index, block in enumerate(content if isinstance(content, list) else ()):
        yield Placed(f"{placed.where}.tool_result.content.{index}", placed.role, block)
