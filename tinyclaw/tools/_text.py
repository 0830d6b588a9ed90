"""Bytes of a text file as text, and back without touching a byte that was not meant.

``decode`` is lossless: ``text`` encodes to exactly the bytes that it came from. Bytes that no
encoding explains travel as lone surrogates and are only replaced when text is shown.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from tinyclaw.errors import ToolError

SNIFF_BYTES = 8_000
"""How far a NUL is looked for before a file counts as binary; git's own measure."""

REPLACEMENT = "\ufffd"
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_KINDS = (
    (b"%PDF-", "a PDF document; pdftotext in bash may give its text"),
    (b"PK\x03\x04", "a ZIP archive (also docx, xlsx, jar, whl)"),
    (b"\x1f\x8b", "gzip-compressed data"),
    (b"BZh", "bzip2-compressed data"),
    (b"\xfd7zXZ\0", "xz-compressed data"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (b"\x7fELF", "an ELF program or library"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program or library"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\0asm", "a WebAssembly module"),
)
_STRAY = re.compile("[\ud800-\udfff]")
_NOT_ASCII = re.compile("[^\0-\x7f]")


@dataclass(frozen=True)
class Encoding:
    """How a file's bytes stand for text. ``damaged``: some of them stand for nothing."""

    name: str = "utf-8"
    bom: bytes = b""
    damaged: bool = False

    @property
    def note(self) -> str:
        """One clause for the reader, empty for plain UTF-8."""
        if self.damaged:
            return f"not valid UTF-8: bytes that mean nothing are shown as {REPLACEMENT}; quote around them"
        if self.name in ("latin-1", "cp1252"):
            return f"not UTF-8, taken as {self.name}; edits keep its bytes"
        return "" if self.name == "utf-8" else f"encoded as {self.name.upper()}"

    def measure(self, text: str) -> int:
        """How many bytes ``text``, a piece of a decoded file, takes in it."""
        return len(text.encode(self.name, "surrogateescape"))

    def encode(self, text: str) -> bytes:
        """New text as bytes of this file, without its byte order mark.

        Raises: ToolError when the encoding has no such character, or the text stands for bytes nobody knows.
        """
        if self.damaged and REPLACEMENT in text:
            raise ToolError(
                f"The text holds {REPLACEMENT}, which stands for bytes of this file that are not valid UTF-8. "
                "Edit around them with smaller pieces, so that they stay as they are."
            )
        try:
            return text.encode(self.name)
        except UnicodeEncodeError as error:
            line = text.count("\n", 0, error.start) + 1
            raise ToolError(
                f"The file is encoded as {self.name}, which cannot hold {text[error.start]!r} (line {line} of the "
                "new text). Use characters that it has, or convert the file first (iconv in bash)."
            ) from error


@dataclass(frozen=True)
class Decoded:
    """A file's text without its byte order mark, line endings as they are."""

    text: str
    encoding: Encoding


def decode(data: bytes) -> Decoded:
    """The text of ``data``: by its byte order mark, as UTF-8, or as the likeliest single-byte encoding."""
    encoding = guess_encoding(data)
    errors = "surrogateescape" if encoding.damaged else "strict"
    return Decoded(data[len(encoding.bom) :].decode(encoding.name, errors), encoding)


def guess_encoding(data: bytes, *, whole: bool = True) -> Encoding:
    """How ``data`` is best read as text without losing a byte. Not ``whole``: the last character may be cut."""
    for bom, name in _BOMS:
        if data.startswith(bom) and _decodes(data[len(bom) :], name, whole):
            return Encoding(name, bom)
    if _decodes(data, "utf-8", whole):
        return Encoding()
    bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    text = data[len(bom) :].decode("utf-8", "surrogateescape")
    stray = len(_STRAY.findall(text))
    if bom or len(_NOT_ASCII.findall(text)) >= 2 * stray:
        return Encoding("utf-8", bom, damaged=True)
    if re.search(rb"[\x80-\x9f]", data) and _decodes(data, "cp1252", whole):
        return Encoding("cp1252")
    return Encoding("latin-1")


def is_binary(data: bytes, *, whole: bool = True) -> bool:
    """Whether this is no text: a NUL near its start that no byte order mark explains, or a PDF."""
    head = data[:SNIFF_BYTES]
    return head.startswith(b"%PDF-") or (b"\0" in head and not guess_encoding(data, whole=whole).bom)


def describe_binary(head: bytes) -> str:
    """What kind of binary file begins like this, as far as its first bytes tell."""
    return next((kind for magic, kind in _KINDS if head.startswith(magic)), "a binary file")


def shown(text: str) -> str:
    """``text`` as it may enter the conversation: stray bytes, NULs and CRLF made readable."""
    return _STRAY.sub(REPLACEMENT, text.replace("\r\n", "\n")).replace("\0", "␀")


def _decodes(data: bytes, name: str, whole: bool) -> bool:
    try:
        codecs.getincrementaldecoder(name)().decode(data, whole)
    except UnicodeDecodeError:
        return False
    return True
