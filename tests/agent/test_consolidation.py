"""Many new records are looked through: what is proposed waits for the person, and nothing that goes is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.small import asked, texts, two_models
from tests.messages_api import fault, reply
from tinyclaw.agent.consolidation import THRESHOLD
from tinyclaw.agent.events import Notice
from tinyclaw.state.memory import proposal

ON = {"memory_consolidate": "propose", "memory_select": "off"}
WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
SLUGS = [f"tabs-in-go-{word}" for word in WORDS]
MERGE = f"""## merge: {", ".join(SLUGS)}
name: Tabs in Go
type: feedback
why: they say the same

Tabs in all Go files; the linter insists."""


@pytest.fixture
def memory(root: Path) -> Path:
    """Twelve records that say nearly the same, and one that does not."""
    folder = root / ".memory"
    folder.mkdir()
    for slug, word in zip(SLUGS, WORDS, strict=True):
        head = f"name: Tabs in Go {word}\ntype: feedback\ncreated: 2026-11-29T09:00:00Z"
        (folder / f"{slug}.md").write_text(f"---\n{head}\n---\n\nTabs in all Go files, said number {word}.\n")
    (folder / "wiki.md").write_text("---\nname: Docs\ntype: reference\ncreated: 2026-11-29T09:00:00Z\n---\nThe wiki.\n")
    return folder


def notices(events) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice)]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.md"))


def kept(folder: Path) -> str:
    return "\n".join(path.read_text() for path in sorted((folder / ".archive").glob("*.md")))


def test_near_duplicates_are_proposed_and_merged_when_the_person_accepts(api, start, turn, memory):
    server = api(two_models(["Done.", "Done."], [MERGE]))
    session = start(server, **ON)
    before = {name: (memory / name).read_bytes() for name in names(memory)}
    events = turn(session, "Hello")
    assert (
        ".memory/PROPOSAL.md proposes 1 change to the memory; look at it, then: tinyclaw memory accept (or reject)"
        in (notices(events))
    )
    question = texts(asked(server, small=True)[0])
    assert all(f"### {slug}\n" in question for slug in (*SLUGS, "wiki"))
    assert {name: (memory / name).read_bytes() for name in before if name != "MEMORY.md"} == {
        name: data for name, data in before.items() if name != "MEMORY.md"
    }
    assert notices(turn(session, "Again")) == [] and len(asked(server, small=True)) == 1
    assert start(server, **ON).notices == [".memory/PROPOSAL.md waits for you: tinyclaw memory accept, or reject"]
    (outcome,) = list(proposal.accept(session.memory))
    assert outcome.is_done and outcome.text.startswith("merged tabs-in-go-one, ")
    assert names(memory) == ["MEMORY.md", "tabs-in-go.md", "wiki.md"]
    assert (memory / "tabs-in-go.md").read_text().endswith("\nTabs in all Go files; the linter insists.\n")
    assert all(f"said number {word}." in kept(memory) for word in WORDS)


def test_where_it_is_set_so_the_changes_are_made_at_once_and_told(api, start, turn, memory):
    server = api(two_models(["Done.", "Done."], [MERGE]))
    session = start(server, **{**ON, "memory_consolidate": "auto"})
    events = turn(session, "Hello")
    assert [text[:40] for text in notices(events)] == ["memory: merged tabs-in-go-one, tabs-in-g"]
    assert names(memory) == ["MEMORY.md", "tabs-in-go.md", "wiki.md"]
    index = (memory / "MEMORY.md").read_text()
    assert index.count("](") == 2 and "[Tabs in Go](tabs-in-go.md)" in index
    assert all(f"said number {word}." in kept(memory) for word in WORDS)
    turn(session, "Again")
    assert len(asked(server, small=True)) == 1


def test_nothing_to_change_is_asked_once_until_there_are_as_many_new_ones(api, start, turn, memory):
    server = api(two_models(["Done."] * 3, ["NONE", "NONE"]))
    session = start(server, **ON)
    turn(session, "Hello")
    turn(session, "Again")
    assert len(asked(server, small=True)) == 1 and not proposal.is_waiting(session.memory)
    for number in range(THRESHOLD):
        head = f"name: new {number}\ntype: project\ncreated: 2026-11-30T12:00:01Z"
        (memory / f"new-{number}.md").write_text(f"---\n{head}\n---\nWhat {number} is.\n")
    turn(session, "More")
    assert len(asked(server, small=True)) == 2


@pytest.mark.parametrize(
    "settings", [{"memory_consolidate": "off"}, {"permission_mode": "read-only"}, {"mode": "plan"}]
)
def test_nothing_is_looked_through_where_that_is_turned_off(api, start, turn, memory, settings):
    server = api(two_models(["Done."], []))
    turn(start(server, **{**ON, **settings}), "Hello")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I would merge them all.",
        "## merge: tabs-in-go-one\nname: x\ntype: feedback\n\ny",
        "## merge: ../../AGENTS, tabs-in-go-one\nname: x\ntype: feedback\n\ny",
        "## merge: tabs-in-go-one, nobody\nname: x\ntype: feedback\n\ny",
        "## merge: tabs-in-go-one, tabs-in-go-two\nname: x\ntype: rule\n\ny",
        "## merge: tabs-in-go-one, tabs-in-go-two\nname: x\ntype: feedback\n",
        "## merge: tabs-in-go-one, tabs-in-go-two\nname: x\ntype: feedback\n\nkey [masked:token]",
        "## drop:",
        reply(MERGE, stop_reason="max_tokens"),
        fault(500, "no"),
    ],
)
def test_an_answer_that_cannot_be_understood_changes_nothing(api, start, turn, memory, answer):
    before = {name: (memory / name).read_bytes() for name in names(memory)}
    server = api(two_models(["Done."], [answer, answer]), refusals=True)
    events = turn(start(server, **{**ON, "memory_consolidate": "auto"}), "Hello")
    assert events[-1].reason == "done"
    after = {name: (memory / name).read_bytes() for name in names(memory) if name != "MEMORY.md"}
    assert after == before and "said number" not in kept(memory)


def test_a_record_that_changed_after_the_proposal_is_left_as_it_is(api, start, turn, memory):
    drop = "## drop: wiki\nwhy: the wiki is gone"
    session = start(api(two_models(["Done."], [f"{MERGE}\n\n{drop}"])), **ON)
    turn(session, "Hello")
    (memory / "tabs-in-go-two.md").write_text("---\nname: Tabs in Go two\ntype: feedback\n---\nMine now.\n")
    merged, dropped = proposal.accept(session.memory)
    assert not merged.is_done and "tabs-in-go-two has changed since this was proposed" in merged.text
    assert dropped.is_done and dropped.text.startswith(
        "dropped wiki (the wiki is gone); kept as .memory/.archive/wiki-"
    )
    assert names(memory) == sorted(["MEMORY.md", "PROPOSAL.md", *(f"{slug}.md" for slug in SLUGS)])
    assert "The wiki." in kept(memory) and "## drop: wiki" not in (memory / "PROPOSAL.md").read_text()


def test_a_proposal_is_carried_out_as_the_person_has_edited_it(api, start, turn, memory):
    session = start(api(two_models(["Done."], [f"{MERGE}\n\n## drop: wiki\nwhy: old"])), **ON)
    turn(session, "Hello")
    path = memory / "PROPOSAL.md"
    edited = path.read_text().replace("the linter insists.", "I insist.").replace("tabs-in-go-one, ", "")
    edited = edited.partition("## drop: wiki")[0].replace("tabs-in-go-twelve", "tabs-in-go-twelve, Mine by hand")
    (memory / "mine-by-hand.md").write_text("---\nname: Mine by hand\ntype: feedback\n---\nTabs. Always.\n")
    path.write_text(edited + "## drop: tabs-in-go-nobody\n\n## merge:\nname: x\n\n## drp: wiki\n")
    outcomes = list(proposal.accept(session.memory))
    assert [outcome.is_done for outcome in outcomes] == [True, False, False, False]
    assert "there is no record tabs-in-go-nobody" in outcomes[1].text
    assert "PROPOSAL.md:" in outcomes[2].text and "names no record to merge" in outcomes[2].text
    assert '"drp" is no change; write merge or drop' in outcomes[3].text
    assert (memory / "tabs-in-go.md").read_text().endswith("\nTabs in all Go files; I insist.\n")
    assert names(memory) == ["MEMORY.md", "PROPOSAL.md", "tabs-in-go-one.md", "tabs-in-go.md", "wiki.md"]
    assert "Tabs. Always." in kept(memory) and "I insist." in kept(memory)
    left = path.read_text()
    assert "I insist." not in left and "## drop: tabs-in-go-nobody" in left and "## drp: wiki" in left
    path.write_text(left.replace("## merge:\nname: x", "").replace("drp", "drop").replace("-nobody", "-one"))
    assert [outcome.is_done for outcome in proposal.accept(session.memory)] == [True, True]
    assert names(memory) == ["MEMORY.md", "tabs-in-go.md"] and not path.exists()


def test_a_merge_into_one_of_the_records_keeps_that_one_as_it_was_too(api, start, turn, memory):
    merge = MERGE.replace("name: Tabs in Go", "name: Tabs in Go one")
    session = start(api(two_models(["Done."], [merge])), **{**ON, "memory_consolidate": "auto"})
    turn(session, "Hello")
    assert names(memory) == ["MEMORY.md", "tabs-in-go-one.md", "wiki.md"]
    assert "the linter insists" in (memory / "tabs-in-go-one.md").read_text()
    assert all(f"said number {word}." in kept(memory) for word in WORDS)


def test_a_merge_under_the_name_of_another_record_is_left_out(api, start, turn, memory):
    merge = MERGE.replace("name: Tabs in Go", "name: Docs")
    session = start(api(two_models(["Done."], [merge])), **{**ON, "memory_consolidate": "auto"})
    events = turn(session, "Hello")
    assert any("has the name 'Docs' already" in text for text in notices(events))
    assert names(memory) == sorted(["MEMORY.md", "PROPOSAL.md", "wiki.md", *(f"{slug}.md" for slug in SLUGS)])


def test_a_record_that_cannot_be_given_whole_is_not_touched(api, start, turn, memory):
    (memory / "wiki.md").write_text(f"---\nname: Docs\ntype: reference\n---\n{'long ' * 2_000}\n")
    server = api(two_models(["Done."], ["## drop: wiki\nwhy: too long"]))
    turn(start(server, **{**ON, "memory_consolidate": "auto"}), "Hello")
    assert "### wiki" not in texts(asked(server, small=True)[0]) and (memory / "wiki.md").exists()


def test_a_merge_never_writes_over_a_record_that_it_does_not_name(api, start, turn, memory):
    (memory / "tabs-in-go.md").write_text("PRECIOUS, without a head.\n")
    session = start(api(two_models(["Done."], [MERGE])), **{**ON, "memory_consolidate": "auto"})
    events = turn(session, "Hello")
    assert any(".memory/tabs-in-go.md has the name 'Tabs in Go' already" in text for text in notices(events))
    assert (memory / "tabs-in-go.md").read_text() == "PRECIOUS, without a head.\n"
    assert all((memory / f"{slug}.md").exists() for slug in SLUGS)


def test_a_merge_into_a_record_without_a_name_keeps_the_result(api, start, turn, memory):
    (memory / "tabs-in-go.md").write_text("Without a head.\n")
    merge = MERGE.replace("merge: ", "merge: tabs-in-go, ")
    session = start(api(two_models(["Done."], [merge])), **{**ON, "memory_consolidate": "auto"})
    turn(session, "Hello")
    assert (memory / "tabs-in-go.md").read_text().endswith("Tabs in all Go files; the linter insists.\n")
    assert names(memory) == ["MEMORY.md", "tabs-in-go.md", "wiki.md"] and "Without a head." in kept(memory)


def test_what_cannot_be_written_is_left_out_and_the_rest_is_done_and_told(api, start, turn, memory):
    (memory / "tabs-in-go-one.md").write_text("---\nname: Tabs in Go one\ntype: feedback\nNever closed.\n")
    merge = MERGE.replace("name: Tabs in Go", "name: tabs-in-go-one")
    session = start(api(two_models(["Done."], [f"## drop: wiki\nwhy: old\n\n{merge}"])), **ON)
    turn(session, "Hello")
    for _ in range(2):
        outcomes = list(proposal.accept(session.memory))
        assert "the frontmatter is never closed" in outcomes[-1].text and not outcomes[-1].is_done
    assert not (memory / "wiki.md").exists() and "Never closed." in (memory / "tabs-in-go-one.md").read_text()


def test_answers_that_help_nobody_are_not_paid_for_turn_after_turn(api, start, turn, memory):
    (memory / "odd.md").write_text("---\nname: Odd\ncreated: May 2026\ntype: project\n---\nx\n")
    server = api(two_models(["Done."] * 3, ["What a memory!"]))
    session = start(server, **ON)
    events = [event for _ in range(3) for event in turn(session, "Hello")]
    assert len(asked(server, small=True)) == 1
    assert notices(events) == ["the small model's answer about the memory could not be understood"]


def test_a_proposal_that_cannot_be_written_is_not_asked_for(api, start, turn, memory):
    (memory / "PROPOSAL.md").symlink_to("/nowhere/at/all")
    server = api(two_models(["Done."], []))
    turn(start(server, **ON), "Hello")
    assert asked(server, small=True) == []


def test_a_change_that_cannot_be_right_is_said(api, start, turn, memory):
    wrong = "## merge: tabs-in-go-one, nobody\nname: x\ntype: feedback\n\ny"
    session = start(api(two_models(["Done."], [f"{wrong}\n\n## drop: wiki\nwhy: old"])), **ON)
    events = turn(session, "Hello")
    assert notices(events)[0] == (
        "a change that the small model proposes is left out, it cannot be right: tabs-in-go-one, nobody"
    )
    assert "## drop: wiki" in (memory / "PROPOSAL.md").read_text()
