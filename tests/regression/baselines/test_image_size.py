"""Width and height of images, from files that real programs wrote the like of."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.compare.compare_files import Size, find_size
from pytest_golden.regression.model import ReasonKind

if TYPE_CHECKING:
    from tests.regression.baselines.files import Files


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def jpeg(width: int, height: int, *, frame: int = 0xC0, profile: int = 0) -> bytes:
    def segment(marker: int, data: bytes) -> bytes:
        return bytes((0xFF, marker)) + struct.pack(">H", len(data) + 2) + data

    profiles = b"".join(segment(0xE2, b"\xff\xc0" * 30_000) for _ in range(profile))
    size = segment(frame, struct.pack(">BHHB", 8, height, width, 1) + b"\1\x11\0")
    return (
        b"\xff\xd8"
        + segment(0xE0, b"JFIF\0")
        + profiles
        + segment(0xC4, b"\0" * 20)
        + b"\xff\x01\xff"
        + size
        + b"\xff\xd9"
    )


def webp(kind: bytes, data: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", len(data) + 12) + b"WEBP" + kind + struct.pack("<I", len(data)) + data


LOSSLESS = webp(b"VP8L", b"\x2f" + struct.pack("<I", (640 - 1) | (480 - 1) << 14) + b"\0" * 5)
LOSSY = webp(b"VP8 ", b"\x30\1\0\x9d\x01\x2a" + struct.pack("<HH", 640 | 1 << 14, 480) + b"\0" * 5)
EXTENDED = webp(b"VP8X", b"\x10\0\0\0" + (639).to_bytes(3, "little") + (479).to_bytes(3, "little"))
BMP = b"BM" + b"\0" * 12 + struct.pack("<Iii", 40, 640, -480) + b"\0" * 30
OLD_BMP = b"BM" + b"\0" * 12 + struct.pack("<IHH", 12, 640, 480) + b"\0" * 30


@pytest.mark.parametrize(
    "image",
    [
        png(640, 480),
        jpeg(640, 480),
        jpeg(640, 480, frame=0xC2, profile=3),
        b"GIF89a" + struct.pack("<HH", 640, 480),
        b"GIF87a" + struct.pack("<HH", 640, 480) + b"\0",
        LOSSLESS,
        LOSSY,
        EXTENDED,
        BMP,
        OLD_BMP,
        b'<?xml version="1.0"?>\n<!-- c -->\n<svg xmlns="http://www.w3.org/2000/svg" width="640" height=\'480px\'>',
        b'<svg stroke-width="3" viewBox="0 0 640 480"/>',
        b'<svg viewBox="0,0,640,480" width="100%"></svg>',
    ],
)
def test_the_size_of_an_image_is_found(image: bytes) -> None:
    assert find_size(image) == Size("640", "480")


@pytest.mark.parametrize(
    "image", [png(6, 4), jpeg(6, 4), LOSSLESS, LOSSY, EXTENDED, BMP, OLD_BMP, b"GIF89a" + b"\1" * 4]
)
def test_a_head_that_is_cut_short_has_no_size_or_the_right_one(image: bytes) -> None:
    sizes = {find_size(image[:length]) for length in range(len(image))}
    assert sizes <= {None, find_size(image)}


@pytest.mark.parametrize("image", [b"", b"text", b"<svg>", b'<svg viewBox="0 0 1">', b"\x89PNG\r\n\x1a\n" + b"\0" * 50])
def test_what_is_no_image_has_no_size(image: bytes) -> None:
    assert find_size(image) is None


@given(
    st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF????WEBPVP8X", b"BM", b"<svg "]),
    st.binary(max_size=80),
)
def test_any_bytes_have_a_size_or_none(sign: bytes, rest: bytes) -> None:
    find_size(sign + rest)


def test_images_of_one_size_hold_whatever_they_show(files: Files) -> None:
    assert files.compare("a.png", png(6, 4) + b"other", png(6, 4), compare="image_size") is None
    found = files.compare("a.png", png(6, 4), png(6, 5), compare="image_size")
    assert found is not None
    assert (found.kind, found.message) == (
        ReasonKind.OUTPUT_DIFFERS,
        "out/a.png is 6 x 4, its baseline 6 x 5 (width x height)",
    )


def test_what_is_no_image_is_told_on_its_side(files: Files) -> None:
    output = files.compare("a.png", b"text", png(1, 1), compare="image_size")
    baseline = files.compare("a.png", png(1, 1), b"text", compare="image_size")
    assert output is not None
    assert baseline is not None
    assert (output.kind, baseline.kind) == (ReasonKind.OUTPUT_UNREADABLE, ReasonKind.BASELINE_UNREADABLE)
    assert output.message.startswith("out/a.png is no PNG, JPEG,")
