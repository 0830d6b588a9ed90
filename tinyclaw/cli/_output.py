"""Where a turn's events go: text for people, one JSON object, or one JSON event a line."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Protocol

from tinyclaw.agent.events import Event, Notice, SessionStarted, TurnEnded, to_json
from tinyclaw.cli._render import TextOutput
from tinyclaw.cli._terminal import Terminal
from tinyclaw.types import Json
from tinyclaw.width import harmless


class Output(Protocol):
    """Something that events are shown to. It raises BrokenPipeError when nobody reads standard output any more."""

    def show(self, event: Event) -> None:
        """Take one event, in order."""

    def end(self) -> None:
        """No more events of this turn, whether it ended or broke off."""


class JsonOutput:
    """One object at the turn's end; with ``streams`` one object for each event, a line each."""

    def __init__(self, out: Terminal, err: Terminal, *, streams: bool) -> None:
        self._out = out
        self._err = err
        self._streams = streams
        self._session: SessionStarted | None = None

    def show(self, event: Event) -> None:
        if isinstance(event, SessionStarted):
            self._session = event
        elif isinstance(event, Notice):
            self._err.write(f"• {harmless(event.text)}\n")
        if self._streams:
            self._write(to_json(event))
        elif isinstance(event, TurnEnded):
            self._write(self._result(event))

    def end(self) -> None:
        pass

    def _result(self, event: TurnEnded) -> Json:
        return {
            "session": self._session.session if self._session else None,
            "result": event.text,
            "is_error": event.reason != "done",
            "reason": event.reason,
            "requests": event.requests,
            "usage": asdict(event.usage),
            "cost_usd": event.cost_usd,
            "transcript": self._session.transcript if self._session else None,
        }

    def _write(self, value: Json) -> None:
        """ASCII alone, so that a reader may split lines as it likes."""
        self._out.write(json.dumps(value) + "\n")


def output_for(format: str, out: Terminal, err: Terminal) -> Output:
    """The output of that format: text, json or stream-json."""
    return TextOutput(out, err) if format == "text" else JsonOutput(out, err, streams=format == "stream-json")
