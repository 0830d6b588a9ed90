"""Records of the memory: one file each, whoever writes them, and an index that says what they say."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
import unicodedata
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyclaw.errors import StateError
from tinyclaw.state.files import read
from tinyclaw.state.leftovers import clear_leftovers
from tinyclaw.state.memory.index import INDEX_BEGIN, INDEX_END, MAX_LINES, Line, with_index
from tinyclaw.state.memory.record import Note, Record
from tinyclaw.state.memory.store import Memory
from tinyclaw.state.redaction import mask

NOW = "2026-11-30T12:00:00Z"
LATER = "2026-12-01T12:00:00Z"


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path, lambda: NOW, mask)


def files(memory: Memory) -> list[str]:
    """All that lies there but the archive."""
    return sorted(path.name for path in memory.files.path.iterdir() if path.name != ".archive")


def index(memory: Memory) -> str:
    return (memory.files.path / "MEMORY.md").read_text()


def save(memory: Memory, each: Note):
    return memory.save(each, lambda path: read(memory.files.root / path).revision)


def note(name: str, text: str = "what it is", **facts) -> Note:
    return Note(name, facts.pop("type", "project"), text, **facts)


def test_a_record_is_a_file_that_people_can_read(memory: Memory):
    saved = save(memory, note("Tabs, not blanks", "In Go files.\nAlways.", type="feedback", source="session 1"))
    assert (saved.slug, saved.how) == ("tabs-not-blanks", "new")
    assert (memory.files.path / "tabs-not-blanks.md").read_text() == (
        "---\n"
        "name: Tabs, not blanks\n"
        "description: In Go files. Always.\n"
        "type: feedback\n"
        f"created: {NOW}\n"
        f"updated: {NOW}\n"
        "source: session 1\n"
        "---\n"
        "\n"
        "In Go files.\nAlways.\n"
    )


def test_the_index_has_a_line_for_each_record_and_the_persons_words_stay(memory: Memory):
    memory.files.path.mkdir()
    (memory.files.path / "MEMORY.md").write_text("# Memory\n\nMy own words.\n")
    save(memory, note("b"))
    save(memory, note("a", type="user"))
    revision = memory.index.write()
    assert index(memory) == (
        f"# Memory\n\nMy own words.\n\n{INDEX_BEGIN}\n- [a](a.md) — what it is\n- [b](b.md) — what it is\n{INDEX_END}\n"
    )
    (memory.files.path / "MEMORY.md").write_text(index(memory) + "\nAnd below.\n")
    save(memory, note("c", type="user"))
    assert memory.index.write() != revision
    assert index(memory).startswith("# Memory\n\nMy own words.\n\n") and index(memory).endswith("-->\n\nAnd below.\n")
    assert re.findall(r"\[(\w)\]", index(memory)) == ["a", "c", "b"], "about the person first"


def test_the_same_again_changes_nothing_and_another_text_changes_that_alone(memory: Memory):
    first, again, shouted = (
        save(memory, note(name, text))
        for name, text in (
            ("Deploy day", "On Fridays."),
            ("Deploy day", "On  fridays."),
            ("  DEPLOY DAY ", "on Fridays."),
        )
    )
    assert ([first.how, again.how, shouted.how], files(memory)) == (["new", "changed", "changed"], ["deploy-day.md"])
    path = memory.files.path / "deploy-day.md"
    path.write_text(path.read_text().replace("type: project", "type: project  # as I see it\nmine: kept"))
    assert save(Memory(memory.files.root, lambda: LATER, mask), note("Deploy day", "On Mondays.")).how == "changed"
    text = path.read_text()
    assert "type: project  # as I see it\nmine: kept" in text and f"created: {NOW}\nupdated: {LATER}" in text
    assert text.endswith("---\n\nOn Mondays.\n") and "description: On Mondays." in text


TITLES = [
    "\U0001f600",
    "\U0001f680\U0001f680",
    "部署",
    "记忆",
    "A B",
    "a-b",
    "CON",
    "nul",
    "memory",
    "MEMORY",
    ".",
    "..",
    "../../AGENTS",
    "/etc/passwd",
    "a/b\\c",
    "x" * 300,
    "é" * 200,
    "caf\u00e9",
    "a\x00b",
    "a\nb",
    "-",
    "~/.ssh/id",
]


def test_every_name_has_a_file_of_its_own_in_the_folder_and_under_it(memory: Memory):
    for at, title in enumerate(TITLES):
        save(memory, note(title, f"text {at}"))
    found = {record.text: record for record in memory.records()}
    alike = {"memory": "MEMORY", "A B": "a\nb"}
    assert len(found) == len(TITLES) - len(alike)
    for name in files(memory):
        assert (memory.files.path / name).resolve().parent == memory.files.path.resolve() and len(name.encode()) < 100
        assert name == name.lower() and not re.search(r'[<>:"/\\|?*\x00-\x1f]', name)
        assert name.split(".")[0] not in ("con", "nul", "", "memory"), name
    assert sorted(path.name for path in memory.files.root.iterdir()) == [".memory"]


def test_one_name_in_two_forms_of_unicode_is_one_record(memory: Memory):
    for form in ("NFC", "NFD", "NFKC"):
        save(memory, note(unicodedata.normalize(form, "Café Zürich"), "text"))
    assert len(files(memory)) == 1


@given(st.lists(st.text(min_size=1, max_size=30).filter(str.strip), min_size=1, max_size=8))
def test_whatever_the_names_no_text_is_lost(tmp_path_factory, names):
    memory = Memory(tmp_path_factory.mktemp("m"), lambda: NOW, mask)
    last = {}
    for at, name in enumerate(names):
        slug = save(memory, note(name, f"text {at}")).slug
        last[slug] = f"text {at}"
    assert {record.slug: record.text for record in memory.records()} == last


@pytest.mark.parametrize(("name", "text"), [("", "x"), ("  ", "x"), ("x", ""), ("x", " \n")])
def test_a_note_without_name_or_text_is_refused(memory: Memory, name, text):
    with pytest.raises(StateError, match="needs a name and a text"):
        save(memory, note(name, text))
    assert not memory.files.path.exists()


def test_a_long_text_is_kept_whole_and_told_in_short(memory: Memory):
    save(memory, note("long", "word " * 1_000))
    memory.index.write()
    (record,) = memory.records()
    assert record.text == ("word " * 1_000).strip() and 190 < len(record.description) <= 200
    assert len(index(memory).splitlines()[1]) < 260


def test_an_index_that_would_be_too_long_says_how_many_more_there_are(memory: Memory):
    memory.files.path.mkdir()
    for number in range(MAX_LINES + 50):
        updated = f"2026-11-{1 + number % 28:02}T00:00:00Z"
        head = f"---\nname: n{number}\ntype: {'user' if number == 199 else 'project'}\nupdated: {updated}\n---\n"
        (memory.files.path / f"n{number}.md").write_text(f"{head}\ntext\n")
    memory.index.write()
    lines = index(memory).splitlines()
    assert lines[-2] == "- … and 50 more records in .memory/; search there" and len(lines) == MAX_LINES + 3
    assert lines[1].startswith("- [n199]") and "[n111]" in lines[2], "about the person first, then the newest"


@pytest.mark.parametrize("before", ["\ufeff# Memory\r\n\r\nMine.\r\n", "# Memory", "", "\n\n", "no end " + INDEX_BEGIN])
def test_what_stands_in_the_index_file_is_kept_to_the_byte(memory: Memory, before):
    memory.files.path.mkdir()
    path = memory.files.path / "MEMORY.md"
    path.write_bytes(before.encode())
    save(memory, note("a"))
    memory.index.write()
    assert path.read_bytes().startswith(before.encode())
    whole = path.read_bytes()
    memory.index.write()
    assert path.read_bytes() == whole


def test_a_record_that_a_person_wrote_badly_is_still_one(memory: Memory):
    memory.files.path.mkdir()
    (memory.files.path / "a.md").write_text("---\nname: a: b\ntype: wish\n---\nwords\n")
    (memory.files.path / "b.md").write_text("no head\n\nmore\n")
    (memory.files.path / "c.md").write_text("---\nname: never closed\n")
    (memory.files.path / "d.md").write_bytes(b"\xff\xfe\0")
    (memory.files.path / "e.md").mkdir()
    (memory.files.path / ".hidden.md").write_text("no\n")
    found = {record.slug: record for record in memory.records()}
    assert (found["b"].name, found["b"].description, found["b"].type) == ("b", "no head", "project")
    assert found["a"].text == "words" and found["a"].diagnostics
    with pytest.raises(StateError, match="never closed"):
        save(memory, note("c", "other words"))
    assert (memory.files.path / "c.md").read_text() == "---\nname: never closed\n"


def test_a_record_saved_by_an_editor_of_windows_keeps_its_ways(memory: Memory):
    memory.files.path.mkdir()
    path = memory.files.path / "a.md"
    path.write_bytes(b"\xef\xbb\xbf---\r\nname: a\r\ntype: project\r\n---\r\n\r\nold\r\n")
    save(memory, note("a", "new\nlines"))
    data = path.read_bytes()
    assert data.startswith(b"\xef\xbb\xbf---\r\nname: a\r\n") and data.endswith(b"---\r\n\r\nnew\r\nlines\r\n")
    assert data.count(b"\n") == data.count(b"\r\n")


WRITER = """
import sys, time
from pathlib import Path
from tinyclaw.state.memory.record import Note
from tinyclaw.state.memory.store import Memory
memory = Memory(Path(sys.argv[1]), lambda: "2026-11-30T12:00:00Z", str)
for number in range(50):
    memory.save(Note(f"{sys.argv[2]} {number}", "project", "text"), lambda path: None)
    memory.index.write()
