"""Skills are found, named and read leniently; what restricts fails closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinyclaw.state.skills import Catalog, Skill, find_skills
from tinyclaw.state.workspace import Workspace


class Place:
    """A workspace entered two folders below its root, with a user level."""

    def __init__(self, folder: Path) -> None:
        self.workspace = Workspace(folder / "project", folder / "project/sub/deep", folder / "user")
        self.workspace.cwd.mkdir(parents=True)
        self.workspace.user_dir.mkdir()

    def write(self, path: str, data: str | bytes) -> Path:
        top = self.workspace.user_dir if path.startswith("~/") else self.workspace.root
        place = top / path.removeprefix("~/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data if isinstance(data, bytes) else data.encode())
        return place

    @property
    def catalog(self) -> Catalog:
        return find_skills(self.workspace, str)

    def only(self) -> Skill:
        (skill,) = self.catalog.skills
        return skill

    @property
    def faults(self) -> list[str]:
        return list(map(str, self.catalog.faults))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def head(**fields: str) -> str:
    return "---\n" + "".join(f"{name.replace('_', '-')}: {value}\n" for name, value in fields.items()) + "---\n"


def skill(name: str, description: str = "does it") -> str:
    return head(name=name, description=description) + f"\nbody of {name}\n"


# Where they are found


def test_skills_of_nearer_folders_come_first_then_the_places_in_their_order_then_the_user_level(place: Place):
    folders = [
        *(f"{base}{at}" for base in ("sub/deep/", "sub/", "") for at in ("skills", ".agents/skills", ".claude/skills")),
        "~/skills",
    ]
    for number, folder in reversed(list(enumerate(folders))):
        place.write(f"{folder}/s{number}/SKILL.md", skill(f"s{number}"))
    assert [each.folder for each in place.catalog.skills] == [f"{at}/s{n}" for n, at in enumerate(folders)]
    assert place.faults == []


def test_skills_of_folders_beside_the_way_are_not_found(place: Place):
    place.write("other/skills/a/SKILL.md", skill("a"))
    place.write("sub/deep/below/skills/a/SKILL.md", skill("a"))
    place.write("skills/group/a/SKILL.md", skill("a"))
    assert place.catalog.skills == ()


def test_of_several_skills_with_one_name_the_nearest_counts_and_both_are_named(place: Place):
    place.write("skills/a/SKILL.md", skill("x", "far"))
    place.write("sub/.claude/skills/x/SKILL.md", skill("x", "near"))
    assert place.catalog.find("x").description == "near"
    message = (
        'skills/a/SKILL.md: is hidden by sub/.claude/skills/x/SKILL.md, which has the same name, "x", and comes first'
    )
    assert f"{message}; give one another name" in place.faults


def test_of_two_skills_with_one_name_in_one_folder_the_first_by_folder_counts_whatever_was_written_first(place: Place):
    for name in ("c", "a", "b"):
        place.write(f"skills/{name}/SKILL.md", skill("x", f"from {name}"))
    assert place.only().description == "from a"
    assert [each.folder for each in place.catalog.hidden] == ["skills/b", "skills/c"]


def test_hidden_folders_and_files_beside_the_skills_are_no_skills(place: Place):
    place.write("skills/.git/SKILL.md", skill("a"))
    place.write("skills/notes.txt", "notes")
    place.write("skills/empty/README.md", "nothing")
    place.write("skills/good/.SKILL.md.swx", "swap")
    place.write("skills/good/SKILL.md", skill("good"))
    assert place.only().name == "good" and place.faults == []


def test_a_skill_file_outside_a_folder_of_its_own_is_no_skill_and_that_is_said(place: Place):
    place.write("skills/SKILL.md", skill("a"))
    place.write("sub/.claude/skills/skill.md", skill("b"))
    place.write("~/skills/SKILL.md", skill("c"))
    assert place.catalog.skills == ()
    said = "is in no folder of its own, so it is no skill; move it to"
    assert place.faults == [
        f"skills/SKILL.md: {said} skills/NAME/SKILL.md",
        f"sub/.claude/skills/skill.md: {said} sub/.claude/skills/NAME/SKILL.md",
        f"~/skills/SKILL.md: {said} ~/skills/NAME/SKILL.md",
    ]


def test_a_file_name_in_lower_case_is_taken_where_there_is_no_other(place: Place):
    place.write("skills/low/skill.md", skill("low"))
    assert place.only().path == "skills/low/skill.md" and place.faults == []
    place.write("skills/low/SKILL.md", skill("low", "in capitals"))
    assert place.only().description == "in capitals"


def test_a_link_out_of_the_workspace_is_not_followed_and_said(place: Place, tmp_path: Path):
    outside = tmp_path / "elsewhere/x"
    outside.mkdir(parents=True)
    (outside / "SKILL.md").write_text(skill("x", "secret words"))
    (place.workspace.root / "skills").mkdir()
    (place.workspace.root / "skills/x").symlink_to(outside)
    assert place.only().problem is not None and "secret" not in repr(place.catalog.skills)
    assert place.faults == ["skills/x/SKILL.md: is a link out of the workspace and is not followed"]


def test_links_that_lead_nowhere_are_said(place: Place):
    place.write("skills/good/SKILL.md", skill("good"))
    (place.workspace.root / "skills/gone").symlink_to("nowhere")
    (place.workspace.root / "skills/a").mkdir()
    (place.workspace.root / "skills/a/SKILL.md").symlink_to("../nowhere")
    (place.workspace.root / "skills/alias").symlink_to("good")
    assert [fault for fault in place.faults if "nowhere" in fault] == [
        "skills/a/SKILL.md: is a link that leads nowhere; mend or delete the link",
        "skills/gone: is a link that leads nowhere; mend or delete the link",
    ]
    assert place.only().name == "good"


# Names


NAMES = {
    "the folder's": ("foo", "name: foo", "foo", ""),
    "another than the folder's": ("foo", "name: bar", "bar", 'is called "bar" and its folder "foo"'),
    "none": ("foo", "license: MIT", "foo", "has no name, so its folder's counts"),
    "empty": ("foo", "name:", "foo", '"name" is empty'),
    "a list": ("foo", "name: [a, b]", "foo", '"name" is a list, not text'),
    "a path": ("foo", 'name: "../evil"', "foo", 'the name "../evil" has other characters than letters'),
    "65 characters": ("foo", f"name: {'a' * 65}", "foo", "has 65 characters, the limit is 64"),
    "64 characters": ("foo", f"name: {'a' * 64}", "a" * 64, "is called"),
    "doubled hyphens and capitals": ("foo", "name: My--Skill", "foo", "is not in lower case"),
    "a hyphen at the end": ("foo", "name: my-", "foo", "begins or ends with a hyphen"),
    "controls": ("foo", 'name: "a\\n# Rules\\u001b"', "foo", "a # Rules␛"),
    "letters of another script": ("技能", "name: 技能", "技能", ""),
    "one that is composed differently": ("cafe\u0301", "name: caf\u00e9", "caf\u00e9", ""),
    "capitals in both": ("Foo", "name: Foo", "Foo", "is not in lower case, so the folder's counts"),
    "typed by YAML": ("no", "name: no", "no", ""),
    "typed by YAML, a number": ("010", "name: 010", "010", ""),
}


@pytest.mark.parametrize("case", NAMES)
def test_the_name_in_the_header_counts_where_it_may_be_one_otherwise_the_folders_and_it_is_said_once(
    place: Place, case: str
):
    folder, line, name, said = NAMES[case]
    place.write(f"skills/{folder}/SKILL.md", f"---\n{line}\ndescription: d\n---\n")
    assert place.only().name == name
    assert place.only().path == f"skills/{folder}/SKILL.md"
    assert len(place.faults) == bool(said) and all(said in fault for fault in place.faults), place.faults
    if said and "no name" not in said:
        assert place.faults[0].startswith(f"skills/{folder}/SKILL.md:2: ")


def test_a_folders_name_never_brings_a_line_break_or_a_control_into_the_name(place: Place):
    place.write("skills/a\n# Rules\x1b/SKILL.md", head(description="d"))
    assert place.only().name == "a # Rules␛"
    assert all("\n" not in fault for fault in place.faults)


def test_a_skill_is_found_by_its_name_in_any_case_and_by_nothing_else(place: Place):
    place.write("skills/pdf-forms/SKILL.md", skill("pdf-forms", "Fills forms."))
    find = place.catalog.find
    assert find("PDF-Forms").name == "pdf-forms"
    assert [find(name) for name in ("skills/pdf-forms", "../pdf-forms", "pdf", "")] == [None] * 4
    assert [each.name for each in place.catalog.near("pdf-form")] == ["pdf-forms"]
    assert [each.name for each in place.catalog.near("fills")] == ["pdf-forms"]


# What is read


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("description: Runs checks: lint, types", "quote the value"),
        ("description: @team rules", "quote the value"),
        ("description: *.py helper", "quote the value"),
        ("description: `x` tool", "quote the value"),
        ("description: fix issue #12 now", "quote the value"),
        ("description: d\nmetadata:\n\tkey: x", "indent it by spaces"),
    ],
)
def test_a_careless_header_costs_no_skill_is_kept_in_full_and_named_once_with_its_line(
    place: Place, line: str, told: str
):
    place.write("skills/bad/SKILL.md", f"---\nname: bad\n{line}\n---\n\nbody\n")
    place.write("skills/good/SKILL.md", skill("good"))
    bad, good = place.catalog.skills
    assert (good.name, bad.name, bad.body) == ("good", "bad", "body")
    assert bad.description == line.partition("\n")[0].removeprefix("description: ")
    assert len(place.faults) == 1 and told in place.faults[0]
    assert place.faults[0].startswith(f"skills/bad/SKILL.md:{3 + line.count(chr(10))}: ")


@pytest.mark.parametrize("start", ["", "\ufeff", "\n", "\ufeff\n"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_marks_and_line_ends_of_other_systems_change_nothing(place: Place, start: str, newline: str):
    text = start + head(name="a", description="d", allowed_tools="Read") + "\nfirst\nsecond\n"
    place.write("skills/a/SKILL.md", text.replace("\n", newline))
    found = place.only()
    assert (found.name, found.description, found.body, found.allowed) == ("a", "d", "first\nsecond", ("Read",))
    assert place.faults == [] and "\ufeff" not in found.body


def test_rules_in_the_body_and_dashes_in_a_value_end_no_header(place: Place):
    header = 'name: a\ndescription: "a --- b"\nmetadata:\n  note: |\n    one\n    ---\n    two\n'
    place.write("skills/a/SKILL.md", f"---\n{header}---\none\n---\ntwo\n---\nthree")
    assert (place.only().description, place.only().body) == ("a --- b", "one\n---\ntwo\n---\nthree")


@pytest.mark.parametrize("fence", ["...", "--- ", "---\t"])
def test_a_header_may_end_in_other_ways(place: Place, fence: str):
    place.write("skills/a/SKILL.md", f"---\nname: a\ndescription: d\n{fence}\nbody\n")
    assert (place.only().name, place.only().description, place.only().body) == ("a", "d", "body")


def test_a_header_that_is_never_closed_is_body_and_said_and_stays_as_it_is(place: Place):
    text = "---\nname: a\ndescription: d\n"
    path = place.write("skills/a/SKILL.md", text)
    assert place.only().body == text.strip("\n") and place.only().name == "a"
    assert len(place.faults) == 1 and "SKILL.md:1: the frontmatter is never closed" in place.faults[0]
    assert path.read_text() == text


def test_a_file_without_a_header_is_body_and_said_once(place: Place):
    place.write("skills/a/SKILL.md", "just text\n")
    assert (place.only().name, place.only().body, place.only().allowed) == ("a", "just text", None)
    assert len(place.faults) == 1 and place.faults[0].startswith("skills/a/SKILL.md:1: has no frontmatter; begin")


@pytest.mark.parametrize("data", [b"---\nname: \0\n---\n", b"\0" * 100])
def test_what_is_no_text_is_named_and_cannot_be_used(place: Place, data: bytes):
    place.write("skills/a/SKILL.md", data)
    assert place.only().problem is not None and place.only().allowed == ()
    assert len(place.faults) == 1


# What is allowed


ALLOWED = {
    "blanks between": ("allowed-tools: Read Grep", ("Read", "Grep")),
    "commas between": ("allowed-tools: Read,Grep, Glob", ("Read", "Grep", "Glob")),
    "blanks within": ("allowed-tools: Bash(git add:*) Bash(jq:*) Read", ("Bash(git add:*)", "Bash(jq:*)", "Read")),
    "a list": ("allowed-tools: [Read, 'Bash(git:*)']", ("Read", "Bash(git:*)")),
    "lines": ("allowed-tools:\n  - Read\n  - Grep Glob", ("Read", "Grep", "Glob")),
    "quoted": ('allowed-tools: "Read Grep"', ("Read", "Grep")),
    "another spelling": ("Allowed_Tools: Read", ("Read",)),
    "a third": ("allowedTools: Read", ("Read",)),
    "an escape": ('"allowed\\x2dtools": Read', ("Read",)),
    "a question": ("? allowed-tools\n: Read", ("Read",)),
    "a word of its own": ("license: allowed-tools are free", None),
    "none": ("license: MIT", None),
    "in the metadata": ("metadata:\n  allowed-tools: Read", None),
}


PROSE = {
    "a description": "description: Says what allowed-tools are, and how allowed_tools differ.",
    "a description in lines": "description: >\n  Says what allowed-tools\n  mean, and allowed\n  tools, too.",
    "a description with a line break": "description: |\n  Allowed\n  tools are\n\n  allowed-tools: none.",
    "a description in quotes": 'description: "Says: allowed-tools: are, as allowed\\x2dtools."',
    "a description that broke": "description: when: somebody asks for allowed-tools",
    "a comment": "description: d\n# allowed-tools: Read\n  # allowed-tools",
    "another word": "description: d\ndisallowed-tools: Bash\nallowed-toolset: x",
    "the metadata": "description: d\nmetadata: {a: [allowed-tools], allowed-tools: x}",
}


@pytest.mark.parametrize("case", PROSE)
def test_what_only_speaks_of_allowed_tools_restricts_nothing(place: Place, case: str):
    place.write("skills/a/SKILL.md", f"---\nname: a\n{PROSE[case]}\n---\nallowed-tools: in the body\n")
    assert place.only().allowed is None
    place.write("skills/a/SKILL.md", f"---\nname: a\n{PROSE[case]}\nallowed-tools: Read\n---\n")
    assert place.only().allowed == ("Read",)


DISGUISED = {
    "an anchor": "&k allowed-tools: Read",
    "a tag": "!!str allowed-tools: Read",
    "an anchor in quotes": '&k "allowed-tools": Read',
    "an alias": "x: &k allowed-tools\n*k : Read",
    "a merge": "<<: {allowed-tools: Read}",
    "a merge of an anchor": "base: &b\n  allowed-tools: Read\n<<: *b",
    "an escape": '"allowed\\x2dtools": Read\n- x',
    "longer escapes": '"\\u0061llowed\\U0000002dtools": Read\n- x',
    "a broken line": '? "allowed-\\\n  tools": Read\n- x',
    "a question": "? allowed-tools\n- x\n: Read",
    "braces among lines": '{name: x, "allowed-tools": Read}',
    "once more, with an anchor": "allowed-tools: Read Bash\n&k allowed-tools: Read",
    "once more, in braces": 'allowed-tools: Read Bash\n{"allowed-tools": Read}',
}


@pytest.mark.parametrize("end", ["---\nbody\n", "\nand no end\n"], ids=["closed", "open"])
@pytest.mark.parametrize("case", DISGUISED)
def test_allowed_tools_in_disguise_allow_nothing_and_it_is_said(place: Place, case: str, end: str):
    place.write("skills/a/SKILL.md", f"---\nname: a\ndescription: d\n{DISGUISED[case]}\n{end}")
    assert place.only().allowed == ()
    assert any("allowed-tools cannot be understood" in fault for fault in place.faults), place.faults


@pytest.mark.parametrize(
    "text", ["Set allowed-tools in its head.\n", "Use `allowed-tools: Read`.\n", "Oh! allowed-tools & allowed-tools\n"]
)
def test_a_text_without_a_head_that_speaks_of_allowed_tools_restricts_nothing(place: Place, text: str):
    place.write("skills/a/SKILL.md", text)
    assert place.only().allowed is None


@pytest.mark.parametrize("case", ALLOWED)
def test_allowed_tools_are_read_in_every_form_that_is_in_use(place: Place, case: str):
    line, allowed = ALLOWED[case]
    place.write("skills/a/SKILL.md", f"---\nname: a\ndescription: d\n{line}\n---\nallowed-tools: in the body\n")
    assert place.only().allowed == allowed and place.faults == []


UNCLEAR = {
    "empty": "allowed-tools:",
    "a mapping": "allowed-tools:\n  read: yes",
    "lists in a list": "allowed-tools: [[Read]]",
    "a blank before the bracket": "allowed-tools: Bash (git:*)",
    "a bracket that is not closed": "allowed-tools: Read Bash(git:*",
    "brackets in brackets": "allowed-tools: Bash(git (x):*)",
    "twice": "allowed-tools: Read\nallowed-tools: Bash",
    "in two spellings": "allowed-tools: Read\nallowed_tools: Bash",
    "swallowed by the line before": "license: MIT: x\n  allowed-tools: Read",
    "without its colon": "allowed-tools Read",
    "never closed": "allowed-tools: Read\n\nno fence",
    "an alias": "allowed-tools: *",
}


@pytest.mark.parametrize("case", UNCLEAR)
def test_allowed_tools_that_cannot_be_understood_allow_nothing_and_it_is_said(place: Place, case: str):
    end = "" if case == "never closed" else "---\n"
    place.write("skills/a/SKILL.md", f"---\nname: a\ndescription: d\n{UNCLEAR[case]}\n{end}body\n")
    allowed = place.only().allowed
    assert allowed == () or (case == "an alias" and allowed == ("*",))
    assert any("allowed-tools" in fault and ":4: " in fault for fault in place.faults) or case in (
        "swallowed by the line before",
        "without its colon",
        "never closed",
    )
    assert any("allowed-tools" in fault for fault in place.faults), place.faults


def test_a_file_that_lost_its_first_fence_restricts_all_the_same(place: Place):
    place.write("skills/a/SKILL.md", "name: a\ndescription: d\nallowed-tools: Read\n---\nbody\n")
    assert place.only().allowed == ()
