"""A server that answers as two models: the one that works, and the small one that is asked about the memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.messages_api import Reply, fault, reply

Answers = Sequence[Any]


def two_models(main: Answers, small: Answers) -> Callable[[dict[str, Any]], Any]:
    """A script that answers each model from its own list; a text stands for a reply, a function gets the body."""
    lists = {True: list(small), False: list(main)}

    def answer(body: dict[str, Any]) -> Any:
        is_small = "haiku" in body["model"]
        if not lists[is_small]:
            return fault(400, f"the script has nothing left for {body['model']}")
        step = lists[is_small].pop(0)
        if callable(step):
            step = step(body)
        return reply(step) if isinstance(step, str) else step

    return answer


def asked(server: Any, *, small: bool) -> list[dict[str, Any]]:
    """The requests that one of the two models got."""
    return [body for body in server.requests if ("haiku" in body["model"]) is small]


def texts(body: dict[str, Any]) -> str:
    """All that a request's messages say."""
    parts = [block.get("text") or block.get("content") or "" for each in body["messages"] for block in each["content"]]
    return "\n".join(map(str, parts))


__all__ = ["Reply", "asked", "texts", "two_models"]
