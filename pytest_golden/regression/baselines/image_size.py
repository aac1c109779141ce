"""Comparison of images by width and height alone, read from the head of the file: PNG, JPEG, GIF, WebP, BMP, SVG."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.regression.baselines.model import Mismatch, UnreadableError
from pytest_golden.regression.baselines.opening import read_chunks
from pytest_golden.regression.model import ReasonKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_golden.regression.baselines.model import Content

# A JPEG may carry a colour profile and a small picture before its size.
_HEAD_CHUNKS = 16
# Markers of a JPEG that begin a frame, which has the size: all SOFn but DHT, JPG and DAC.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})
_SVG = re.compile(rb"<svg\b([^>]{0,10000})>", re.IGNORECASE)
_SVG_PART = re.compile(rb"""(?<![\w-])(width|height|viewBox)\s*=\s*["']\s*([^"']{1,200}?)\s*["']""")
_LENGTH = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(?:px)?")


class Size(NamedTuple):
    """Width and height as the file says them: pixels, or in an SVG a length with its unit."""

    width: str
    height: str

    def __str__(self) -> str:
        """Give `640 x 480`."""
        return f"{self.width} x {self.height}"


def compare_image_sizes(actual: Content, baseline: Content, *, shown_as: str) -> Mismatch | None:
    """Compare width and height of two images.

    Raises:
        UnreadableError: one of them cannot be read, or is no image of a kind that is known here.
    """
    ours, theirs = _read(actual), _read(baseline)
    if ours == theirs:
        return None
    return Mismatch(ReasonKind.OUTPUT_DIFFERS, f"{shown_as} is {ours}, its baseline {theirs} (width x height)")


def find_size(head: bytes) -> Size | None:
    """Find the size in the beginning of an image; None when it is no image, or cut short before it."""
    for sign, find in _KINDS:
        if head.startswith(sign):
            found = find(head)
            return None if found is None else Size(*map(str, found))
    return _find_svg(head)


def _read(content: Content) -> Size:
    size = find_size(b"".join(islice(read_chunks(content), _HEAD_CHUNKS)))
    if size is None:
        raise UnreadableError(content.side, "is no PNG, JPEG, GIF, WebP, BMP or SVG whose size can be read")
    return size


def _png(head: bytes) -> tuple[int, int] | None:
    if head[12:16] != b"IHDR" or len(head) < 24:
        return None
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def _gif(head: bytes) -> tuple[int, int] | None:
    return _little_pair(head, 6, 2)


def _bmp(head: bytes) -> tuple[int, int] | None:
    if int.from_bytes(head[14:18], "little") == 12:
        return _little_pair(head, 18, 2)
    if len(head) < 26:
        return None
    # A negative height only says that the rows stand from the top down.
    sides = (int.from_bytes(head[at : at + 4], "little", signed=True) for at in (18, 22))
    width, height = map(abs, sides)
    return width, height


def _jpeg(head: bytes) -> tuple[int, int] | None:
    place = 2
    while place + 4 <= len(head) and head[place] == 0xFF:
        marker = head[place + 1]
        if marker == 0xFF:
            place += 1
        elif marker in _WITHOUT_LENGTH:
            place += 2
        elif marker in _FRAMES:
            if len(head) < place + 9:
                return None
            return int.from_bytes(head[place + 7 : place + 9], "big"), int.from_bytes(
                head[place + 5 : place + 7], "big"
            )
        else:
            place += 2 + int.from_bytes(head[place + 2 : place + 4], "big")
    return None


def _webp(head: bytes) -> tuple[int, int] | None:
    kind = head[8:16]
    if kind == b"WEBPVP8 " and head[23:26] == b"\x9d\x01\x2a":
        found = _little_pair(head, 26, 2)
        return None if found is None else (found[0] & 0x3FFF, found[1] & 0x3FFF)
    if kind == b"WEBPVP8L" and len(head) >= 25 and head[20] == 0x2F:
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"WEBPVP8X" and (found := _little_pair(head, 24, 3)):
        return found[0] + 1, found[1] + 1
    return None


def _little_pair(head: bytes, at: int, width: int) -> tuple[int, int] | None:
    if len(head) < at + 2 * width:
        return None
    first, second = head[at : at + width], head[at + width : at + 2 * width]
    return int.from_bytes(first, "little"), int.from_bytes(second, "little")


def _find_svg(head: bytes) -> Size | None:
    found = _SVG.search(head[: 1 << 20])
    if found is None:
        return None
    parts = {name.decode(): value.decode("utf-8", "replace") for name, value in _SVG_PART.findall(found[1])}
    if "width" in parts and "height" in parts:
        return Size(_length(parts["width"]), _length(parts["height"]))
    corners = parts.get("viewBox", "").replace(",", " ").split()
    return Size(corners[2], corners[3]) if len(corners) == 4 else None


def _length(text: str) -> str:
    plain = _LENGTH.fullmatch(text)
    return plain[1] if plain else text


_KINDS: tuple[tuple[bytes, Callable[[bytes], tuple[int, int] | None]], ...] = (
    (b"\x89PNG\r\n\x1a\n", _png),
    (b"\xff\xd8\xff", _jpeg),
    (b"GIF87a", _gif),
    (b"GIF89a", _gif),
    (b"RIFF", _webp),
    (b"BM", _bmp),
)
