"""A snapshot says what the files say now, and reads again only what changed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tinyclaw.state.files import revision_of
from tinyclaw.state.live import LiveFiles
from tinyclaw.state.snapshot import MAX_RECORDS, MAX_STATE_BYTES, UNREADABLE, SnapshotReader, StateFile
from tinyclaw.state.workspace import Workspace

SKILLS = "skills/*/SKILL.md"
CHAIN = "chain:AGENTS.md|CLAUDE.md"
NEARER = "chain:.agents/skills/*/SKILL.md|skill.md"
PATTERNS = ("PLAN.md", ".memory/MEMORY.md", "user:AGENTS.md", CHAIN, SKILLS, NEARER, "user:skills/*/SKILL.md")


class Place:
    """A workspace two folders deep, and a reader of it that counts what it masks: each file that it decodes anew."""

    def __init__(self, folder: Path, sleep: Callable[[float], None] = lambda seconds: None) -> None:
        self.root, self.user = folder / "project", folder / "user"
        for each in (self.root / "sub/deep", self.user):
            each.mkdir(parents=True, exist_ok=True)
        self.decoded: list[str] = []
        self.now = time.time
        live = LiveFiles(time.time, sleep, limit_bytes=MAX_STATE_BYTES)
        workspace = Workspace(self.root, self.root / "sub/deep", self.user)
        self.reader = SnapshotReader(workspace, live, self.mask, PATTERNS, lambda: self.now())

    def mask(self, text: str) -> str:
        self.decoded.append(text)
        return text.replace("hunter2", "[masked:password]")

    def write(self, path: str, data: str | bytes) -> Path:
        place = self.user / path[2:] if path.startswith("~/") else self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data if isinstance(data, bytes) else data.encode())
        return place

    def files(self, pattern: str) -> list[StateFile]:
        return list(self.reader.take({}).files(pattern))

    def texts(self, pattern: str) -> list[tuple[str, str]]:
        return [(file.path, file.text) for file in self.files(pattern)]

    def problem(self, pattern: str) -> str:
        (file,) = self.files(pattern)
        assert file.problem is not None
        return str(file.problem)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_pattern_finds_its_file_or_nothing(place: Place):
    assert place.reader.take({}).file("PLAN.md") is None
    place.write("PLAN.md", "plan\n")
    assert place.texts("PLAN.md") == [("PLAN.md", "plan\n")]


def test_facts_stand_beside_the_files(place: Place):
    assert place.reader.take({"Date": "today"}).facts == {"Date": "today"}


def test_the_chain_goes_from_the_root_down_and_takes_the_first_name_that_is_there(place: Place):
    for path in ("AGENTS.md", "CLAUDE.md", "sub/CLAUDE.md", "sub/deep/AGENTS.md", "sub/deep/more/AGENTS.md"):
        place.write(path, path)
    assert [file.path for file in place.files(CHAIN)] == ["AGENTS.md", "sub/CLAUDE.md", "sub/deep/AGENTS.md"]


def test_files_of_the_user_level_are_private_also_where_it_lies_in_the_workspace(tmp_path: Path):
    place = Place(tmp_path)
    inside = SnapshotReader(
        Workspace(tmp_path, tmp_path, tmp_path / "user"), LiveFiles(time.time, lambda s: None), str, PATTERNS, time.time
    )
    place.write("~/AGENTS.md", "mine\n")
    for reader in (place.reader, inside):
        (file,) = reader.take({}).files("user:AGENTS.md")
        assert (file.path, file.private) == ("~/AGENTS.md", True)


@pytest.mark.parametrize(
    "data", [b"a\nb\n", b"a\r\nb\r\n", b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfa\r\nb\r\n", b"a\rb\r"]
)
def test_byte_order_mark_and_line_ends_make_no_difference(place: Place, data):
    place.write("PLAN.md", data)
    assert place.texts("PLAN.md") == [("PLAN.md", "a\nb\n")]


def test_secrets_are_masked(place: Place):
    place.write("PLAN.md", "password hunter2\n")
    assert place.texts("PLAN.md") == [("PLAN.md", "password [masked:password]\n")]


def test_what_is_not_utf8_is_shown_with_marks_and_named_by_line(place: Place):
    place.write("PLAN.md", b"one\ncaf\xe9\n")
    assert place.texts("PLAN.md") == [("PLAN.md", "one\ncaf\ufffd\n")]
    assert place.problem("PLAN.md").startswith("PLAN.md:2: is not UTF-8")


def test_a_binary_file_is_no_text(place: Place):
    place.write("PLAN.md", b"one\n\0\xff")
    assert place.texts("PLAN.md") == [("PLAN.md", "")]
    assert place.problem("PLAN.md").startswith("PLAN.md:2: holds NUL bytes")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Path.mkdir, "is a folder, not a file"),
        (os.mkfifo, "is a named pipe, not a file"),
        (lambda path: path.symlink_to(path.name), "links go in a circle"),
        (lambda path: path.write_bytes(b"x" * (MAX_STATE_BYTES + 1)), "is too large (1,048,577 bytes"),
    ],
    ids=["folder", "pipe", "circle", "huge"],
)
def test_what_cannot_be_read_is_said_without_the_machines_paths(place: Place, make, said):
    make(place.root / "PLAN.md")
    (file,) = place.files("PLAN.md")
    assert (file.text, file.revision) == ("", UNREADABLE)
    assert said in place.problem("PLAN.md") and str(place.root) not in place.problem("PLAN.md")


def test_a_file_that_can_be_read_again_is(place: Place):
    plan = place.root / "PLAN.md"
    place.write("PLAN.md", "plan\n")
    before = place.texts("PLAN.md")
    plan.unlink()
    plan.mkdir()
    assert place.problem("PLAN.md")
    plan.rmdir()
    place.write("PLAN.md", "plan\n")
    assert place.texts("PLAN.md") == before


LINKS = {
    "the file": ("AGENTS.md", "secret.md", CHAIN),
    "its folder": (".memory", "folder", ".memory/MEMORY.md"),
    "a skill's folder": ("skills/a", "folder", SKILLS),
    "the folder of skills": ("skills", "skills", SKILLS),
}


@pytest.mark.parametrize("link", LINKS)
def test_links_out_of_the_workspace_are_not_followed_wherever_they_stand(place: Place, tmp_path: Path, link):
    name, target, pattern = LINKS[link]
    for path in ("secret.md", "folder/MEMORY.md", "folder/SKILL.md", "skills/x/SKILL.md"):
        file = tmp_path / "outside" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("from outside\n")
    (place.root / name).parent.mkdir(exist_ok=True)
    (place.root / name).symlink_to(tmp_path / "outside" / target)
    assert "is a link out of the workspace" in place.problem(pattern)
    assert place.texts(pattern)[0][1] == "" and place.decoded == []


def test_links_within_the_workspace_are_followed_until_they_lead_out(place: Place, tmp_path: Path):
    place.write("docs/plan.md", "plan\n")
    (tmp_path / "plan.md").write_text("plan\n")
    link = place.root / "PLAN.md"
    link.symlink_to("docs/plan.md")
    assert place.texts("PLAN.md") == [("PLAN.md", "plan\n")]
    link.unlink()
    link.symlink_to(tmp_path / "plan.md")
    assert place.texts("PLAN.md") == [("PLAN.md", "")]


def test_a_link_to_nothing_is_an_absent_file(place: Place, tmp_path: Path):
    (place.root / "PLAN.md").symlink_to(tmp_path / "new.md")
    assert place.texts("PLAN.md") == []


def test_records_come_by_name_and_hidden_folders_and_plain_files_hold_none(place: Place):
    for path in ("skills/b/SKILL.md", "skills/a/SKILL.md", "skills/.git/SKILL.md", "skills/README.md", "skills/c/x.md"):
        place.write(path, path)
    assert [file.path for file in place.files(SKILLS)] == ["skills/a/SKILL.md", "skills/b/SKILL.md"]


def test_an_unchanged_file_is_not_decoded_again(place: Place):
    place.write("PLAN.md", "plan\n")
    for name in "abc":
        place.write(f"skills/{name}/SKILL.md", name)
    first = place.reader.take({})
    assert place.reader.take({}) == first
    assert len(place.decoded) == 4
    place.write("skills/b/SKILL.md", "new")
    second = place.reader.take({})
    assert place.decoded[4:] == ["new"]
    assert [a is b for a, b in zip(first.files(SKILLS), second.files(SKILLS), strict=True)] == [True, False, True]


def test_an_edit_in_place_is_seen_even_with_size_and_times_put_back(place: Place):
    skill = place.write("skills/a/SKILL.md", "old")
    past = time.time() - 100
    os.utime(skill, (past, past))
    assert place.texts(SKILLS) == [("skills/a/SKILL.md", "old")]
    skill.write_bytes(b"new")
    os.utime(skill, (past, past))
    assert place.texts(SKILLS) == [("skills/a/SKILL.md", "new")]


def test_records_that_come_and_go_are_seen(place: Place):
    place.now = lambda: time.time() + 100
    place.write("skills/a/SKILL.md", "a")
    assert len(place.files(SKILLS)) == 1
    place.write("skills/b/SKILL.md", "b")
    assert len(place.files(SKILLS)) == 2
    (place.root / "skills/a").rename(place.root / "skills/z")
    assert [file.text for file in place.files(SKILLS)] == ["b", "a"]
    (place.root / "skills/b/SKILL.md").unlink()
    assert [file.text for file in place.files(SKILLS)] == ["a"]
    (place.root / "skills").rename(place.root / "other")
    assert place.files(SKILLS) == []


def test_a_record_that_appears_in_a_folder_that_stood_without_it_is_seen(place: Place):
    """The folder of the records shows no sign of it."""
    place.now = lambda: time.time() + 100
    place.write("skills/a/SKILL.md", "a")
    (place.root / "skills/b").mkdir()
    assert [place.texts(SKILLS) for _ in range(2)] == [[("skills/a/SKILL.md", "a")]] * 2
    place.write("skills/b/SKILL.md", "b")
    assert place.texts(SKILLS) == [("skills/a/SKILL.md", "a"), ("skills/b/SKILL.md", "b")]


def test_records_that_stand_are_decoded_once_and_are_the_same_objects(place: Place):
    place.now = lambda: time.time() + 100
    for name in "abc":
        place.write(f"skills/{name}/SKILL.md", name)
    first = place.files(SKILLS)
    place.write("skills/b/SKILL.md", "changed")
    second = place.files(SKILLS)
    assert place.decoded == ["a", "b", "c", "changed"]
    assert [one is two for one, two in zip(first, second, strict=True)] == [True, False, True]


def test_a_fault_of_a_record_that_was_absent_is_said(place: Place):
    place.now = lambda: time.time() + 100
    folder = place.root / "skills/a"
    folder.mkdir(parents=True)
    assert [place.files(SKILLS) for _ in range(2)] == [[], []]
    (folder / "SKILL.md").symlink_to("SKILL.md")
    assert "its symbolic links go in a circle" in place.problem(SKILLS)


def test_a_folder_that_is_exchanged_while_it_is_read_is_read_again(place: Place, monkeypatch):
    """The exchange of two folders leaves no trace in the times of the files below."""
    place.now = lambda: time.time() + 100
    for version in "AB":
        place.write(f"{version}/SKILL.md", version)
    link = place.root / "skills/x"
    link.parent.mkdir()
    link.symlink_to(place.root / "A")

    def retarget(to: str) -> None:
        link.unlink()
        link.symlink_to(place.root / to)

    read = LiveFiles.read

    def read_the_other(live: LiveFiles, path: Path):
        monkeypatch.setattr(LiveFiles, "read", read)
        retarget("B")
        return live.read(path)

    monkeypatch.setattr(LiveFiles, "read", read_the_other)
    assert place.texts(SKILLS) == [("skills/x/SKILL.md", "B")]
    retarget("A")
    assert place.texts(SKILLS) == [("skills/x/SKILL.md", "A")]


def test_a_record_that_cannot_be_read_is_read_as_soon_as_it_can(place: Place):
    place.now = lambda: time.time() + 100
    record = place.root / "skills/a/SKILL.md"
    record.mkdir(parents=True)
    assert "is a folder, not a file" in place.problem(SKILLS)
    record.rename(place.root / "skills/a/other")
    place.write("skills/a/SKILL.md", "a")
    assert place.texts(SKILLS) == [("skills/a/SKILL.md", "a")]


def test_a_folder_that_changed_just_now_is_listed_again(place: Place):
    """Two changes within one tick of a coarse clock leave the same time."""
    folder = place.root / "skills"
    place.write("skills/a/SKILL.md", "a")
    tick = time.time()
    os.utime(folder, (tick, tick))
    assert len(place.files(SKILLS)) == 1
    place.write("skills/b/SKILL.md", "b")
    os.utime(folder, (tick, tick))
    assert len(place.files(SKILLS)) == 2


def test_of_very_many_records_the_first_are_read_and_the_rest_is_counted(place: Place):
    for number in range(MAX_RECORDS + 3):
        place.write(f"skills/s{number:04}/SKILL.md", "x")
    snapshot = place.reader.take({})
    assert len(list(snapshot.files(SKILLS))) == MAX_RECORDS and snapshot.unread[SKILLS] == 3


def test_a_file_that_is_being_replaced_is_never_taken_for_absent(tmp_path: Path):
    missing: list[float] = []

    def sleep(seconds: float) -> None:
        if not (tmp_path / "project/AGENTS.md").exists():
            missing.append(seconds)
            if sum(missing) >= 0.2:
                place.write("AGENTS.md", "second\n")

    place = Place(tmp_path, sleep)
    place.write("CLAUDE.md", "not this\n")
    place.write("AGENTS.md", "first\n")
    assert place.texts(CHAIN) == [("AGENTS.md", "first\n")]
    (place.root / "AGENTS.md").unlink()
    assert place.texts(CHAIN) == [("AGENTS.md", "second\n")]


def test_an_own_write_is_not_waited_for(tmp_path: Path):
    waited: list[float] = []
    place = Place(tmp_path, waited.append)
    place.write("PLAN.md", "one\n")
    place.reader.take({})
    waited.clear()
    place.write("PLAN.md", "two\n")
    place.reader.wrote("PLAN.md", revision_of(b"two\n"))
    assert place.texts("PLAN.md") == [("PLAN.md", "two\n")] and waited == []


def test_records_are_found_in_each_folder_on_the_way_to_where_we_work_and_in_no_other(place: Place):
    for folder in ("", "sub/", "sub/deep/", "other/"):
        place.write(f"{folder}.agents/skills/a/SKILL.md", folder)
    assert [text for _, text in place.texts(NEARER)] == ["", "sub/", "sub/deep/"]
    for number in range(MAX_RECORDS + 2):
        for folder in ("", "sub/"):
            place.write(f"{folder}.agents/skills/s{number:04}/SKILL.md", "x")
    assert place.reader.take({}).unread[NEARER] == 6


def test_another_name_of_a_record_counts_where_the_first_is_not_there_as_it_comes_and_goes(place: Place):
    low = place.write(".agents/skills/a/skill.md", "low")
    place.write(".agents/skills/b/SKILL.md", "b")
    paths = [".agents/skills/a/skill.md", ".agents/skills/b/SKILL.md"]
    assert [[path for path, _ in place.texts(NEARER)] for _ in range(2)] == [paths] * 2
    place.write(".agents/skills/a/skill.md", "lower")
    assert [text for _, text in place.texts(NEARER)] == ["lower", "b"]
    low.rename(low.with_name("SKILL.md"))
    assert [text for _, text in place.texts(NEARER)] == ["lower", "b"]
    (place.root / ".agents/skills/a/SKILL.md").unlink()
    assert [text for _, text in place.texts(NEARER)] == ["b"]


def test_a_single_file_is_read_by_the_name_that_it_is_shown_by_and_nothing_outside(place: Place, tmp_path: Path):
    place.write("skills/a/SKILL.md", "of the workspace")
    place.write("~/skills/a/SKILL.md", "of the user")
    (tmp_path / "x.md").write_text("outside")
    (place.root / "link.md").symlink_to(tmp_path / "x.md")
    assert place.reader.file("skills/a/SKILL.md").text == "of the workspace"
    assert place.reader.file("~/skills/a/SKILL.md").text == "of the user"
    assert place.reader.file("skills/b/SKILL.md") is None
    for name in ("../x.md", "~/../x.md", str(tmp_path / "x.md"), f"~/{tmp_path}/x.md", "skills/../../x.md"):
        assert place.reader.file(name) is None, name
    assert place.reader.file("link.md").problem is not None and place.reader.file("link.md").text == ""
