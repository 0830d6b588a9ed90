"""The tools of the memory: remember, recall, forget."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.workspace import Bench, bench


def text_of(memory: Bench, path: str) -> str:
    return memory.bytes_of(path).decode()


@pytest.fixture
def memory(tmp_path: Path) -> Bench:
    ws = bench(tmp_path / "ws")
    ws.context.session = "20261130-120000-abcd"
    return ws


def remembered(bench: Bench, name: str = "Tabs in Go", text: str = "Tabs in all Go files.", type: str = "feedback"):
    return bench.call("remember", name=name, text=text, type=type)


def test_what_is_remembered_is_a_record_in_the_index(memory: Bench):
    output = remembered(memory)
    assert output.text == (
        ".memory/tabs-in-go.md: remembered. In the index: - [Tabs in Go](tabs-in-go.md) — Tabs in all Go files."
    )
    assert set(output.revisions) == {".memory/tabs-in-go.md", ".memory/MEMORY.md"}
    assert "source: session 20261130-120000-abcd" in text_of(memory, ".memory/tabs-in-go.md")
    assert "[Tabs in Go](tabs-in-go.md)" in text_of(memory, ".memory/MEMORY.md")


def test_a_record_can_be_recalled_by_its_name_its_file_or_words_in_it(memory: Bench):
    remembered(memory)
    remembered(memory, "Where the docs are", "In the wiki, under Go.", "reference")
    text = memory.call("recall", name="tabs in GO").text
    assert text == (
        "Tabs in Go (.memory/tabs-in-go.md; feedback, updated 2026-11-30T12:00:00Z)\n\nTabs in all Go files."
    )
    assert memory.call("recall", name="tabs-in-go.md").text == text
    found = memory.call("recall", search="wiki").text
    assert (
        found == "- [Where the docs are](where-the-docs-are.md) — In the wiki, under Go. (updated 2026-11-30T12:00:00Z)"
    )
    both = memory.call("recall", search="go tabs").text.splitlines()
    assert [line[:12] for line in both] == ["- [Tabs in G", "- [Where the"]
    assert memory.call("recall", search="zebra").text == "no record has any of these words."


def test_a_name_that_is_no_record_is_answered_with_those_that_come_near(memory: Bench):
    remembered(memory)
    assert "there are: Tabs in Go" in str(memory.fails("recall", name="Go files"))
    assert str(memory.fails("recall", name="zebra")) == "no record is called 'zebra'."
    assert "either a name or words" in str(memory.fails("recall"))


def test_a_record_is_corrected_only_by_one_who_has_seen_it_as_it_is(memory: Bench):
    memory.put(".memory/tabs-in-go.md", "# Tabs in Go\n\nAsk Anna first.\n")
    error = str(memory.fails("remember", name="tabs in go", text="Tabs.", type="feedback"))
    assert "says something else, which you have not seen" in error and "Ask Anna first." in error
    assert text_of(memory, ".memory/tabs-in-go.md") == "# Tabs in Go\n\nAsk Anna first.\n"
    corrected = memory.call("remember", name="tabs-in-go", text="Tabs. Ask Anna first.", type="feedback")
    assert ": corrected." in corrected.text and text_of(memory, ".memory/tabs-in-go.md").endswith(
        "\nTabs. Ask Anna first.\n"
    )
    assert ": corrected." in memory.call("remember", name="tabs-in-go", text="Tabs, says Anna.", type="feedback").text
    memory.put(".memory/tabs-in-go.md", "Mine again.\n")
    assert "Mine again." in str(memory.fails("remember", name="tabs-in-go", text="Tabs.", type="feedback"))
    memory.call("recall", name="tabs-in-go")
    assert ": corrected." in memory.call("remember", name="tabs-in-go", text="Tabs.", type="feedback").text


def test_the_same_three_times_is_one_record(memory: Bench):
    for name in ("Tabs in Go", "tabs  in go", "TABS IN GO"):
        output = remembered(memory, name)
    assert "was remembered already" in output.text
    assert sorted(path.name for path in (memory.root / ".memory").iterdir()) == ["MEMORY.md", "tabs-in-go.md"]


def test_what_is_forgotten_is_kept_in_the_archive_and_gone_from_the_index(memory: Bench):
    remembered(memory)
    output = memory.call("forget", name="Tabs in Go")
    assert output.text == (
        ".memory/tabs-in-go.md is forgotten; its file is .memory/.archive/tabs-in-go-20261130120000.md."
    )
    assert "Tabs in all Go files." in text_of(memory, ".memory/.archive/tabs-in-go-20261130120000.md")
    assert "tabs-in-go" not in text_of(memory, ".memory/MEMORY.md")
    for name in ("Tabs in Go", "tabs in go", "tabs-in-go.md"):
        assert memory.call("forget", name=name).text.startswith(
            f"{name} is forgotten already; its file is .memory/.arch"
        )
    assert "no record is called" in str(memory.fails("forget", name="Tabs"))
    remembered(memory)
    memory.call("forget", name="tabs-in-go")
    assert len(list((memory.root / ".memory/.archive").iterdir())) == 2, "nothing there is written over"


def test_a_secret_is_neither_remembered_nor_recalled(memory: Bench):
    assert "mask" in str(memory.fails("remember", name="Key", text="it is [masked:api-key]", type="project"))
    memory.context.mask = lambda text: text.replace("hunter2", "[masked:password]")
    memory.put(".memory/key.md", "It is hunter2.\n")
    assert "hunter2" not in memory.call("recall", name="key").text + memory.call("recall", search="key").text


@pytest.mark.parametrize("name", ["", "  ", "../../AGENTS", "/etc/passwd", "a/b", "..\\x"])
def test_no_name_leads_out_of_the_folder(memory: Bench, name):
    if not name.strip():
        assert "needs a name" in str(memory.fails("remember", name=name, text="x", type="user"))
        return
    memory.call("remember", name=name, text="x", type="user")
    (path,) = [path for path in (memory.root / ".memory").glob("*.md") if path.name != "MEMORY.md"]
    assert [each.name for each in memory.root.iterdir()] == [".memory"] and path.read_text().endswith("\nx\n")


def test_what_changed_since_is_said_wherever_a_record_is_shown(memory: Bench):
    memory.put("auth.py", "def parse_token():\n    pass\n")
    remembered(memory, "Tokens", "`parse_token` in auth.py is slow on purpose.", "project")
    assert "erify" not in memory.call("recall", name="Tokens").text
    memory.put("auth.py", "def read_token():\n    pass\n")
    assert "Verify before use: auth.py:1-2 changed since." in memory.call("recall", name="Tokens").text
    assert "(verify before use: auth.py:1-2 changed since)" in memory.call("recall", search="slow").text
    again = remembered(memory, "Tokens", "`read_token` in auth.py is slow on purpose.", "project")
    assert ": corrected." in again.text and "erify" not in memory.call("recall", name="Tokens").text
    (memory.root / "auth.py").unlink()
    assert "Verify before use: auth.py:1-2 is gone." in memory.call("recall", name="Tokens").text
    assert "(verify before use: auth.py:1-2 is gone)" in memory.call("recall", search="slow").text
