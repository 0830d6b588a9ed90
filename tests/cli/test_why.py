"""Where a text of a request comes from, and why a file is not in it."""

from __future__ import annotations

import pytest

from tests.cli.process import tinyclaw
from tests.cli.turns import turn_in
from tests.messages_api import reply

STEPS = "".join(f"{number}. Another step of it\n" for number in range(3, 40))
SUMMARY = "## Goal\n\nFind the word."


@pytest.fixture
def ask(workspace):
    """``ask(text, *options)`` gives the exit code, the first line and the others."""

    def why(text: str, *options: str):
        done = tinyclaw("why", text, *options, cwd=workspace)
        first, *others = done.stdout.splitlines()
        return done.returncode, first, "\n".join(others)

    return why


@pytest.fixture
def run(workspace, api):
    """``run(steps, text)`` runs one turn against the strict server."""

    def go(steps, text: str = "go", *, resume: str | None = None, **environment: str):
        server = api(steps)
        turn_in(workspace, server, text, resume=resume, **environment)
        assert server.refused == []

    return go


def read(path: str):
    return reply(tools=[("read", {"path": path})])


def transcript(workspace):
    (path,) = (workspace / ".transcripts").glob("2*.md")
    return path


def test_a_text_is_told_by_file_and_line_and_since_which_request(workspace, run, ask):
    (workspace / "AGENTS.md").write_text("# Rules\n\nUse tabs.\n")
    (workspace / "PLAN.md").write_text("# Plan\n\n1. Look around\n" + STEPS)
    (workspace / "a.txt").write_text("one\ntwo\nfind the needle here\n")
    run([read("a.txt"), reply("It is in line 3.")], "where is it?")
    (workspace / "PLAN.md").write_text("# Plan\n\n1. Look around\n2. Sew it up\n" + STEPS)
    run([reply("Sewn.")], "go on", resume="last")

    def told(text):
        code, first, rest = ask(text)
        assert (code, first) == (0, f"'{text}' is in the next request of session {first.rsplit(' ', 1)[1]}"), first
        return rest

    assert "AGENTS.md:3  source instructions, in the prefix; since request 1\n      Use tabs." in told("Use tabs")
    assert "a.txt:3  the result of read a.txt, line " in told("the needle") and "; since request 2\n" in told(
        "the needle"
    )
    assert "PLAN.md:4  stated (diff), line " in told("Sew it up") and "; since request 3\n" in told("Sew it up")
    line = transcript(workspace).read_text().split("\n").index("where is it?") - 2
    assert f"line {line} of the transcript  you said it; since request 1" in told("where is it?")
    assert "the model's text; not sent yet" in told("Sewn.") and "the model's text; since request 3" in told(
        "in line 3"
    )
    assert "the tool grep  as it is described to the model; since request 1" in told("regular expression")
    assert "templates/prompts/base.md:1  source base, in the prefix; since request 1" in told("You are tinyclaw")


def test_a_past_request_is_told_as_it_was(workspace, run, ask):
    (workspace / "docs").mkdir()
    (workspace / "docs/x.md").write_text("the needle\n")
    run([reply(tools=[("glob", {"pattern": "*"})]), read("docs/x.md"), reply("Done.")])
    code, first, rest = ask("docs/x.md", "--request", "2")
    assert code == 1 and first.startswith("docs/x.md is not in request 2 of session 2")
    assert "read was called for it only later, .transcripts/" in rest
    assert ask("needle", "--request", "2")[2].startswith("  .transcripts/")
    code, _, rest = ask("docs/x.md", "--request", "3")
    assert code == 0 and "docs/x.md  read by the model, line " in rest and "since request 3" in rest


def test_a_file_that_nobody_asked_for_is_not_in_it_and_what_comes_in_by_itself_is_said(workspace, run, ask):
    (workspace / "docs").mkdir()
    (workspace / "docs/x.md").write_text("the needle\n")
    run([reply("I know of docs/x.md.")], "hello")
    code, _, rest = ask("docs/x.md")
    assert code == 1 and "no call of this session named it" in rest and "only PLAN.md, TODO.md" in rest
    assert "Its name is in:\n" in rest and "I know of docs/x.md." in rest
    assert "nothing that was said, called or answered in this session has it" in ask("the needle")[2]