"""


def test_two_processes_and_a_person_lose_nothing(tmp_path: Path):
    memory = Memory(tmp_path, lambda: NOW, mask)
    memory.files.path.mkdir()
    path = memory.files.path / "MEMORY.md"
    path.write_text("# Memory\n")
    root = Path(__file__).parents[3]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name], cwd=root, stderr=subprocess.PIPE)
        for name in ("one", "two")
    ]
    said = 0
    while any(writer.poll() is None for writer in writers):
        text = path.read_text()
        beside = path.with_name(".edit")
        beside.write_text(text.replace("# Memory\n", f"# Memory\nline {said}\n", 1))
        if path.read_text() == text:
            beside.replace(path)
            said += 1
        time.sleep(0.2)
    assert [writer.communicate()[1] for writer in writers] == [b"", b""]
    memory.index.write()
    assert len(list(memory.records())) == 100 and len(re.findall(r"^- \[", index(memory), re.M)) == 100
    assert index(memory).count(INDEX_BEGIN) == 1


def test_the_index_is_made_of_records_alone():
    records = [Record.parse(b"---\nname: <b>x</b>\ndescription: |\n  two\n  lines\n---\n", "x")]
    assert (
        with_index("", map(Line, records), 1, mask) == f"{INDEX_BEGIN}\n- [<b>x</b>](x.md) — two lines\n{INDEX_END}\n"
    )


def test_a_record_is_changed_only_where_that_is_asked_for(memory: Memory):
    save(memory, note("a", "mine"))
    kept = memory.save(note("a", "yours"), lambda path: None)
    assert (kept.how, next(memory.records()).text) == ("kept", "mine")
    assert memory.save(note("A", " mine "), lambda path: None).how == "same"


def test_nothing_outside_the_workspace_is_read_or_written(tmp_path: Path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/secret.md").write_text("TOPSECRET\n")
    (tmp_path / "ws/.memory").mkdir(parents=True)
    memory = Memory(tmp_path / "ws", lambda: NOW, mask)
    (memory.files.path / "leak.md").symlink_to(tmp_path / "out/secret.md")
    assert list(memory.records()) == []
    with pytest.raises(StateError, match="is reached by a link"):
        save(memory, note("leak"))
    (memory.files.path / "MEMORY.md").symlink_to(tmp_path / "out/secret.md")
    with pytest.raises(StateError, match="is reached by a link"):
        memory.index.write()
    elsewhere = Memory(tmp_path / "other", lambda: NOW, mask)
    (tmp_path / "other").mkdir()
    elsewhere.files.path.symlink_to(tmp_path / "out")
    with pytest.raises(StateError, match="is reached by a link"):
        save(elsewhere, note("a"))
    assert (tmp_path / "out/secret.md").read_text() == "TOPSECRET\n" and len(list((tmp_path / "out").iterdir())) == 1


def test_a_secret_in_a_record_is_masked_in_the_index(memory: Memory):
    key = "sk-ant-api03-" + "Ab1" * 30
    memory.files.path.mkdir()
    (memory.files.path / "a.md").write_text(f"---\nname: a\ndescription: the key is {key}\n---\nwords\n")
    memory.index.write()
    assert key not in index(memory) and "[masked:" in index(memory)


def test_markers_within_a_record_do_not_confuse_the_index(memory: Memory):
    save(memory, note("Marker", f"the index begins with {INDEX_BEGIN} and ends with {INDEX_END}"))
    memory.index.write()
    first = index(memory)
    memory.index.write()
    assert index(memory) == first and len(first.splitlines()) == 3


@pytest.mark.parametrize("data", ["# Memory\n".encode("utf-16"), b"caf\xe9\n"])
def test_an_index_file_that_is_not_utf_8_is_left_alone(memory: Memory, data):
    memory.files.path.mkdir()
    (memory.files.path / "MEMORY.md").write_bytes(data)
    save(memory, note("a"))
    with pytest.raises(StateError, match=r"MEMORY\.md: is not UTF-8"):
        memory.index.write()
    assert (memory.files.path / "MEMORY.md").read_bytes() == data


@pytest.mark.parametrize("name", ["x](evil.md) [y", "[a]", "a (b)", "— see [b](b.md)"])
def test_an_index_stays_right_whatever_names_and_descriptions_hold(memory: Memory, name):
    save(memory, note(name, "see [b](b.md) — and [c](c.md)"))
    (memory.files.path / "a (copy).md").write_text("copied\n")
    (memory.files.path / "huge.md").write_text("x" * (1 << 21))
    memory.index.write()
    assert not memory.index.is_stale()
    before = index(memory)
    memory.index.write()
    assert index(memory) == before and before.splitlines()[-2] == "- … and 1 more records in .memory/; search there"


def test_of_many_records_the_ones_that_changed_come_in_and_the_number_stays_right(memory: Memory):
    memory.files.path.mkdir()
    for number in range(MAX_LINES + 20):
        head = f"---\nname: n{number}\ntype: project\nupdated: 2026-11-01T00:00:00Z\n---\n"
        (memory.files.path / f"n{number}.md").write_text(f"{head}\ntext\n")
    memory.index.write()
    save(memory, note("the newest"))
    assert memory.index.is_stale()
    memory.index.write()
    lines = index(memory).splitlines()
    assert lines[1].startswith("- [the newest]") and "and 21 more records" in lines[-2]
    record = memory.find("the newest")
    assert record is not None
    memory.forget(record)
    assert memory.index.is_stale()
    memory.index.write()
    assert "the newest" not in index(memory) and not memory.index.is_stale()
    assert "and 20 more records" in index(memory)


def test_no_link_is_a_record_whatever_it_leads_to(memory: Memory):
    memory.files.path.mkdir()
    main = memory.files.root / "main.py"
    main.write_text("code\n")
    (memory.files.path / "notes.md").symlink_to("../main.py")
    (memory.files.path / "MEMORY.md").symlink_to("../main.py")
    assert list(memory.records()) == [] and memory.find("notes") is None
    for change in (lambda: save(memory, note("notes", "EVIL")), memory.index.write):
        with pytest.raises(StateError, match="is reached by a link"):
            change()
    assert main.read_text() == "code\n"
    assert [problem.path for problem in memory.files.faults()] == [".memory/notes.md"]


def test_a_name_that_is_no_text_is_no_record_and_is_said(memory: Memory):
    memory.files.path.mkdir()
    Path(os.fsdecode(os.fsencode(memory.files.path) + b"/caf\xe9.md")).write_text("hi\n")
    save(memory, note("a", "half \udc80 a pair"))
    save(memory, note("a", "another \udc80 half"))
    memory.index.write()
    assert "](a.md)" in index(memory) and not memory.index.is_stale()
    assert "has a name that is no plain text in UTF-8" in str(memory.files.faults()[0])


def test_a_record_that_a_person_named_freely_is_found_and_corrected_where_it_is(memory: Memory):
    memory.files.path.mkdir()
    for name, text in {
        "deploy_steps.md": "Run make.\n",
        "Deploy.md": "x\n",
        "My Note.md": "y\n",
        "x1.md": '---\nname: "Use tabs: always"\n---\nz\n',
        "style.md": "---\nname: Code Style\ntype: project\n---\nuse tabs\n",
    }.items():
        (memory.files.path / name).write_text(text)
    found = {name: memory.find(name) for name in ("deploy_steps", "Deploy", "my note", "use tabs: always", "style.md")}
    assert [record and record.slug for record in found.values()] == ["deploy_steps", "Deploy", "My Note", "x1", "style"]
    saved = save(memory, note("code style", "use spaces"))
    assert (saved.how, saved.slug, len(files(memory))) == ("changed", "style", 5)


def test_a_record_that_changes_while_the_index_is_made_is_in_it_as_it_is(tmp_path: Path):
    meanwhile = iter([1])

    def slow(line: str) -> str:
        for _ in meanwhile:
            save(quick, note("n1", "changed meanwhile"))
        return line

    quick, memory = (Memory(tmp_path, lambda: NOW, mask) for mask in (str, slow))
    for number in range(3):
        save(quick, note(f"n{number}"))
    memory.index.write()
    assert "[n1](n1.md) — changed meanwhile" in index(memory) and not memory.index.is_stale()


def test_a_line_with_another_end_makes_no_second_index(memory: Memory):
    save(memory, note("a"))
    memory.index.write()
    (memory.files.path / "MEMORY.md").write_bytes(b"Mine.\r\n" + index(memory).encode())
    save(memory, note("b"))
    memory.index.write()
    assert index(memory).count(INDEX_BEGIN) == 1 and "](b.md)" in index(memory)


def test_what_is_too_long_for_a_record_is_refused_and_a_long_index_is_cut_to_its_room(memory: Memory):
    with pytest.raises(StateError, match="at most 100,000 bytes"):
        save(memory, note("a", "x" * 100_001))
    memory.files.path.mkdir()
    for number in range(140):
        (memory.files.path / f"n{number}.md").write_text(f"---\nname: n{number}\ndescription: {'d' * 190}\n---\nx\n")
    memory.index.write()
    assert len(index(memory).encode()) < 20_500 and "more records" in index(memory) and not memory.index.is_stale()


def test_two_that_forget_at_the_same_second_keep_both(memory: Memory):
    for text in ("first", "second"):
        save(memory, note("a", text))
        record = memory.find("a")
        assert record is not None
        memory.forget(record)
    kept = sorted((memory.files.path / ".archive").iterdir())
    assert [path.read_text().rstrip().rpartition("\n")[2] for path in kept] == ["second", "first"]


@pytest.mark.timeout(20)
def test_a_pipe_in_the_place_of_a_file_blocks_nothing(memory: Memory):
    save(memory, note("a"))
    os.mkfifo(memory.files.path / "pipe.md")
    os.mkfifo(memory.files.path / "MEMORY.md")
    assert [record.slug for record in memory.records()] == ["a"] and memory.find("pipe") is None
    assert memory.index.is_stale() and memory.search("what", 5).heads
    with pytest.raises(StateError):
        memory.index.write()
    assert [problem.path for problem in memory.files.faults()] == [".memory/pipe.md"]


def test_a_writer_that_is_killed_at_any_moment_leaves_whole_files(tmp_path: Path):
    dice = random.Random(4)
    memory = Memory(tmp_path, lambda: NOW, mask)
    save(memory, note("changing", "old " * 2_000))
    memory.index.write()
    for number in range(50):
        child = os.fork()
        if child == 0:
            with suppress(BaseException):
                while True:
                    save(memory, note("changing", f"new {number} " * 2_000))
                    save(memory, note(f"made {number}", "whole " * 2_000))
                    memory.index.write()
                    save(memory, note("changing", "old " * 2_000))
            os._exit(1)
        time.sleep(dice.random() * 0.15)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        (text,) = (record.text for record in memory.records() if record.name == "changing")
        assert text in {("old " * 2_000).strip(), *((f"new {each} " * 2_000).strip() for each in range(number + 1))}
        assert index(memory).count(INDEX_BEGIN) == index(memory).count(INDEX_END) == 1
    assert all(
        record.text.strip() == ("whole " * 2_000).strip() for record in memory.records() if "made" in record.name
    )
    assert memory.files.faults() == []
    clear_leftovers([memory.files.path])
    assert [name for name in files(memory) if not name.endswith(".md")] == []
    memory.index.write()
    assert index(memory).count("](") == len(list(memory.records())) > 1


def test_a_name_with_line_breaks_is_no_record_and_the_index_stays_one(memory: Memory):
    memory.files.path.mkdir()
    (memory.files.path / f"x\n{INDEX_BEGIN.replace('/', ' ')}\n- [evil](e.md)\n.md").write_text("x\n")
    save(memory, note("docs", "In the wiki."))
    sizes = set()
    for _ in range(4):
        memory.index.write()
        sizes.add(len(index(memory)))
    assert len(sizes) == 1 and "evil" not in index(memory)
    assert "has a name that is no plain text" in str(memory.files.faults()[0])


def test_a_long_name_takes_no_room_from_others(memory: Memory):
    memory.files.path.mkdir()
    (memory.files.path / "long.md").write_text(f"---\nname: {'long ' * 6_000}\ntype: user\n---\nx\n")
    save(memory, note("docs", "In the wiki."))
    memory.index.write()
    assert "[docs](docs.md)" in index(memory) and "](long.md)" in index(memory) and len(index(memory)) < 1_000
    with pytest.raises(StateError, match="at most 1000 characters"):
        save(memory, note("x" * 2_000))


def test_the_index_follows_a_record_whatever_else_wrote_the_index_file(memory: Memory):
    save(memory, note("docs", "In the wiki."))
    memory.index.refresh()
    path = memory.files.path / "docs.md"
    path.write_text(path.read_text().replace("description: In the wiki.", "description: In the book."))
    with (memory.files.path / "MEMORY.md").open("a") as file:
        file.write("\nmy words\n")
    assert memory.index.refresh() and "In the book." in index(memory) and "my words" in index(memory)
    (memory.files.path / "MEMORY.md").write_text("my words\n")
    assert memory.index.refresh() and index(memory).startswith("my words\n\n<!-- memory")


def test_an_index_file_without_records_is_left_as_the_person_wrote_it(memory: Memory):
    memory.files.path.mkdir()
    (memory.files.path / "MEMORY.md").write_text("my words\n")
    assert memory.index.refresh() is None and index(memory) == "my words\n"


def test_what_a_correction_replaces_is_kept(memory: Memory):
    save(memory, note("docs", "In the wiki."))
    save(memory, note("docs", "In the book."))
    (kept,) = (memory.files.path / ".archive").iterdir()
    assert kept.name == "docs-20261130120000.md" and kept.read_text().endswith("\nIn the wiki.\n")


def test_an_edit_that_comes_while_a_record_is_put_away_is_not_lost(memory: Memory):
    save(memory, note("docs", "In the wiki."))
    record = memory.find("docs")
    assert record is not None
    path = memory.files.path / "docs.md"
    path.write_text(path.read_text() + "\nMine.\n")
    with pytest.raises(StateError, match="changed meanwhile"):
        memory.files.archive("docs.md", record.revision)
    assert path.read_text().endswith("\nMine.\n") and list((memory.files.path / ".archive").iterdir()) == []
    memory.forget(record)
    assert "Mine." in next((memory.files.path / ".archive").iterdir()).read_text()
