"""What servers say of their models, kept in a file that people can edit."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tinyclaw.errors import StateError
from tinyclaw.model.limits import FILE, Limits, LimitsFile, limits_from

TODAY = date(2026, 11, 30)
SERVER = "http://localhost:8000"


def listed(**models):
    return {"data": [{"id": name, "max_input_tokens": size[0], "max_tokens": size[1]} for name, size in models.items()]}


def test_what_a_server_says_is_kept_and_found_again(tmp_path: Path):
    file = LimitsFile(tmp_path, SERVER)
    assert (file.of("m"), file.is_fresh(TODAY)) == (None, False)
    file.learn(limits_from(listed(m=(1_000_000, 128_000), n=(5_000, 500))), TODAY)
    assert LimitsFile(tmp_path, SERVER).of("m") == Limits(1_000_000, 128_000)
    assert "| http://localhost:8000 | `m` | 1,000,000 | 128,000 | 2026-11-30 |" in (tmp_path / FILE).read_text()
    assert LimitsFile(tmp_path, "https://api.anthropic.com").of("m") is None


def test_what_a_person_wrote_stays_when_the_server_is_asked_again(tmp_path: Path):
    mine = "# Mine\r\n\r\n| server | model | context window | max output | date |\r\n|---|---|---|---|---|\r\n"
    mine += f"| {SERVER} | `m` | 64,000 | 4,000 | 2026-01-01 |\r\n| http://t | `x` | 64k | 1 | ? |\r\n\r\nA remark.\r\n"
    (tmp_path / FILE).write_bytes(mine.encode())
    LimitsFile(tmp_path, SERVER).learn({"m": Limits(10, 1), "a": Limits(20, 2)}, TODAY)
    lines = (tmp_path / FILE).read_bytes().decode().split("\r\n")
    changed = mine.split("\r\n")
    changed[4] = f"| {SERVER} | `m` | 10 | 1 | 2026-11-30 |"
    changed.insert(6, f"| {SERVER} | `a` | 20 | 2 | 2026-11-30 |")
    assert lines == changed
    (tmp_path / FILE).write_bytes(b"caf\xe9\n")
    with pytest.raises(StateError, match="is not UTF-8"):
        LimitsFile(tmp_path, SERVER).learn({"m": Limits(10, 1)}, TODAY)
    assert (tmp_path / FILE).read_bytes() == b"caf\xe9\n"


def test_rows_go_into_the_table_of_their_own_and_it_is_made_where_there_is_none(tmp_path: Path):
    mine = "Prose alone.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    (tmp_path / FILE).write_text(mine)
    file = LimitsFile(tmp_path, SERVER)
    file.learn({"k": Limits(5, 6)}, TODAY)
    file.learn({"k": Limits(5, 6), "m": Limits(7, 8)}, TODAY)
    assert (tmp_path / FILE).read_text().startswith(mine) and file.is_fresh(TODAY)
    assert (file.of("k"), file.of("m")) == (Limits(5, 6), Limits(7, 8))


@pytest.mark.parametrize("number", ["9" * 5_000, "9" * 400, "1e9", "-3", ""])
def test_a_number_that_is_none_is_a_broken_row(tmp_path: Path, number):
    row = f"| server | … |\n|---|---|\n| {SERVER} | `m` | {number} | 3 | 2026-11-30 |\n"
    (tmp_path / FILE).write_text(row)
    assert LimitsFile(tmp_path, SERVER).of("m") is None


def test_each_server_has_rows_of_its_own_and_a_newer_answer_takes_the_place_of_an_older(tmp_path: Path):
    one, other = LimitsFile(tmp_path, SERVER), LimitsFile(tmp_path, "http://other")
    one.learn({"m": Limits(10, 1), "gone": Limits(10, 1)}, TODAY)
    other.learn({"m": Limits(20, 2)}, TODAY)
    one.learn({"m": Limits(30, 3)}, TODAY)
    assert (one.of("m"), one.of("gone"), other.of("m")) == (Limits(30, 3), Limits(10, 1), Limits(20, 2))


@pytest.mark.parametrize(("day", "fresh"), [(1, False), (24, True), (30, True)])
def test_a_week_later_the_server_is_asked_again(tmp_path: Path, day, fresh):
    file = LimitsFile(tmp_path, SERVER)
    file.learn({"m": Limits(10, 1)}, date(2026, 11, day))
    assert file.is_fresh(TODAY) is fresh


def test_a_person_may_change_a_row_and_a_broken_one_is_left_out(tmp_path: Path):
    file = LimitsFile(tmp_path, SERVER)
    file.learn({"m": Limits(10, 1), "n": Limits(10, 1), "o": Limits(10, 1)}, TODAY)
    text = (tmp_path / FILE).read_text()
    text = text.replace("| `m` | 10 | 1 |", "| `m` | 4,000 | 1 |").replace("| `n` | 10 | 1 |", "| `n` | many | 1 |")
    (tmp_path / FILE).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert (file.of("m"), file.of("n"), file.of("o")) == (Limits(4_000, 1), None, Limits(10, 1))
    (tmp_path / FILE).write_bytes(b"\xff\0")
    assert file.of("m") is None and not file.is_fresh(TODAY)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {"data": None},
        {"data": ["m"]},
        {"data": [{"id": "m"}]},
        {"data": [{"id": 3, "max_input_tokens": 5, "max_tokens": 3}]},
        {"data": [{"id": "m", "max_input_tokens": True, "max_tokens": 3}]},
        {"data": [{"id": "m", "max_input_tokens": 0, "max_tokens": 3}]},
        {"data": [{"id": "a|b", "max_input_tokens": 5, "max_tokens": 3}]},
        {"object": "list", "data": [{"id": "m", "object": "model", "max_model_len": 4096}]},
    ],
)
def test_a_list_that_says_nothing_of_limits_teaches_nothing(answer):
    assert limits_from(answer) == {}
