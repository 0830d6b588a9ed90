from __future__ import annotations

import base64
import os
import socket
import struct
import tracemalloc
import zlib

import pytest

from tests.tools.workspace import Bench, bench
from tinyclaw.errors import Interrupted
from tinyclaw.state.files import revision_of


@pytest.fixture
def ws(tmp_path) -> Bench:
    return bench(tmp_path / "ws")


def png(width: int, height: int, padding: int = 0) -> bytes:
    def part(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"\0" * (width + 1) * height)
    extra = part(b"teSt", os.urandom(padding)) if padding else b""
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + extra + part(b"IDAT", rows) + part(b"IEND", b"")


def jpeg(width: int, height: int) -> bytes:
    frame = struct.pack(">BHHB", 8, height, width, 1) + b"\x01\x11\x00"
    return b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0" + struct.pack(">H", 2 + len(frame)) + frame + b"\xff\xd9"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0,;"


def webp(width: int, height: int) -> bytes:
    body = (
        b"VP8X"
        + struct.pack("<I", 10)
        + b"\0" * 4
        + (width - 1).to_bytes(3, "little")
        + (height - 1).to_bytes(3, "little")
    )
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body


def test_a_small_file_is_shown_as_it_is(ws):
    ws.put("a.py", "def f():\n\treturn 'x'  \n")
    output = ws.call("read", path="a.py")
    assert output.text == "def f():\n\treturn 'x'  "
    assert output.paged
    assert output.revisions == {"a.py": revision_of(ws.bytes_of("a.py"))}


def test_what_was_read_is_noted(ws):
    ws.put("d/a.py", "x\n")
    ws.call("read", path="./d/../d/a.py")
    held = ws.context.ledger.base("d/a.py")
    assert held is not None and held.data == b"x\n"


def test_a_missing_break_at_the_end_is_said(ws):
    ws.put("a", "x\ny")
    assert ws.call("read", path="a").text == "x\ny\n\n[no line break at the end of the file]"


def test_a_page_holds_2000_lines_and_says_how_to_go_on(ws):
    ws.put("a", "".join(f"{n}\n" for n in range(1, 5001)))
    text = ws.call("read", path="a").text
    assert text.startswith("1\n2\n") and text.endswith("2000\n\n[lines 1-2000 of 5000; go on with offset=2001]")
    text = ws.call("read", path="a", offset=4001).text
    assert text.startswith("4001\n") and text.endswith("5000\n\n[lines 4001-5000 of 5000; the end]")


def test_offset_and_limit_choose_lines(ws):
    ws.put("a", "1\n2\n3\n4\n")
    assert ws.call("read", path="a", offset=2, limit=2).text == "2\n3\n\n[lines 2-3 of 4; go on with offset=4]"


def test_a_limit_over_2000_gives_a_page(ws):
    ws.put("a", "x\n" * 3000)
    assert "[lines 1-2000 of 3000; go on with offset=2001]" in ws.call("read", path="a", limit=9999).text


def test_a_page_ends_before_50_kilobytes(ws):
    ws.put("a", ("é" * 500 + "\n") * 100)
    text = ws.call("read", path="a").text
    assert "[lines 1-49 of 100; go on with offset=50]" in text
    assert len(text.encode()) < 50_200


def test_pages_together_are_the_file(ws):
    content = "".join(f"{'é' * (n % 300)} {n}\n" for n in range(1000))
    ws.put("a", content)
    lines: list[str] = []
    while len(lines) < 1000:
        page = ws.call("read", path="a", offset=len(lines) + 1).text
        lines += page.rpartition("\n\n[")[0].split("\n")
    assert "".join(f"{line}\n" for line in lines) == content


def test_a_long_line_is_cut_and_said(ws):
    ws.put("a", "x" * 2000 + "\n" + "y" * 2001 + "\nz\n")
    text = ws.call("read", path="a").text
    first, second, third = text.split("\n")[:3]
    assert (first, third) == ("x" * 2000, "z")
    assert second == "y" * 2000 + "… [cut: 2,000 of 2,001 characters]"
    assert "line 2 (2,001 characters)" in text


