"""The strict check of skills agrees with the reference validator of the Agent Skills spec, which is the oracle here."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from skills_ref.validator import validate as reference

from tinyclaw.state.skill_check import validate, validate_all
from tinyclaw.state.workspace import Workspace

GOOD = {
    "the least": "name: a\ndescription: d",
    "the spec's example": (
        "name: a\ndescription: Extract text from PDFs. Use when working with PDF documents.\nlicense: Apache-2.0\n"
        'metadata:\n  author: example-org\n  version: "1.0"'
    ),
    "all fields": (
        "name: a\ndescription: d\nlicense: MIT\ncompatibility: Requires git\nallowed-tools: Bash(git:*) Read\n"
        "metadata:\n  author: me"
    ),
    "a long description": f"name: a\ndescription: {'d' * 1024}",
    "a long compatibility": f"name: a\ndescription: d\ncompatibility: {'d' * 500}",
    "a hash in a word": "name: a\ndescription: fix issue #12 now",
    "a comment": "# head\nname: a\ndescription: d # comment",
    "allowed tools as a list": "name: a\ndescription: d\nallowed-tools:\n  - Read\n  - Bash(git:*)",
    "a list at the margin": "name: a\ndescription: d\nallowed-tools:\n- Read",
    "deep metadata": "name: a\ndescription: d\nmetadata:\n    x:\n      y: z",
    "a value in two lines": "name: a\ndescription: d\n  more",
    "a block of text": "name: a\ndescription: |\n  one\n\n  two",
    "a folded text": "name: a\ndescription: >-\n  one\n  two",
    "quoted keys": "\"name\": a\n'description': d",
    "an explicit key": "? name\n: a\ndescription: d",
    "indented as a whole": "  name: a\n  description: d",
    "what YAML would type": "name: a\ndescription: yes\nlicense: 1.10\ncompatibility: 2024-02-30",
    "null": "name: a\ndescription: ~",
    "an emoji": "name: a\ndescription: \U0001f600",
    "line breaks of another YAML": "name: a\ndescription: d\u2028e\x85f",
    "escapes": 'name: a\ndescription: "\\u00e9 \\x41"',
    "the end of a document": "name: a\ndescription: d\n...",
    "metadata that is text": "name: a\ndescription: d\nmetadata: x",
    "a license that is a list": "name: a\ndescription: d\nlicense:\n  - MIT",
    "dashes in a plain value": "name: a\ndescription: a --- b",
    "blanks around the name": 'name: " a "\ndescription: d',
    "a blank line": "name: a\n\ndescription: d",
}
BAD = {
    "nothing": ("", "fields"),
    "a comment alone": ("# x", "fields"),
    "a list": ("- a\n- b", "fields"),
    "a text": ("just text", "fields"),
    "no name": ("description: d", '"name" is missing'),
    "no description": ("name: a", '"description" is missing'),
    "an empty name": ("name:\ndescription: d", '"name" is empty'),
    "a blank name": ('name: "  "\ndescription: d', '"name" is empty'),
    "an empty description": ("name: a\ndescription:", '"description" is empty'),
    "a blank description": ('name: a\ndescription: "  "', '"description" is empty'),
    "a name that is a list": ("name:\n  - a\ndescription: d", '"name" is empty or not text'),
    "a description that is a mapping": ("name: a\ndescription:\n  x: y", '"description" is empty or not text'),
    "a description that is too long": (f"name: a\ndescription: {'d' * 1025}", "1,025 characters, the limit is 1,024"),
    "a compatibility that is too long": (f"name: a\ndescription: d\ncompatibility: {'d' * 501}", "limit is 500"),
    "a compatibility that is a list": ("name: a\ndescription: d\ncompatibility:\n  - x", '"compatibility" is not text'),
    "an unknown field": ("name: a\ndescription: d\nversion: 1", '"version" is no field'),
    "a field in capitals": ("Name: a\ndescription: d", '"Name" is no field'),
    "a colon and a blank": ("name: a\ndescription: Runs checks: lint", "no valid YAML"),
    "an at sign": ("name: a\ndescription: @team", "no valid YAML"),
    "a star": ("name: a\ndescription: *.py helper", "no valid YAML"),
    "a backtick": ("name: a\ndescription: `x` tool", "no valid YAML"),
    "a percent sign": ("name: a\ndescription: %x", "no valid YAML"),
    "a question mark": ("name: a\ndescription: ? what", "no valid YAML"),
    "a dash": ("name: a\ndescription: - what", "no valid YAML"),
    "a tab": ("name: a\ndescription: d\nmetadata:\n\tx: y", "no valid YAML"),
    "a tab behind the colon": ("name:\ta\ndescription: d", "no valid YAML"),
    "an unclosed quote": ('name: a\ndescription: "d', "no valid YAML"),
    "an unknown escape": ('name: a\ndescription: "\\q"', "no valid YAML"),
    "a wrong indent": ("name: a\n description: d", "no valid YAML"),
    "a list in brackets": ("name: a\ndescription: d\nallowed-tools: [Read]", "brackets"),
    "a mapping in braces": ("{name: a, description: d}", "brackets"),
    "empty braces": ("name: a\ndescription: d\nmetadata: {}", "brackets"),
    "an anchor": ("name: &x a\ndescription: d", "anchor"),
    "an alias": ("name: &x a\ndescription: *x", "alias"),
    "a tag": ("name: !!str a\ndescription: d", "tag"),
    "a field twice": ("name: a\nname: a\ndescription: d", '"name" stands here again'),
    "a key twice in the metadata": ("name: a\ndescription: d\nmetadata:\n  x: 1\n  x: 2", '"x" stands here again'),
    "uneven indents": ("name: a\ndescription: d\nmetadata:\n  x:\n    y: 1\n  z:\n      w: 2", "another width"),
    "two documents": ("name: a\n...\ndescription: d", "no valid YAML"),
    "a control character": ("name: a\ndescription: d\x07", "U+0007"),
    "dashes in a quoted value": ('name: a\ndescription: "a --- b"', "--- in the middle of a line"),
    "a merge": ("name: a\ndescription: d\n<<: x", "no plain name"),
}
FRAMES = {
    "no fence": ("name: a\ndescription: d\n", "has no frontmatter"),
    "an unclosed one": ("---\nname: a\ndescription: d\n", "never closed"),
    "a mark before it": ("\ufeff---\nname: a\ndescription: d\n---\n", "byte order mark"),
    "a blank line before it": ("\n---\nname: a\ndescription: d\n---\n", "blank lines"),
    "an empty file": ("", "has no frontmatter"),
    "other line ends": ("---\r\nname: a\r\ndescription: d\r\n---\r\n", ""),
    "old line ends": ("---\rname: a\rdescription: d\r---\r", ""),
    "blanks behind it": ("---  \nname: a\ndescription: d\n---  \nbody\n", ""),
    "a rule in the body": ("---\nname: a\ndescription: d\n---\none\n---\ntwo\n", ""),
    "no line end": ("---\nname: a\ndescription: d\n---", ""),
}
NAMES = {
    "letters, digits and hyphens": ("pdf-2-text", ""),
    "64 characters": ("a" * 64, ""),
    "65 characters": ("a" * 65, "has 65 characters"),
    "capitals": ("Pdf", "not in lower case"),
    "doubled hyphens": ("my--skill", "two hyphens"),
    "a hyphen first": ("-a", "begins or ends with a hyphen"),
    "a hyphen last": ("a-", "begins or ends with a hyphen"),
    "an underscore": ("my_skill", "other characters"),
    "a dot": ("a.b", "other characters"),
    "a blank": ("my skill", "other characters"),
    "another script": ("技能", ""),
    "accents": ("caf\u00e9", ""),
    "accents as marks": ("cafe\u0301", ""),
    "letters that are digits": ("a²", ""),
    "a capital of another script": ("Ж", "not in lower case"),
    "what lowers to two": ("İx", "not in lower case"),
    "a ligature": ("ﬁx", ""),
    "a number": ("010", ""),
}


def refused(folder: Path) -> list[str]:
    """What the reference says; it fails itself on some broken files."""
    try:
        return reference(folder)
    except (AttributeError, UnicodeDecodeError, IsADirectoryError) as error:
        return [repr(error)]


def made(folder: Path, text: str | bytes, name: str = "a") -> Path:
    skill = folder / name
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_bytes(text if isinstance(text, bytes) else text.encode())
    return skill


def told(skill: Path) -> list[str]:
    return list(map(str, validate(skill, skill.name).faults))


@pytest.mark.parametrize("case", GOOD)
def test_what_the_reference_takes_is_taken(tmp_path: Path, case: str):
    skill = made(tmp_path, f"---\n{GOOD[case]}\n---\n\nbody\n")
    assert refused(skill) == [] and told(skill) == []


@pytest.mark.parametrize("case", BAD)
def test_what_the_reference_refuses_is_refused_for_the_same_reason_with_a_line_and_a_mend(tmp_path: Path, case: str):
    block, reason = BAD[case]
    skill = made(tmp_path, f"---\n{block}\n---\n\nbody\n")
    assert refused(skill) != []
    assert any(reason in fault for fault in told(skill)), told(skill)
    assert all(fault.startswith("a/SKILL.md:") and "; " in fault for fault in told(skill))


@pytest.mark.parametrize("case", FRAMES)
def test_the_block_begins_and_ends_as_in_the_reference(tmp_path: Path, case: str):
    text, reason = FRAMES[case]
    skill = made(tmp_path, text)
    assert bool(refused(skill)) == bool(reason)
    assert len(told(skill)) == bool(reason) and all(reason in fault for fault in told(skill))


@pytest.mark.parametrize("case", NAMES)
def test_names_follow_the_reference(tmp_path: Path, case: str):
    name, reason = NAMES[case]
    skill = made(tmp_path, f'---\nname: "{name}"\ndescription: d\n---\n', name)
    assert bool(refused(skill)) == bool(reason)
    assert any(reason in fault for fault in told(skill)) or not reason
    assert len(told(skill)) == len(refused(skill))


def test_the_corpus_is_large_enough():
    assert len(GOOD) + len(BAD) + len(FRAMES) + len(NAMES) >= 60


@pytest.mark.parametrize("levels", [45, 55, 600])
@pytest.mark.parametrize("form", ["lines", "braces", "items"])
def test_what_is_nested_too_deeply_is_refused_and_the_others_are_checked(tmp_path: Path, levels: int, form: str):
    deep = {
        "lines": "\n".join(f"{' ' * level}a:" for level in range(1, levels)),
        "braces": f"  {'{a: ' * levels}{'}' * levels}",
        "items": f"  {'- ' * levels}a",
    }[form]
    for name, more in (("deep", f"metadata:\n{deep}\n"), ("well", "")):
        folder = tmp_path / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: d\n{more}---\nbody\n")
    deep_verdict, well = validate_all(Workspace(tmp_path, tmp_path, tmp_path / "user"))
    told = [fault.message for fault in deep_verdict.faults]
    assert told.count("is nested too deeply") == (levels > 50), told
    assert well.faults == ()


def test_a_name_that_is_not_the_folders_is_refused(tmp_path: Path):
    skill = made(tmp_path, "---\nname: b\ndescription: d\n---\n")
    assert len(refused(skill)) == 1
    assert told(skill) == ['a/SKILL.md:2: is called "b" and its folder "a"; give both the same name']


def test_every_fault_is_told_and_not_only_the_first(tmp_path: Path):
    skill = made(tmp_path, "---\nname: -B--\nversion: 1\nlicence: MIT\n---\n")
    assert len(told(skill)) == len(refused(skill)) + 1, "the reference names the unknown fields in one"


def test_a_folder_without_a_skill_file_and_what_is_no_folder_are_refused(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "inside/SKILL.md").mkdir(parents=True)
    for name, reason in {
        "empty": "has no SKILL.md",
        "file": "is no folder",
        "gone": "is not there",
        "dangling": "is no folder",
        "inside": "is a folder, not a file",
    }.items():
        assert refused(tmp_path / name) != []
        assert reason in told(tmp_path / name)[0]


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path):
    skill = made(tmp_path, b"---\nname: a\ndescription: \xff\n---\n")
    assert refused(skill) != [] and told(skill)[0].startswith("a/SKILL.md:3: byte ff is not UTF-8")


def test_a_file_name_in_lower_case_is_taken_where_there_is_no_other(tmp_path: Path):
    skill = made(tmp_path, "---\nname: a\ndescription: d\n---\n")
    (skill / "SKILL.md").rename(skill / "skill.md")
    assert refused(skill) == told(skill) == []


def test_what_is_right_but_reads_otherwise_elsewhere_is_noted(tmp_path: Path):
    skill = made(tmp_path, "---\nname: a\nlicense: see #12\ndescription: a --- b\n---\n")
    faults, notes, _ = validate(skill, "a")
    assert faults == () and [str(note).partition(": ")[0] for note in notes] == ["a/SKILL.md:4", "a/SKILL.md:3"]


def test_all_skills_are_checked_and_no_link_out_is_followed(tmp_path: Path):
    workspace = Workspace(tmp_path / "ws", tmp_path / "ws/sub", tmp_path / "user")
    made(workspace.root / "skills", "---\nname: x\n---\n")
    made(workspace.cwd / ".agents/skills", "---\nname: a\ndescription: d\n---\n")
    made(workspace.user_dir / "skills", "none", "b")
    secret = made(tmp_path / "out", "secret", "c")
    (workspace.root / "skills/link").symlink_to(secret)
    (workspace.root / "skills/.hidden").mkdir()
    faults = [str(fault) for verdict in validate_all(workspace) for fault in verdict.faults]
    assert [fault.partition(": ")[0] for fault in faults] == [
        "skills/a/SKILL.md:1",
        "skills/a/SKILL.md:2",
        "skills/link/SKILL.md",
        "~/skills/b/SKILL.md:1",
    ]
    assert "is a link out of the workspace and is not followed" in faults[2]


letters = st.one_of(st.sampled_from("abzAZ019-_. #:'\"\\é²ßﬁÅ技İ\u0301\u00a0"), st.characters(codec="utf-8"))
PARTS = (
    "name",
    "description",
    "license",
    "metadata",
    "a",
    "d",
    "é",
    ": ",
    ":",
    "- ",
    "?",
    "\n",
    "\n  ",
    "  ",
    "\t",
    ",",
)
SIGNS = ("#", " #", "'", '"', "[", "]", "{", "}", "&x", "*x", "!t", "|", ">", "---", "...", "%", "@", "`", "\\", "<<")
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)


@PATIENT
@given(name=st.text(letters, max_size=70), folder=st.booleans())
def test_any_name_has_the_references_verdict(tmp_path_factory: pytest.TempPathFactory, name: str, folder: bool):
    is_possible = folder and 0 < len(name.encode()) < 200 and not set(name) & set("/\0") and name not in (".", "..")
    escaped = "".join(f"\\U{ord(char):08x}" for char in name)
    text = f'---\nname: "{escaped}"\ndescription: d\n---\n'
    skill = made(tmp_path_factory.mktemp("names"), text, name if is_possible else "a")
    assert len(told(skill)) == len(refused(skill)), (told(skill), refused(skill))


@PATIENT
@given(parts=st.lists(st.sampled_from(PARTS + SIGNS), max_size=25))
def test_any_header_has_the_references_verdict(tmp_path_factory: pytest.TempPathFactory, parts: list[str]):
    skill = made(tmp_path_factory.mktemp("heads"), f"---\nname: a\ndescription: d{''.join(parts)}\n---\nbody\n")
    assert bool(told(skill)) == bool(refused(skill)), (told(skill), refused(skill))