def test_what_was_cleared_is_told_with_the_request_that_no_longer_had_it(workspace, run, ask):
    for number in range(8):
        (workspace / f"{number}.txt").write_text(f"needle {number}\n" * 2000)
    steps = [*(read(f"{number}.txt") for number in range(8)), reply("Done.")]
    run(steps, "go", TINYCLAW_HIGH_WATER_TOKENS="20000", TINYCLAW_LOW_WATER_TOKENS="2000")
    code, _, rest = ask("0.txt", "--request", "9")
    assert code == 1 and "it was read; the result was cleared to save room, since request " in rest
    since = int(rest.partition("since request ")[2].partition(")")[0])
    cleared = int(rest.partition("to save room, since request ")[2].split()[0])
    assert since == 2 and ask("0.txt", "--request", str(cleared - 1))[0] == 0
    assert ask("0.txt", "--request", str(cleared))[0] == 1
    assert "has it: the result was cleared to save room" in ask("needle 0", "--request", "9")[2]


def test_what_a_summary_stands_for_is_told(workspace, run, ask):
    (workspace / "a.txt").write_text("the needle\n")
    run([read("a.txt"), reply("Seen.")], "first")
    run([reply("Yes.")], "second", resume="last")
    run([reply(tools=[("compact", {})]), reply(SUMMARY), reply("Done.")], "third", resume="last")
    code, _, rest = ask("a.txt")
    assert code == 1 and "it was read; a summary stands for it, since request 5, .transcripts/" in rest
    assert "line " in ask("Find the word")[2] and "  the summary; since request 5" in ask("Find the word")[2]
    assert ask("a.txt", "--request", "2")[0] == 0


def test_what_was_taken_out_by_hand_and_what_failed_is_told(workspace, run, ask):
    (workspace / "a.txt").write_text("the needle\n")
    run([read("a.txt"), reply(tools=[("read", {"path": "b.txt"})]), reply("Seen.")], "first")
    assert "read failed: " in ask("b.txt")[2]
    path = transcript(workspace)
    path.write_text(path.read_text().replace("- [x] in the conversation", "- [ ] in the conversation"))
    assert "it was taken out of the conversation (an unticked turn, or a rewind)" in ask("a.txt")[2]


def test_what_was_cut_or_is_kept_elsewhere_is_told(workspace, run, ask):
    (workspace / "AGENTS.md").write_text("a rule\n" * 8000 + "the last rule\n")
    (workspace / "skills/sew").mkdir(parents=True)
    (workspace / "skills/sew/SKILL.md").write_text("---\nname: sew\ndescription: Sews.\n---\n\nTake a needle.\n")
    run([reply(tools=[("bash", {"command": "seq 1 9000"})]), reply("Done.")])
    assert "AGENTS.md:8001 has it: " in ask("the last rule")[2] and "instructions_bytes" in ask("the last rule")[2]
    assert "skills/sew/SKILL.md:6 has it: of a skill only name and description" in ask("Take a needle")[2]
    assert "skills/sew/SKILL.md:3  source skills, in the prefix" in ask("Sews.")[2]
    assert ".md:4567 has it: of that result only head and tail were sent" in ask("4567")[2]


def test_a_skill_that_was_loaded_is_told_as_a_file_that_was_read(workspace, run, ask):
    (workspace / "skills/sew").mkdir(parents=True)
    (workspace / "skills/sew/SKILL.md").write_text("---\nname: sew\ndescription: Sews.\n---\n\nTake a needle.\n")
    run([reply(tools=[("load_skill", {"name": "sew"})]), reply("Done.")])
    assert "read by the model" in ask("skills/sew/SKILL.md")[2]
    assert "the result of load_skill" in ask("Take a needle")[2]
    run([reply("Hello.")], "hello")
    code, _, others = ask("skills/sew/SKILL.md")
    assert code == 1 and "no call of this session loaded it" in others


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("CLAUDE.md", "its folder has an AGENTS.md, which is read in its place"),
        ("sub/AGENTS.md", "sub is not on the way from the root to where you stand (.)"),
        (".memory/a.md", "of the memory .memory/MEMORY.md comes in, and records that are chosen for a turn"),
        (".tinyclaw/SETTINGS.md", ".tinyclaw/ is tinyclaw's own"),
        ("skills/x/SKILL.md", "of a skill only name and description come in"),
    ],
)
def test_files_that_do_not_come_in_by_themselves_say_why(workspace, ask, name, reason):
    (workspace / "AGENTS.md").write_text("Use tabs.\n")
    (workspace / name).parent.mkdir(parents=True, exist_ok=True)
    (workspace / name).write_text("---\nname: x\ndescription: y\n---\nwords\n")
    code, first, rest = ask(name)
    assert (code, first) == (1, f"{name} is not in the next request of a new session, because:") and reason in rest


