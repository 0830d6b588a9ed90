import pytest

from tinyclaw.state.transcript.prefixes import Prefix, PrefixBlock, PrefixStore

PREFIX = Prefix(
    ({"name": "read", "description": "Read a file.", "input_schema": {"type": "object"}},),
    (PrefixBlock("base", "Be good."), PrefixBlock("user", "Mine.", "~/AGENTS.md", "r1", private=True)),
)


@pytest.fixture
def store(tmp_path):
    return PrefixStore(tmp_path / "work", tmp_path / "user")


def files(store):
    return [store.folder / f"{PREFIX.hash}.md", *store.user_folder.iterdir()]


def test_a_saved_prefix_is_read_back_and_keeps_private_text_out_of_the_workspace(store, tmp_path):
    store.save(PREFIX)
    assert PrefixStore(tmp_path / "work", tmp_path / "user").load(PREFIX.hash) == PREFIX
    assert "Mine." not in files(store)[0].read_text()


def test_saving_again_touches_no_file(store):
    store.save(PREFIX)
    before = [path.stat() for path in files(store)]
    store.save(PREFIX)
    assert [path.stat() for path in files(store)] == before


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("harm", [lambda path: path.unlink(), lambda path: path.write_text("something else")])
def test_a_file_that_was_harmed_between_two_requests_is_whole_again_after_the_next(store, which, harm):
    store.save(PREFIX)
    path = files(store)[which]
    whole = path.read_bytes()
    harm(path)
    store.save(PREFIX)
    assert path.read_bytes() == whole
