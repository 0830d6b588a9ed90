"""Imports are followed from file to file: each file once, to a depth, inside its own tree."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.state.instructions import Tree
from tinyclaw.state._importing import MAX_BYTES, MAX_DEPTH, MAX_IMPORTS
from tinyclaw.state.snapshot import MAX_STATE_BYTES

MEND = "correct it, or write it in backticks if it is no import"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_what_a_file_imports_stands_before_it_and_is_relative_to_it(tree: Tree):
    tree.write("AGENTS.md", "Read @docs/style.md and @docs/more/tests.md.\n")
    tree.write("docs/style.md", "See @more/names.md.\n")
    tree.write("docs/more/names.md")
    tree.write("docs/more/tests.md")
    tree.write("more/names.md", "not this one\n")
    assert tree.paths() == ["docs/more/names.md", "docs/style.md", "docs/more/tests.md", "AGENTS.md"]
    assert tree.reader.take({}).importers["docs/more/names.md"] == "docs/style.md"
    assert tree.faults() == []


def test_files_that_import_each_other_are_read_once_and_that_is_no_fault(tree: Tree):
    tree.write("AGENTS.md", "@a.md @AGENTS.md @./AGENTS.md\n")
    tree.write("a.md", "@b.md\n")
    tree.write("b.md", "@a.md @AGENTS.md\n")
    assert tree.paths() == ["b.md", "a.md", "AGENTS.md"] and tree.faults() == []


def test_two_links_to_one_file_are_one_file(tree: Tree):
    tree.write("AGENTS.md", "@AGENTS.md @one.md @two.md @CLAUDE.md\n")
    tree.link("CLAUDE.md", "AGENTS.md")
    tree.write("one.md")
    tree.link("two.md", "one.md")
    assert tree.paths() == ["one.md", "AGENTS.md"] and tree.faults() == []


def test_a_fallback_that_is_a_link_to_what_it_imports_is_read_once(tree: Tree):
    tree.link("CLAUDE.md", "docs/rules.md")
    tree.write("docs/rules.md", "@docs/rules.md\n")
    assert tree.paths() == ["CLAUDE.md"] and tree.faults() == []


def test_a_file_that_two_files_import_is_read_once_before_the_first(tmp_path: Path):
    tree = Tree(tmp_path, "sub")
    tree.write("AGENTS.md", "@shared.md\n")
    tree.write("sub/AGENTS.md", "@../shared.md\n")
    tree.write("shared.md")
    assert tree.paths() == ["shared.md", "AGENTS.md", "sub/AGENTS.md"]


def test_a_file_of_the_chain_keeps_its_place_when_it_is_imported(tmp_path: Path):
    tree = Tree(tmp_path, "sub")
    tree.write("AGENTS.md", "@sub/AGENTS.md\n")
    tree.write("sub/AGENTS.md", "@../AGENTS.md\n")
    assert tree.paths() == ["AGENTS.md", "sub/AGENTS.md"]


def test_a_folder_whose_instructions_are_a_link_to_those_above_adds_nothing(tmp_path: Path):
    tree = Tree(tmp_path, "sub")
    tree.write("AGENTS.md")
    tree.link("sub/AGENTS.md", "../AGENTS.md")
    assert tree.paths() == ["AGENTS.md"]


@pytest.mark.parametrize("there", [True, False])
def test_what_the_prompt_states_by_itself_is_not_imported(tree: Tree, there):
    if there:
        tree.write("PLAN.md")
    tree.write("AGENTS.md", "The plan is in @PLAN.md.\n")
    assert tree.paths() == ["AGENTS.md"] and tree.faults() == []


def test_a_missing_file_is_named_by_line_and_the_rest_is_read(tree: Tree):
    tree.write("AGENTS.md", "# Rules\n\n@missing.md\n@there.md\n")
    tree.write("there.md")
    assert tree.paths() == ["there.md", "AGENTS.md"]
    assert tree.faults() == [f"AGENTS.md:3: @missing.md is not there; {MEND}"]


def test_a_word_that_may_be_no_path_is_an_import_only_where_it_names_a_file(tree: Tree):
    tree.write("AGENTS.md", "@john.doe and @package.json and @app.route\n")
    tree.write("package.json", "{}\n")
    assert tree.paths() == ["package.json", "AGENTS.md"] and tree.faults() == []


def test_imports_are_followed_to_a_depth(tree: Tree):
    tree.write("AGENTS.md", "@f1.md\n")
    for number in range(1, 31):
        tree.write(f"f{number}.md", f"@f{number + 1}.md\n")
    assert tree.paths() == [*(f"f{number}.md" for number in range(MAX_DEPTH, 0, -1)), "AGENTS.md"]
    assert tree.faults() == [f"f5.md:1: @f6.md is not read: imports are followed {MAX_DEPTH} files deep; {MEND}"]


@pytest.mark.parametrize("name", ["../secret.md", "../../etc/passwd", "docs/../../secret.md", "~/secret.md"])
def test_nothing_outside_the_workspace_is_imported(tree: Tree, name):
    (tree.root.parent / "secret.md").write_text("secret\n")
    tree.write("~/secret.md", "secret\n")
    tree.write("AGENTS.md", f"@{name}\n")
    assert tree.paths() == ["AGENTS.md"]
    assert [fault.partition(" is ")[0] for fault in tree.faults()] == [f"AGENTS.md:1: @{name}"]
    assert "is outside of the folder" in tree.faults()[0]


def test_an_absolute_path_counts_where_it_leads_inside(tree: Tree):
    tree.write("docs/a.md")
    tree.write("AGENTS.md", f"@{tree.root}/docs/a.md @{tree.root.parent}/secret.md\n")
    assert tree.paths() == ["docs/a.md", "AGENTS.md"]
    assert len(tree.faults()) == 1 and "secret.md is outside" in tree.faults()[0]


def test_a_link_out_of_the_workspace_is_not_imported(tree: Tree):
    (tree.root.parent / "secret.md").write_text("secret\n")
    tree.link("docs/a.md", tree.root.parent / "secret.md")
    tree.link("way", tree.root.parent)
    tree.write("AGENTS.md", "@docs/a.md @way/secret.md\n")
    assert tree.paths() == ["AGENTS.md"]
    assert ["is a link out of the workspace" in fault for fault in tree.faults()] == [True, True]


@pytest.mark.parametrize("path", [".git/notes.md", ".transcripts/a.md", ".task_outputs/a.md", ".tinyclaw/a.md"])
def test_what_is_gits_or_tinyclaws_own_is_not_imported(tree: Tree, path):
    tree.write(path)
    tree.link("docs/a.md", tree.root / path)
    tree.write("AGENTS.md", f"@{path} @docs/a.md\n")
    assert tree.paths() == ["AGENTS.md"]
    assert ["of git's or tinyclaw's own" in fault for fault in tree.faults()] == [True, True]


@pytest.mark.parametrize(
    ("file", "rules"),
    [(".gitignore", ".env\nvendor/\n"), (".gitignore", "*\n!web\n"), (".git/info/exclude", "/.env\n/vendor\n")],
)
def test_what_git_ignores_is_not_imported_and_is_named(tree: Tree, file, rules):
    tree.write(".env", "SECRET=1\n")
    tree.write("vendor/a.md")
    tree.link("web/a.md", "../vendor/a.md")
    tree.write("AGENTS.md", "@./.env @web/a.md\n")
    assert tree.paths() == [".env", "web/a.md", "AGENTS.md"]
    tree.write(file, rules)
    assert tree.paths() == ["AGENTS.md"]
    message = "is ignored by git, and is not read; correct it, or write it in backticks if it is no import"
    assert tree.faults() == [f"AGENTS.md:1: @./.env {message}", f"AGENTS.md:1: @web/a.md {message}"]


def test_an_import_that_is_ignored_counts_once_the_rule_is_gone(tree: Tree):
    tree.write("own.md")
    tree.write("AGENTS.md", "@own.md\n")
    rules = tree.write(".gitignore", "own.md\n")
    assert tree.paths() == ["AGENTS.md"]
    rules.unlink()
    assert tree.paths() == ["own.md", "AGENTS.md"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Path.mkdir, "is a folder, not a file"),
        (os.mkfifo, "is a named pipe, not a file"),
        (lambda path: path.symlink_to(path.name), "its symbolic links go in a circle"),
        (lambda path: path.write_bytes(b"a\0b"), "holds NUL bytes and is no text"),
        (lambda path: path.write_bytes(b"x" * (MAX_STATE_BYTES + 1)), "is too large (1,048,577 bytes"),
    ],
    ids=["folder", "pipe", "circle", "binary", "huge"],
)
def test_what_is_no_text_is_not_imported_and_is_named(tree: Tree, make, said):
    make(tree.root / "x.md")
    tree.write("AGENTS.md", "@x.md\n")
    assert tree.paths() == ["AGENTS.md"]
    (fault,) = tree.faults()
    assert fault.startswith(f"AGENTS.md:1: @x.md {said}" if "circle" not in said else "AGENTS.md:1: @x.md ")
    assert said in fault and fault.endswith(MEND) and str(tree.root) not in fault and "move it away" not in fault


def test_the_persons_own_file_imports_from_its_own_folder_alone(tree: Tree):
    tree.write("~/AGENTS.md", "@style.md @~/docs/mine.md @../project/x.md\n")
    for path in ("~/style.md", "~/docs/mine.md", "x.md"):
        tree.write(path)
    snapshot = tree.reader.take({})
    files = list(snapshot.files("@user:AGENTS.md"))
    assert [(file.path, file.private) for file in files] == [
        ("~/style.md", True),
        ("~/docs/mine.md", True),
        ("~/AGENTS.md", True),
    ]
    assert [fault.path for fault in snapshot.import_faults] == ["~/AGENTS.md"]


def test_an_edit_of_an_imported_file_and_of_the_import_is_seen(tree: Tree):
    tree.write("AGENTS.md", "@a.md\n")
    tree.write("a.md", "old\n")
    assert [file.text for file in tree.reader.take({}).files("@chain:AGENTS.md|CLAUDE.md")] == ["old\n", "@a.md\n"]
    tree.write("a.md", "new\n")
    assert next(tree.reader.take({}).files("@chain:AGENTS.md|CLAUDE.md")).text == "new\n"
    tree.write("AGENTS.md", "no more\n")
    assert tree.paths() == ["AGENTS.md"] and not tree.reader.take({}).importers


@pytest.mark.parametrize("there", [True, False])
def test_a_flood_of_imports_ends_soon_and_that_is_said_once(tree: Tree, there):
    tree.write("AGENTS.md", "".join(f"@a{number}.md\n" for number in range(20_000)))
    for number in range(300 if there else 0):
        tree.write(f"a{number}.md", "".join(f"@b{other}.md\n" for other in range(300)))
    began = time.process_time()
    assert len(tree.paths()) <= MAX_IMPORTS + 1
    assert time.process_time() - began < 1
    assert [fault for fault in tree.faults() if "at most 100 imports" in fault][-1].startswith("AGENTS.md:")
    assert len(tree.faults()) <= 2 * MAX_IMPORTS


def test_many_large_files_end_soon(tree: Tree):
    tree.write("AGENTS.md", "".join(f"@a{number}.md\n" for number in range(50)))
    for number in range(50):
        tree.write(f"a{number}.md", "words @b.md `\n" * 40_000)
    began = time.process_time()
    assert len(tree.paths()) * 560_000 <= MAX_BYTES + 2 * 560_000
    assert time.process_time() - began < 1