def test_a_file_as_it_was_stated_and_where_it_is_gone_from_disk(workspace, run, ask):
    (workspace / "AGENTS.md").write_text("Use tabs.\n")
    (workspace / "a.txt").write_text("the needle\n")
    run([read("a.txt"), reply("Done.")])
    (workspace / "a.txt").unlink()
    assert "AGENTS.md  in the prefix, lines 1-1; since request 1" in ask("AGENTS.md")[2]
    code, _, rest = ask("a.txt")
    assert code == 0 and "a.txt  read by the model" in rest
    assert "  a.txt  the result of read a.txt" in ask("the needle")[2], "no line, since the file is gone"
    (workspace / "AGENTS.md").write_text("Use blanks.\n")
    assert (
        "AGENTS.md:1 has it now: the request was made before that was saved" in ask("Use blanks", "--request", "1")[2]
    )


def test_a_blank_text_is_wrong_usage_and_looking_writes_nothing(workspace, ask):
    assert tinyclaw("why", "  ", cwd=workspace).returncode == 2
    assert tinyclaw("why", "x", "--request", "3", cwd=workspace).returncode in (1, 2)
    assert ask("You are tinyclaw")[0] == 0 and list(workspace.iterdir()) == []


def test_a_long_text_and_a_hand_edited_transcript_are_no_faults(workspace, run, ask):
    (workspace / "a.txt").write_text("the needle\n")
    run([read("a.txt"), reply("Done.")])
    assert ask("word " * 300)[0] == 1
    path = transcript(workspace)
    broken = [
        'clear {"results":null}',
        'clear {"results":5}',
        'request {"n":[2],"manifest":{"set":{"tools":null}}}',
        'reply {"n":{"a":1},"cost_usd":"x","again":"y","held":"x"}',
    ]
    path.write_text(path.read_text() + "".join(f"\n<!-- tc:{each} /-->\n" for each in broken))
    assert ask("a.txt")[0] == 0 and ask("a.txt", "--request", "2")[0] == 0
    for line in ("sessions show --requests", "context", "context --request 2", "prompt", "context --diff 1 2"):
        done = tinyclaw(*line.split(), cwd=workspace)
        assert "unexpected error" not in done.stderr and done.returncode == 0, (line, done.stderr)


def test_what_was_edited_since_is_said(workspace, run, ask):
    run([reply("One."), reply("Two.")], "first")
    run([reply("Two.")], "second", resume="last")
    path = transcript(workspace)
    path.write_text(path.read_text().replace("\nfirst\n", "\nedited by hand\n"))
    done = tinyclaw("why", "edited by hand", "--request", "1", cwd=workspace)
    assert "the conversation was edited since" in done.stderr
    shown = tinyclaw("prompt", "--request", "1", cwd=workspace)
    assert shown.returncode == 1 and "edited since" in shown.stderr


def test_a_source_that_came_later_is_told_as_such(workspace, run, ask):
    run([reply("One.")], "first")
    (workspace / ".tinyclaw/sources").mkdir(parents=True)
    (workspace / ".tinyclaw/sources/w.md").write_text("Rain.\n")
    run([reply("Two.")], "second", resume="last")
    code, _, rest = ask(".tinyclaw/sources/w.md", "--request", "1")
    assert code == 1 and "it was told for the first time only later, .transcripts/" in rest
    assert ask(".tinyclaw/sources/w.md")[0] == 0


def test_a_record_that_was_chosen_is_told_by_its_file(workspace, run, ask):
    (workspace / ".memory").mkdir()
    head = "name: Release day\ntype: project\ndescription: when we release"
    (workspace / ".memory/release-day.md").write_text(f"---\n{head}\n---\n\nReleases go out on Mondays.\n")
    (workspace / ".memory/other.md").write_text("---\nname: Other\ntype: user\n---\nNothing of that.\n")
    run([reply("release-day"), reply("On Mondays.")], "When do we release?")
    code, _, rest = ask("go out on Mondays", "last", "--request", "1")
    assert code == 0 and ".memory/release-day.md:7  a record that was chosen for the turn" in rest
    code, _, rest = ask(".memory/release-day.md", "last", "--request", "1")
    assert code == 0 and "chosen for the turn, " in rest
    code, _, rest = ask(".memory/other.md", "last", "--request", "1")
    assert code == 1 and "records that are chosen for a turn; this one was not" in rest


def test_an_import_that_failed_is_told_as_such(workspace, run, ask):
    (workspace / "AGENTS.md").write_text("Read @docs/missing.md first.\n")
    run([reply("Done.")])
    code, first, rest = ask("docs/missing.md")
    assert code == 1 and "docs/missing.md is not in" in first
    assert "AGENTS.md:1: @docs/missing.md is not there" in rest and "Its name is in:" in rest
