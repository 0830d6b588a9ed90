"""What the check of the memory finds, and the mend that it gives."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from tests.state.memory.test_store import NOW, note, save
from tinyclaw.state.memory.check import check, used_slugs
from tinyclaw.state.memory.duplicates import contradictions, near_duplicates
from tinyclaw.state.memory.store import Memory
from tinyclaw.state.redaction import mask

TODAY = datetime(2026, 11, 30, 12, tzinfo=UTC)


def memory_in(root: Path) -> Memory:
    return Memory(root, lambda: NOW, mask)


def found(memory: Memory, root: Path) -> list[str]:
    return [str(problem) for problem in check(memory, root / ".transcripts", TODAY)]


def write(memory: Memory, slug: str, name: str, text: str, updated: str = NOW, kind: str = "project") -> None:
    memory.files.path.mkdir(exist_ok=True)
    head = f"name: {name}\ntype: {kind}\nupdated: {updated}"
    (memory.files.path / f"{slug}.md").write_text(f"---\n{head}\n---\n\n{text}\n")


def test_a_memory_that_is_well_has_nothing_to_do(tmp_path: Path):
    memory = memory_in(tmp_path)
    assert found(memory, tmp_path) == []
    save(memory, note("docs", "They are in the wiki, under Handbook."))
    save(memory, note("release", "On Mondays, by Anna."))
    assert found(memory, tmp_path) == []


def test_every_kind_of_fault_is_named_with_its_mend(tmp_path: Path):
    memory = memory_in(tmp_path)
    (tmp_path / "auth.py").write_text("def parse_token():\n    pass\n")
    (tmp_path / "old.py").write_text("x\n")
    save(memory, note("tokens", "`parse_token` in auth.py is slow."))
    save(memory, note("history", "See old.py for what it was."))
    (tmp_path / "auth.py").write_text("def read_token():\n    pass\n")
    (tmp_path / "old.py").unlink()
    write(memory, "broken", "Broken", "x", kind="rule")
    write(memory, "a1", "Deploy", "The deploy job runs every Monday at noon in the main cluster.")
    write(memory, "a2", "Deploys", "The deploy job runs every Monday at noon in the main cluster, always.")
    write(memory, "b1", "Owner of the parser module", "Anna Berg owns it.")
    write(memory, "b2", "Owner of parser module", "It belongs to the platform group since May.")
    write(memory, "dusty", "Dusty", "Nobody asks for this.", updated="2026-06-01T00:00:00Z")
    assert found(memory, tmp_path) == [
        '.memory/broken.md:3: "rule" is no type; use user, feedback, project or reference',
        ".memory/history.md: is out of the index: old.py is gone; correct its evidence: lines, or: tinyclaw memory "
        "forget history",
        ".memory/tokens.md: is stale: auth.py:1-2 changed since; if it still holds: tinyclaw memory verify tokens; "
        "else correct it or forget it",
        ".memory/a2.md: says nearly the same as .memory/a1.md; tinyclaw memory consolidate, or: tinyclaw memory forget "
        "a2",
        ".memory/b2.md: says something else than .memory/b1.md under nearly the same name; see which one holds, and "
        "forget or correct the other",
        ".memory/dusty.md: was read in no session and is 182 days old; if nobody needs it: tinyclaw memory forget "
        "dusty",
    ]


def test_what_a_session_has_read_is_used(tmp_path: Path):
    folder = tmp_path / ".transcripts"
    folder.mkdir()
    (folder / "a.md").write_text(
        '### result of recall <!-- tc:tool_result {"m":3,"id":"t","revisions":{".memory/dusty.md":"ab"}} -->\n'
        '### (memory) <!-- tc:state {"m":1,"revisions":{".memory/told.md":"ab",".memory/two.md":"c"}} -->\n'
        '### result of remember <!-- tc:tool_result {"m":3,"id":"u","revisions":{".memory/made.md":"ab"}} -->\n'
    )
    assert used_slugs(folder) == {"dusty", "told", "two"}
    memory = memory_in(tmp_path)
    write(memory, "dusty", "Dusty", "Nobody asks for this.", updated="2026-06-01T00:00:00Z")
    assert found(memory, tmp_path) == []


def test_records_of_two_types_are_no_duplicates_and_many_stay_quick(tmp_path: Path):
    memory = memory_in(tmp_path)
    write(memory, "a", "Deploy", "The deploy job runs every Monday.", kind="user")
    write(memory, "b", "Deploy 2", "The deploy job runs every Monday.", kind="project")
    records = list(memory.records())
    assert near_duplicates(records) == [] and contradictions(records) == []


def test_three_that_say_the_same_are_one_group(tmp_path: Path):
    memory = memory_in(tmp_path)
    for number in "abc":
        write(memory, number, f"Deploy {number}", f"The deploy job runs every Monday at noon, {number}.")
    write(memory, "z", "Other", "Something else altogether.")
    assert [[record.slug for record in group] for group in near_duplicates(list(memory.records()))] == [["a", "b", "c"]]


def test_a_record_that_was_verified_is_fresh_again(tmp_path: Path):
    memory = memory_in(tmp_path)
    (tmp_path / "auth.py").write_text("def parse_token():\n    pass\n")
    save(memory, note("tokens", "`parse_token` in auth.py is slow."))
    (tmp_path / "auth.py").write_text("def read_token():\n    pass\n")
    record = memory.find("tokens")
    assert record is not None and len(found(memory, tmp_path)) == 1
    before = (memory.files.path / "tokens.md").read_text()
    assert memory.renew(record) and found(memory, tmp_path) == []
    after = (memory.files.path / "tokens.md").read_text()
    changed = [line for line in after.splitlines() if line not in before.splitlines()]
    assert len(changed) == 1 and changed[0].startswith("  - auth.py:1-2 ")
