"""How instructions are told: each once, nearer ones later and cut last, and whatever is cut is said to both."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.context.conftest import TARGET, Bench
from tinyclaw.context.source import Limits
from tinyclaw.state.transcript.grammar import Block
from tinyclaw.types import ToolUse


def system_text(working) -> str:
    return "\n".join(block["text"] for block in working.request.system)


def stated(working) -> dict[str, str]:
    """The text of each new statement, by path."""
    return {block.attrs["path"]: block.text for block in working.blocks if block.kind == "state"}


def whole_text(working) -> str:
    said = (block["text"] for message in working.request.messages for block in message["content"] if "text" in block)
    return "\n".join([system_text(working), *said])


def touch(bench: Bench, path: str, **facts) -> None:
    """The model reads a file, and the request after it is not made yet."""
    call = f"toolu_{bench.conversation.last}"
    bench.reply(ToolUse(call, "read", {"path": path}), stop="tool_use")
    bench.result(call, "text of it", **(facts or {"revisions": {path: "0" * 16}}))


# Nested ones


def test_a_nested_file_is_told_once_when_its_folder_was_touched_and_not_before(bench: Bench):
    bench.write("AGENTS.md", "root rules\n")
    bench.write("packages/web/AGENTS.md", "use tabs\n")
    first = bench.compile()
    assert "use tabs" not in whole_text(first)
    touch(bench, "packages/web/src/x.ts")
    second = bench.compile()
    assert list(stated(second)) == ["packages/web/AGENTS.md"] and second.prefix is first.prefix
    assert "# Instructions from packages/web/AGENTS.md (for what is in packages/web/)" in whole_text(second)
    touch(bench, "packages/web/src/y.ts")
    third = bench.compile()
    assert stated(third) == {} and whole_text(third).count("use tabs") == 1


def test_a_call_that_looked_into_a_folder_touches_it_and_one_that_failed_does_not(bench: Bench):
    for folder in ("a", "b", "c"):
        bench.write(f"{folder}/AGENTS.md", f"rules of {folder}\n")
    bench.compile()
    touch(bench, "a/none.ts", is_error=True, revisions={"a/none.ts": "0" * 16})
    touch(bench, "b", folder="b")
    assert list(stated(bench.compile())) == ["b/AGENTS.md"]


def test_nearer_files_are_told_after_those_above_them(bench: Bench):
    for path in ("a/b/c/AGENTS.md", "a/AGENTS.md", "a/b/CLAUDE.md"):
        bench.write(path, f"rules of {path}\n")
    bench.compile()
    touch(bench, "a/b/c/x.ts")
    assert list(stated(bench.compile())) == ["a/AGENTS.md", "a/b/CLAUDE.md", "a/b/c/AGENTS.md"]
    bench.prefix = None
    text = system_text(bench.compile())
    places = [text.index(f"rules of {path}") for path in ("a/AGENTS.md", "a/b/CLAUDE.md", "a/b/c/AGENTS.md")]
    assert places == sorted(places)


def test_the_first_statement_of_a_nested_file_is_nobodys_change_and_a_later_one_is(bench: Bench):
    bench.write("web/AGENTS.md", "use tabs\n" + "and more\n" * 30)
    bench.compile()
    touch(bench, "web/x.ts")
    assert "changed=" not in stated(bench.compile())["web/AGENTS.md"]
    bench.reply()
    bench.say("go on")
    bench.write("web/AGENTS.md", "use blanks\n" + "and more\n" * 30)
    text = stated(bench.compile())["web/AGENTS.md"]
    assert 'how="diff" changed="outside"' in text and "+use blanks" in text and "-use tabs" in text


def test_a_nested_file_that_was_removed_is_told_as_gone_and_leaves_the_next_prefix(bench: Bench):
    bench.write("web/AGENTS.md", "use tabs\n")
    bench.compile()
    touch(bench, "web/x.ts")
    bench.compile()
    bench.save("web/AGENTS.md", None)
    assert 'how="gone"' in stated(bench.compile())["web/AGENTS.md"]
    bench.prefix = None
    assert "use tabs" not in system_text(bench.compile())


def test_the_removed_agents_md_gives_way_to_a_claude_md(bench: Bench):
    bench.write("web/AGENTS.md", "use tabs\n")
    bench.write("web/CLAUDE.md", "use blanks\n")
    bench.compile()
    touch(bench, "web/x.ts")
    bench.compile()
    bench.save("web/AGENTS.md", None)
    after = stated(bench.compile())
    assert 'how="gone"' in after["web/AGENTS.md"] and "use blanks" in after["web/CLAUDE.md"]


def test_after_a_compaction_nested_files_stand_in_the_prefix_and_are_told_nowhere_else(bench: Bench):
    bench.write("AGENTS.md", "root rules\n")
    bench.write("web/AGENTS.md", "use tabs\n")
    bench.compile()
    touch(bench, "web/x.ts")
    bench.compile()
    bench.reply()
    bench.say("go on")
    bench.append(Block("compact", {"keep": bench.conversation.last}, "What was done."))
    working = bench.compile()
    assert whole_text(working).count("use tabs") == 1 and "use tabs" in system_text(working)
    assert working.manifest.entries["instructions:web/AGENTS.md"].place == "prefix"
    bench.reply()
    bench.say("go on")
    assert stated(bench.compile()) == {}


def test_a_turn_that_is_taken_out_takes_its_touches_with_it(bench: Bench):
    bench.write("web/AGENTS.md", "use tabs\n")
    bench.compile()
    touch(bench, "web/x.ts")
    bench.compile()
    bench.reply()
    bench.append(Block("turn_end", {}))
    bench.say("something else")
    bench.untick()
    working = bench.compile()
    assert "use tabs" not in whole_text(working) and stated(working) == {}


def test_many_touched_folders_are_said_to_the_person(bench: Bench):
    bench.compile()
    for number in range(203):
        touch(bench, f"d{number}", folder=f"d{number}")
    assert (
        "instructions:folders: no more than 200 folders are searched for them, and 3 more were touched"
        in bench.peek().notes
    )


# Imported ones


def test_an_imported_file_stands_before_its_importer_with_its_own_lines_and_revision(bench: Bench):
    bench.write("AGENTS.md", "Read @docs/style.md first.\n")
    bench.write("docs/style.md", "one\ntwo\n")
    working = bench.compile()
    text = system_text(working)
    heading = "# Instructions from docs/style.md (imported by AGENTS.md)\n\none\ntwo"
    assert text.index(heading) < text.index("Read @docs/style.md first.")
    entry = working.manifest.entries["instructions:docs/style.md"]
    assert (entry.place, entry.file, entry.lines, len(entry.revision)) == ("prefix", "docs/style.md", "1-2", 16)


def test_an_edit_of_an_imported_file_is_told_before_the_next_request(bench: Bench):
    bench.write("AGENTS.md", "@style.md\n")
    bench.write("style.md", "use tabs\n" + "and more\n" * 30)
    bench.compile()
    bench.reply()
    bench.say("go on")
    bench.write("style.md", "use blanks\n" + "and more\n" * 30)
    assert "+use blanks" in stated(bench.compile())["style.md"]
    bench.save("style.md", None)
    working = bench.compile()
    assert 'how="gone"' in stated(working)["style.md"]
    assert any(note.startswith("AGENTS.md:1: @style.md is not there; ") for note in working.notes)


def test_a_new_import_tells_its_file_as_nobodys_change(bench: Bench):
    bench.write("AGENTS.md", "rules\n")
    bench.write("style.md", "use tabs\n")
    bench.compile()
    bench.reply()
    bench.say("go on")
    bench.write("AGENTS.md", "rules\n@style.md\n")
    said = stated(bench.compile())
    assert 'changed="outside"' in said["AGENTS.md"] and "changed=" not in said["style.md"]
    bench.write("AGENTS.md", "rules\n")
    assert 'how="gone"' in stated(bench.compile())["style.md"]


def test_what_the_persons_own_file_imports_stays_out_of_the_transcript(bench: Bench):
    bench.write("~/AGENTS.md", "@mine.md\n")
    bench.write("~/mine.md", "my private rules\n")
    first = bench.compile()
    assert [block.private for block in first.prefix.blocks if block.path == "~/mine.md"] == [True]
    bench.write("~/mine.md", "my new rules\n")
    second = bench.compile()
    assert [block.attrs["reason"] for block in second.blocks if block.kind == "prefix"] == ["private"]
    assert stated(second) == {} and "my new rules" in system_text(second)


def test_few_faults_of_imports_are_named_and_more_are_counted(bench: Bench):
    bench.write("AGENTS.md", "\n".join(f"@missing{number}.md" for number in range(9)))
    notes = bench.peek().notes
    assert len(notes) == 6 and notes[0].startswith("AGENTS.md:1: @missing0.md is not there; correct it, or write")
    assert notes[-1] == "instructions:imports: 4 more imports are left out; tinyclaw doctor lists them"


def test_instructions_with_a_missing_import_are_not_called_cut(bench: Bench):
    """What is cut must be read before it is overwritten."""
    bench.write("AGENTS.md", "rules\n")
    bench.compile()
    bench.reply()
    bench.say("go on")
    bench.write("AGENTS.md", "new rules\n@missing.md\n")
    (block,) = (block for block in bench.compile().blocks if block.kind == "state")
    assert "cut" not in block.attrs


# Cut ones


def is_cut(note: str, path: str) -> bool:
    return note.startswith(f"{path}: cut: it is ") and note.endswith("instructions_bytes in SETTINGS.md sets the limit")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rule of the house\n" * 2_275 + "NEVER touch vendor/\n", "only lines 1-"),
        ("x" * 40_960, "only the first 32,"),
        ("é" * 20_480, "only the first 32,"),
        ("words\n```python\n" + "code = 1\n" * 4_550, "only lines 1-"),
        ("words\n" + "~~~~\n" + "```\n" * 10_240, "only lines 1-"),
    ],
    ids=["lines", "one line", "multi-byte characters", "in a fence", "in a fence with others in it"],
)
def test_forty_kilobytes_are_cut_with_sizes_and_path_for_both(bench: Bench, text, shown):
    bench.write("AGENTS.md", text)
    size = len(text.encode())
    working = bench.compile()
    (note,) = working.notes
    (block,) = (block for block in working.prefix.blocks if block.path == "AGENTS.md")
    assert is_cut(note, "AGENTS.md") and f"{size:,} bytes" in note
    *said, notice = block.text.split("\n")
    assert notice.startswith(f"[AGENTS.md is {size:,} bytes in ") and shown in notice and "Read the rest" in notice
    assert len(block.text.encode()) <= Limits().instructions_bytes + 60
    assert "NEVER" not in block.text and "\ufffd" not in block.text
    fences = [line for line in said if re.fullmatch(r"(```|~~~~)(python)?", line)]
    if fences:
        assert said[-1] == fences[0].removesuffix("python")
    limits = Limits(instructions_bytes=50_000)
    whole = replace_prefix(bench, limits)
    assert whole.notes == () and text.strip() in system_text(whole)


def replace_prefix(bench: Bench, limits: Limits):
    bench.prefix = None
    return bench.peek(limits=limits)


def test_the_nearest_file_is_cut_last_whether_it_was_imported_above_or_is_nested(deep: Bench):
    deep.write("AGENTS.md", "@far.md\n" + "root\n" * 100)
    deep.write("far.md", "far\n" * 1_000)
    deep.write("sub/deep/AGENTS.md", "near\n" * 100)
    deep.write("sub/deep/in/AGENTS.md", "nearest\n" * 100)
    touch(deep, "sub/deep/in/x.ts")
    working = deep.peek(limits=Limits(instructions_bytes=2_400))
    lines = {path: working.manifest.entries[f"instructions:{path}"].lines for path in ("AGENTS.md", "far.md")}
    assert "of 1000" in lines["far.md"] and lines["AGENTS.md"] == "1-101"
    assert [note.partition(":")[0] for note in working.notes] == ["far.md"]


def instructions_size(working) -> int:
    said = [block for block in working.prefix.blocks if block.id.startswith("instructions:")]
    return sum(len(block.text.encode()) for block in said)


@pytest.mark.parametrize("count", [3, 30, 90, 100])
@pytest.mark.parametrize("lines", [3, 60, 300])
def test_however_many_files_there_are_they_keep_to_the_budget(bench: Bench, count: int, lines: int):
    """Each says something of its own or that it was cut, and the nearest are whole where there is room."""
    bench.write("AGENTS.md", "".join(f"@a{number}.md\n" for number in range(count)))
    for number in range(count):
        bench.write(f"a{number}.md", f"a rule of {number}\n" * lines)
    working = bench.compile()
    assert instructions_size(working) <= 32_768
    told = {block.path: block.text for block in working.prefix.blocks if block.path}
    assert len(told) == count + 1
    for number in range(count):
        text = told[f"a{number}.md"]
        assert f"a rule of {number}" in text or f"[a{number}.md is " in text
    assert f"@a{count - 1}.md" in told["AGENTS.md"], "the nearest is whole"
    cut = [int(note.partition(".md: cut")[0].removeprefix("a")) for note in working.notes]
    assert cut == sorted(cut) == list(range(len(cut))), "the farthest are cut first"


@pytest.fixture
def crowded(bench: Bench) -> Bench:
    """Folders with instructions, all touched, and room for the notices of some."""
    for number in range(60):
        bench.write(f"f{number:02}/AGENTS.md", f"rule of f{number:02}\n" * 100)
    bench.write("~/AGENTS.md", "the person's own rule\n" * 100)
    return bench


SMALL = Limits(instructions_bytes=4_000)


def test_files_for_whose_notice_there_is_no_room_are_counted_for_both(crowded: Bench):
    for number in range(60):
        touch(crowded, f"f{number:02}/x.ts")
    working = crowded.peek(limits=SMALL)
    told = [block.path for block in working.prefix.blocks if block.id.startswith("instructions:") and block.path]
    assert instructions_size(working) <= 4_000 and told[-1] == "f59/AGENTS.md" and len(told) >= 10
    assert f"[{61 - len(told)} more files of instructions, farthest from where you work" in system_text(working)
    (note,) = (note for note in working.notes if note.startswith("instructions:more"))
    assert f"{61 - len(told)} more files had no room" in note and f"f{59 - len(told)}/AGENTS.md the nearest" in note


def test_a_file_that_others_leave_no_room_for_is_not_told_as_gone(crowded: Bench):
    first = crowded.compile(limits=SMALL)
    assert "the person's own rule" in system_text(first)
    for number in range(60):
        touch(crowded, f"f{number:02}/x.ts")
        working = crowded.compile(limits=SMALL)
        assert working.prefix is first.prefix
        assert [path for path, text in stated(working).items() if "gone" in text] == []
    assert not any(block.attrs.get("how") == "gone" for block in crowded.blocks)


def test_what_is_wrong_with_a_file_is_said_within_the_budget(bench: Bench):
    for number in range(8):
        bench.write(f"a{number}.md", b"a rule\xff\n" * 200)
    bench.write("AGENTS.md", "".join(f"@a{number}.md\n" for number in range(8)))
    working = bench.peek(limits=Limits(instructions_bytes=3_600))
    assert instructions_size(working) <= 3_600
    assert system_text(working).count("is not UTF-8") == 8


def test_a_file_that_comes_into_sight_changes_nothing_that_was_said_before(bench: Bench):
    """What is pinned was whole; that its file would be cut now is true of the next prefix only."""
    bench.write("AGENTS.md", "root rule\n" * 2_000)
    bench.write("a/AGENTS.md", "rule of a\n" * 1_500)
    bench.write("b/AGENTS.md", "rule of b\n" * 2_000)
    first = bench.compile()
    touch(bench, "a/x.ts")
    second = bench.compile()
    touch(bench, "b/x.ts")
    third = bench.compile()
    touch(bench, "b/y.ts")
    fourth = bench.compile()
    assert [list(stated(each)) for each in (first, second, third, fourth)] == [[], ["a/AGENTS.md"], ["b/AGENTS.md"], []]
    assert [each.notes for each in (first, second, third, fourth)] == [()] * 4
    for working in (third, fourth):
        lines = {entry.file: entry.lines for entry in working.manifest.entries.values() if entry.file}
        assert (lines["AGENTS.md"], lines["a/AGENTS.md"], lines["b/AGENTS.md"]) == ("1-2000", "1-1500", "1-2000")
        assert "is 20,000 bytes" not in whole_text(working)
    bench.prefix = None
    assert [note.partition(":")[0] for note in bench.peek().notes] == ["AGENTS.md", "a/AGENTS.md"]


def test_a_cut_that_was_said_stays_said_when_another_file_comes_into_sight(bench: Bench):
    bench.write("AGENTS.md", "root rule\n" * 5_000)
    bench.write("a/AGENTS.md", "rule of a\n" * 1_000)
    first = bench.compile()
    touch(bench, "a/x.ts")
    second = bench.compile()
    assert first.notes == second.notes != ()


def test_a_window_that_is_small_leaves_a_nested_file_out_with_a_marker(bench: Bench):
    bench.write("a/AGENTS.md", "rule of a\n" * 2_000)
    bench.compile()
    touch(bench, "a/x.ts")
    small = replace(TARGET, window_tokens=16_000, max_tokens=8_000)
    working = bench.compile(target=small)
    assert "[a/AGENTS.md: left out for want of room" in stated(working)["a/AGENTS.md"]
    assert any(note.startswith("a/AGENTS.md: left out") for note in working.notes)
