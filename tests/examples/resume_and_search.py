"""A command that waits for the person, an output too long to send, a session that goes on, a call that fails."""

from __future__ import annotations

from tests.examples.scenario import Scenario, Turn, bash, edit
from tests.messages_api import reply

RESUME = Scenario(
    "resume-and-search",
    (
        Turn(
            "The nightly job skipped a meter last night. Which one, and why?",
            (
                reply("I'll run the job again and look at what it says.", tools=[bash("python3 nightly.py", "call_1")]),
                reply(
                    "One of the meters was skipped, but the warning is in the part of the output that was left out "
                    "here. I'll search the whole of it.",
                    tools=[("grep", {"pattern": "WARN", "path": ".task_outputs"}, "call_2")],
                ),
                reply(
                    "It is m-023. I'll look at its line and its neighbours.",
                    tools=[("grep", {"pattern": "^m-023", "path": "meters.csv", "context": 1}, "call_3")],
                ),
                reply(
                    "Meter **m-023** was skipped because its `per_hour` is -412 (meters.csv:24), and the job leaves "
                    "out a meter whose consumption is negative. Its neighbours have 164 and 238, and AGENTS.md says "
                    "that amounts are never negative, so I take it for a wrong sign. I have changed nothing. "
                    "Shall I make it 412?",
                ),
            ),
            permission_mode="ask",
            is_paused=True,
        ),
        Turn(
            "Yes, make it 412 and show me that the job takes it.",
            (
                reply(tools=[edit("meter.csv", "m-023,12137,-412", "m-023,12137,412", "call_4")]),
                reply(
                    "The file is called meters.csv.",
                    tools=[
                        edit("meters.csv", "m-023,12137,-412", "m-023,12137,412", "call_5"),
                        bash("python3 nightly.py | grep -E 'WARN|m-023 hour=00|done'", "call_6"),
                    ],
                ),
                reply(
                    "meters.csv:24 says 412 now, and nothing else was changed. The job writes all 40 meters, m-023 "
                    "among them, and warns of none.",
                ),
            ),
        ),
    ),
    proof="python3 nightly.py | tail -n 1",
    proved="done: 40 meters written, 0 skipped",
)
