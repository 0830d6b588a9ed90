"""What a session's first request looks like, and what it costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.context.conftest import FACTS, Bench
from tests.context.golden_request import GOLDEN, as_markdown, first_request
from tinyclaw.errors import StateError
from tinyclaw.prompts import prompt_loader
from tinyclaw.tools._base import load_tools

CHARS_PER_TOKEN = 4


def test_a_typical_first_request_is_the_reviewed_one(tmp_path: Path):
    """After a wanted change: ``python -m tests.context.golden_request``, and look at the difference."""
    assert as_markdown(first_request(tmp_path)) == GOLDEN.read_text(encoding="utf-8")


def test_tools_and_system_of_an_empty_workspace_stay_small(bench: Bench):
    request = bench.peek(tools=load_tools().specs()).request
    tokens = len(json.dumps([request.tools, request.system])) / CHARS_PER_TOKEN
    assert tokens <= 3_500


def test_the_base_prompt_stays_under_a_thousand_tokens(tmp_path: Path):
    assert len(prompt_loader(tmp_path)("base")) / CHARS_PER_TOKEN < 1_000


def test_an_empty_workspace_has_only_the_base_prompt_the_environment_and_how_to_use_the_memory(bench: Bench):
    working = bench.peek()
    assert list(working.manifest.entries) == ["tools", "base", "environment", "memory", "conversation"]
    assert working.request.system[1]["text"] == "\n".join(
        ["# Environment", f"Workspace: {FACTS['Workspace']}", "Platform: Linux", "Date: 2026-11-30"]
    )


def test_a_prompt_of_the_users_own_replaces_the_shipped_one(bench: Bench):
    bench.write("~/prompts/base.md", b"\xef\xbb\xbfYou are mine.\r\nBe kind.\r\n")
    assert bench.peek().request.system[0]["text"] == "You are mine.\nBe kind."


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\n", r"base\.md: is empty; delete the file to have the shipped prompt"),
        (b"one\n\xff", r"base\.md:2: is not UTF-8; save it as UTF-8, or delete the file"),
    ],
)
def test_a_prompt_that_is_no_text_is_named_with_the_way_out(bench: Bench, data, said):
    bench.write("~/prompts/base.md", data)
    with pytest.raises(StateError, match=said):
        bench.peek()


def test_a_prompt_that_does_not_exist_is_an_error(tmp_path: Path):
    with pytest.raises(StateError, match=r"prompts/nosuch\.md: is missing"):
        prompt_loader(tmp_path)("nosuch")
