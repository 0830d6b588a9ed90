"""What a record rests on: found in its text, pinned to what the files say, and looked at again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.state.memory.test_store import LATER, NOW, index, note, save
from tinyclaw.state.memory.evidence import Evidence, evidence_in
from tinyclaw.state.memory.store import Memory
from tinyclaw.state.redaction import mask

AUTH = """import jwt

SECRET = "x"


def parse_token(text):
    return jwt.decode(text, SECRET)


def check(token):
    return parse_token(token) is not None
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/auth.py").write_text(AUTH)
    (tmp_path / "Makefile").write_text("test:\n\tpytest\n")
    (tmp_path / "PLAN.md").write_text("plan\n")
    return tmp_path


@pytest.fixture
def memory(root: Path) -> Memory:
    return Memory(root, lambda: NOW, mask)


def places(text: str, root: Path) -> list[str]:
    return [each.place for each in evidence_in(text, root)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tokens are parsed by `parse_token()` in src/auth.py.", ["src/auth.py:6-7"]),
        ("`parse_token` and `check` (src/auth.py) belong together", ["src/auth.py:6-7", "src/auth.py:10-11"]),
        ("see src/auth.py:6-7, please", ["src/auth.py:6-7"]),
        ("see ./src/auth.py:3.", ["src/auth.py:3"]),
        ("all of src/auth.py is old", ["src/auth.py"]),
        ("line src/auth.py:900 is not there, the file is", ["src/auth.py"]),
        ("`SECRET` in src/auth.py is a test's", ["src/auth.py:3"]),
        ("src/gone.py, https://x.org/src/auth.py, me@src/auth.py and a.b are no files here", []),
        ("PLAN.md and .memory/x.md change all the time", []),
        ("../src/auth.py and /etc/hostname lie elsewhere", []),
    ],
)
def test_a_file_that_a_text_names_is_pinned_by_lines_by_names_or_as_a_whole(root: Path, text, expected):
    assert places(text, root) == expected


