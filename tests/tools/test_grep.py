from __future__ import annotations

import os
import re
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.workspace import Bench, bench
from tinyclaw.errors import Interrupted, ToolError
from tinyclaw.tools import _searcher
from tinyclaw.tools._search import find_lines
from tinyclaw.tools._searcher import LINE_CHARS, Grep, cut_line
from tinyclaw.types import Interrupt

CATASTROPHE = r"(a+)+$"


@pytest.fixture
def ws(tmp_path) -> Bench:
    return bench(tmp_path / "ws")


def grep(ws: Bench, pattern: str, **arguments) -> str:
    return ws.call("grep", pattern=pattern, **arguments).text


def query(ws: Bench, pattern: str, seconds: float) -> Grep:
    return Grep(str(ws.root), "", [], pattern, "", False, 0, 100, seconds)


def test_hits_name_path_and_line(ws):
    ws.put("src/a.py", "import os\n\ndef main():\n    pass\n")
    ws.put("b.py", "def other(): pass")
    text = grep(ws, r"def \w+\(")
    assert text == "b.py:1: def other(): pass\nsrc/a.py:3: def main():\n\n2 matches in 2 files"


def test_a_miss_is_a_fact_with_the_number_of_files(ws):
    ws.put("a.py", "x")
    ws.put("b.md", "x")
    assert grep(ws, "nothing") == "no matches in 2 files"
    assert grep(ws, "x", glob="*.rs") == "no matches in 0 files (no file fits *.rs)"


@pytest.mark.parametrize(
    "pattern", ["foo(", "[z-a]", "(?P<n>", "*", "a{99999999999999999999}", "(" * 5000 + ")" * 5000]
)
def test_a_bad_pattern_is_an_error_with_its_reason(ws, pattern):
    assert re.search(r"not valid: .+\. Escape", ws.fails("grep", pattern=pattern))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"path": "missing.py"}, "does not exist"),
        ({"path": "../ws-secret"}, "outside the workspace"),
        ({"path": "/etc"}, "outside the workspace"),
        ({"path": ".git/config"}, "belongs to git"),
        ({"path": "pipe"}, "neither a file nor a folder"),
        ({"pattern": ""}, "pattern is empty"),
        ({"context": 21}, "context goes from 0 to 20"),
        ({"limit": 0}, "limit from 1 to 1000"),
    ],
)
def test_what_cannot_be_searched_is_an_error(ws, tmp_path, arguments, reason):
    (tmp_path / "ws-secret").mkdir()
    ws.put(".git/config", "x")
    os.mkfifo(ws.root / "pipe")
    assert reason in ws.fails("grep", **{"pattern": "x", **arguments})


def test_a_pattern_that_never_ends_is_stopped(ws):
    ws.put("a.txt", "a" * 40 + "b")
    began = time.monotonic()
    with pytest.raises(ToolError, match=r"took longer than 0\.3 s"):
        find_lines(query(ws, CATASTROPHE, 0.3), Interrupt())
    assert time.monotonic() - began < 3


def test_an_interrupt_ends_a_pattern_that_never_ends(ws):
    ws.put("a.txt", "a" * 40 + "b")
    interrupt = Interrupt()
    threading.Timer(0.2, interrupt.set).start()
    began = time.monotonic()
    with pytest.raises(Interrupted):
        find_lines(query(ws, CATASTROPHE, 60), interrupt)
    assert time.monotonic() - began < 2


def test_one_huge_line_shows_the_text_around_the_match(ws):
    ws.put("min.js", "x" * 1_000_000 + "needle" + "y" * 1_000_000)
    hit, _, verdict = grep(ws, "needle").split("\n")
    assert len(hit) <= LINE_CHARS
    assert re.fullmatch(r"min\.js:1: …x+needley+… \[cut, the line has 2,000,006 characters\]", hit)
    assert verdict == "1 match in 1 file"


@given(st.text("日本語😀a", min_size=1, max_size=3000), st.data())
def test_a_cut_line_fits_and_holds_the_beginning_of_the_match(line, data):
    at = data.draw(st.integers(0, len(line) - 1))
    match = re.compile(re.escape(line[at])).search(line, at)
    shown = cut_line("some/path.py:12: ", line, match)
    assert len(shown) <= LINE_CHARS
    piece = re.fullmatch(r"some/path\.py:12: …?(.*?)…?(?: \[cut, .*\])?", shown)
    assert piece
    assert line[at] in piece[1]
    assert piece[1] in line
    assert ("[cut" in shown) == (piece[1] != line)


def test_many_matches_are_cut_and_it_is_said(ws):
    for number in range(300):
        ws.put(f"f{number:03}.txt", "one match\n")
    text = grep(ws, "match")
    assert text.count("one match") == 100
    assert text.endswith("100 matches shown, there are more: narrow pattern, path or glob")
    assert grep(ws, "match", limit=300).endswith("300 matches in 300 files")
    ws.put("wide.txt", ("match " + "w" * 450 + "\n") * 90)
    text = grep(ws, "match", path="wide.txt")
    assert len(text) < 16_000
    assert "there are more" in text


def test_context_shows_each_line_once_and_marks_gaps(ws):
    ws.put("a.txt", "1\n2 hit\n3\n4 hit\n5\n6\n7\n8 hit\n")
    assert grep(ws, "hit", context=1).split("\n\n")[0].split("\n") == [
        "a.txt-1- 1",
        "a.txt:2: 2 hit",
        "a.txt-3- 3",
        "a.txt:4: 4 hit",
        "a.txt-5- 5",
        "--",
        "a.txt-7- 7",
        "a.txt:8: 8 hit",
    ]


