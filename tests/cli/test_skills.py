"""The command that lists and checks skills."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.process import tinyclaw


@pytest.fixture
def put(workspace: Path):
    def write(path: str, text: str | bytes) -> None:
        user = Path(os.environ["HOME"]) / ".config/tinyclaw"
        place = user / path.removeprefix("~/") if path.startswith("~/") else workspace / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else text.encode())

    return write


def skill(name: str, description: str = "does it") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n\nSteps.\n"


def test_every_skill_is_one_line_and_what_is_wrong_is_told_beside(workspace, put):
    put("skills/pdf/SKILL.md", skill("pdf", "Fills forms."))
    put(".claude/skills/pdf/SKILL.md", skill("pdf", "Hidden."))
    put("~/skills/mine/SKILL.md", skill("mine", "Is mine."))
    done = tinyclaw("skills", "list", cwd=workspace)
    assert done.returncode == 0
    assert [line.split(maxsplit=2) for line in done.stdout.splitlines()] == [
        ["mine", "~/skills/mine", "Is mine."],
        ["pdf", "skills/pdf", "Fills forms."],
    ]
    assert ".claude/skills/pdf/SKILL.md: is hidden by skills/pdf/SKILL.md" in done.stderr


def test_without_skills_that_is_said(workspace):
    done = tinyclaw("skills", "list", cwd=workspace)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "there is no skill\n")


def test_a_list_obeys_nothing_that_a_skill_says(workspace, put):
    put("skills/a\x1b[31m/SKILL.md", '---\ndescription: "\\e[2J\\u202e"\n---\n')
    done = tinyclaw("skills", "list", cwd=workspace)
    assert "\x1b" not in done.stdout + done.stderr and "\u202e" not in done.stdout + done.stderr


def test_a_check_of_all_says_file_line_and_mend_and_fails(workspace, put):
    put("skills/good/SKILL.md", skill("good"))
    put("skills/bad/SKILL.md", skill("Bad", "Runs checks: lint"))
    put("skills/SKILL.md", skill("x"))
    put("skills/empty/README.md", "x")
    put("~/skills/mine/SKILL.md", skill("other"))
    done = tinyclaw("skills", "check", cwd=workspace)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "skills/bad/SKILL.md:3: is no valid YAML (mapping values are not allowed here); put the value into quotes, "
        "or mend the line",
        "skills/empty: has no SKILL.md; write one, with a name and a description",
        '~/skills/mine/SKILL.md:2: is called "other" and its folder "mine"; give both the same name',
        "skills/SKILL.md: is in no folder of its own, so it is no skill; move it to skills/NAME/SKILL.md",
    ]


def test_a_check_where_all_is_well_says_how_many_and_notes_what_may_not_be_meant(workspace, put):
    put("skills/a/SKILL.md", skill("a", "fix issue #12 now"))
    put(".agents/skills/a/SKILL.md", skill("a"))
    done = tinyclaw("skills", "check", cwd=workspace)
    assert (done.returncode, done.stdout) == (0, "")
    assert "skills/a/SKILL.md:3: " in done.stderr and "quote the value" in done.stderr
    assert ".agents/skills/a/SKILL.md: is hidden by skills/a/SKILL.md" in done.stderr
    assert "2 skills checked, all well" in done.stderr


def test_a_check_of_named_folders_looks_at_these_only(workspace, put):
    put("skills/a/SKILL.md", skill("a"))
    put("skills/b/SKILL.md", skill("c"))
    put("elsewhere/d/SKILL.md", skill("d"))
    for path in ("skills/a", "skills/a/", "skills/a/SKILL.md", "elsewhere/d", str(workspace / "skills/a")):
        done = tinyclaw("skills", "check", path, cwd=workspace)
        assert (done.returncode, done.stdout) == (0, ""), done.stdout
    done = tinyclaw("skills", "check", "skills/a", "skills/b", "nowhere", cwd=workspace)
    assert done.returncode == 1 and len(done.stdout.splitlines()) == 2
    assert tinyclaw("skills", "check", ".", cwd=workspace / "skills/a").returncode == 0


def test_the_doctor_lists_every_fault_of_skills(workspace, put):
    for number in range(9):
        put(f"skills/bad{number}/SKILL.md", f"---\nname: bad{number}\n---\n")
    put("skills/SKILL.md", skill("x"))
    put("~/skills/bad1/SKILL.md", skill("bad1"))
    lines = tinyclaw("doctor", cwd=workspace, ANTHROPIC_API_KEY="x").stdout.splitlines()
    assert [f"skills/bad{number}/SKILL.md: has no description" in line for number, line in enumerate(lines[:9])] == [
        True
    ] * 9
    assert any(line.startswith("~/skills/bad1/SKILL.md: is hidden by skills/bad1/SKILL.md") for line in lines)
    assert any(line.startswith("skills/SKILL.md: is in no folder of its own") for line in lines)


def test_a_check_of_a_folder_of_skills_looks_at_each(workspace, put):
    for path in (".agents/skills/a/SKILL.md", ".agents/skills/b/skill.md"):
        put(path, skill(path.split("/")[2]))
    put(".agents/skills/notes/x.md", "no skill\n")
    put("empty/x.md", "no skill\n")
    done = tinyclaw("skills", "check", ".agents/skills", cwd=workspace)
    assert (done.returncode, done.stdout) == (0, "") and "2 skills checked, all well" in done.stderr
    put(".agents/skills/b/skill.md", skill("c"))
    done = tinyclaw("skills", "check", ".agents/skills/", cwd=workspace)
    assert done.returncode == 1 and done.stdout.startswith(".agents/skills/b/skill.md:2: is called")
    done = tinyclaw("skills", "check", "empty", cwd=workspace)
    assert done.returncode == 1 and done.stdout.startswith("empty: has no SKILL.md")


def test_a_tool_that_is_not_here_is_noted_by_list_check_and_doctor_and_fails_no_check(workspace, put):
    entries = "Read Bash(git:*) WebFetch Frobnicate(x) WebFetch"
    put("skills/a/SKILL.md", skill("a").replace("\n---", f"\nallowed-tools: {entries}\n---", 1))
    put("skills/b/SKILL.md", skill("b").replace("\n---", "\nallowed-tools: Task\n---", 1))
    put("skills/c/SKILL.md", skill("c").replace("\n---", "\nallowed-tools: read, BASH\n---", 1))
    lines = [
        "skills/a/SKILL.md: allows tools that are not here: WebFetch, Frobnicate; correct it where a tool of "
        "tinyclaw's is meant",
        "skills/b/SKILL.md: allows a tool that is not here: Task; correct it where a tool of tinyclaw's is meant",
    ]
    for command in (("list",), ("check",), ("check", "skills")):
        done = tinyclaw("skills", *command, cwd=workspace)
        assert done.returncode == 0 and [line for line in done.stderr.splitlines() if "not here" in line] == lines
    said = tinyclaw("doctor", cwd=workspace, ANTHROPIC_API_KEY="x").stdout.splitlines()
    assert [line for line in said if "not here" in line] == lines
