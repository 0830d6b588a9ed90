"""The format's page names every kind and attribute that the program writes or reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.examples.record import EXAMPLES
from tinyclaw.state.transcript.fold import Conversation
from tinyclaw.state.transcript.grammar import DAMAGED, OUTSIDE, parse

PAGE = (Path(__file__).parents[1] / "docs/transcript-format.md").read_text()
NAMED = set(re.findall(r"`(\w+)`", PAGE)) | {word for text in re.findall(r"`\"(\w+)", PAGE) for word in [text]}


@pytest.mark.parametrize("name", [path.name for path in EXAMPLES.iterdir() if path.is_dir()])
def test_every_kind_and_attribute_in_a_transcript_is_described(name: str):
    folder = EXAMPLES / name
    for path in [folder / "transcript.md", *(folder / "prefixes").glob("*.md")]:
        for block in parse(path.read_bytes(), path.name).blocks:
            assert block.kind in NAMED - {OUTSIDE, DAMAGED}
            assert set(block.attrs) - {"m"} <= NAMED, (block.kind, set(block.attrs) - NAMED)


def test_every_record_that_the_fold_reads_is_described():
    read = {name.removeprefix("_take_") for name in vars(Conversation) if name.startswith("_take_")}
    assert read - {"content", "outside", "revisions"} <= NAMED
