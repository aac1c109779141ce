"""Bytes: equal or not, and where they first are not."""

from __future__ import annotations

import bz2
import gzip
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_golden.compare import compare_files as content_bytes
from pytest_golden.compare.opening import CHUNK_BYTES
from pytest_golden.regression.model import ReasonKind

if TYPE_CHECKING:
    from tests.regression.baselines.files import Files


def test_equal_files_hold_and_empty_ones_too(files: Files) -> None:
    assert files.compare("a.bin", b"\0\1\2", b"\0\1\2") is None
    assert files.compare("a.bin", b"", b"") is None


def test_the_first_difference_is_shown_with_what_stands_around_it(files: Files) -> None:
    baseline = bytes(range(256)) * 3
    output = baseline[:300] + b"XY" + baseline[302:]
    assert files.tell("a.bin", output, baseline).splitlines() == [
        "out/a.bin differs from its baseline, first at byte 300 (offset 0x12c, counted from 0)",
        "the output has 768 bytes, its baseline 768 bytes",
        "  00000110  10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f  |................|",
        "- 00000120  20 21 22 23 24 25 26 27 28 29 2a 2b 2c 2d 2e 2f  | !\"#$%&'()*+,-./|",
        "+ 00000120  20 21 22 23 24 25 26 27 28 29 2a 2b 58 59 2e 2f  | !\"#$%&'()*+XY./|",
        "?                                               ^^ ^^",
        "  00000130  30 31 32 33 34 35 36 37 38 39 3a 3b 3c 3d 3e 3f  |0123456789:;<=>?|",
        "  00000140  40 41 42 43 44 45 46 47 48 49 4a 4b 4c 4d 4e 4f  |@ABCDEFGHIJKLMNO|",
        "  00000150  50 51 52 53 54 55 56 57 58 59 5a 5b 5c 5d 5e 5f  |PQRSTUVWXYZ[\\]^_|",
    ]


def test_a_file_that_ends_early_is_told_as_such(files: Files) -> None:
    shorter = files.tell("a.bin", b"abc", b"abcdef")
    assert shorter.startswith("out/a.bin differs from its baseline: it ends after 3 bytes, and its baseline goes on\n")
    longer = files.tell("a.bin", b"abcdef", b"abc")
    assert longer.startswith("out/a.bin differs from its baseline: its baseline ends after 3 bytes, and it goes on\n")
    assert "1 byte," in files.tell("a.bin", b"a", b"")


@pytest.mark.parametrize("place", [CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 20, 2 * CHUNK_BYTES])
def test_a_difference_at_the_border_of_a_chunk_is_shown_whole(files: Files, place: int) -> None:
    baseline = bytes(3 * CHUNK_BYTES)
    message = files.tell("a.bin", baseline[:place] + b"\1" + baseline[place + 1 :], baseline)
    assert f"first at byte {place:,}" in message
    rows = [line for line in message.splitlines() if line.startswith(("  0", "+ "))]
    assert len(rows) == 5
    assert all(row.count(" 0") >= 15 for row in rows)


@pytest.mark.parametrize("place", [CHUNK_BYTES, CHUNK_BYTES + 3])
def test_a_file_that_ends_at_the_border_of_a_chunk_is_told(files: Files, place: int) -> None:
    whole = bytes(CHUNK_BYTES + 100)
    assert f"it ends after {place:,} bytes" in files.tell("a.bin", whole[:place], whole)


def test_of_archives_the_plain_content_is_compared(files: Files) -> None:
    assert files.compare("a.bin.gz", gzip.compress(b"abc", mtime=1), gzip.compress(b"abc", mtime=2)) is None
    message = files.tell("a.bz2", bz2.compress(b"abc" * 100), bz2.compress(b"abc" * 100 + b"d"))
    assert "it ends after 300 bytes" in message
    assert "the output has 300 bytes, its baseline 301 bytes" in message


def test_of_a_vast_archive_the_size_is_not_measured_to_the_end(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_bytes, "_MOST_MEASURED_BYTES", CHUNK_BYTES)
    message = files.tell("a.gz", gzip.compress(b"x" + bytes(5 * CHUNK_BYTES)), gzip.compress(bytes(CHUNK_BYTES)))
    assert f"the output has more than {3 * CHUNK_BYTES:,} bytes, its baseline {CHUNK_BYTES:,} bytes" in message


def test_equal_files_are_equal_whatever_they_should_be(files: Files) -> None:
    for name in ("a.json", "a.txt.gz", "a.zst"):
        assert files.compare(name, b"neither JSON nor an archive", b"neither JSON nor an archive") is None


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60), st.binary(max_size=60))
def test_only_equal_bytes_hold_and_the_place_is_right(files: Files, one: bytes, other: bytes) -> None:
    found = files.compare("a.bin", one, other)
    if one == other:
        assert found is None
        return
    assert found is not None
    assert found.kind == ReasonKind.OUTPUT_DIFFERS
    place = next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    expected = f"ends after {min(len(one), len(other))} byte" if place is None else f"at byte {place} (offset"
    assert expected in found.message
