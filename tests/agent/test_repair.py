"""Sessions whose process died at a certain append: the transcript is cut right behind one of its blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.messages_api import reply
from tinyclaw.errors import UsageError
from tinyclaw.state.transcript.grammar import parse, render, render_header


def cut_behind(root: Path, kind: str) -> None:
    """Leave the transcript's blocks up to the last one of that kind, as a crash would have."""
    [path] = (root / ".transcripts").glob("*.md")
    parsed = parse(path.read_bytes(), path.name)
    last = max(at for at, block in enumerate(parsed.blocks) if block.kind == kind)
    path.write_text(render_header(parsed.header) + render(parsed.blocks[: last + 1]), newline="")


def died(start, turn, root: Path, behind: str, server) -> None:
    session = start(server)
    turn(session, "hello")
    session.close()
    cut_behind(root, behind)


def test_a_turn_that_only_lacked_its_end_is_ended_without_asking_again(api, start, turn, root: Path):
    server = api([reply("The answer.")])
    died(start, turn, root, "reply", server)
    [*_, ended] = turn(start(server, resume="last"), None)
    assert (ended.reason, ended.text, len(server.requests)) == ("done", "The answer.", 1)


def test_a_reply_that_the_output_limit_had_cut_is_gone_on_with(api, start, turn, root: Path):
    server = api([reply("first half", stop_reason="max_tokens"), reply("second half"), reply("second half again")])
    died(start, turn, root, "request", server)
    [path] = (root / ".transcripts").glob("*.md")
    blocks = parse(path.read_bytes(), path.name).blocks
    first_reply = next(at for at, block in enumerate(blocks) if block.kind == "reply")
    path.write_text(render_header({"format": "1"}) + render(blocks[: first_reply + 1]), newline="")
    [*_, ended] = turn(start(server, resume="last"), None)
    assert (ended.reason, ended.text) == ("done", "second half again")
    assert "Go on exactly where it stopped" in str(server.requests[-1]["messages"][-1])


def test_a_reply_without_its_record_is_not_taken_for_the_whole(api, start, turn, root: Path):
    server = api([reply("Let me see."), reply("Now all of it.")])
    died(start, turn, root, "text", server)
    [*_, ended] = turn(start(server, resume="last"), None)
    assert (ended.reason, ended.text) == ("done", "Now all of it.")


def test_a_turn_that_has_ended_is_not_gone_on_with(api, start, turn, root: Path):
    server = api([reply("The answer.")])
    died(start, turn, root, "turn_end", server)
    with pytest.raises(UsageError, match="nothing to go on with"):
        turn(start(server, resume="last"), None)
