"""Record the examples again: ``python -m tests.examples.record``, from the project's root.

The real loop, tools and client run on a copy of each workspace; the model's replies come from the
strict server with the scenario's script. What lies in ``examples/`` is what that session wrote; only
durations differ from one recording to the next.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.examples.play import EXAMPLES, begin, opened, ticking, turn
from tests.examples.scenario import Scenario
from tests.examples.scenarios import SCENARIOS
from tests.messages_api import MessagesApi
from tinyclaw.agent.events import TurnEnded
from tinyclaw.state.workspace import TRANSCRIPTS

FOLDER = Path("/tmp/tinyclaw-examples")
"""Where recordings run: failing tests print the folder, so it is the same each time and nobody's own."""


def record(scenario: Scenario, target: Path, folder: Path) -> None:
    """Run the scenario on a copy of ``target``'s workspace in ``folder``; the transcript and its prefixes go back."""
    root = shutil.copytree(target / "workspace", folder / scenario.name)
    session, clock = begin(scenario, root), ticking()
    (transcript,) = (root / TRANSCRIPTS).glob("*.md")
    with MessagesApi([step for each in scenario.turns for step in each.replies]) as server:
        environment = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "none"}

        def go(text: str | None, mode: str) -> str:
            with opened(root, session, {"permission_mode": mode}, environment, clock, strict=False) as found:
                *_, ended = turn(found, text, scenario, root)
            assert isinstance(ended, TurnEnded)
            return ended.reason

        for each in scenario.turns:
            ended = go(each.text, each.permission_mode)
            if each.is_paused:
                assert ended == "paused", ended
                transcript.write_text(transcript.read_text().replace("- [ ] allow", "- [x] allow"))
                ended = go(None, each.permission_mode)
            assert ended == "done", ended
        assert not server.refused, server.refused
    shutil.rmtree(target / "prefixes", ignore_errors=True)
    shutil.copytree(root / TRANSCRIPTS / "prefixes", target / "prefixes")
    shutil.copy(transcript, target / "transcript.md")


if __name__ == "__main__":
    for example in SCENARIOS:
        shutil.rmtree(FOLDER, ignore_errors=True)
        record(example, EXAMPLES / example.name, FOLDER)
        print(f"recorded {example.name}")
    shutil.rmtree(FOLDER, ignore_errors=True)
