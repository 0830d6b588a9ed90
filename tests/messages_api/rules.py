"""What the Messages API refuses with 400, one function a rule, in the order in which they are asked.

A rule yields the message of each fault that it finds; only the first one is sent. The wording is the API's own
where it is publicly known.
"""

from __future__ import annotations

from tests.messages_api.conversation import CONVERSATION_RULES
from tests.messages_api.options import OPTION_RULES
from tests.messages_api.request import Received, Rule
from tests.messages_api.shape import SHAPE_RULES

RULES: list[Rule] = [*SHAPE_RULES, *OPTION_RULES, *CONVERSATION_RULES]


def first_fault(request: Received) -> str | None:
    """The message of the first rule that the request breaks; None when it may pass."""
    return next((message for rule in RULES for message in rule(request)), None)
