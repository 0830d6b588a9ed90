"""What each source takes from the files, and how what it leaves out is said."""

from __future__ import annotations

import os

import pytest

from tests.context.conftest import Bench
from tinyclaw.context.cut import cut
from tinyclaw.context.source import Limits
from tinyclaw.state.transcript.prefixes import PrefixStore


def system_text(working) -> str:
    return "\n".join(block["text"] for block in working.request.system)


def test_instructions_come_from_the_user_level_then_down_to_where_we_work(deep: Bench):
    deep.write("~/AGENTS.md", "user rules\n")
    deep.write("AGENTS.md", "root rules\n")
    deep.write("sub/CLAUDE.md", "sub rules\n")
    deep.write("sub/deep/AGENTS.md", "deep rules\n")
    deep.write("sub/deep/CLAUDE.md", "not read\n")
    text = system_text(deep.peek())
    places = [text.index(f"{level} rules") for level in ("user", "root", "sub", "deep")]
    assert places == sorted(places) and "not read" not in text
    assert "# Instructions from sub/CLAUDE.md" in text and "# Instructions from ~/AGENTS.md" in text


def test_instructions_of_other_folders_are_not_read(bench: Bench):
    bench.write("sub/AGENTS.md", "elsewhere\n")
    assert "elsewhere" not in system_text(bench.peek())


def test_the_nearest_instructions_are_cut_last_and_the_cut_is_said_to_both(deep: Bench):
    deep.write("AGENTS.md", "far\n" * 5_000)
    deep.write("sub/deep/AGENTS.md", "near\n" * 100 + "NEVER touch vendor/\n")
    working = deep.peek(limits=Limits(instructions_bytes=2_000))
    text = system_text(working)
    assert "NEVER touch vendor/" in text
    assert "[AGENTS.md is 20,000 bytes in 5,000 lines; only lines 1-" in text
    assert any(
        note.startswith("AGENTS.md: cut: it is 20,000 bytes in 5,000 lines, and only lines 1-")
        for note in working.notes
    )


@pytest.mark.parametrize("text", ["x" * 40_000, "é" * 20_000])
def test_a_single_long_line_is_cut_between_characters(text):
    shown = cut(text, 1_001, "AGENTS.md")
    first = shown.text.split("\n")[0]
    assert (
        first == text[: len(first)] and 1 <= len(first.encode()) <= 1_001 and "AGENTS.md is 40,000 bytes" in shown.text
    )


def test_an_open_code_fence_is_closed_before_the_notice():
    lines = cut("intro\n```py\n" + "x = 1\n" * 100, 300, "AGENTS.md").text.split("\n")
    assert lines[-2] == "```" and lines[-1].startswith("[AGENTS.md is")


def test_byte_order_mark_and_carriage_returns_do_not_reach_the_model(bench: Bench):
    bench.write("AGENTS.md", b"\xef\xbb\xbfUse tabs.\r\nAlways.\r\n")
    text = system_text(bench.peek())
    assert "\ufeff" not in text and "\r" not in text and "Use tabs.\nAlways." in text


@pytest.mark.parametrize("name", ["AGENTS.md", "PLAN.md", "TODO.md", ".memory/MEMORY.md"])
@pytest.mark.parametrize("fault", ["folder", "pipe", "binary", "huge", "latin-1"])
def test_a_file_that_cannot_be_read_is_said_to_both_and_stops_nothing(bench: Bench, name, fault):
    place = bench.root / name
    place.parent.mkdir(exist_ok=True)
    if fault == "folder":
        place.mkdir()
    elif fault == "pipe":
        os.mkfifo(place)
    elif fault == "huge":
        with place.open("wb") as file:
            file.truncate(64 << 20)
    else:
        bench.write(name, b"caf\xe9 rules\n" if fault == "latin-1" else b"a\0b")
    working = bench.peek()
    said = json_of(working)
    assert name in said
    if fault == "latin-1":
        assert "caf\ufffd rules" in said
    else:
        assert "could not be read" in said
        assert any(name in note for note in working.notes)