def test_offset_beyond_the_end_names_the_number_of_lines(ws):
    ws.put("a", "1\n2\n")
    assert "has 2 lines" in ws.fails("read", path="a", offset=3)


@pytest.mark.parametrize("arguments", [{"offset": 0}, {"limit": 0}, {"offset": -5}])
def test_lines_are_counted_from_one(ws, arguments):
    ws.put("a", "1\n")
    assert "from 1" in ws.fails("read", path="a", **arguments)


def test_a_file_over_256_kilobytes_needs_offset_or_limit(ws):
    ws.put("a", "line\n" * 60_000)
    error = ws.fails("read", path="a")
    assert "300,000 bytes" in error and "offset" in error and "grep" in error
    assert ws.context.ledger.seen("a") is None
    assert ws.call("read", path="a", offset=59_999).text == "line\nline\n\n[lines 59999-60000 of 60000; the end]"
    assert ws.context.ledger.seen("a") == revision_of(ws.bytes_of("a"))


def test_a_large_file_costs_no_more_memory_than_its_page(ws):
    with (ws.root / "big").open("wb") as file:
        for _ in range(40):
            file.write(b"0123456789abcdef\n" * 65_536)
    tracemalloc.start()
    try:
        text = ws.call("read", path="big", offset=2_000_000, limit=1).text
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert text == "0123456789abcdef\n\n[lines 2000000-2000000 of 2621440; go on with offset=2000001]"
    assert peak < 16_000_000


def test_one_endless_line_costs_no_more_memory_than_its_page(ws):
    ws.put("big", b"x" * 3_000_000 + b"\nend\n")
    text = ws.call("read", path="big", limit=5).text
    assert "[cut: 2,000 of 3,000,000 characters]\nend\n" in text


def test_reading_a_large_file_can_be_interrupted(ws):
    ws.put("big", b"x\n" * 400_000)
    ws.context.interrupt.set()
    with pytest.raises(Interrupted):
        ws.call("read", path="big", offset=5)


def test_bom_and_carriage_returns_are_not_shown(ws):
    ws.put("a", b"\xef\xbb\xbfimport os\r\nx\r\n")
    assert ws.call("read", path="a").text == "import os\nx"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_wide_text_with_a_byte_order_mark_is_decoded_and_said(ws, encoding):
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    ws.put("a", mark + "héllo\n☃\n".encode(encoding))
    text = ws.call("read", path="a").text
    assert text.startswith("héllo\n☃\n\n[encoded as UTF-")


def test_a_single_byte_encoding_is_guessed_and_said(ws):
    ws.put("a", b"x = 1\n# caf\xe9\n")
    assert ws.call("read", path="a").text.startswith("x = 1\n# café\n\n[not UTF-8, taken as latin-1")
    ws.put("b", b"\x93x\x94 \x80\n")
    assert ws.call("read", path="b").text.startswith("“x” €\n\n[not UTF-8, taken as cp1252")


def test_a_stray_byte_in_utf8_is_marked_and_said(ws):
    ws.put("a", "é é é\n".encode() + b"\xff\n")
    text = ws.call("read", path="a").text
    assert text.startswith("é é é\n\ufffd\n\n[not valid UTF-8")
    text.encode()


def test_a_binary_file_is_told_in_one_line(ws):
    ws.put("a", b"\x7fELF\x02\0\0\0")
    text = ws.call("read", path="a").text
    assert text.startswith("a: an ELF program or library, 8 bytes.") and "\n" not in text
    ws.put("b.pdf", b"%PDF-1.7\n...")
    assert "a PDF document" in ws.call("read", path="b.pdf").text
    assert ws.context.ledger.seen("a") is None


def test_an_empty_file_says_so(ws):
    ws.put("a", "")
    assert ws.call("read", path="a").text == "a is empty (0 bytes)."
    ws.put("x.png", b"")
    assert ws.call("read", path="x.png").text == "x.png is empty (0 bytes)."


def test_a_file_of_blank_lines_says_so(ws):
    ws.put("a", "\n \n")
    assert "only blank lines" in ws.call("read", path="a").text