def test_case_and_filters(ws):
    for name in ("a.py", "src/b.py", "src/deep/c.pyi", "d.md"):
        ws.put(name, "Hit")
    assert "no matches in 4 files" in grep(ws, "hit")
    assert "4 matches in 4 files" in grep(ws, "hit", ignore_case=True)
    assert "3 matches in 3 files" in grep(ws, "Hit", glob="*.{py,pyi}")
    assert "2 matches in 2 files" in grep(ws, "Hit", glob="src/**")
    assert "1 match in 1 file" in grep(ws, "Hit", glob="deep/*", path="src")
    assert "1 match in 1 file" in grep(ws, "Hit", path="src/b.py", glob="*.md")


def test_hidden_files_are_searched_ignored_ones_counted_and_git_never(ws):
    ws.put(".gitignore", "dist/\n*.log\n")
    ws.put("logs/.gitignore", "!keep.log\n")
    for name in (".github/ci.yml", ".memory/x.md", "dist/app.js", "logs/keep.log", "logs/drop.log", ".git/config"):
        ws.put(name, "needle")
    assert grep(ws, "needle").split("\n") == [
        ".github/ci.yml:1: needle",
        ".memory/x.md:1: needle",
        "logs/keep.log:1: needle",
        "",
        "3 matches in 3 files (2 ignored files skipped, name the path to search there)",
    ]
    assert grep(ws, "needle", path="dist").startswith("dist/app.js:1: needle")
    assert grep(ws, "needle", path="logs/drop.log").startswith("logs/drop.log:1: needle")


def test_our_own_folders_are_left_out_unless_named(ws):
    for folder in (".transcripts", ".task_outputs/s", ".tinyclaw"):
        ws.put(f"{folder}/x.md", "needle")
    assert grep(ws, "needle") == "no matches in 0 files"
    assert "1 match in 1 file" in grep(ws, "needle", path=".task_outputs")
    assert "1 match in 1 file" in grep(ws, "needle", path=".tinyclaw/x.md")


def test_links_are_not_followed_so_that_each_file_is_searched_once(ws, tmp_path):
    ws.put("d/f.txt", "needle")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/x").write_text("needle")
    for name, target in {"a": ".", "up": "..", "out": tmp_path / "outside", "same": "f.txt"}.items():
        (ws.root / "d" / name).symlink_to(target)
    assert grep(ws, "needle") == "d/f.txt:1: needle\n\n1 match in 1 file"


def test_binary_files_are_skipped_and_counted(ws):
    ws.put("a.bin", b"\0needle")
    ws.put("b.txt", "nothing")
    assert grep(ws, "needle") == "no matches in 1 file (1 binary file skipped)"


def test_a_huge_empty_file_costs_no_time(ws):
    with (ws.root / "sparse").open("wb") as file:
        file.truncate(2_000_000_000)
    began = time.monotonic()
    assert "1 binary file skipped" in grep(ws, "needle")
    assert time.monotonic() - began < 2


def test_a_file_of_many_blocks_is_searched_to_its_end(ws):
    line = "filler " * 20 + "\n"
    ws.put("big.txt", line * 90_000 + "needle é\n" + line * 10)
    assert grep(ws, "needle .$").startswith("big.txt:90001: needle é\n")


@pytest.mark.parametrize(
    ("data", "pattern", "hit"),
    [
        (b"one\r\ntwo\r\n", "one$", "1: one"),
        (b"\xef\xbb\xbfimport x\n", "^import", "1: import x"),
        (b"caf\xe9 here\n", "here", "1: caf\ufffd here"),
        (b"a\x1b[31mb\x00c\n" + b"x" * 10, "a.*c", None),
        (b"tab\there\x07\n", "here", "1: tab\there\ufffd"),
        ("a\u2028b needle\n".encode(), "^a.*needle", "1: a\u2028b needle"),
    ],
)
def test_lines_are_those_of_an_editor(ws, data, pattern, hit):
    ws.put("f", data)
    text = grep(ws, pattern)
    assert text.startswith(f"f:{hit}\n") if hit else "binary" in text


WITHIN_LINES = [r"^$", r"b", r"^b", r"a$", r"a\b", r"x*", r"[a-c]+", r"(a)?b", r"a.b", r"a\Sb", r"(?:ab)+$"]
BEYOND_LINES = [r"\Aa", r"a\Z", r"a\s", r"a[^x]", r"\s*b", r"a\nb", r"(?s)a.b", r"[a\n]+b", r"\W", r"\Bb", r"(?<!\w)b"]


@given(st.sampled_from(WITHIN_LINES + BEYOND_LINES), st.text("ab \n\t", max_size=30))
def test_each_line_is_matched_for_itself(tmp_path_factory, pattern, text):
    ws = bench(tmp_path_factory.mktemp("w"))
    ws.put("f", text)
    lines = text.removesuffix("\n").split("\n") if text else []
    expected = [number for number, line in enumerate(lines, 1) if re.search(pattern, line)]
    assert [int(hit.split(":")[1]) for hit in _searcher.find_lines(query(ws, pattern, 60)).lines] == expected


def test_code_of_the_workspace_is_never_run(ws):
    for name in ("re.py", "json.py", "tinyclaw/__init__.py", "sitecustomize.py"):
        ws.put(name, "open('ran', 'w'); needle = 1")
    assert "4 matches in 4 files" in grep(ws, "needle")
    assert not (ws.root / "ran").exists()
