"""The pinned prefix: kept once, rebuilt exactly, and nothing private in the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.state.transcript.strategies import inputs, texts
from tinyclaw.errors import StateError
from tinyclaw.state.transcript.prefixes import Prefix, PrefixBlock, PrefixStore

TOOL = {"name": "read", "description": "Read <a> file.\n-->", "input_schema": {"type": "object"}}
PREFIX = Prefix(
    (TOOL,),
    (
        PrefixBlock("base", "You are tinyclaw.\n\n<!-- tc:end -->"),
        PrefixBlock("instructions:~/AGENTS.md", "my secret habits", "~/AGENTS.md", "aaaa", private=True),
        PrefixBlock("instructions:AGENTS.md", "Use tabs.", "AGENTS.md", "bbbb"),
    ),
)


@pytest.fixture
def store(tmp_path: Path) -> PrefixStore:
    return PrefixStore(tmp_path / ".transcripts", tmp_path / "user")


def again(store: PrefixStore) -> PrefixStore:
    """A store that has nothing in memory."""
    return PrefixStore(store.folder.parent, store.user_folder.parent)


def test_a_prefix_comes_back_with_tools_blocks_and_places(store):
    store.save(PREFIX)
    assert again(store).load(PREFIX.hash) == PREFIX


@given(st.lists(inputs, max_size=2), st.lists(texts, max_size=3))
def test_any_tools_and_texts_come_back_with_the_same_hash(tmp_path_factory, tools, written):
    store = PrefixStore(tmp_path_factory.mktemp("w"), tmp_path_factory.mktemp("u"))
    prefix = Prefix(tuple(tools), tuple(PrefixBlock(f"b{n}", text) for n, text in enumerate(written)))
    store.save(prefix)
    loaded = again(store).load(prefix.hash)
    assert loaded is not None and (loaded.hash, loaded.blocks) == (prefix.hash, prefix.blocks)


def test_the_hash_is_of_what_is_sent_and_of_nothing_else():
    renamed = Prefix(PREFIX.tools, tuple(PrefixBlock("x", block.text) for block in PREFIX.blocks))
    assert renamed.hash == PREFIX.hash
    assert Prefix((), PREFIX.blocks).hash != PREFIX.hash
    assert Prefix(PREFIX.tools, PREFIX.blocks[::-1]).hash != PREFIX.hash


def test_what_is_private_stays_at_user_level(store):
    store.save(PREFIX)
    in_the_workspace = b"".join(path.read_bytes() for path in store.folder.iterdir())
    assert b"secret habits" not in in_the_workspace and b"Use tabs." in in_the_workspace
    assert [path.read_text() for path in store.user_folder.iterdir()] == ["my secret habits"]


def test_a_prefix_whose_private_part_is_gone_is_none(store):
    store.save(PREFIX)
    for path in store.user_folder.iterdir():
        path.unlink()
    assert again(store).load(PREFIX.hash) is None


def test_a_prefix_file_that_somebody_edited_is_none(store):
    store.save(PREFIX)
    path = store.folder / f"{PREFIX.hash}.md"
    path.write_text(path.read_text().replace("Use tabs.", "Use spaces."))
    assert again(store).load(PREFIX.hash) is None


def test_a_prefix_file_that_somebody_broke_or_deleted_is_written_again(store):
    store.save(PREFIX)
    path = store.folder / f"{PREFIX.hash}.md"
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    again(store).save(PREFIX)
    assert path.read_bytes() == whole
    path.unlink()
    store.save(PREFIX)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("name", ["", "gone", "../../etc/passwd", "a/b", "0123456789abcdef"])
def test_a_name_that_is_no_prefix_is_none(store, name):
    assert store.load(name) is None


@pytest.mark.parametrize("tools", ["{", "{}", "[1, 2]", ""])
def test_a_tools_block_that_somebody_broke_is_none(store, tools):
    store.save(PREFIX)
    path = store.folder / f"{PREFIX.hash}.md"
    text = path.read_text()
    begin, end = text.index("```json\n") + 8, text.index("\n```\n")
    path.write_text(text[:begin] + tools + text[end:])
    assert again(store).load(PREFIX.hash) is None


def test_what_the_prefix_states_of_a_file_is_found_by_its_path():
    stated = PREFIX.stated("AGENTS.md")
    assert stated is not None and stated.revision == "bbbb"
    assert PREFIX.stated("PLAN.md") is None


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path):
    (tmp_path / "prefixes").write_text("in the way")
    with pytest.raises(StateError, match="prefixes"):
        PrefixStore(tmp_path, tmp_path / "user").save(PREFIX)
