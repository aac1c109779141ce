"""Which comparison a file gets, what becomes of trouble, what is shown of a difference, and comparisons without a parser."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import struct
import zlib
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_golden.compare import comparing
from pytest_golden.compare import text_patterns as patterns
from pytest_golden.compare.comparing import Size, compare_files, find_size
from pytest_golden.compare.opening import CHUNK_BYTES, choose_comparison
from pytest_golden.errors import GoldenError
from pytest_golden.manifest.comparisons import COMPARISONS
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.model import ReasonKind
from tests.requirement import require

if TYPE_CHECKING:
    from tests.compare.files import Files


NAMES = ("a.txt", "a.json", "a.bin", "a.png", "a.csv")


def declare(name: str) -> DeclaredOutput:
    return DeclaredOutput(path=name, compare="image_size" if name == "a.png" else None)


@pytest.mark.parametrize("name", NAMES)
def test_an_output_that_is_gone_is_told(files: Files, name: str) -> None:
    found = compare_files(declare(name), files.root / name, files.write("b", name, "x"), shown_as=f"out/{name}")
    assert found is not None
    assert found.kind == ReasonKind.OUTPUT_UNREADABLE
    assert found.message == f"out/{name} is gone: it was removed after the run"


@pytest.mark.parametrize("name", NAMES)
def test_a_baseline_that_is_a_folder_is_told(files: Files, name: str) -> None:
    actual = files.write("view", name, "x")
    found = compare_files(declare(name), actual, files.root, shown_as=f"out/{name}")
    assert found is not None
    assert found.kind == ReasonKind.BASELINE_UNREADABLE
    assert found.message == f"the baseline of out/{name} is not a regular file"


def test_a_baseline_that_is_needed_and_not_there_is_told(files: Files) -> None:
    found = compare_files(declare("a.txt"), files.write("view", "a.txt", "x"), None, shown_as="a.txt")
    assert found is not None
    assert (found.kind, found.message) == (ReasonKind.BASELINE_UNREADABLE, "the baseline of a.txt is missing")


def test_a_link_is_no_output(files: Files) -> None:
    require(hasattr(os, "O_NOFOLLOW"), "links that can be told")
    link = files.root / "a.txt"
    link.symlink_to(files.write("b", "a.txt", "x"))
    found = compare_files(declare("a.txt"), link, files.root / "b" / "a.txt", shown_as="a.txt")
    assert found is not None
    assert found.kind == ReasonKind.OUTPUT_UNREADABLE


def test_a_pattern_that_backtracks_without_end_is_stopped_and_told(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "BATCH_SECONDS", 0.5)
    found = files.compare("a.txt", "a" * 60 + "b", "a" * 60 + "c", masks=["(a+)+$"], ignore_lines=["^x"])
    assert found is not None
    assert found.kind == ReasonKind.PATTERN_TIMED_OUT
    assert found.message == (
        "out/a.txt could not be compared: the patterns of ignore_lines and masks took more than 0.5s over a part of it: "
        "one backtracks without end, make it simpler"
    )


def test_a_name_cannot_break_a_message(files: Files) -> None:
    actual, accepted = files.write("view", "a", "x"), files.write("b", "a", "y")
    found = compare_files(DeclaredOutput(path="*"), actual, accepted, shown_as="a\nb\x1b[31m")
    assert found is not None
    assert found.message.splitlines()[0].startswith(r"a\nb\x1b[31m differs")


def test_a_table_goes_to_the_tables(files: Files) -> None:
    pytest.importorskip("duckdb")
    assert files.compare("a.csv", "id,n\n1,2\n", "id,n\n1,2\n") is None
    found = files.compare("a.csv", "id,n\n1,2\n", "id,n\n1,3\n")
    assert found is not None
    assert found.kind == ReasonKind.OUTPUT_DIFFERS


@pytest.mark.parametrize("name", ["a.txt", "a.json", "a.bin"])
def test_a_message_is_bounded_whatever_differs(files: Files, name: str) -> None:
    one = {f"key {number}": "é" * 400 for number in range(3000)}
    other = {f"key {number}": "\x1b" * 400 for number in range(3000)}
    texts = ("\n".join(map(str, rows.items())) for rows in (one, other))
    message = files.tell(name, *((one, other) if name == "a.json" else texts))
    assert len(message.splitlines()) <= 41
    assert len(message.encode()) <= 6 << 10
    assert "\x1b" not in message


def test_nothing_is_written(files: Files) -> None:
    files.compare("a.txt", "one\n", "two\n", masks=["x"])
    assert sorted(path.name for path in files.root.rglob("*") if path.is_file()) == ["a.txt", "a.txt"]
    assert Path("a.txt").exists() is False


@pytest.mark.parametrize("name", ["a.txt", "a.json"])
def test_too_little_memory_is_one_sentence_and_no_difference(files: Files, name: str) -> None:
    def redact(_: str) -> str:
        raise MemoryError

    actual, accepted = files.write("view", name, "1"), files.write("baselines", name, "2")
    told = f"^out/{name} could not be compared: too little memory is free here for `compare: "
    with pytest.raises(GoldenError, match=told):
        compare_files(declare(name), actual, accepted, shown_as=f"out/{name}", redact=redact)


@pytest.mark.parametrize(
    ("name", "comparison"),
    [
        ("out/a.csv", "table"),
        ("a.parquet", "table"),
        ("a.JSONL", "table"),
        ("a.json", "json"),
        ("a.json.gz", "json"),
        ("a.log.zst", "text"),
        ("a.md", "text"),
        ("a.png", "bytes"),
        ("a", "bytes"),
        ("a.gz", "bytes"),
        ("out.d/a", "bytes"),
    ],
)
def test_the_suffix_tells_and_that_of_an_archive_is_seen_through(name: str, comparison: str) -> None:
    assert choose_comparison(name, DeclaredOutput(path="**")) == comparison


def test_what_is_declared_wins() -> None:
    assert choose_comparison("a.csv", DeclaredOutput(path="a.csv", compare="text")) == "text"


def test_a_path_of_windows_is_read_too() -> None:
    assert choose_comparison(PureWindowsPath("out\\a.yml"), DeclaredOutput(path="**")) == "text"


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
    monkeypatch.setattr(comparing, "_MOST_MEASURED_BYTES", CHUNK_BYTES)
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
    assert output.message.startswith("out/a.png is not a PNG, JPEG,")


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({}, None),
        ({"min_bytes": 5, "max_bytes": 5}, None),
        ({"min_bytes": 6}, "out/a.png has 5 bytes, less than min_bytes: 6"),
        ({"max_bytes": 4}, "out/a.png has 5 bytes, more than max_bytes: 4"),
        ({"max_bytes": 0}, "out/a.png has 5 bytes, more than max_bytes: 0"),
    ],
)
def test_a_size_lies_within_its_bounds_or_not(files: Files, rules: dict[str, int], told: str | None) -> None:
    declared = DeclaredOutput(path="*.png", compare="exists", **rules)  # type: ignore[arg-type]
    found = compare_files(declared, files.write("view", "a.png", b"12345"), None, shown_as="out/a.png")
    assert (None if found is None else (found.kind, found.message)) == (
        None if told is None else (ReasonKind.OUTPUT_DIFFERS, told)
    )


TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4"
KEY_LINES = [f"MIIEpAIBAAKCAQEA7bq3Zkq0w{number}kJ8Yb2mN5vQ1xR7tL4cW9dF6hG3sA0pZ" for number in range(20)]


def key_of(lines: list[str]) -> str:
    return "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *lines, "-----END RSA PRIVATE KEY-----", ""])


def tell(files: Files, name: str, output: object, baseline: object, **rules: Any) -> str:
    declared = DeclaredOutput(path=name, **rules)
    actual, accepted = files.write("view", name, output), files.write("baselines", name, baseline)
    found = compare_files(declared, actual, accepted, shown_as=name, redact=redact)
    assert found is not None
    return redact(found.message)


@pytest.mark.parametrize("unordered", [False, True])
@pytest.mark.parametrize("before", ["", "x" * 50 + " ", "x" * 190 + " ", "x " * 5000])
def test_no_line_shows_a_part_of_a_secret(files: Files, before: str, *, unordered: bool) -> None:
    output, baseline = (f"first\n{before}token={TOKEN}{end}\n" for end in "ab")
    told = tell(files, "a.txt", output, baseline, unordered=unordered)
    assert "16C7" not in told
    assert "78B4" not in told


@pytest.mark.parametrize("changed", [0, 10, 19])
def test_lines_of_a_secret_are_not_shown_one_by_one_either(files: Files, changed: int) -> None:
    others = [*KEY_LINES[:changed], KEY_LINES[changed][::-1], *KEY_LINES[changed + 1 :]]
    told = tell(files, "a.txt", f"new\n{key_of(others)}", f"old\n{key_of(KEY_LINES)}", unordered=True)
    assert told.splitlines()[1:] == [
        "- old",
        "- [... not shown: redaction finds a secret there ...]",
        "+ new",
        "+ [... not shown: redaction finds a secret there ...]",
    ]
    wide = [b"plain\n" * 1000 + f"\n{key_of(lines)}".encode("utf-16-be") for lines in (others, KEY_LINES)]
    told = tell(files, "a.txt", *wide, unordered=True).replace("\\x00", "")
    assert "MIIE" not in told
    assert told.count("[... not shown") == 2


@pytest.mark.parametrize("changed", [0, 10, 19])
def test_around_a_secret_of_several_lines_nothing_is_shown(files: Files, changed: int) -> None:
    others = [*KEY_LINES[:changed], KEY_LINES[changed][::-1], *KEY_LINES[changed + 1 :]]
    told = tell(files, "a.txt", f"a\n{key_of(others)}", f"a\n{key_of(KEY_LINES)}")
    assert told.endswith("[... not shown: redaction finds a secret there ...]")
    assert "MII" not in told
    assert "AIIM" not in told


def test_both_values_of_a_telling_key_are_redacted(files: Files) -> None:
    output = {
        "db": {"password": "hunter2secret", "port": 1},
        "list": {"api_key": ["swordfish99"]},
        "t": "x" * 70 + TOKEN + "a",
    }
    baseline = {"db": {"password": "hunter3secret", "port": 2}, "list": {}, "t": "x" * 70 + TOKEN + "b"}
    told = tell(files, "a.json", output, baseline)
    assert "$.db.port: 2 -> 1" in told
    for secret in ("hunter", "swordfish", "16C7"):
        assert secret not in told


def test_bytes_in_a_secret_are_not_shown(files: Files) -> None:
    output, baseline = (
        b"\0" * 1000 + f"password={word}".encode() + b"\0" * 1000 for word in ("hunter2sec", "hunter3sec")
    )
    told = tell(files, "a.bin", output, baseline)
    assert "first at byte 1,015 " in told
    assert told.endswith("[... not shown: redaction finds a secret there ...]")


@pytest.mark.parametrize("name", ["a.bin", "a.txt"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16", "utf-32-le", "utf-32-be", "utf-32"])
def test_secret_in_wide_text_is_not_shown(files: Files, name: str, encoding: str) -> None:
    output, baseline = (f"one\ntoken={TOKEN}{end}\n".encode(encoding) for end in "ab")
    told = tell(files, name, output, baseline).replace("\\x00", "").replace(".", "")
    assert "16C7" not in told
    assert "78B4" not in told


@pytest.mark.parametrize("unordered", [False, True])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_secret_in_wide_text_among_other_bytes_is_not_shown(files: Files, encoding: str, *, unordered: bool) -> None:
    secrets = f"token={TOKEN}", key_of(KEY_LINES)
    for secret in secrets:
        output, baseline = (
            f"{'plain ' * 9}\n{end} ".encode() + f"\n{secret}".encode(encoding) + end.encode() for end in "ab"
        )
        told = tell(files, "a.txt", output, baseline, unordered=unordered).replace("\\x00", "")
        assert "16C7" not in told
        assert "MIIE" not in told


@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"key": ("id",)},
        {"key": ("password",)},
        {"key": ("note",)},
        {"unordered": True},
        {"ignore_columns": ("id",)},
    ],
)
@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("before", [0, 30, 1990])
def test_cells_of_tables_are_redacted_before_they_are_cut(
    files: Files, rules: dict[str, Any], form: str, before: int
) -> None:
    pytest.importorskip("duckdb")

    def write(end: str) -> str:
        row = {"id": "1", "password": f"hunter2secret{end}", "note": "x " * before + TOKEN + end}
        if form == "csv":
            return "\n".join([",".join(row), ",".join(row.values()), ""])
        return json.dumps(row) + "\n"

    told = tell(files, f"a.{form}", write("a"), write("b"), **rules)
    for secret in ("hunter", "secret", "ghp", "16C7", "78B4"):
        assert secret not in told
    assert "differ" in told or "only here" in told


def test_values_of_a_repeated_key_are_redacted(files: Files) -> None:
    pytest.importorskip("duckdb")
    table = "api_key,n\nhunter2secret,1\nhunter2secret,2\n"
    told = tell(files, "a.csv", table, table, key=("api_key",))
    assert "a key that is not unique: `api_key`\n" in told
    assert told.endswith("\n  api_key=[REDACTED] occurs 2 times")


PAGE = Path(__file__).parents[2] / "docs" / "reference" / "comparing.md"
SALES = "Sales of 2026-03-04\nnorth     120\nsouth      80\nwest       75\ntotal     275\n"


@pytest.mark.parametrize(
    ("name", "output", "baseline", "rules"),
    [
        ("report.txt", SALES.replace("75\n", "57\n", 1), SALES, {}),
        ("customers.txt", "eve\nbob\nzoe\neve\n", "bob\nann\nzoe\n", {"unordered": True}),
        (
            "summary.json",
            {"rows": [{"id": 1, "price": 10.7}, {"id": 2, "price": 8}, {"id": 3, "price": 8}], "total": 26.7},
            {"rows": [{"id": 1, "price": 10.5}, {"id": 2, "price": 8}], "total": "18.5", "day": "2026-03-04"},
            {},
        ),
        (
            "orders.csv",
            "order_id,name,status,amount\n1,ann,paid,1.50\n3,cia,paid,7.52\n5,eve,,9.10\n6,fay,paid,4.00\n",
            "order_id,customer,status,amount\n1,ann,paid,1.50\n2,bob,returned,20.00\n3,cia,paid,7.25\n4,dan,returned,3.00\n"
            "5,eve,open,9.10\n6,fay,paid,4.00\n",
            {},
        ),
        ("model.bin", bytes(range(20)) + b"AB" + bytes(range(22, 48)), bytes(range(48)), {}),
        ("plot.png", png(640, 400), png(640, 480), {"compare": "image_size"}),
        ("plot.png", b"", b"", {"compare": "exists", "min_bytes": 1000}),
    ],
)
def test_a_difference_on_the_page_is_what_is_told(
    files: Files, name: str, output: object, baseline: object, rules: dict[str, object]
) -> None:
    assert f"```text\n{files.tell(name, output, baseline, **rules)}\n```" in PAGE.read_text("utf-8")


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_every_comparison_has_its_place_on_the_page(comparison: str) -> None:
    assert f"\n## {comparison}\n" in PAGE.read_text("utf-8")
