from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tinyclaw.tools._terminal import Terminal


def shown(*pieces: bytes) -> str:
    terminal = Terminal()
    return "".join([*(terminal.feed(piece) for piece in pieces), terminal.close()])


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\ttext\nmore", "plain\ttext\nmore"),
        (b"one\r\ntwo\r\r\n", "one\ntwo\n"),
        (b"\r1%\r10%\r100%\n", "100%\n"),
        (b"long line\rshort\n", "shortline\n"),
        (b"long line\r\x1b[Kshort\n", "short\n"),
        (b"long\x1b[2K\rnew\n", "new \n"),
        (b"abc\x1b[1Gx", "xbc"),
        (b"abc\b\bX\n", "aXc\n"),
        (b"\b\bX", "X"),
        (b"\x1b[31;1mred\x1b[0m and \x1b(Bplain", "red and plain"),
        (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "alink"),
        (b"a\0b\x07\x0b\x7fc", "abc"),
        (b"A\377\376B", "A\ufffd\ufffdB"),
        (b"\xc2\x9b31mx", "31mx"),
        (b"\x1b]never ended\nline", "]never ended\nline"),
        (b"ends in \x1b[3", "ends in [3"),
    ],
)
def test_bytes_are_shown_as_a_terminal_would(data, text):
    assert shown(data) == text


PIECES = st.sampled_from(["a", "\n", "\r", "\b", "é", "日", "\x1b", "[", "K", "3", "m", "]", "\x07", "\\", "\0"])


@given(st.lists(PIECES, max_size=30).map(lambda pieces: "".join(pieces).encode()), st.integers(1, 5))
@example(b"\x1b]0;t\x1b\\x", 1)
def test_how_the_bytes_are_cut_into_pieces_changes_nothing(data, size):
    assert shown(*(data[start : start + size] for start in range(0, len(data), size))) == shown(data)


@given(st.binary(max_size=200))
def test_no_control_character_is_ever_shown(data):
    assert not set(shown(data)) & {chr(code) for code in (*range(9), *range(10, 32), *range(127, 160)) if code != 10}


def test_whole_lines_are_given_as_they_come_and_the_rest_is_held():
    terminal = Terminal()
    assert terminal.feed(b"one\ntw") == "one\n"
    assert terminal.feed(b"o\nthr") == "two\n"
    assert terminal.close() == "thr"


@pytest.mark.parametrize("unit", [b"\rx" * 8, b"\x1b]0;" * 4, b"\x1b[" * 8, b"x" * 16, b"\b" * 16, b"y\n" * 8])
def test_the_time_is_linear_in_the_bytes(unit):
    def seconds(repetitions: int) -> float:
        began = time.process_time()
        shown(*[b"a" * 60_000, *[unit * 1024] * repetitions])
        return time.process_time() - began

    seconds(1)
    assert seconds(16) < max(0.2, 40 * seconds(2))


@pytest.mark.parametrize(
    ("data", "binary"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89", True),
        (bytes(range(256)) * 40, True),
        (b"A\377\376B", False),
        (b"a\0b", False),
        ("日本語 ".encode() * 100, False),
        (b"\x1b[32mok\x1b[0m\r\n" * 100, False),
        (b"text " * 100 + b"\xff" * 9, False),
    ],
)
def test_binary_is_what_is_mostly_no_text(data, binary):
    terminal = Terminal()
    terminal.feed(data)
    assert terminal.binary is binary
