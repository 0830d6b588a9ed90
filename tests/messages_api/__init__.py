"""A strict Messages API on loopback: scripted replies over real HTTP and SSE.

::

    with MessagesApi([reply("Reading.", tools=[("read", {"path": "a.py"})]), reply("Done.")]) as api:
        ...                                  # let the client talk to api.url
        assert api.refused == []             # every request kept the API's rules
        assert len(api.requests) == 2

As a process, so that a measured client does not share its interpreter:
``python -m tests.messages_api SCRIPT.json --port 0 --log DIR``.
"""

from tests.messages_api.server import Exchange, MessagesApi, Refused
from tests.messages_api.steps import Fault, Reply, Step, cut, error_event, fault, reply, slow, step_from_json, too_long
from tests.messages_api.stream import stream_events

__all__ = [
    "Exchange",
    "Fault",
    "MessagesApi",
    "Refused",
    "Reply",
    "Step",
    "cut",
    "error_event",
    "fault",
    "reply",
    "slow",
    "step_from_json",
    "stream_events",
    "too_long",
]
