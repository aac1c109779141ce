"""CSV and TSV: texts that are read alike on both sides, whatever is wrong with them is told with its line."""

from __future__ import annotations

import bz2
import gzip
import lzma
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.regression.model import ReasonKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.regression.baselines.files import Files

TABLE = "id,v,s\n1,1.5,a\n2,2.5,b\n3,3.5,c\n"


def zstd(data: bytes) -> bytes:
    module: Any = import_module("zstandard")
    packed: bytes = module.ZstdCompressor().compress(data)
    return packed


@pytest.mark.parametrize(
    ("output", "baseline"),
    [
        ("id\n007\n", "id\n7\n"),
        ("a,b\n1,\n", 'a,b\n1,""\n'),
        ("a,b\n1,NULL\n", "a,b\n1,\n"),
        ("id\n1\n", "id\n1.0\n"),
        ("id\n12345678901234567890\n", "id\n12345678901234567891\n"),
        ("day\n2024-01-01\n", "day\n2024-01-01 00:00:00\n"),
        ("ok\ntrue\n", "ok\nTrue\n"),
        ("a,b\n1, 2\n", "a,b\n1,2\n"),
        ("a\n1e3\n", "a\n1000.0\n"),
    ],
)
def test_values_that_look_alike_are_told_apart(files: Files, output: str, baseline: str) -> None:
    assert files.tell("t.csv", output, baseline).startswith("out/t.csv differs from its baseline: 1 row differs\n")


@pytest.mark.parametrize(
    ("output", "baseline"),
    [
        ("v\n1.50\n", "v\n1.5\n"),
        ("a,b\r\n1,2\r\n", "a,b\n1,2\n"),
        ("\N{BOM}a,b\n1,2\n", "a,b\n1,2\n"),
        ('"a",b\n"1",2\n', "a,b\n1,2"),
        ("a\n", "a"),
        ("", "\n"),
    ],
)
def test_one_table_may_be_written_in_two_ways(files: Files, output: str, baseline: str) -> None:
    assert files.tell("t.csv", output, baseline) == ""


def test_a_tolerance_leaves_texts_as_they_are(files: Files) -> None:
    message = files.tell("t.csv", "id,v\n007,1.04\n", "id,v\n7,1\n", absolute_tolerance=0.1)
    assert "columns that differ: `id` (1 row)" in message.splitlines()


def test_whole_numbers_are_compared_exactly_within_a_tolerance(files: Files) -> None:
    output, baseline = "id\n12345678901234567890\n", "id\n12345678901234567891\n"
    assert "1 row differs" in files.tell("t.csv", output, baseline, absolute_tolerance=0.5)
    assert files.tell("t.csv", output, baseline, absolute_tolerance=1) == ""


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", zstd)],
)
def test_archives_are_seen_through(files: Files, suffix: str, pack: Callable[[bytes], bytes]) -> None:
    name = f"t.csv{suffix}"
    output, baseline = pack(TABLE.encode()), pack(TABLE.replace("2.5", "2.50").encode())
    assert files.tell(name, output, baseline) == ""
    message = files.tell(name, output, pack(TABLE.replace("2.5", "9.5").encode()), key=["id"])
    assert "  2   v       9.5       2.5" in message.splitlines()


