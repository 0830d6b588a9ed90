from __future__ import annotations

import os
import subprocess

import pytest

from tests.cli.process import tinyclaw
from tests.cli.recording import record


@pytest.fixture
def faults(workspace):
    """Runs the doctor with a key; gives the exit code and the lines."""

    def run(**more):
        done = tinyclaw("doctor", cwd=workspace, ANTHROPIC_API_KEY="x", **more)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout.splitlines()

    return run


def test_a_fresh_workspace_is_well(workspace, faults):
    tinyclaw("init", "--git", cwd=workspace)
    assert faults() == (0, [])


def test_a_key_that_is_missing_is_one_line_with_its_variables(workspace):
    done = tinyclaw("doctor", cwd=workspace)
    assert done.returncode == 1
    [line] = done.stdout.splitlines()
    assert "ANTHROPIC_API_KEY" in line
    assert "demo" in line


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("PLAN.md", "---\nstatus: maybe\n---\n", "PLAN.md:2: "),
        ("PLAN.md", "---\nstatus: draft\n", "PLAN.md:1: "),
        ("TODO.md", "# x\n\n- [y] do\n", 'TODO.md:3: "- [y]" is not a checkbox; use'),
        ("AGENTS.md", "a\n\0b\n", "AGENTS.md:2: "),
        ("AGENTS.md", "a\n\udcff\n", "AGENTS.md:2: "),
        (".memory/MEMORY.md", "# M\n- [gone](gone.md) — x\n", ".memory/MEMORY.md:2: gone.md is not there"),
        (".tinyclaw/SETTINGS.md", "---\nmodle: x\n---\n", ".tinyclaw/SETTINGS.md:2: "),
        ("skills/one/SKILL.md", "---\nname: one\n---\n", "skills/one/SKILL.md: has no description"),
        (".transcripts/a.md", "---\nformat: 9\n---\n", ".transcripts/a.md:1: has format 9"),
        (".transcripts/a.md", '---\nformat: 1\n---\n\n## You <!-- tc:text {"m":1} -->\n\nhi', ".transcripts/a.md:5: "),
    ],
)
def test_a_fault_is_named_with_its_file_line_and_mend(workspace, faults, name, text, wanted):
    (workspace / name).parent.mkdir(parents=True, exist_ok=True)
    (workspace / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    code, lines = faults()
    assert code == 1
    assert any(line.startswith(wanted) for line in lines), lines


@pytest.mark.parametrize("name", ["PLAN.md", "TODO.md", "AGENTS.md", ".memory/MEMORY.md", ".tinyclaw/SETTINGS.md"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "huge"])
def test_what_is_no_readable_file_is_named_and_never_waited_for(workspace, faults, name, kind):
    path = workspace / name
    path.parent.mkdir(exist_ok=True)
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(b"x" * 3_000_000)
    code, lines = faults()
    assert code == 1
    assert any(line.startswith(f"{name}:") for line in lines), lines


def test_missing_ignore_lines_are_named_in_a_repository(workspace, faults):
    tinyclaw("init", "--git", cwd=workspace)
    (workspace / ".transcripts").mkdir()
    (workspace / ".gitignore").write_text("*.o\n")
    code, [line] = faults()
    assert code == 1
    assert line.startswith(".gitignore: lacks .task_outputs/")


def test_a_lock_of_a_process_that_is_gone_is_named(workspace, faults):
    (workspace / ".transcripts").mkdir()
    (workspace / ".transcripts/a.lock").write_text("process 1\n")
    _, lines = faults()
    assert ".transcripts/a.lock: was left by a process that is gone; it does no harm; delete it" in lines


def test_a_sound_session_has_no_faults_and_a_lost_prefix_is_one(workspace, faults, tmp_path):
    tinyclaw("run", "-m", record(tmp_path / "r.md", "Hello."), "hi", cwd=workspace)
    assert faults() == (0, [])
    for path in (workspace / ".transcripts/prefixes").iterdir():
        path.write_text("broken")
    code, [line] = faults()
    assert code == 1
    assert line.startswith(".transcripts/prefixes/")


def test_a_bare_repository_and_no_git_program_do_no_harm(workspace, faults, tmp_path):
    subprocess.run(["git", "init", "-q", "--bare", "."], cwd=workspace, check=True)
    assert faults() == (0, [])
    code, [line] = faults(PATH=str(tmp_path))
    assert (code, line.startswith("git: is not installed")) == (1, True)


def test_the_rest_of_a_write_that_was_cut_short_is_named(workspace):
    (workspace / "src").mkdir()
    left = workspace / "src" / f".tinyclaw-{2**22 + 1}-0-1-absent-a.py"
    left.write_text("somebody's save\n")
    done = tinyclaw("doctor", cwd=workspace)
    assert done.returncode == 1
    assert f"src/{left.name}: is left of a write" in done.stdout + done.stderr


def test_whatever_stands_in_the_place_of_a_folder_or_leads_nowhere_is_named(workspace):
    (workspace / ".task_outputs").touch()
    (workspace / "PLAN.md").symlink_to("nowhere")
    (workspace / "skills" / "a").mkdir(parents=True)
    (workspace / "skills" / "a" / "SKILL.md").symlink_to("SKILL.md")
    (workspace / ".tinyclaw").mkdir()
    (workspace / ".tinyclaw" / "SETTINGS.md").write_bytes(b"\0" * 10)
    done = tinyclaw("doctor", cwd=workspace)
    said = done.stdout + done.stderr
    assert ".task_outputs: is no folder; move it away" in said
    assert "PLAN.md: is a link that leads nowhere" in said
    assert "skills/a/SKILL.md: cannot be read: its symbolic links go in a circle" in said
    assert ".tinyclaw/SETTINGS.md:1: holds NUL bytes" in said


def test_the_workspaces_own_sources_are_checked(workspace):
    folder = workspace / ".tinyclaw/sources"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text("---\npriority: high\nrequird: true\ncommand: date\n---\nwords\n")
    (folder / "b.md").write_text(f"---\npriority: {'9' * 5000}\n---\nwords\n")
    said = tinyclaw("doctor", cwd=workspace)
    text = said.stdout + said.stderr
    for fault in ('a.md:2: "high" is no priority', 'a.md:3: "requird" means nothing', "a.md:4: is not run", "b.md:2: "):
        assert fault in text, text
    assert tinyclaw("context", cwd=workspace).returncode == 0


def test_the_records_of_the_memory_are_checked(workspace):
    folder = workspace / ".memory"
    folder.mkdir()
    (folder / "a.md").write_text("---\nname: A\n")
    (folder / "b.md").symlink_to("../README.md")
    said = tinyclaw("doctor", cwd=workspace)
    assert said.returncode == 1
    for fault in (".memory/a.md:1: the frontmatter is never closed", ".memory/b.md: is reached by a link"):
        assert fault in said.stdout + said.stderr, said.stdout + said.stderr


def test_imports_that_lead_nowhere_are_named_by_file_and_line_also_in_folders_below(workspace, faults):
    (workspace / "web/build").mkdir(parents=True)
    (workspace / ".gitignore").write_text("build\n")
    (workspace / "AGENTS.md").write_text("@a.md @AGENTS.md\n@gone.md\n`@code.md` me@host.md\n@../out.md\n")
    (workspace / "a.md").write_text("@AGENTS.md @a.md\n")
    (workspace / "web/CLAUDE.md").write_text("\n@../a.md @missing.md\n")
    (workspace / "web/build/AGENTS.md").write_text("@ignored.md\n")
    code, lines = faults()
    assert code == 1
    assert [line.partition(" is ")[0] for line in lines] == [
        "AGENTS.md:2: @gone.md",
        "AGENTS.md:4: @../out.md",
        "web/CLAUDE.md:2: @missing.md",
    ]


def test_imports_that_go_too_deep_and_files_that_are_cut_or_no_text_are_named(workspace, faults):
    (workspace / "web").mkdir()
    (workspace / "AGENTS.md").write_text("@f1.md @latin.md\n" + "a rule\n" * 6_000)
    for number in range(1, 8):
        (workspace / f"f{number}.md").write_text(f"@f{number + 1}.md\n")
    (workspace / "latin.md").write_bytes(b"caf\xe9\n")
    (workspace / "web/AGENTS.md").write_bytes(b"a\0b")
    _, lines = faults()
    assert sum(line.startswith("f5.md:1: @f6.md is not read: imports are followed 5 files deep") for line in lines) == 1
    assert sum(line.startswith("AGENTS.md: cut: it is 42,017 bytes") for line in lines) == 1
    assert sum(line.startswith("latin.md:1: is not UTF-8") for line in lines) == 1
    assert sum(line.startswith("web/AGENTS.md:1: holds NUL bytes") for line in lines) == 1
    assert not any(line.startswith("f7.md") for line in lines)
