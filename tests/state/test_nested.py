"""Instructions of folders below the root come in when the agent has touched their folder, and not before."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.state.instructions import NESTED, Tree
from tinyclaw.state.nested import MOST_FOLDERS


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    tree.write("AGENTS.md")
    return tree


def test_every_folder_on_the_way_counts_and_the_nearer_is_later(tree: Tree):
    for path in (
        "packages/AGENTS.md",
        "packages/web/src/AGENTS.md",
        "packages/web/AGENTS.md",
        "packages/api/AGENTS.md",
    ):
        tree.write(path)
    assert tree.paths() == ["AGENTS.md"]
    ways = ["packages/AGENTS.md", "packages/web/AGENTS.md", "packages/web/src/AGENTS.md"]
    assert tree.paths("packages/web/src") == ["AGENTS.md", *ways]
    assert tree.paths("packages/web/src", "packages/api") == ["AGENTS.md", *ways, "packages/api/AGENTS.md"]
    assert tree.paths("packages/api", "packages/web/src")[1:3] == ["packages/AGENTS.md", "packages/api/AGENTS.md"]


def test_a_folder_without_agents_md_falls_back(tree: Tree):
    tree.write("a/CLAUDE.md")
    tree.write("b/CLAUDE.md")
    tree.write("b/AGENTS.md")
    assert tree.paths("a", "b", "c") == ["AGENTS.md", "a/CLAUDE.md", "b/AGENTS.md"]


def test_folders_of_the_chain_are_read_once(tmp_path: Path):
    tree = Tree(tmp_path, "sub")
    for path in ("AGENTS.md", "sub/AGENTS.md", "sub/deep/AGENTS.md"):
        tree.write(path)
    assert tree.paths("sub/deep") == ["AGENTS.md", "sub/AGENTS.md", "sub/deep/AGENTS.md"]


@pytest.mark.parametrize(
    "folder",
    ["node_modules/x", "web/node_modules/x", ".git/x", ".transcripts", ".task_outputs/s", ".tinyclaw", ".memory"],
)
def test_folders_of_packages_of_git_and_of_our_own_bring_nothing(tree: Tree, folder):
    tree.write(f"{folder}/AGENTS.md")
    assert tree.paths(folder) == ["AGENTS.md"]


@pytest.mark.parametrize(
    ("file", "rules"),
    [
        (".gitignore", "build/"),
        (".gitignore", "/web/build\n"),
        ("web/.gitignore", "build\n"),
        (".gitignore", "*\n!/docs/\n"),
        (".git/info/exclude", "build\n"),
    ],
)
def test_ignored_folders_and_those_below_bring_nothing(tree: Tree, file, rules):
    tree.write("web/build/AGENTS.md")
    tree.write("web/build/deep/AGENTS.md")
    assert len(tree.paths("web/build/deep")) == 3
    tree.write(file, rules)
    assert tree.paths("web/build/deep") == ["AGENTS.md"]


@pytest.mark.parametrize(
    ("file", "rules"),
    [("web/.gitignore", "AGENTS.md\n"), (".gitignore", "/web/AGENTS.*\n"), (".git/info/exclude", "web/AGENTS.md\n")],
)
def test_an_ignored_file_brings_nothing_and_the_next_name_counts(tree: Tree, file, rules):
    tree.write("web/AGENTS.md")
    tree.write(file, rules)
    assert tree.paths("web") == ["AGENTS.md"]
    tree.write("web/CLAUDE.md")
    assert tree.paths("web") == ["AGENTS.md", "web/CLAUDE.md"]


def test_a_link_to_an_ignored_file_brings_nothing(tree: Tree):
    tree.write("vendor/p/AGENTS.md")
    tree.write("vendor/p/CLAUDE.md")
    tree.link("web/AGENTS.md", "../vendor/p/AGENTS.md")
    tree.link("api", "vendor/p")
    assert len(tree.paths("web", "api")) == 2
    tree.write(".gitignore", "vendor/\n")
    assert tree.paths("web", "api") == ["AGENTS.md"]


def test_what_is_ignored_on_the_way_to_where_we_work_is_read_all_the_same(tmp_path: Path):
    tree = Tree(tmp_path, cwd="web")
    for path in ("AGENTS.md", "web/CLAUDE.md"):
        tree.write(path)
    tree.write(".gitignore", "AGENTS.md\nCLAUDE.md\n")
    assert tree.paths("web") == ["AGENTS.md", "web/CLAUDE.md"]


def test_an_ignored_folder_counts_once_the_rule_is_gone(tree: Tree):
    tree.write("web/AGENTS.md")
    rules = tree.write(".gitignore", "web\n")
    assert tree.paths("web") == ["AGENTS.md"]
    tree.write(".gitignore", "other\n")
    assert tree.paths("web") == ["AGENTS.md", "web/AGENTS.md"]
    tree.write(".gitignore", "web\n")
    assert tree.paths("web") == ["AGENTS.md"]
    rules.unlink()
    assert tree.paths("web") == ["AGENTS.md", "web/AGENTS.md"]


def test_a_link_out_of_the_workspace_is_refused_and_named(tree: Tree):
    (tree.root.parent / "secret.md").write_text("secret\n")
    tree.link("web/AGENTS.md", tree.root.parent / "secret.md")
    tree.link("out", tree.root.parent)
    (tree.root.parent / "AGENTS.md").write_text("secret\n")
    files = list(tree.reader.take({}, ("web", "out")).files(NESTED))
    assert [(file.text, "link out of the workspace" in str(file.problem)) for file in files] == [("", True)] * 2


def test_a_link_to_a_file_that_is_read_already_adds_nothing(tree: Tree):
    tree.link("web/AGENTS.md", "../AGENTS.md")
    tree.write("api/AGENTS.md")
    tree.link("app/AGENTS.md", "../api/AGENTS.md")
    assert tree.paths("web", "api", "app") == ["AGENTS.md", "api/AGENTS.md"]


def test_what_is_read_already_stays_where_it_is_when_a_touch_would_bring_it_again(tree: Tree):
    tree.write("AGENTS.md", "@web/AGENTS.md\n")
    tree.write("web/AGENTS.md", "@style.md\n")
    tree.write("web/style.md")
    assert tree.paths() == tree.paths("web") == ["web/style.md", "web/AGENTS.md", "AGENTS.md"]


def test_a_nested_file_imports_from_its_own_folder(tree: Tree):
    tree.write("web/AGENTS.md", "@style.md @../api/x.md @missing.md\n")
    tree.write("web/style.md")
    tree.write("api/x.md")
    assert tree.paths("web") == ["AGENTS.md", "web/style.md", "api/x.md", "web/AGENTS.md"]
    assert tree.faults() == [] and len(tree.faults("web")) == 1


@pytest.mark.parametrize("folder", ["..", "../other", "/etc", "a/../..", "", ".", "a//b", "a\0b", "a\nb", "\udcff"])
def test_what_is_no_folder_of_the_workspace_is_passed_over(tree: Tree, folder):
    (tree.root.parent / "AGENTS.md").write_text("secret\n")
    (tree.root.parent / "other").mkdir()
    (tree.root.parent / "other/AGENTS.md").write_text("secret\n")
    assert tree.paths(folder) == ["AGENTS.md"]


def test_of_very_many_folders_the_first_are_looked_into_and_the_rest_is_counted(tree: Tree):
    folders = [f"d{number}" for number in range(MOST_FOLDERS + 5)]
    for folder in folders:
        tree.write(f"{folder}/AGENTS.md")
    snapshot = tree.reader.take({}, tuple(folders))
    assert [file.path for file in snapshot.files(NESTED)][-1] == f"d{MOST_FOLDERS - 1}/AGENTS.md"
    assert snapshot.unread[NESTED] == 5


def test_ten_thousand_touched_folders_cost_no_second(tree: Tree):
    folders = tuple(f"d{number}/e/f/g" for number in range(10_000))
    began = time.process_time()
    assert tree.paths(*folders) == tree.paths(*folders) == ["AGENTS.md"]
    assert time.process_time() - began < 1