def test_an_archive_that_is_cut_short_is_told(files: Files) -> None:
    packed = gzip.compress(TABLE.encode() * 1000)
    assert files.tell("t.csv.gz", packed[:-20], packed) == "out/t.csv.gz is a .gz archive that is cut short"


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("a,b\n1,2\n3\n", "is ragged: line 3 has 1 field, the header has 2"),
        ("a,b\n1,2\n3,4,5\n", "is ragged: line 3 has 3 fields, the header has 2"),
        ('a,b\n1,"2\n', "is broken: line 2 has a quoted field that is not closed, or goes on behind its quote"),
        (b"a,b\n1,\xe9\n", "is not UTF-8 in line 2, and so no CSV that can be read"),
        (b"\x89PNG\r\n\x1a\n\0\0", "is no text, and so no CSV"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(files: Files, output: str | bytes, told: str) -> None:
    found = files.compare("t.csv", output, TABLE)
    assert found is not None
    assert (found.kind, found.message) == (ReasonKind.OUTPUT_UNREADABLE, f"out/t.csv {told}")
    found = files.compare("t.csv", TABLE, output)
    assert found is not None
    assert (found.kind, found.message) == (ReasonKind.BASELINE_UNREADABLE, f"the baseline of out/t.csv {told}")


def test_bytes_that_are_no_text_far_below_the_header_are_told(files: Files) -> None:
    table = "a,b\n" + "1,2\n" * 1_100_000
    found = files.compare("t.csv", table.encode() + b"1,\xe9\n", table + "1,2\n")
    assert found is not None
    assert found.kind == ReasonKind.OUTPUT_UNREADABLE
    assert found.message.startswith("out/t.csv is not UTF-8 in ")


def test_lines_of_some_mebibytes_are_read(files: Files) -> None:
    table = "a,b\n1," + "x" * (3 << 20) + "\n2,2\n"
    assert files.tell("t.csv", table, table) == ""
    assert "1 row differs" in files.tell("t.csv", table, table.replace("2,2", "2,3"))


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_the_delimiter_is_told_from_the_rows(files: Files, delimiter: str) -> None:
    table = 'id|v|"s, t"\n1|1.5|a\n2|2.5|b\n'.replace("|", delimiter)
    assert files.tell("t.csv", table, table, key=["id"]) == ""
    message = files.tell("t.csv", table, table.replace(delimiter, ","))
    assert message == f"out/t.csv has fields parted by {delimiter!r}, its baseline by ','"


def test_tsv_is_parted_by_tabs_alone(files: Files) -> None:
    table = "a,b\tc,d\n1\t2\n"
    assert files.tell("t.tsv", table, table, key=["a,b"]) == ""


def test_columns_of_one_name_are_told_apart(files: Files) -> None:
    assert files.tell("t.csv", "a,a\n1,2\n", "a,a\n1,2\n") == ""
    assert "columns that differ: `a (2)` (1 row)" in files.tell("t.csv", "a,a\n1,2\n", "a,a\n1,3\n")
    assert "additional: `a (2)`" in files.tell("t.csv", "a,a\n1,2\n", "a\n1\n")
    assert (
        files.tell("t.csv", "a,a\n1,2\n", "a,a\n1,2\n", key=["a"])
        == "out/t.csv has 2 columns called `a`, which is its key"
    )


def test_an_empty_file_is_a_table_without_columns(files: Files) -> None:
    assert files.tell("t.csv", "", "") == ""
    assert files.tell("t.csv", "", "", unordered=True) == ""
    assert files.tell("t.csv", "", TABLE).splitlines() == [
        "out/t.csv has other columns than its baseline",
        "  missing: `id`, `v`, `s`",
    ]
    assert files.tell("t.csv", "", "", min_rows=1) == "out/t.csv has 0 rows, less than min_rows: 1"
    assert files.tell("t.csv", "", "", key=["id"]).splitlines()[1] == "  columns: none"


@pytest.mark.parametrize("rules", [{}, {"key": ["id"]}, {"unordered": True}])
def test_a_header_alone_is_a_table_without_rows(files: Files, rules: dict[str, Any]) -> None:
    assert files.tell("t.csv", "id,v,s\n", "id,v,s\n", **rules) == ""
    message = files.tell("t.csv", "id,v,s\n", TABLE, **rules)
    assert message.startswith("out/t.csv differs from its baseline: 3 rows are only in the baseline\n")


@pytest.mark.parametrize(
    ("output", "baseline"),
    [("1", "1.5"), ("x", "1"), ("true", "1"), ("2024-01-01", "x"), ("2024-01-01T10:00:00", "2024-01-01"), ('""', "1")],
)
def test_the_kinds_of_values_belong_to_the_schema(files: Files, output: str, baseline: str) -> None:
    message = files.tell("t.csv", f"a,b\n1,{output}\n", f"a,b\n1,{baseline}\n", schema_only=True)
    assert message.startswith("out/t.csv has other kinds of values in its columns than its baseline\n  `b`: ")
    assert files.tell("t.csv", f"a,b\n1,{output}\n", "a,b\n7,\n", schema_only=True) == ""


def test_other_values_of_the_same_kinds_are_nothing_to_the_schema(files: Files) -> None:
    assert files.tell("t.csv", "id,v\n1,1.5\n", "id,v\n7,-2.25\n8,1e5\n", schema_only=True) == ""


def test_a_name_that_means_something_to_duckdb_is_a_name(files: Files) -> None:
    for name in ("year=2024'[*]?.csv", "s3:x.csv"):
        assert files.tell(name, TABLE, TABLE, compare="table") == ""


def test_row_that_is_too_long_is_told_and_not_left_out(files: Files) -> None:
    found = files.compare("t.csv", "id,a\n1," + "x" * 17_000_000 + "\n2,y\n", "id,a\n1,y\n")
    assert found is not None
    assert (found.kind, "line 2 " in found.message) == (ReasonKind.OUTPUT_UNREADABLE, True)


def test_numbers_too_large_for_a_double_do_not_equal_each_other(files: Files) -> None:
    assert "1 row differs" in files.tell("t.csv", "a\n1e400\n", "a\n1e401\n", absolute_tolerance=1)


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("id,a\n1,2\n".encode("utf-16"), "is UTF-16, and only UTF-8 is read as CSV"),
        (b"PK\x03\x04\0\0", "is a workbook or another ZIP archive, and no table that is read"),
        (b"id\n1\0\n", "is no text, and so no CSV"),
    ],
)
def test_what_is_no_csv_is_told_for_what_it_is(files: Files, output: bytes, told: str) -> None:
    assert told in files.tell("t.csv", output, "id\n1\n")


def test_other_line_ends_within_a_file_are_read_or_told(files: Files) -> None:
    message = files.tell("t.csv", "id,a\n1,2\r\n2,3\n", "id,a\n1,2\n2,4\n")
    assert "1 row differs" in message or "ends some lines with CRLF and others with LF" in message