def json_of(working) -> str:
    return system_text(working) + "".join(
        block["text"] for message in working.request.messages for block in message["content"]
    )


def test_a_link_out_of_the_workspace_is_not_followed_and_that_is_said(bench: Bench):
    bench.write("~/secret.md", "hidden words\n")
    (bench.root / "AGENTS.md").symlink_to(bench.user / "secret.md")
    working = bench.peek()
    assert "hidden words" not in json_of(working)
    assert any("link out of the workspace" in note for note in working.notes)


def test_a_link_within_the_workspace_is_read(bench: Bench):
    bench.write("docs/rules.md", "linked rules\n")
    (bench.root / "AGENTS.md").symlink_to("docs/rules.md")
    assert "linked rules" in system_text(bench.peek())


def test_a_memory_index_over_its_budget_says_what_is_shown(bench: Bench):
    bench.write(".memory/MEMORY.md", "".join(f"- [n{n}](n{n}.md) — note {n}\n" for n in range(400)))
    working = bench.peek()
    text = system_text(working)
    assert "note 199" in text and "note 200" not in text
    assert "in 400 lines; only lines 1-200 are shown. Read the rest from line 201." in text
    assert any("MEMORY.md" in note for note in working.notes)


def skill(name: str, description: str) -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n\nbody of {name}\n"


def test_the_catalog_names_each_skill_once_nearest_first_and_never_its_body(bench: Bench):
    bench.write("skills/a/SKILL.md", skill("a", "first one"))
    bench.write(".claude/skills/b/SKILL.md", skill("a", "shadowed"))
    bench.write("~/skills/c/SKILL.md", skill("c", "of the user"))
    text = system_text(bench.peek())
    assert "- a (skills/a/SKILL.md): first one" in text and "- c (~/skills/c/SKILL.md): of the user" in text
    assert "shadowed" not in text and "body of" not in text


@pytest.mark.parametrize(
    "description", ["Runs checks: lint, types", "@team rules", "*.py helper", "`x` tool", "fix issue #12 now"]
)
def test_a_skill_with_a_careless_description_is_listed_all_the_same(bench: Bench, description):
    bench.write("skills/bad/SKILL.md", skill("bad", description))
    bench.write("skills/good/SKILL.md", skill("good", "fine"))
    text = system_text(bench.peek())
    assert f"- bad (skills/bad/SKILL.md): {description}" in text and "- good" in text


def test_a_skill_edited_in_place_is_seen_at_the_next_compile(bench: Bench):
    bench.write("skills/a/SKILL.md", skill("a", "old words"))
    bench.compile()
    bench.write("skills/a/SKILL.md", skill("a", "new words"))
    working = bench.compile()
    assert [block.attrs["path"] for block in working.blocks if block.kind == "state"] == ["(skills)"]
    assert "new words" in json_of(working)


def test_a_secret_in_a_state_file_is_masked(bench: Bench):
    bench.write("PLAN.md", "use ghp_" + "a1B2" * 9 + " to push\n")
    assert "ghp_a1B2" not in json_of(bench.peek()) and "[masked:" in json_of(bench.peek())


def test_private_text_does_not_reach_the_workspaces_prefix_file(bench: Bench):
    bench.write("~/AGENTS.md", "my private rules\n")
    prefix = bench.compile().prefix
    store = PrefixStore(bench.root / ".transcripts", bench.user)
    store.save(prefix)
    committed = [path.read_text() for path in (bench.root / ".transcripts").rglob("*.md")]
    assert all("my private rules" not in text for text in committed)
    assert PrefixStore(bench.root / ".transcripts", bench.user).load(prefix.hash) == prefix
    assert PrefixStore(bench.root / ".transcripts", bench.root).load(prefix.hash) is None
