"""Serve a script file: ``python -m tests.messages_api SCRIPT.json --port 0 --log DIR``.

The script is a JSON list of steps, such as ``["Hello.", {"reply": {"tools": [["read", {"path": "a"}]]}},
{"fault": {"status": 429, "headers": {"retry-after": "1"}}}, {"cut": {"of": "Cut off.", "after_events": 3}}]``.
The first line of the output is the URL. It serves until it is interrupted or terminated.
"""

from __future__ import annotations

import argparse
import json
import signal
from pathlib import Path

from tests.messages_api.server import MessagesApi
from tests.messages_api.steps import step_from_json


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.messages_api", description=__doc__)
    parser.add_argument("script", type=Path, help="JSON list of steps")
    parser.add_argument("--port", type=int, default=0, help="0 for a free one")
    parser.add_argument("--log", type=Path, help="folder for received bodies and refusals")
    parser.add_argument("--window", type=int, help="refuse prompts of more tokens than this")
    parser.add_argument("--prefix", default="", help="path under which the API lives")
    options = parser.parse_args()
    steps = [step_from_json(value) for value in json.loads(options.script.read_text())]
    if options.log:
        options.log.mkdir(parents=True, exist_ok=True)
    stop_signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals)  # before any thread starts, so that all inherit it
    settings = {"port": options.port, "log": options.log, "prefix": options.prefix, "window_tokens": options.window}
    with MessagesApi(steps, **settings) as api:
        print(api.url, flush=True)
        signal.sigwait(stop_signals)


if __name__ == "__main__":
    main()