def test_a_link_out_of_the_workspace_is_no_evidence(root: Path, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "k.py"
    outside.write_text("x\n")
    (root / "k.py").symlink_to(outside)
    assert places("see k.py", root) == []
    assert Evidence("k.py").standing(root) == "missing"


def test_lines_hold_when_they_move_or_are_indented_and_not_when_they_change(root: Path):
    (pinned,) = evidence_in("`parse_token` in src/auth.py", root)
    path = root / "src/auth.py"
    assert pinned.standing(root) == "holds"
    path.write_text("# a new head\n" * 5 + AUTH.replace("\n", "\r\n"), newline="")
    assert pinned.standing(root) == "holds"
    path.write_text(AUTH.replace("def parse_token", "    def parse_token"))
    assert pinned.standing(root) == "holds"
    path.write_text(AUTH.replace("parse_token", "read_token"))
    assert pinned.standing(root) == "changed"
    path.unlink()
    assert pinned.standing(root) == "missing"


def test_a_file_without_a_hash_has_only_to_be_there(root: Path):
    evidence = Evidence.parse("src/auth.py")
    assert evidence == Evidence("src/auth.py") and evidence.standing(root) == "holds"
    (root / "src/auth.py").write_text("")
    assert evidence.standing(root) == "holds"


def test_a_file_too_large_to_be_read_is_not_called_gone(root: Path):
    (pinned,) = evidence_in("see Makefile and src/auth.py", root)[1:]
    with (root / "src/auth.py").open("wb") as file:
        file.truncate(1 << 30)
    assert pinned.standing(root) == "holds"


paths = st.from_regex(r"[a-z][a-z/]{0,8}( b)?\.[a-z]{1,3}", fullmatch=True)


@given(st.builds(Evidence, paths, st.just(0), st.just(0), st.sampled_from(["", "0123456789ab"])))
def test_evidence_reads_back_as_it_was_written(evidence: Evidence):
    assert Evidence.parse(str(evidence)) == evidence
    lines = Evidence(evidence.path, 3, 12, evidence.digest)
    assert Evidence.parse(str(lines)) == lines


def test_a_record_about_code_says_what_it_rests_on(memory: Memory):
    save(memory, note("tokens", "`parse_token` in src/auth.py raises.", type="project"))
    text = (memory.files.path / "tokens.md").read_text()
    assert "\nevidence:\n  - src/auth.py:6-7 " in text
    save(memory, note("wish", "Never touch src/auth.py.", type="feedback"))
    assert "evidence" not in (memory.files.path / "wish.md").read_text()


def test_changed_evidence_marks_a_record_and_missing_evidence_takes_it_out_of_the_index(root: Path, memory: Memory):
    save(memory, note("tokens", "`parse_token` in src/auth.py raises."))
    save(memory, note("build", "One builds with Makefile."))
    memory.index.write()
    assert "verify" not in index(memory) and not memory.index.is_stale()
    (root / "src/auth.py").write_text(AUTH.replace("parse_token", "read_token"))
    assert memory.index.may_be_stale() and memory.index.refresh()
    line = next(line for line in index(memory).splitlines() if "tokens.md" in line)
    assert line == (
        "- [tokens](tokens.md) — `parse_token` in src/auth.py raises. "
        "(verify before use: src/auth.py:6-7 changed since)"
    )
    (root / "Makefile").unlink()
    assert memory.index.refresh()
    assert "build.md" not in index(memory)
    assert "- … and 1 whose evidence is missing, left out; `tinyclaw memory check` lists them" in index(memory)
    assert memory.find("build") is not None and not memory.index.is_stale()
    (root / "Makefile").write_text("test:\n\tpytest\n")
    assert memory.index.refresh() and "build.md" in index(memory)


def test_a_new_process_sees_what_changed_while_none_ran(root: Path, memory: Memory):
    save(memory, note("tokens", "`parse_token` in src/auth.py raises."))
    memory.index.write()
    (root / "src/auth.py").write_text(AUTH.replace("parse_token", "read_token"))
    later = Memory(root, lambda: LATER, mask)
    assert later.index.refresh() and "(verify before use: src/auth.py:6-7 changed since)" in index(later)
    before = (memory.files.path / "MEMORY.md").stat().st_mtime_ns
    assert Memory(root, lambda: LATER, mask).index.refresh() is None
    assert (memory.files.path / "MEMORY.md").stat().st_mtime_ns == before


def test_the_same_note_again_renews_its_evidence_and_reading_does_not(root: Path, memory: Memory):
    tokens = note("tokens", "src/auth.py parses tokens.")
    save(memory, tokens)
    (root / "src/auth.py").write_text("changed\n")
    record = memory.find("tokens")
    assert record is not None and memory.doubts(record) == ("changed", "src/auth.py")
    assert memory.search("tokens", 5).heads[0].updated == record.updated
    again = memory.find("tokens")
    assert again is not None and memory.doubts(again)[0] == "changed"
    assert save(memory, tokens).how == "changed"
    renewed = memory.find("tokens")
    assert renewed is not None and memory.doubts(renewed)[0] == "holds"


def test_evidence_that_a_person_wrote_counts_and_is_kept(root: Path, memory: Memory):
    memory.files.path.mkdir()
    path = memory.files.path / "wish.md"
    path.write_text("---\nname: wish\ntype: feedback\nevidence: [Makefile, src/gone.py]\n---\nUse make.\n")
    record = memory.find("wish")
    assert record is not None and memory.doubts(record) == ("missing", "src/gone.py")
    save(memory, note("wish", "Use make, always.", type="feedback"))
    assert "src/gone.py" in path.read_text() and "Makefile " in path.read_text()


def test_evidence_that_is_no_place_is_said_and_does_no_harm(memory: Memory):
    memory.files.path.mkdir()
    (memory.files.path / "odd.md").write_text("---\nname: odd\ntype: project\nevidence:\n  - {a: b}\n  - ''\n---\nx\n")
    record = memory.find("odd")
    assert record is not None and record.evidence == () and memory.doubts(record)[0] == "holds"
    assert [problem.line for problem in memory.files.faults()] == [4, 4]


def test_the_whole_of_what_a_name_defines_is_pinned(root: Path):
    (root / "src/auth.py").write_text(AUTH.replace("SECRET)", "SECRET, ['HS256'])"))
    (pinned,) = evidence_in("`parse_token` in src/auth.py", root)
    assert pinned.place == "src/auth.py:6-7" and pinned.standing(root) == "holds"
    (root / "src/auth.py").write_text(AUTH.replace("SECRET)", "OTHER)"))
    assert pinned.standing(root) == "changed"
    (root / "a.ts").write_text("export function pay(x) {\n  if (x) {\n    y()\n  }\n}\n\nconst z = 1\n")
    assert places("`pay` in a.ts", root) == ["a.ts:1-5"]


@pytest.mark.parametrize("name", ["a" * 300, "a" * 5_000 + "/b.py", "\udc80.py", "x\0y.py", "src/auth.py/x"])
def test_a_name_that_no_file_can_have_is_missing_and_stops_nothing(memory: Memory, name: str):
    memory.files.path.mkdir()
    (memory.files.path / "odd.md").write_bytes(
        f"---\nname: odd\ntype: project\nevidence:\n  - {name}\n---\nSee {name}.\n".encode("utf-8", "replace")
    )
    memory.index.write()
    record = memory.find("odd")
    assert record is not None and (not record.evidence or memory.doubts(record)[0] == "missing")
    assert save(memory, note("other", f"see {'b' * 300}.py")).how == "new"


def test_long_evidence_is_looked_at_in_a_moment(root: Path, memory: Memory):
    (root / "data.csv").write_text("a,b,c\n" * 20_000)
    long = Evidence.parse("data.csv:1-10000 " + "0" * 12)
    assert long is not None
    began = time.monotonic()
    assert long.standing(root) == "changed"
    memory.files.path.mkdir()
    (memory.files.path / "blank.md").write_text(f"---\nname: x\nevidence:\n  - 'a{' ' * 30_000}b'\n---\nx\n")
    assert memory.find("x") is not None
    assert time.monotonic() - began < 5


def test_a_place_that_is_no_line_is_said(memory: Memory, root: Path):
    memory.files.path.mkdir()
    (memory.files.path / "odd.md").write_text(
        "---\nname: odd\ntype: project\nevidence: src/auth.py:parse_token\n---\nx\n"
    )
    record = memory.find("odd")
    assert record is not None and record.evidence == ()
    assert [str(problem) for problem in memory.files.faults()] == [
        '.memory/odd.md:4: "src/auth.py:parse_token" names no file; write "path", or "path:first-last hash"'
    ]
