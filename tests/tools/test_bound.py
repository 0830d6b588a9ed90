from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyclaw.state.outputs import Outputs
from tinyclaw.state.redaction import mask
from tinyclaw.tools._bound import Collected, bound

LIMIT = 1_000
MARKER = r"\[… ([\d,]+) of ([\d,]+) bytes left out here, lines ([\d,]+) to ([\d,]+) of 1,000\. (.*)\]\n"


@pytest.fixture
def outputs(tmp_path) -> Outputs:
    return Outputs(tmp_path, "s", mask)


def collect(root: Path, outputs: Outputs, *pieces: str) -> str:
    collected = Collected(outputs, root, "bash", LIMIT)
    for piece in pieces:
        collected.write(piece)
    return collected.finish()


def test_a_short_text_stays_as_it_is_and_no_file_is_made(tmp_path, outputs):
    text = "x" * LIMIT
    assert bound(text, outputs, "bash", LIMIT) == text
    assert collect(tmp_path, outputs, text[:10], text[10:]) == text
    assert list(tmp_path.iterdir()) == []


def test_a_long_text_keeps_head_and_tail_and_names_what_is_between(tmp_path, outputs):
    text = "".join(f"line {number}\n" for number in range(1, 1001))
    result = bound(text, outputs, "bash", LIMIT)
    assert len(result) <= LIMIT
    assert result.startswith("line 1\nline 2\n")
    assert result.endswith("line 999\nline 1000\n")
    marker = re.search(MARKER, result)
    assert marker
    first, last = (int(marker[group].replace(",", "")) for group in (3, 4))
    head, tail = result[: marker.start()], result[marker.end() :]
    assert head == "".join(text.splitlines(keepends=True)[: first - 1])
    assert tail == "".join(text.splitlines(keepends=True)[last:])
    assert int(marker[1].replace(",", "")) == len(text) - len(head) - len(tail)
    stored = re.search(r"\S*\.task_outputs/\S+\.md", marker[5])
    assert stored
    assert (tmp_path / stored[0]).read_text() == text


def test_pieces_give_the_same_as_the_whole(tmp_path, outputs):
    text = "".join(f"line {number}\n" for number in range(1, 1001))
    whole = bound(text, outputs, "bash", LIMIT)
    pieces = collect(tmp_path, outputs, *(text[start : start + 333] for start in range(0, len(text), 333)))
    assert pieces.replace("2-bash", "1-bash") == whole
    assert (tmp_path / ".task_outputs/s/2-bash.md").read_text() == text


def test_one_huge_line_is_cut_between_characters(tmp_path, outputs):
    result = collect(tmp_path, outputs, *["日本語😀" * 100] * 50)
    assert len(result) <= LIMIT
    assert result.startswith("日本語😀")
    assert result.endswith("日本語😀")
    assert "within line 1" in result
    assert "\ufffd" not in result


def test_a_secret_that_the_cut_divides_is_masked_all_the_same(tmp_path, outputs):
    body = "\n".join("MIIEpAIBAAKCAQEA" + "q7" * 24 for _ in range(20))
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\n"
    result = collect(tmp_path, outputs, "x\n" * 2_000, key)
    assert "MIIE" not in result
    assert "[masked:" in result


def test_a_disk_that_refuses_costs_the_middle_alone_and_it_is_said(tmp_path, outputs):
    (tmp_path / ".task_outputs").write_text("in the way")
    text = "head\n" + "x\n" * 2_000 + "tail\n"
    for result in (bound(text, outputs, "bash", LIMIT), collect(tmp_path, outputs, *text.splitlines(keepends=True))):
        assert len(result) <= LIMIT
        assert result.startswith("head\n")
        assert result.endswith("tail\n")
        assert "could not be kept" in result


@settings(max_examples=50, deadline=None)
@given(st.text(st.sampled_from("ab\n日😀"), min_size=LIMIT // 2).map(lambda text: text * 3), st.integers(1, 700))
def test_every_result_fits_and_consists_of_the_text(tmp_path_factory, text, size):
    root = tmp_path_factory.mktemp("w")
    result = collect(
        root, Outputs(root, "s", lambda text: text), *(text[at : at + size] for at in range(0, len(text), size))
    )
    assert len(result) <= LIMIT
    head, _, tail = re.split(r"\n?\[… (.*)\]\n", result) if len(text) > LIMIT else (result, "", "")
    assert text.startswith(head)
    assert text.endswith(tail)
