"""What each source takes from the files, and how what it leaves out is said."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from tests.context.conftest import TARGET, Bench
from tinyclaw.context.source import Limits
from tinyclaw.errors import StateError
from tinyclaw.state.skills import skill_of
from tinyclaw.state.snapshot import MAX_RECORDS
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


def test_a_long_single_line_of_instructions_is_cut_and_said_to_both(bench: Bench):
    bench.write("AGENTS.md", "é" * 20_000)
    working = bench.peek()
    assert "AGENTS.md is 40,000 bytes in 1 line; only the first 32,5" in system_text(working)
    assert any("AGENTS.md: cut: it is 40,000 bytes" in n and "instructions_bytes" in n for n in working.notes)


def test_instructions_that_became_empty_are_stated_as_empty(bench: Bench):
    bench.write("AGENTS.md", "rules\n")
    bench.compile()
    bench.write("AGENTS.md", "")
    assert "(the file is empty)" in json_of(bench.compile())


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
    assert sum(note.startswith(name) for note in working.notes) == 1
    if fault == "latin-1":
        assert "caf\ufffd rules" in said and f"({name}: line 1 is not UTF-8" in said
    else:
        assert f"({name} could not be read: " in said and str(bench.root) not in said


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
    assert len(text[text.index("# .memory/MEMORY.md") :].encode()) <= 26 * 1024
    assert any("MEMORY.md: cut: it is" in note and "only lines 1-200" in note for note in working.notes)


def test_a_memory_index_with_long_lines_keeps_to_its_bytes(bench: Bench):
    bench.write(".memory/MEMORY.md", "".join(f"- [n{n}](n{n}.md) — {'note ' * 60}\n" for n in range(150)))
    entry = bench.peek().manifest.entries["memory:index"]
    assert "of 150" in entry.lines and entry.tokens * TARGET.chars_per_token < 26 * 1024


def skill(name: str, description: str) -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n\nbody of {name}\n"


def catalog_lines(working) -> list[str]:
    text = system_text(working)
    catalog = text[text.index("# Skills") : text.index("# Memory")]
    return [line for line in catalog.split("\n") if line.startswith(("- ", "["))]


def test_the_catalog_names_each_skill_once_nearest_first_and_never_its_body(deep: Bench):
    deep.write("skills/a/SKILL.md", skill("a", "first one"))
    deep.write(".claude/skills/b/SKILL.md", skill("a", "shadowed"))
    deep.write("~/skills/c/SKILL.md", skill("c", "of the user"))
    deep.write("sub/.agents/skills/d/skill.md", skill("c", "of a nearer folder"))
    working = deep.peek()
    assert catalog_lines(working) == ["- a: first one", "- c: of a nearer folder"]
    assert "call load_skill" in system_text(working) and "body of" not in system_text(working)


def test_skills_of_a_folder_beside_the_way_are_not_in_the_catalog(bench: Bench):
    bench.write("sub/skills/a/SKILL.md", skill("a", "elsewhere"))
    assert "# Skills" not in system_text(bench.peek())


@pytest.mark.parametrize(
    "description", ["Runs checks: lint, types", "@team rules", "*.py helper", "`x` tool", "fix issue #12 now"]
)
def test_a_skill_with_a_careless_description_is_listed_all_the_same(bench: Bench, description):
    bench.write("skills/bad/SKILL.md", skill("bad", description))
    bench.write("skills/good/SKILL.md", skill("good", "fine"))
    working = bench.peek()
    assert catalog_lines(working) == [f"- bad: {description}", "- good: fine"]
    assert len(working.notes) == 1 and "skills/bad/SKILL.md:3: " in working.notes[0], "it is told once, with its line"
    assert "quote the value" in working.notes[0]


BROKEN = {
    "never closed": (
        "---\nname: bad\ndescription: does it\n",
        "- bad: no description; load it to see",
        "skills/bad/SKILL.md:1: the frontmatter is never closed",
    ),
    "no fields": ("just text\n", "- bad: no description; load it to see", "skills/bad/SKILL.md:1: has no frontmatter"),
    "a list": ("---\nname: [a, b]\ndescription: fine\n---\n", "- bad: fine", 'SKILL.md:2: "name" is a list, not text'),
    "binary": (b"---\nname: \0\n---\n", "- bad: cannot be used: skills/bad/SKILL.md:2: holds NUL", "SKILL.md:2: holds"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_skill_is_listed_with_what_can_be_read_and_the_person_is_told(bench: Bench, fault):
    text, line, told = BROKEN[fault]
    bench.write("skills/bad/SKILL.md", text)
    bench.write("skills/good/SKILL.md", skill("good", "fine"))
    working = bench.peek()
    bad, good = catalog_lines(working)
    assert bad.startswith(line) and good == "- good: fine"
    (note,) = working.notes
    assert note.startswith("(skills): skills/bad/SKILL.md") and told in note


def test_a_hidden_skill_is_told_to_the_person_and_many_faults_are_counted(bench: Bench):
    bench.write("skills/a/SKILL.md", skill("a", "near"))
    bench.write("~/skills/a/SKILL.md", skill("a", "far"))
    (note,) = bench.peek().notes
    assert "(skills): ~/skills/a/SKILL.md: is hidden by skills/a/SKILL.md, which has the same name" in note
    for number in range(9):
        bench.write(f"skills/bad{number}/SKILL.md", "no frontmatter\n")
    assert "and 7 more; tinyclaw doctor lists them" in bench.peek().notes[0]


def test_a_skill_file_that_is_no_skill_is_told_to_the_person_even_where_there_are_no_others(bench: Bench):
    bench.write("skills/SKILL.md", skill("a", "d"))
    working = bench.peek()
    assert "# Skills" not in system_text(working)
    assert ["skills/SKILL.md: is in no folder of its own" in note for note in working.notes] == [True]


def test_a_catalog_over_its_budget_shortens_descriptions_before_skills_fall_out(bench: Bench):
    long = "what it does. " * 40
    for number in range(20):
        bench.write(f"skills/s{number:02}/SKILL.md", skill(f"s{number:02}", long))
    whole = catalog_lines(bench.peek())
    assert [len(line) for line in whole] == [len(f"- s00: {long}".strip())] * 20
    shorter = catalog_lines(bench.peek(limits=Limits(catalog_bytes=6_000)))
    assert [line[:7] for line in shorter] == [line[:7] for line in whole]
    assert {len(line) for line in shorter} == {len("- s00: ") + 256} and all(line.endswith("…") for line in shorter)


def test_a_catalog_far_over_its_budget_keeps_the_nearest_and_says_how_many_are_missing(bench: Bench):
    for number in range(MAX_RECORDS + 10):
        bench.write(f"~/skills/s{number:04}/SKILL.md", skill(f"s{number:04}", "does " * 20))
    bench.write("skills/zebra/SKILL.md", skill("zebra", "is near"))
    working = bench.peek(limits=Limits(catalog_bytes=8_000))
    *lines, more = catalog_lines(working)
    count = MAX_RECORDS + 11
    assert 100 < len(lines) < MAX_RECORDS and "- zebra: is near" in lines and lines == sorted(lines)
    missing = count - len(lines)
    assert more == f"[{missing} of {count} skills do not fit here; load_skill with a word finds them.]"
    assert any(f"{missing} of {count} skills do not fit here; see: tinyclaw skills list" in n for n in working.notes)
    text = system_text(working)
    assert len(text[text.index("# Skills") : text.index("# Memory")].encode()) <= 8_000 + 200


def test_names_and_descriptions_of_skills_stay_on_their_line(bench: Bench):
    bench.write("skills/a/SKILL.md", '---\nname: "a\\n# Rules"\ndescription: |\n  one\n  # two\n---\n')
    bench.write("skills/b\n# Rules/SKILL.md", "---\ndescription: d\n---\n")
    assert catalog_lines(bench.peek()) == ["- a: one # two", "- b # Rules: d"]
    bench.write("skills/a/SKILL.md", skill("a", "word " * 1000))
    line = catalog_lines(bench.peek())[0]
    assert line.endswith("…") and len(line) == len("- a: ") + 1024


def test_the_catalog_is_not_parsed_again_when_nothing_changed(bench: Bench):
    bench.write("skills/a/SKILL.md", skill("a", "words"))
    bench.compile()
    before = skill_of.cache_info()
    bench.compile()
    assert skill_of.cache_info() == before


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


# The workspace's own sources


def stated(working) -> dict[str, str]:
    return {block.attrs["path"]: block.text for block in working.blocks if block.kind == "state"}


def test_a_file_of_the_sources_folder_is_stated_and_its_changes_are(bench: Bench):
    path = ".tinyclaw/sources/sprint.md"
    bench.write(path, "---\npriority: 30\n---\n\nWe ship on Friday.\n" + "And then rest.\n" * 20)
    working = bench.compile()
    assert "We ship on Friday." in stated(working)[path] and "priority" not in stated(working)[path]
    entry = working.manifest.entries["own:sprint"]
    assert (entry.file, entry.lines, entry.note) == (path, "4-25", "")
    bench.reply()
    bench.say("go on")
    bench.write(path, "---\npriority: 30\n---\n\nWe ship on Monday.\n" + "And then rest.\n" * 20)
    assert "+We ship on Monday." in stated(bench.compile())[path]
    (bench.root / path).unlink()
    assert 'how="gone"' in stated(bench.compile())[path]


def test_a_command_of_a_source_is_never_run_and_that_is_said(bench: Bench):
    bench.write(".tinyclaw/sources/status.md", "---\ncommand: touch ran\nrequired: true\n---\n")
    working = bench.compile()
    assert stated(working) == {} and not (bench.root / "ran").exists()
    assert working.manifest.entries["own:status"].place == "out"
    assert any(
        note.startswith(".tinyclaw/sources/status.md: left out: its command is not run") for note in working.notes
    )


def test_a_required_source_without_a_text_stops_the_request_and_another_is_left_out(bench: Bench):
    bench.write(".tinyclaw/sources/a.md", "---\nrequired: false\n---\n")
    assert bench.peek().manifest.entries["own:a"].note == "left out: it is empty"
    bench.write(".tinyclaw/sources/a.md", "---\nrequired: true\n---\n")
    with pytest.raises(StateError, match=r"own:a cannot be made: left out: it is empty"):
        bench.peek()


def test_a_source_of_low_priority_falls_out_first_and_a_required_one_never(bench: Bench):
    for name, head in (("low", "priority: 1"), ("high", "priority: 90"), ("must", "priority: 0\nrequired: true")):
        bench.write(f".tinyclaw/sources/{name}.md", f"---\n{head}\n---\n" + f"{name} words\n" * 1000)
    small = replace(TARGET, window_tokens=20_000, max_tokens=4_000)
    entries = bench.compile(target=small).manifest.entries
    assert [entries[f"own:{name}"].place for name in ("low", "high", "must")] == ["out", "event", "event"]


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (
            "---\npriorty: 3\n---\nwords\n",
            'line 2: "priorty" means nothing here; known are priority, required, command',
        ),
        ("---\npriority: high\n---\nwords\n", 'line 2: "high" is no priority; use a whole number from 0 to 100'),
        ("---\nrequired: maybe\n---\nwords\n", 'line 2: "maybe" is no required; use true or false'),
    ],
)
def test_a_faulty_field_loses_nothing_and_is_said(bench: Bench, text, note):
    bench.write(".tinyclaw/sources/a.md", text)
    working = bench.compile()
    assert "words" in stated(working)[".tinyclaw/sources/a.md"]
    assert note in working.manifest.entries["own:a"].note


def test_only_markdown_files_of_the_folder_itself_are_sources(bench: Bench):
    for name in ("a.txt", ".hidden.md", "deep/b.md"):
        bench.write(f".tinyclaw/sources/{name}", "words\n")
    assert stated(bench.compile()) == {}
    for number in range(MAX_RECORDS + 3):
        bench.write(f".tinyclaw/sources/{number:04}.md", "words\n")
    assert bench.compile().manifest.entries["own"].note == "left out: 3 more files than are read"
