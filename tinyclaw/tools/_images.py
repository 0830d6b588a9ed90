"""Pictures by their content: what they are, how large, and whether the Messages API takes them.

Limits: https://docs.claude.com/en/docs/build-with-claude/vision (5 MB of base64, 8,000 pixels a side).
"""

from __future__ import annotations

import base64
import re
import zlib
from typing import NamedTuple

from tinyclaw.errors import ToolError
from tinyclaw.types import Image

MAX_BASE64_BYTES = 5 * 1024 * 1024
MAX_SIDE_PIXELS = 8_000

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class Picture(NamedTuple):
    """A checked picture: media type and size in pixels."""

    media_type: str
    width: int
    height: int


def media_type(head: bytes) -> str:
    """The media type that a file beginning with ``head`` claims; empty when it is no picture the API knows."""
    if head.startswith(_PNG):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else ""


def base64_bytes(size: int) -> int:
    """How long ``size`` bytes are as base64."""
    return 4 * -(-size // 3)


def check_size(name: str, size: int) -> None:
    """Raises: ToolError when ``size`` bytes are over the limit as base64."""
    if base64_bytes(size) > MAX_BASE64_BYTES:
        raise ToolError(
            f"{name} is too large to be shown: {base64_bytes(size):,} bytes as base64 ({size:,} in the file), "
            f"the limit is {MAX_BASE64_BYTES:,}. Make a smaller copy with bash and read that."
        )


def load(name: str, data: bytes) -> tuple[Picture, Image]:
    """The picture in ``data``, ready for the API.

    Raises: ToolError when it is broken or over a limit, with the limit and the real value.
    """
    check_size(name, len(data))
    try:
        picture = _PARSERS[media_type(data)](data)
    except KeyError as error:
        raise ToolError(f"{name} changed while it was read and is no picture any more; read it again.") from error
    except (ValueError, IndexError) as error:
        raise ToolError(
            f"{name} is a broken {media_type(data)[6:].upper()} picture ({error}); it cannot be shown."
        ) from error
    if max(picture.width, picture.height) > MAX_SIDE_PIXELS:
        raise ToolError(
            f"{name} is {picture.width:,}x{picture.height:,} pixels, the limit is {MAX_SIDE_PIXELS:,} a side. "
            "Make a smaller copy with bash and read that."
        )
    return picture, Image(picture.media_type, base64.b64encode(data).decode("ascii"))


def _png(data: bytes) -> Picture:
    """Walks all chunks, as the specification's section 5 lays them out, and checks each one's sum."""
    at = len(_PNG)
    kinds: list[bytes] = []
    while not kinds or kinds[-1] != b"IEND":
        length = _number(data, at, 4)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        if _number(data, at + 8 + length, 4) != zlib.crc32(kind + body):
            raise ValueError(f"the sum of its part {kind.decode('latin-1')!r} is wrong")
        kinds.append(kind)
        at += 12 + length
    if kinds[0] != b"IHDR" or b"IDAT" not in kinds:
        raise ValueError("it has no picture data")
    return _sized("image/png", _number(data, 16, 4), _number(data, 20, 4))


def _jpeg(data: bytes) -> Picture:
    if b"\xff\xd9" not in data[-64:]:
        raise ValueError("its end is missing")
    at = 2
    while True:
        if data[at] != 0xFF:
            raise ValueError(f"no marker at byte {at}")
        marker = data[at + 1]
        if marker in _JPEG_FRAME:
            return _sized("image/jpeg", _number(data, at + 7, 2), _number(data, at + 5, 2))
        at += 1 if marker == 0xFF else 2 + _number(data, at + 2, 2)


def _gif(data: bytes) -> Picture:
    if not data.rstrip(b"\0").endswith(b";"):
        raise ValueError("its end is missing")
    return _sized("image/gif", _number(data, 6, 2, "little"), _number(data, 8, 2, "little"))


def _webp(data: bytes) -> Picture:
    if len(data) < 8 + _number(data, 4, 4, "little"):
        raise ValueError("its end is missing")
    kind = data[12:16]
    if kind == b"VP8X":
        return _sized("image/webp", 1 + _number(data, 24, 3, "little"), 1 + _number(data, 27, 3, "little"))
    if kind == b"VP8L":
        bits = _number(data, 21, 4, "little")
        return _sized("image/webp", 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
    if kind == b"VP8 " and re.match(rb"\x9d\x01\x2a", data[23:26]):
        return _sized("image/webp", _number(data, 26, 2, "little") & 0x3FFF, _number(data, 28, 2, "little") & 0x3FFF)
    raise ValueError("its first part is unknown")


_PARSERS = {"image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}


def _sized(media: str, width: int, height: int) -> Picture:
    if not width or not height:
        raise ValueError("it has no size")
    return Picture(media, width, height)


def _number(data: bytes, at: int, length: int, order: str = "big") -> int:
    piece = data[at : at + length]
    if len(piece) < length:
        raise ValueError("its end is missing")
    return int.from_bytes(piece, "little" if order == "little" else "big")
