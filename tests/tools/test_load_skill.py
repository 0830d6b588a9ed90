"""load_skill: a skill's text, its folder and its files, by registered name only."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.workspace import Bench, bench


def skill(name: str, description: str = "does it", more: str = "", body: str = "Steps.\n") -> str:
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n\n{body}"


@pytest.fixture
def ws(tmp_path: Path) -> Bench:
    return bench(tmp_path / "ws")


def test_a_skill_gives_its_text_its_folder_and_its_files(ws: Bench):
    ws.put("skills/pdf/SKILL.md", skill("pdf", body="Run scripts/fill.py.\n"))
    ws.put("skills/pdf/scripts/fill.py", "print(1)\n")
    ws.put("skills/pdf/references/FORMS.md", "# Forms\n")
    ws.put("skills/pdf/.hidden", "no")
    output = ws.call("load_skill", name="pdf")
    assert output.text == (
        "Skill pdf (skills/pdf/SKILL.md)\n"
        "Its folder is skills/pdf; paths in its text are relative to that.\n"
        "Files (load_skill with file reads one): references/FORMS.md, scripts/fill.py\n"
        "\n"
        "Run scripts/fill.py."
    )
    assert list(output.revisions) == ["skills/pdf/SKILL.md"] and output.paged
    assert ws.context.ledger.seen("skills/pdf/SKILL.md") == output.revisions["skills/pdf/SKILL.md"]


def test_a_skill_says_what_it_allows_and_how_long(ws: Bench):
    ws.put("skills/a/SKILL.md", skill("a", more="allowed-tools: Read Bash(git:*)\n"))
    ws.put("skills/b/SKILL.md", skill("b", more="allowed-tools:\n"))
    assert (
        "Until this turn ends it allows, besides load_skill, only: Read, Bash(git:*)"
        in ws.call("load_skill", name="a").text
    )
    assert "only: no tool" in ws.call("load_skill", name="b").text


def test_of_a_skill_of_the_user_the_folder_is_named_in_full_and_its_files_can_be_read(ws: Bench):
    user = ws.root.parent / "user/skills/mine"
    user.mkdir(parents=True)
    (user / "SKILL.md").write_text(skill("mine"))
    (user / "notes.md").write_text("my notes\n")
    output = ws.call("load_skill", name="mine")
    assert f"Its folder is {user};" in output.text and "Skill mine (~/skills/mine/SKILL.md)" in output.text
    assert ws.call("load_skill", name="mine", file="notes.md").text == "my notes\n"


def test_the_text_is_the_files_as_it_is_now_whole_and_masked(ws: Bench):
    ws.context.mask = lambda text: text.replace("hunter2", "[masked:password]")
    ws.put("skills/a/SKILL.md", skill("a", body="first\n---\nthe key is hunter2\n"))
    ws.put("skills/a/key.txt", "hunter2\r\n")
    assert ws.call("load_skill", name="a").text.endswith("\n\nfirst\n---\nthe key is [masked:password]")
    assert ws.call("load_skill", name="a", file="key.txt").text == "[masked:password]\n"
    ws.put("skills/a/SKILL.md", skill("a", body="second\n"))
    assert ws.call("load_skill", name="a").text.endswith("\n\nsecond")


def test_the_same_unchanged_skill_gives_the_same_text(ws: Bench):
    ws.put("skills/a/SKILL.md", skill("a"))
    for name in ("z", "b", "y", "a"):
        ws.put(f"skills/a/{name}.txt", "x")
    first, second = (ws.call("load_skill", name="a") for _ in range(2))
    assert first == second and "a.txt, b.txt, y.txt, z.txt" in first.text


def test_a_long_skill_is_not_held_for_a_page_so_that_the_whole_of_it_is_kept_in_a_file(ws: Bench):
    ws.put("skills/a/SKILL.md", skill("a", body="word " * 9_000))
    ws.put("skills/b/SKILL.md", skill("b", body="word " * 20_000))
    assert [ws.call("load_skill", name=name).paged for name in "ab"] == [True, False]


@pytest.mark.parametrize("name", ["pdf-form", "FILLS", "forms in pdf", "skills/pdf-forms", "../pdf-forms"])
def test_a_name_that_is_no_skill_is_answered_with_those_that_come_near(ws: Bench, name: str):
    ws.put("skills/pdf-forms/SKILL.md", skill("pdf-forms", "Fills forms."))
    ws.put("skills/other/SKILL.md", skill("other", "Nothing."))
    error = ws.fails("load_skill", name=name)
    assert error == f"no skill is called {name!r}. Near it are:\n- pdf-forms: Fills forms."


def test_a_name_near_nothing_is_answered_with_how_many_there_are(ws: Bench):
    assert ws.fails("load_skill", name="zebra") == "no skill is called 'zebra'. There are 0 skills."
    for number in range(7):
        ws.put(f"skills/s{number}/SKILL.md", skill(f"s{number}", "does it"))
    assert "There are 7 skills, s0, s1, s2, s3, s4 among them." in ws.fails("load_skill", name="zebra")
    assert ws.fails("load_skill", name="does").endswith("(2 more; give other words)")


def test_every_skill_of_a_thousand_loads_by_its_name(ws: Bench):
    for number in range(1_000):
        ws.put(f"skills/s{number:04}/SKILL.md", skill(f"s{number:04}", body=f"Step {number}.\n"))
    assert ws.call("load_skill", name="s0999").text.endswith("Step 999.")


def test_a_skill_that_cannot_be_read_says_why(ws: Bench):
    ws.put("skills/a/SKILL.md", b"\0")
    assert "cannot be read: skills/a/SKILL.md:1: holds NUL bytes" in ws.fails("load_skill", name="a")


# Its files


ESCAPES = [
    "../../etc/x",
    "../../../etc/passwd",
    "/etc/passwd",
    "../b/secret.txt",
    "out",
    "out/x",
    "a/../../b/secret.txt",
]


@pytest.mark.parametrize("name", ESCAPES)
def test_a_file_out_of_the_skills_folder_is_refused_and_not_read(ws: Bench, name: str):
    ws.put("skills/a/SKILL.md", skill("a"))
    ws.put("skills/b/secret.txt", "secret")
    ws.put("skills/a-secret/x", "secret")
    (ws.root / "skills/a/out").symlink_to(ws.root / "skills/b/secret.txt")
    if name == "out/x":
        (ws.root / "skills/a/out").unlink()
        (ws.root / "skills/a/out").symlink_to(ws.root / "skills/b")
    error = ws.fails("load_skill", name="a", file=name)
    assert error == f"{name!r} leads out of the folder of the skill a; only files in it can be loaded."


def test_a_file_of_a_folder_that_only_begins_alike_is_refused(ws: Bench):
    ws.put("skills/a/SKILL.md", skill("a"))
    ws.put("skills/a-secret/x", "secret")
    assert "leads out of the folder" in ws.fails("load_skill", name="a", file="../a-secret/x")


def test_a_way_out_and_in_again_is_a_file_of_the_skill(ws: Bench):
    ws.put("skills/a/SKILL.md", skill("a"))
    ws.put("skills/a/b/x.txt", "inside")
    ws.put("skills/a/y.txt", "inside, too")
    assert ws.call("load_skill", name="a", file="./b/../b/x.txt").text == "inside"
    (ws.root / "skills/a/link").symlink_to("y.txt")
    assert ws.call("load_skill", name="a", file="link").text == "inside, too"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nothing.md", "the skill a has no file 'nothing.md'; it has x.bin."),
        ("..\\..\\x", "has no file"),
        ("~/.ssh/id", "has no file"),
        ("x.bin", "It cannot be shown as text; use bash."),
        ("folder", "is a folder, not a file"),
        ("bad\0name", "leads out of the folder"),
    ],
)
def test_what_is_no_text_file_of_the_skill_is_said_in_one_error(ws: Bench, name: str, told: str):
    ws.put("skills/a/SKILL.md", skill("a"))
    ws.put("skills/a/x.bin", b"\0\1")
    (ws.root / "skills/a/folder").mkdir()
    assert told in ws.fails("load_skill", name="a", file=name)


def test_links_that_lead_out_are_not_listed_and_folders_behind_links_not_walked(ws: Bench):
    ws.put("skills/a/SKILL.md", skill("a"))
    ws.put("other/x.txt", "x")
    for name in ("x.txt", "folder"):
        (ws.root / "skills/a" / name).symlink_to(ws.root / "other" / ("x.txt" if name == "x.txt" else ""))
    assert "Files" not in ws.call("load_skill", name="a").text


def test_a_list_of_files_is_bounded_and_says_so(ws: Bench):
    ws.put("skills/a/SKILL.md", skill("a"))
    for number in range(60):
        ws.put(f"skills/a/f{number:02}.txt", "x")
    line = next(line for line in ws.call("load_skill", name="a").text.split("\n") if line.startswith("Files"))
    assert line.endswith("f48.txt, f49.txt, and more") and line.count(".txt") == 50
