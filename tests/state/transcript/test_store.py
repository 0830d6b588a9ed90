"""The transcript's file: appended, never rewritten, and the person's to edit at any time."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tinyclaw.errors import Locked, NewerFormat, StateError
from tinyclaw.state.transcript.content import reply_block, result_block, user_text
from tinyclaw.state.transcript.grammar import DAMAGED, Block, parse, render
from tinyclaw.state.transcript.store import SessionName, Transcript
from tinyclaw.types import Text, Thinking, ToolUse

MODEL = "claude-sonnet-5-5"


def no_image(path: str, sha256: str) -> None:
    return None


@pytest.fixture
def transcript(tmp_path: Path):
    name = SessionName.new("20261130-101500", "Fix: the thing!", "3f9a")
    made = Transcript.create(tmp_path / ".transcripts", name, "Fix: the thing!", "2026-11-30T10:15:00Z", no_image)
    yield made
    made.close()


def first_turn() -> list[Block]:
    return [
        user_text("Fix it", 1, "now"),
        reply_block(Thinking("Hm.", "signature"), 2, MODEL),
        reply_block(Text("Reading."), 2, MODEL),
        reply_block(ToolUse("t1", "read", {"path": "a"}), 2, MODEL, "read a"),
        result_block("t1", 3, "content", name="read"),
        reply_block(Text("Done."), 4, MODEL),
        Block("turn_end", {"reason": "done"}),
    ]


def blocks_in(path: Path) -> list[Block]:
    return list(parse(path.read_bytes(), path.name).blocks)


def wires(transcript: Transcript) -> list[dict]:
    return [message.wire for message in transcript.conversation.messages(MODEL).messages]


def reopened(path: Path) -> Transcript:
    return Transcript.open(path, no_image)


def test_a_session_is_one_portable_file_with_a_header(transcript):
    assert transcript.path.name == "20261130-101500-fix-the-thing-3f9a.md"
    assert transcript.path.read_text().startswith("---\nsession: 20261130-101500-3f9a\ntitle: ")
    assert (transcript.session, transcript.title) == ("20261130-101500-3f9a", "Fix: the thing!")


@pytest.mark.parametrize("title", ["CON", "日本", "🎉", "a" * 300, "x/../y", "", "a.", "https://h:5173/a?b"])
def test_file_names_are_portable_whatever_the_title(title):
    name = SessionName.new("20261130-101500", title, "3f9a").file
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) and len(name) <= 120 and not name.endswith("..md")


def test_what_is_appended_is_there_after_opening_again(transcript):
    transcript.append(*first_turn())
    before = wires(transcript)
    transcript.close()
    again = reopened(transcript.path)
    assert wires(again) == before and again.notices == [] and blocks_in(again.path) == first_turn()
    again.close()


def test_an_edit_of_the_past_is_the_conversation_from_then_on(transcript):
    transcript.append(*first_turn())
    text = transcript.path.read_text()
    transcript.path.write_text(text.replace("Fix it", "Fix the other thing").replace("\nHm.\n", "\nHa.\n"))
    transcript.append(user_text("more", 5, "now"))
    messages = wires(transcript)
    assert messages[0]["content"][0]["text"] == "Fix the other thing"
    assert [block["type"] for block in messages[1]["content"]] == ["text", "tool_use"]
    assert messages[-1]["content"][0]["text"] == "more"
    assert "changed outside" in transcript.notices[0]


def test_an_edit_by_rename_is_seen_as_well(transcript):
    transcript.append(*first_turn())
    beside = transcript.path.with_name("new")
    beside.write_text(transcript.path.read_text().replace("Fix it", "Mend it"))
    beside.rename(transcript.path)
    transcript.append(user_text("more", 5, "now"))
    assert wires(transcript)[0]["content"][0]["text"] == "Mend it"
    assert blocks_in(transcript.path)[-1].text == "more"


def test_a_touch_changes_nothing(transcript):
    transcript.append(*first_turn())
    os.utime(transcript.path)
    assert transcript.refresh() is False and transcript.notices == []


def test_blocks_of_the_running_turn_that_a_stale_save_overwrote_are_appended_again(transcript):
    transcript.append(*first_turn())
    stale = transcript.path.read_text()
    running = [user_text("more", 5, "now"), reply_block(ToolUse("t2", "read", {"path": "b"}), 6, MODEL)]
    transcript.append(*running)
    transcript.path.write_text(stale.replace("Fix it", "Fix it well"))
    transcript.append(result_block("t2", 7, "b's content", name="read"))
    assert blocks_in(transcript.path)[-3:] == [*running, result_block("t2", 7, "b's content", name="read")]
    assert wires(transcript)[0]["content"][0]["text"] == "Fix it well"
    assert any("2 blocks of the running turn were overwritten" in notice for notice in transcript.notices)


def test_older_blocks_that_a_stale_save_overwrote_are_kept_beside_the_file(transcript):
    stale = transcript.path.read_text()
    transcript.append(*first_turn())
    transcript.path.write_text(stale + "\nMy own beginning.\n")
    transcript.refresh()
    (beside,) = transcript.path.parent.glob("*.lost-*.md")
    assert list(parse(beside.read_bytes(), "x").blocks) == first_turn()
    assert any(beside.name in notice for notice in transcript.notices)
    assert wires(transcript) == [{"role": "user", "content": [{"type": "text", "text": "My own beginning."}]}]


def test_a_change_while_a_tool_ran_is_said_as_such(transcript):
    transcript.append(user_text("go", 1, "now"))
    before = transcript.path.read_text()
    transcript.append(reply_block(ToolUse("t1", "bash", {"command": "git stash"}), 2, MODEL))
    transcript.path.write_text(before)
    transcript.append(result_block("t1", 3, "done", name="bash"), tool_ran=True)
    assert [block.kind for block in blocks_in(transcript.path)] == ["text", "tool_use", "tool_result"]
    assert any("while a tool ran" in notice for notice in transcript.notices)


def test_a_file_that_was_deleted_is_written_again(transcript):
    transcript.append(*first_turn())
    transcript.path.unlink()
    transcript.append(user_text("more", 5, "now"))
    assert blocks_in(transcript.path) == [*first_turn(), user_text("more", 5, "now")]
    assert "deleted" in transcript.notices[0]


def test_a_torn_end_stays_out_on_every_later_load(transcript):
    transcript.append(*first_turn())
    transcript.close()
    whole = transcript.path.read_bytes()
    for cut in range(whole.index(b"## You"), len(whole), 7):
        transcript.path.write_bytes(whole[:cut])
        once = reopened(transcript.path)
        once.append(user_text("later", 9, "now"))
        once.close()
        twice = reopened(transcript.path)
        assert wires(twice) == wires(once)
        twice.close()
        kinds = [block for block in blocks_in(transcript.path) if block.kind not in (DAMAGED, "torn")]
        assert kinds[:-1] == first_turn()[: len(kinds) - 1] and kinds[-1].text == "later"


def test_a_file_with_carriage_returns_is_appended_in_its_own_style(transcript):
    transcript.append(user_text("one", 1, "now"))
    transcript.close()
    transcript.path.write_bytes(transcript.path.read_bytes().replace(b"\n", b"\r\n"))
    again = reopened(transcript.path)
    again.append(user_text("two\nlines", 2, "now"))
    again.close()
    data = transcript.path.read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n")
    assert [block.text for block in blocks_in(transcript.path)] == ["one", "two\nlines"]


def test_a_second_process_is_told_who_holds_the_session(transcript):
    with pytest.raises(Locked, match=f"process {os.getpid()}"):
        reopened(transcript.path)
    transcript.close()
    reopened(transcript.path).close()
    assert not list(transcript.path.parent.glob("*.lock"))


def turn(first: int) -> list[Block]:
    """A turn that ends like any other."""
    return [user_text(f"{first}", first, "now"), reply_block(Text("ok"), first + 1, MODEL), Block("turn_end", {})]


def test_a_last_turn_that_a_stale_save_overwrote_is_kept_though_it_ends_like_the_one_before(transcript):
    transcript.append(*turn(1))
    stale = transcript.path.read_text()
    transcript.append(*turn(3))
    transcript.path.write_text(stale.replace("ok", "okay"))
    transcript.refresh()
    (beside,) = transcript.path.parent.glob("*.lost-*.md")
    assert list(parse(beside.read_bytes(), "x").blocks) == turn(3)


def test_a_turn_that_a_person_deleted_from_the_middle_is_deleted(transcript):
    transcript.append(*turn(1), *turn(3), *turn(5))
    transcript.path.write_text(transcript.path.read_text().replace(render(turn(3)), ""))
    transcript.refresh()
    assert blocks_in(transcript.path) == [*turn(1), *turn(5)]
    assert not list(transcript.path.parent.glob("*.lost-*"))


def test_a_file_that_was_emptied_keeps_the_running_turn_and_the_older_ones_beside_it(transcript):
    transcript.append(*turn(1), user_text("running", 3, "now"))
    transcript.path.write_text("")
    transcript.append(reply_block(Text("answer"), 4, MODEL))
    assert [block.text for block in blocks_in(transcript.path)] == ["running", "answer"]
    (beside,) = transcript.path.parent.glob("*.lost-*.md")
    assert list(parse(beside.read_bytes(), "x").blocks) == turn(1)


def asks(call: str) -> Block:
    return Block("event", {"what": "permission", "id": call}, "make", heading="### permission to make", box=False)


def tick(path: Path) -> None:
    path.write_text(path.read_text().replace("- [ ] allow", "- [x] allow"))


def test_a_box_that_a_person_ticks_is_seen_at_once_and_after_opening_again(transcript):
    transcript.append(user_text("go", 1, "now"), reply_block(ToolUse("t1", "bash", {}), 2, MODEL), asks("t1"))
    tick(transcript.path)
    transcript.refresh()
    assert transcript.conversation.permissions["t1"].allowed is True
    transcript.close()
    again = reopened(transcript.path)
    assert again.conversation.permissions["t1"].allowed is True
    again.close()


def test_a_box_that_is_ticked_while_a_tool_runs_gives_no_permission_now_or_later(transcript):
    calls = [reply_block(ToolUse(call, "bash", {}), 2, MODEL) for call in ("t1", "t2")]
    transcript.append(user_text("go", 1, "now"), *calls, asks("t1"))
    tick(transcript.path)
    transcript.append(result_block("t2", 3, "sed", name="bash"), tool_ran=True)
    assert transcript.conversation.permissions["t1"].allowed is None
    assert any("does not count" in notice for notice in transcript.notices)
    transcript.close()
    again = reopened(transcript.path)
    assert again.conversation.permissions["t1"].allowed is None
    again.close()


def test_an_end_that_somebody_tore_off_meanwhile_stays_out(transcript):
    transcript.append(*turn(1))
    data = transcript.path.read_bytes()
    transcript.path.write_bytes(data + b"## You <!-- tc:text {} -->\n\nhalf")
    transcript.append(user_text("whole", 3, "now"))
    transcript.close()
    again = reopened(transcript.path)
    assert [block.text for block in blocks_in(again.path) if block.kind == "text"] == ["1", "ok", "whole"]
    again.close()


def test_a_header_that_was_cut_is_an_empty_session_that_goes_on(transcript):
    transcript.close()
    whole = transcript.path.read_bytes()
    for cut in range(len(whole)):
        transcript.path.write_bytes(whole[:cut])
        once = reopened(transcript.path)
        once.append(user_text("later", 1, "now"))
        once.close()
        twice = reopened(transcript.path)
        assert wires(twice) == [{"role": "user", "content": [{"type": "text", "text": "later"}]}]
        assert twice.session in ("20261130-101500-3f9a", transcript.path.stem)
        twice.close()


def test_a_file_is_said_to_be_torn_once_and_where(transcript):
    transcript.append(*turn(1))
    transcript.close()
    transcript.path.write_bytes(transcript.path.read_bytes() + b"## You <!-- tc:text {} -->\n\nhalf")
    once = reopened(transcript.path)
    once.close()
    line = transcript.path.read_text().split("\n").index("## You <!-- tc:text {} -->") + 1
    assert [f"{transcript.path}:{line}: " in notice for notice in once.notices] == [True]
    twice = reopened(transcript.path)
    twice.close()
    assert twice.notices == []


def test_a_newer_format_that_appears_meanwhile_is_never_appended_to(transcript):
    transcript.append(*turn(1))
    newer = transcript.path.read_text().replace("format: 1", "format: 2")
    transcript.path.write_text(newer)
    for _ in range(2):
        with pytest.raises(NewerFormat):
            transcript.append(user_text("more", 3, "now"))
    assert transcript.path.read_text() == newer


def test_a_session_that_cannot_be_made_leaves_neither_file_nor_lock(transcript):
    name = SessionName("other", transcript.path.name)
    transcript.close()
    before = transcript.path.read_bytes()
    with pytest.raises(StateError, match="cannot be made"):
        Transcript.create(transcript.path.parent, name, "x", "now", no_image)
    assert [path.name for path in transcript.path.parent.iterdir()] == [transcript.path.name]
    assert transcript.path.read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_said(transcript):
    transcript.close()
    transcript.path.parent.chmod(0o555)
    with pytest.raises(StateError, match="cannot be locked"):
        reopened(transcript.path)
    transcript.path.parent.chmod(0o755)


def test_a_deleted_file_that_cannot_be_written_again_is_said_and_nothing_is_forgotten(transcript):
    transcript.append(*turn(1))
    folder = transcript.path.parent
    shutil.rmtree(folder)
    folder.write_text("in the way")
    with pytest.raises(StateError):
        transcript.append(user_text("more", 3, "now"))
    folder.unlink()
    transcript.append(user_text("more", 3, "now"))
    assert blocks_in(transcript.path) == [*turn(1), user_text("more", 3, "now")]


def test_a_deleted_file_comes_back_with_its_damage_and_the_persons_text(transcript):
    transcript.append(*turn(1))
    transcript.close()
    transcript.path.write_bytes(transcript.path.read_bytes() + b"do this\n\n## You <!-- tc:text {} -->\n\nh\xff")
    again = reopened(transcript.path)
    before = blocks_in(transcript.path)
    transcript.path.unlink()
    again.append(user_text("more", 4, "now"))
    again.close()
    assert blocks_in(transcript.path)[:-1] == before


def test_the_lock_of_a_killed_process_is_free(transcript):
    transcript.close()
    code = (
        "import os, signal, sys; from pathlib import Path; from tinyclaw.state.transcript.store import Transcript; "
        "Transcript.open(Path(sys.argv[1]), lambda p, s: None); os.kill(os.getpid(), signal.SIGKILL)"
    )
    here = str(Path(__file__).parents[3])
    subprocess.run(
        [sys.executable, "-c", code, str(transcript.path)], env={**os.environ, "PYTHONPATH": here}, check=False
    )
    assert transcript.path.with_suffix(".lock").exists()
    reopened(transcript.path).close()


def test_the_lock_of_a_process_that_was_killed_before_it_wrote_goes_with_the_next_session(transcript):
    folder = transcript.path.parent
    (folder / "20260101-000000-x-0000.lock").write_text("process 1 on elsewhere\n")
    name = SessionName.new("20261130-101501", "y", "0001")
    Transcript.create(folder, name, "y", "now", no_image).close()
    assert [path.name for path in folder.glob("*.lock")] == [transcript.path.with_suffix(".lock").name]


def test_a_newer_format_is_not_appended_to(transcript):
    transcript.close()
    transcript.path.write_text(transcript.path.read_text().replace("format: 1", "format: 2"))
    with pytest.raises(NewerFormat, match="format 2"):
        reopened(transcript.path)


def test_a_full_disk_leaves_the_file_as_it_was_and_says_so(tmp_path: Path):
    code = """
import resource, signal, sys
from pathlib import Path
from tinyclaw.errors import StateError
from tinyclaw.state.transcript.content import user_text
from tinyclaw.state.transcript.store import SessionName, Transcript
name = SessionName.new("20261130-101500", "x", "3f9a")
made = Transcript.create(Path(sys.argv[1]), name, "x", "now", lambda p, s: None)
made.append(user_text("one", 1, "now"))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
before = made.path.read_bytes()
resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 50, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    made.append(user_text("two" * 100, 2, "now"))
except StateError as error:
    print(error)
assert made.path.read_bytes() == before
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
made.append(user_text("three", 2, "now"))
print([block.text for block in made._blocks])
"""
    here = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": here},
        capture_output=True,
        text=True,
    )
    assert "could not be added" in done.stdout and "the file is as it was" in done.stdout, done.stderr
    assert "['one', 'three']" in done.stdout


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path):
    (tmp_path / ".transcripts").write_text("a file")
    with pytest.raises(StateError, match=r"\.transcripts"):
        Transcript.create(tmp_path / ".transcripts", SessionName.new("1", "x", "3f9a"), "x", "now", no_image)
