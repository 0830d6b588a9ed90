"""The cache of the records: right after whatever happened to the files, and to itself."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.state.memory.test_store import NOW, index, note, save
from tinyclaw.state.memory.cache import RecordCache
from tinyclaw.state.memory.folder import Look
from tinyclaw.state.memory.record import Record
from tinyclaw.state.memory.store import Memory
from tinyclaw.state.redaction import mask


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "user" / "cache" / "memory.sqlite"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


def memory_in(root: Path, cache: Path | None) -> Memory:
    return Memory(root, lambda: NOW, mask, cache)


def names(memory: Memory, text: str) -> list[str]:
    return [head.name for head in memory.search(text, 10).heads]


def test_a_search_sees_every_change_that_was_made_before_it(root: Path, cache: Path):
    memory = memory_in(root, cache)
    save(memory, note("docs", "They are in the wiki."))
    assert names(memory, "wiki") == ["docs"]
    path = memory.files.path / "docs.md"
    path.write_text(path.read_text().replace("wiki", "book"))
    assert names(memory, "wiki") == [] and names(memory, "book") == ["docs"]
    path.rename(memory.files.path / "other.md")
    assert [head.slug for head in memory.search("book", 5).heads] == ["other"]
    (memory.files.path / "other.md").unlink()
    assert names(memory, "book") == []


def test_another_process_reads_nothing_that_did_not_change(root: Path, cache: Path):
    first = memory_in(root, cache)
    for number in range(3):
        save(first, note(f"note {number}", f"text {number}"))
    assert len(list(first.heads())) == 3
    db = sqlite3.connect(cache)
    with db:
        db.execute("UPDATE records SET changed = ?, description = 'as it was kept'", (0,))
        for path in first.files.path.glob("*.md"):
            status = path.stat()
            db.execute("UPDATE records SET changed = ? WHERE slug = ?", (status.st_ctime_ns, path.stem))
    db.close()
    second = memory_in(root, cache)
    save(second, note("note 1", "another text"))
    assert sorted(head.description for head in second.heads()) == ["another text", "as it was kept", "as it was kept"]


@pytest.mark.parametrize("damage", ["text", "empty", "version", "table", "folder"])
def test_a_cache_that_cannot_be_used_costs_nothing_but_time(root: Path, cache: Path, damage: str):
    save(memory_in(root, None), note("docs", "in the wiki"))
    cache.parent.mkdir(parents=True)
    if damage == "folder":
        cache.mkdir()
    elif damage == "text":
        cache.write_text("this is no database, whatever it is called\n" * 100)
    elif damage == "empty":
        cache.touch()
    else:
        db = sqlite3.connect(cache)
        db.execute("PRAGMA user_version = 77" if damage == "version" else "PRAGMA user_version = 1")
        db.execute("CREATE TABLE records (slug TEXT)")
        db.close()
    assert names(memory_in(root, cache), "wiki") == ["docs"]
    assert names(memory_in(root, cache), "wiki") == ["docs"]


def test_a_cache_where_nothing_can_be_written_is_kept_in_the_process(root: Path):
    save(memory_in(root, None), note("docs", "in the wiki"))
    assert names(memory_in(root, Path("/proc/no/such/place.sqlite")), "wiki") == ["docs"]


def test_no_secret_enters_the_cache_and_nobody_else_can_read_it(root: Path, cache: Path):
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    memory = memory_in(root, cache)
    memory.files.path.mkdir()
    (memory.files.path / "key.md").write_text(f"---\nname: key {secret}\ntype: user\n---\nit is {secret}\n")
    assert len(list(memory.heads())) == 1
    content = b"".join(path.read_bytes() for path in cache.parent.iterdir()).lower()
    assert secret.lower().encode() not in content and b"masked" in content
    assert cache.stat().st_mode & 0o077 == 0


def test_names_count_more_than_descriptions_and_those_more_than_texts(root: Path):
    memory = memory_in(root, None)
    save(memory, note("one", "filler " * 5 + "zebra", description="about animals of all kinds"))
    save(memory, note("two", "filler " * 6, description="zebra and animals of kinds"))
    save(memory, note("zebra", "filler " * 6, description="about animals of all kinds"))
    assert names(memory, "zebra") == ["zebra", "two", "one"]


@pytest.mark.parametrize("word", ["京都", "東", "naïve", "ﬁle", "C++", "AND", "a OR b", '"', "x*", "NEAR(a b)", "-"])
def test_any_text_can_be_searched_for(root: Path, word: str):
    memory = memory_in(root, None)
    save(memory, note("it", f"before {word} after"))
    save(memory, note("other", "nothing of that"))
    found = names(memory, word)
    assert found[:1] == (["it"] if any(char.isalnum() for char in word) else [])


def test_rare_words_alone_find_what_is_meant(root: Path):
    memory = memory_in(root, None)
    for number in range(20):
        save(memory, note(f"note {number}", f"fix the test of part{number}"))
    assert memory.looked_up().likely("fix the test", 5) == []
    assert names(memory, "fix the test of part7")[0] == "note 7"
    assert [head.name for head in memory.looked_up().likely("fix the part7", 5)] == ["note 7"]


def test_threads_of_one_session_search_at_once(root: Path, cache: Path):
    memory = memory_in(root, cache)
    for number in range(20):
        save(memory, note(f"note {number}", f"word{number}"))
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda n=n: found.append(names(memory, f"word{n}"))) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, found)) == sorted(str([f"note {number}"]) for number in range(20))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["red", "green", "blue", None])), max_size=12))
def test_what_the_cache_says_is_what_a_new_reading_says(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("m")
    memory = memory_in(folder, folder / "cache.sqlite")
    memory.files.path.mkdir()
    for slug, word in steps:
        path = memory.files.path / f"{slug}.md"
        if word is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(f"{word} text\n")
        fresh = memory_in(folder, None)
        for each in ("red", "green", "blue"):
            assert names(memory, each) == names(fresh, each)
        assert list(memory.heads()) == list(fresh.heads())
    count = len(list(memory.files.path.glob("?.md")))
    memory.index.write()
    assert (index(memory) if count else "").count("](") == count


def test_files_that_stand_are_not_read_again_and_one_change_costs_one_reading(cache: Path):
    read: list[str] = []

    def parse(slug: str) -> Record:
        read.append(slug)
        return Record.parse(f"about {slug}".encode(), slug)

    def opened() -> RecordCache:
        return RecordCache(cache, mask, lambda: 10**19)  # long after every change

    looks = {Look(f"n{number}", 10**18 + number, 5, number) for number in range(20)}
    opened().update(looks, parse)
    assert len(read) == 20
    read.clear()
    again = opened()
    again.update(looks, parse)
    assert read == [] and again.search("n7", 5).total == 1
    changed = {look for look in looks if look.slug not in ("n3", "n4")} | {Look("n3", 2 * 10**18, 5, 3)}
    again.update(changed, parse)
    assert read == ["n3"] and again.search("n4", 5).total == 0 and again.search("n3", 5).total == 1


def test_a_cache_that_is_damaged_while_it_is_used_is_made_anew(root: Path, cache: Path):
    memory = memory_in(root, cache)
    memory.files.path.mkdir()
    for number in range(300):
        text = f"word{number} " * 50
        (memory.files.path / f"n{number}.md").write_text(f"---\nname: note {number}\ncreated: {NOW}\n---\n{text}\n")
    assert memory.search("word7", 5).total == 1
    with cache.open("r+b") as file:
        for place in range(4_096, cache.stat().st_size, 8_192):
            file.seek(place)
            file.write(b"\xff" * 4_096)
    again = memory_in(root, cache)
    assert again.search("word7", 5).total == 1 and len(again.heads()) == 300
    assert again.find("note 9") is not None and again.looked_up().count_since("") == 300
    assert memory_in(root, cache).search("word8", 5).total == 1


def test_two_words_that_tell_something_find_what_many_records_are_about(root: Path):
    memory = memory_in(root, None)
    for number in range(9):
        save(memory, note(f"tests {number}", f"Tests run with pytest, number {number}."))
    save(memory, note("docs", "In the wiki."))
    assert len(memory.looked_up().likely("how do I run tests with pytest?", 5)) == 5
    assert [head.name for head in memory.looked_up().likely("tests number 3", 1)] == ["tests 3"]
    assert memory.looked_up().likely("please run it", 5) == []
