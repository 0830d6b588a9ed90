from __future__ import annotations

import os
import time

import pytest

from tests.tools.workspace import Bench, bench
from tinyclaw.errors import Interrupted


@pytest.fixture
def ws(tmp_path) -> Bench:
    return bench(tmp_path / "ws")


def found(ws: Bench, pattern: str, **arguments) -> list[str]:
    listed, empty, _ = ws.call("glob", pattern=pattern, **arguments).text.rpartition("\n\n")
    return listed.split("\n") if empty else []


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("*.py", ["top.py"]),
        ("./*.py", ["top.py"]),
        ("**/*.py", ["src/a.py", "src/deep/b.py", "top.py"]),
        ("src/**", ["src/a.py", "src/a.pyi", "src/deep/b.py"]),
        ("src", ["src/a.py", "src/a.pyi", "src/deep/b.py"]),
        ("src/*.{py,pyi}", ["src/a.py", "src/a.pyi"]),
        ("{src,top}*", ["top.py"]),
        ("src/?.p[xy]", ["src/a.py"]),
        ("src/a.py", ["src/a.py"]),
        ("**/deep/*", ["src/deep/b.py"]),
        ("nothing/*.py", []),
        ("*.rs", []),
    ],
)
def test_patterns(ws, pattern, paths):
    for name in ("top.py", "src/a.py", "src/a.pyi", "src/deep/b.py"):
        ws.put(name, "")
    assert found(ws, pattern) == paths


def test_a_pattern_may_start_from_a_folder_or_be_absolute(ws):
    ws.put("src/deep/b.py", "")
    assert found(ws, "*/*.py", path="src") == ["src/deep/b.py"]
    assert found(ws, f"{ws.root}/src/**/*.py") == ["src/deep/b.py"]


def test_hidden_files_are_found_and_git_never(ws):
    ws.put(".github/workflows/ci.yml", "")
    ws.put(".env.example", "")
    ws.put(".git/config", "")
    ws.put("sub/.git", "gitdir: elsewhere")
    assert found(ws, "**/*.yml") == [".github/workflows/ci.yml"]
    assert found(ws, "**") == [".env.example", ".github/workflows/ci.yml"]
    assert "belongs to git" in ws.fails("glob", pattern=".git/*")


def test_ignored_files_are_counted_and_found_when_named(ws):
    ws.put(".gitignore", "dist/\n*.log\n")
    ws.put("logs/.gitignore", "!keep.log\n")
    for name in ("dist/app.js", "dist/deep/lib.js", "src/app.js", "logs/keep.log", "logs/drop.log"):
        ws.put(name, "")
    broad = ws.call("glob", pattern="**/*.js").text
    assert broad == "src/app.js\n\n1 file (2 ignored files skipped, name the path to search there)"
    assert found(ws, "dist/app.js") == ["dist/app.js"]
    assert found(ws, "dist/**") == ["dist/app.js", "dist/deep/lib.js"]
    assert found(ws, "**/*.js", path="dist/deep") == ["dist/deep/lib.js"]
    assert found(ws, "**/*.log") == ["logs/keep.log"]


def test_our_own_folders_are_left_out_unless_named(ws):
    for folder in (".transcripts", ".task_outputs/s", ".tinyclaw", ".memory", "sub/.transcripts"):
        ws.put(f"{folder}/x.md", "")
    assert found(ws, "**/*.md") == [".memory/x.md", "sub/.transcripts/x.md"]
    assert found(ws, ".task_outputs/**/*.md") == [".task_outputs/s/x.md"]
    assert found(ws, "*.md", path=".transcripts") == [".transcripts/x.md"]


def test_links_are_never_followed_into_a_loop_or_out(ws, tmp_path):
    ws.put("d/f.txt", "")
    (tmp_path / "outside.txt").write_text("")
    for name, target in {"a": ".", "b": ".", "up": "..", "root": "/", "out.txt": tmp_path / "outside.txt"}.items():
        (ws.root / "d" / name).symlink_to(target)
    (ws.root / "d/gone.txt").symlink_to("nowhere")
    (ws.root / "same.txt").symlink_to("d/f.txt")
    began = time.monotonic()
    assert found(ws, "**/*.txt") == ["d/f.txt", "same.txt"]
    assert time.monotonic() - began < 1


@pytest.mark.parametrize("pattern", ["../ws-secret/k", "../ws-secret/*", "/etc/*", "a/../../ws-secret/k", "out/*"])
def test_nothing_outside_the_workspace_is_listed(ws, tmp_path, pattern):
    (tmp_path / "ws-secret").mkdir()
    (tmp_path / "ws-secret/k").write_text("")
    (ws.root / "out").symlink_to(tmp_path / "ws-secret")
    assert "outside the workspace" in ws.fails("glob", pattern=pattern)


def test_a_workspace_that_is_reached_through_a_link_works(ws, tmp_path):
    ws.put("a/x.py", "")
    (tmp_path / "link").symlink_to(ws.root)
    assert found(ws, f"{tmp_path}/link/a/*.py") == ["a/x.py"]


def test_a_long_list_is_cut_and_says_so(ws):
    for number in range(250):
        ws.put(f"f{number:03}.txt", "")
    text = ws.call("glob", pattern="*.txt").text
    assert text.endswith("200 of 250 files shown: narrow the pattern")
    assert text.startswith("f000.txt\nf001.txt\n")
    for number in range(100):
        ws.put(f"{'x' * 200}{number}.md", "")
    assert len(ws.call("glob", pattern="*.md").text) < 16_000


def test_no_file_and_no_folder_are_facts_and_a_missing_start_is_an_error(ws):
    assert ws.call("glob", pattern="*.rs").text == "no files match *.rs"
    assert ws.call("glob", pattern="lib/*.rs").text == "no files match lib/*.rs (there is no lib in .)"
    assert "does not exist" in ws.fails("glob", pattern="*", path="lib")
    assert "not valid" in ws.fails("glob", pattern="[z-a]*")


def test_names_that_are_no_text_are_shown_harmlessly(ws):
    (ws.root / "a\nb").write_text("")
    try:
        (ws.root / os.fsdecode(b"caf\xe9")).write_text("")
    except OSError:
        pytest.skip("this file system takes no such name")
    assert found(ws, "*") == ["a\ufffdb", "caf\ufffd"]


def test_an_interrupt_ends_the_search(ws):
    ws.context.interrupt.set()
    for number in range(3000):
        ws.put(f"d{number % 50}/f{number}", "")
    with pytest.raises(Interrupted):
        ws.call("glob", pattern="**/" + "*a" * 30)