def test_a_folder_is_listed_in_the_error(ws):
    ws.put("src/a.py", "")
    ws.put("src/sub/b.py", "")
    assert "src is a folder" in ws.fails("read", path="src")
    assert "a.py, sub/" in ws.fails("read", path="src")


def test_a_missing_file_names_its_neighbours(ws):
    ws.put("src/parser.py", "")
    assert "parser.py" in ws.fails("read", path="src/parsr.py")
    assert "parser.py" in ws.fails("read", path="src/PARSER.py")
    assert "src/" in ws.fails("read", path="scr/deep/parser.py")


def test_a_pipe_is_refused_without_waiting(ws):
    os.mkfifo(ws.root / "pipe")
    assert "pipe" in ws.fails("read", path="pipe")


def test_a_link_in_a_circle_and_a_socket_are_errors(ws):
    (ws.root / "loop").symlink_to("loop")
    ws.fails("read", path="loop")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(ws.root / "sock"))
        assert "socket" in ws.fails("read", path="sock")


def test_a_path_through_a_file_names_what_is_there(ws):
    ws.put("file", "x")
    assert "does not exist" in ws.fails("read", path="file/x")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_an_error(ws):
    ws.put("a", "x").chmod(0)
    assert "permission" in ws.fails("read", path="a").lower()


@pytest.mark.parametrize("name", ["../ws-secret/k", "a/../../ws-secret/k", "~/.ssh/id", "out/k", "n.md", "", "a\0b"])
def test_nothing_outside_the_workspace_is_read(ws, name):
    secret = ws.root.parent / "ws-secret"
    secret.mkdir()
    (secret / "k").write_text("the hidden text")
    (ws.root / "out").symlink_to(secret)
    (ws.root / "n.md").symlink_to(secret / "k")
    assert "hidden" not in ws.fails("read", path=name)


def test_a_link_that_stays_inside_is_read(ws):
    ws.put("real.md", "x\n")
    (ws.root / "link.md").symlink_to("real.md")
    assert ws.call("read", path="link.md").revisions == {"real.md": revision_of(b"x\n")}


@pytest.mark.parametrize(
    ("data", "media"),
    [(png(3, 2), "png"), (jpeg(3, 2), "jpeg"), (gif(3, 2), "gif"), (webp(3, 2), "webp")],
    ids=["png", "jpeg", "gif", "webp"],
)
def test_a_picture_is_known_by_its_content(ws, data, media):
    ws.put("x.txt", data)
    output = ws.call("read", path="x.txt")
    assert output.text == f"x.txt: image/{media}, 3x2 pixels"
    (image,) = output.images
    assert (image.media_type, base64.b64decode(image.data)) == (f"image/{media}", data)


@pytest.mark.parametrize("data", [png(3, 2), jpeg(3, 2), gif(3, 2), webp(3, 2)], ids=["png", "jpeg", "gif", "webp"])
def test_a_picture_cut_anywhere_is_refused(ws, data):
    for end in range(12, len(data)):
        ws.put("x", data[:end])
        assert "broken" in ws.fails("read", path="x")


def test_a_text_file_with_a_picture_name_is_text(ws):
    ws.put("x.png", "hello\n")
    output = ws.call("read", path="x.png")
    assert (output.text, output.images) == ("hello", ())


def test_a_picture_over_the_base64_limit_names_both_sizes(ws):
    data = png(3, 2, padding=4_500_000)
    ws.put("x.png", data)
    error = ws.fails("read", path="x.png")
    assert f"{4 * -(-len(data) // 3):,}" in error and "5,242,880" in error


def test_a_picture_just_under_the_limit_is_shown(ws):
    padding = 5_242_880 // 4 * 3 - len(png(3, 2, padding=1)) + 1
    data = png(3, 2, padding=padding)
    assert len(base64.b64encode(data)) == 5_242_880
    ws.put("x.png", data)
    assert ws.call("read", path="x.png").images


def test_a_picture_with_a_side_over_8000_pixels_names_its_size(ws):
    ws.put("x.png", png(9000, 10))
    error = ws.fails("read", path="x.png")
    assert "9,000x10" in error and "8,000" in error
    ws.put("y.png", png(8000, 1))
    assert ws.call("read", path="y.png").images
