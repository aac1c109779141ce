"""Tables read from CSV, TSV, JSON Lines and Parquet."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.regression.model import ReasonKind
from tests.compare.tables.parquet import write_parquet

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.compare.files import Files


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
        ("id\n12345678901234567890\n", "id\n12345678901234567891\n"),
        ("day\n2024-01-01\n", "day\n2024-01-01 00:00:00\n"),
        ("ok\ntrue\n", "ok\nTrue\n"),
        ("a,b\n1, 2\n", "a,b\n1,2\n"),
        ("a\n1e3\n", "a\n1000.0\n"),
    ],
)
def test_values_that_look_alike_are_told_apart(files: Files, output: str, baseline: str) -> None:
    assert files.tell("t.csv", output, baseline).startswith("out/t.csv differs from its baseline: 1 row differs in `")


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
    assert "`id`: 1 cell differs (0 % equal)" in message.splitlines()


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
        (b"\x89PNG\r\n\x1a\n\0\0", "is not text, so it is not CSV"),
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
    assert "1 row differs in `a (2)`" in files.tell("t.csv", "a,a\n1,2\n", "a,a\n1,3\n")
    assert "column `a (2)` is new" in files.tell("t.csv", "a,a\n1,2\n", "a\n1\n")
    assert (
        files.tell("t.csv", "a,a\n1,2\n", "a,a\n1,2\n", key=["a"])
        == "out/t.csv has 2 columns called `a`, which is its key"
    )


def test_an_empty_file_is_a_table_without_columns(files: Files) -> None:
    assert files.tell("t.csv", "", "") == ""
    assert files.tell("t.csv", "", "", unordered=True) == ""
    assert files.tell("t.csv", "", TABLE).splitlines() == [
        "out/t.csv differs from its baseline: columns `id`, `v`, `s` are missing; 3 rows are only in the baseline",
        "rows: 0 here, 3 in the baseline",
        "only in the baseline:",
        *(f"  row={row}" for row in (1, 2, 3)),
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
        (b"id\n1\0\n", "is not text, so it is not CSV"),
    ],
)
def test_what_is_no_csv_is_told_for_what_it_is(files: Files, output: bytes, told: str) -> None:
    assert told in files.tell("t.csv", output, "id\n1\n")


def test_other_line_ends_within_a_file_are_read_or_told(files: Files) -> None:
    message = files.tell("t.csv", "id,a\n1,2\r\n2,3\n", "id,a\n1,2\n2,4\n")
    assert "1 row differs" in message or "ends some lines with CRLF and others with LF" in message


LINES = '{"id":1,"a":{"x":1.0,"y":"q"},"l":[1,2.5]}\n{"id":2,"a":null,"l":[]}\n'


def test_keys_may_stand_in_any_order_and_null_may_be_left_out(files: Files) -> None:
    other = '{"id":1,"a":{"y":"q","x":1},"l":[1, 2.50]}\n\n{"id":2,"l":[]}\n'
    for rules in ({}, {"key": ["id"]}, {"unordered": True}):
        assert files.tell("t.jsonl", LINES, other, **rules) == ""


def test_objects_within_are_columns_and_lists_of_numbers_are_compared_by_value(files: Files) -> None:
    other = LINES.replace("1.0", "1.04").replace("2.5", "2.55")
    assert files.tell("t.ndjson", LINES, other, key=["id"], absolute_tolerance=0.1) == ""
    message = files.tell("t.ndjson", LINES, other, key=["id"], absolute_tolerance=0.01)
    assert "1 row differs in `a.x`, `l`" in message
    assert files.tell("t.ndjson", LINES, LINES.replace("[1,2.5]", "[1]"), absolute_tolerance=9) != ""


@pytest.mark.parametrize(
    ("output", "baseline"),
    [
        ('{"a":"007"}', '{"a":7}'),
        ('{"a":"7"}', '{"a":7}'),
        ('{"a":""}', '{"a":null}'),
        ('{"a":{}}', '{"a":null}'),
        ('{"a":true}', '{"a":1}'),
        ('{"a":[]}', '{"a":null}'),
        ('{"a":12345678901234567890}', '{"a":12345678901234567891}'),
        ('{"a/b~c":1}', '{"a/b~c":2}'),
        ('{"A":1,"a":2}', '{"A":2,"a":2}'),
    ],
)
def test_what_json_tells_apart_is_told_apart(files: Files, output: str, baseline: str) -> None:
    assert "1 row differs" in files.tell("t.jsonl", f"{output}\n", f"{baseline}\n")


@pytest.mark.parametrize(
    ("output", "baseline"), [('{"a":1.0}', '{"a":1}'), ('{"a":"\\u00e9"}', '{"a":"é"}'), ('{"a":1e2}', '{"a":100.00}')]
)
def test_one_value_may_be_written_in_two_ways(files: Files, output: str, baseline: str) -> None:
    assert files.tell("t.jsonl", output, baseline) == ""


def test_other_keys_are_other_columns(files: Files) -> None:
    message = files.tell("t.jsonl", '{"a":{"x":1}}\n', '{"a":{"y":2}}\n')
    assert message.startswith("out/t.jsonl differs from its baseline: column `a.y` is missing, column `a.x` is new\n")


def test_an_object_with_very_many_keys_is_one_value(files: Files) -> None:
    line = json.dumps({"id": 1, "by_day": {f"day{day}": day for day in range(1500)}})
    assert files.tell("t.jsonl", line, line) == ""
    assert "1 row differs in `by_day`" in files.tell("t.jsonl", line, line.replace("1499", "-1"))


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("[1]\n", "has a line that is not an object but an array, and so no row of a table"),
        ("5\n", "has a line that is not an object but a number, and so no row of a table"),
        ('{"a":1}\n\n{"a":\n', "is not a JSON Lines file: line 3 is not JSON (column 1: Expecting value)"),
        ('{"a":1,"a":2}\n', "has a line in which the key `a` stands twice, and so no row of a table"),
        ('{"a":{"x":1,"y":1,"x":2}}\n', "has a line in which the key `a.x` stands twice, and so no row of a table"),
        (b'{"a":1}\n{"a":"\xe9"}\n', "is not a JSON Lines file: line 2 is not UTF-8"),
    ],
)
def test_what_is_wrong_with_lines_of_json_is_told(files: Files, output: str | bytes, told: str) -> None:
    found = files.compare("t.jsonl", output, LINES)
    assert found is not None
    assert found.kind == ReasonKind.OUTPUT_UNREADABLE
    assert found.message == f"out/t.jsonl {told}" or "line 3 is not JSON" in found.message


def test_lines_nested_beyond_reason_are_values(files: Files) -> None:
    line = '{"a":' * 500 + "1" + "}" * 500
    assert files.tell("t.jsonl", line, line) == ""
    assert files.tell("t.jsonl", line, line.replace("1", "2")) != ""


def test_files_without_keys_are_compared_by_their_rows(files: Files) -> None:
    assert files.tell("t.jsonl", "", "") == ""
    assert files.tell("t.jsonl", "{}\n{}\n", "{}\n{}\n") == ""
    assert "1 row is only here" in files.tell("t.jsonl", "{}\n{}\n", "{}\n")


def test_kinds_of_values_belong_to_the_schema(files: Files) -> None:
    assert files.tell("t.jsonl", '{"a":1}', '{"a":2.5}', schema_only=True) == ""
    message = files.tell("t.jsonl", '{"a":"x"}', '{"a":2.5}', schema_only=True)
    assert message.splitlines()[1] == "  `a`: texts here, numbers in the baseline"


@pytest.mark.parametrize(
    "row", [{f"k{at}": at for at in range(10_000)}, {f"o{at}": {f"k{n}": n for n in range(600)} for at in range(3)}]
)
def test_more_keys_than_can_be_compared_are_refused_in_a_sentence(files: Files, row: dict[str, Any]) -> None:
    found = files.compare("t.jsonl", row, row)
    assert found is not None
    assert found.kind == ReasonKind.OUTPUT_UNREADABLE
    assert found.message == (
        "out/t.jsonl has more than 1,000 columns (keys), too many to be compared as JSON Lines:"
        " write it as Parquet or CSV, or declare `compare: text`"
    )


def test_byte_order_mark_does_not_count(files: Files) -> None:
    assert files.tell("t.jsonl", b"\xef\xbb\xbf" + LINES.encode(), LINES) == ""
    assert "1 row differs in `id`" in files.tell("t.jsonl", b"\xef\xbb\xbf" + LINES.encode(), LINES.replace("2,", "3,"))


@pytest.mark.parametrize(
    ("output", "baseline"), [(f'{{"a":1{"0" * 30}}}', f'{{"a":1{"0" * 29}1}}'), ('{"":1,"a":2}', '{"":2,"a":2}')]
)
def test_what_a_version_of_duckdb_misreads_never_holds(files: Files, output: str, baseline: str) -> None:
    message = files.tell("t.jsonl", f"{output}\n", f"{baseline}\n")
    assert "1 row differs" in message or "pip install --upgrade duckdb" in message


@pytest.mark.parametrize("rules", [{}, {"key": ["id"]}, {"unordered": True}])
def test_of_many_keys_only_those_that_look_different_are_looked_at_closely(files: Files, rules: dict[str, Any]) -> None:
    rows = [{"id": number, **{f"k{key}": float(key) for key in range(150)}} for number in range(3)]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    assert files.tell("t.jsonl", lines.replace("7.0,", "7.00,"), lines, **rules) == ""
    shorter = "".join(f"{json.dumps(row)}\n" for row in rows[:2])
    message = files.tell("t.jsonl", shorter.replace('"k77": 77.0', '"k77": 78', 1), lines, **rules)
    if rules == {"unordered": True}:
        assert "1 row is only here, 2 rows are only in the baseline" in message
    else:
        assert "1 row differs in `k77`, 1 row is only in the baseline" in message


def tell(files: Files, output: str, baseline: str, **rules: Any) -> str:
    place = files.root / "made.parquet"
    return files.tell("t.parquet", write_parquet(place, output), write_parquet(place, baseline), **rules)


EVERYTHING = """SELECT 1::TINYINT AS a, 2.5::DECIMAL(10, 2) AS b, 'nan'::DOUBLE AS c, NULL::DOUBLE AS d, 'x' AS e, true AS f,
 DATE '2024-01-01' AS g, TIMESTAMP '2024-01-01 10:00:00.123456' AS h, TIMESTAMPTZ '2024-01-01 10:00:00+02' AS i, TIME '10:00:00' AS j,
 INTERVAL 3 DAY AS k, 'bytes'::BLOB AS l, {'x': 1.5::DOUBLE, 'y': [1.5::FLOAT, NULL]} AS m, MAP {'k': 1.5::DOUBLE} AS n,
 [{'q': 1}] AS o, ''::VARCHAR AS p, 18446744073709551615::UBIGINT AS q, '-inf'::DOUBLE AS r, uuid() IS NULL AS s"""


@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"unordered": True},
        {"key": ["a"]},
        {"key": ["a", "m"]},
        {"schema_only": True},
        {"relative_tolerance": 0.1},
        {"unordered": True, "absolute_tolerance": 1},
    ],
)
def test_every_type_equals_itself(files: Files, rules: dict[str, Any]) -> None:
    assert tell(files, EVERYTHING, EVERYTHING, **rules) == ""


@pytest.mark.parametrize(
    ("output", "baseline"),
    [
        ("'nan'::DOUBLE", "NULL::DOUBLE"),
        ("'nan'::DOUBLE", "1.0::DOUBLE"),
        ("'inf'::DOUBLE", "1.0::DOUBLE"),
        ("'inf'::DOUBLE", "'-inf'::DOUBLE"),
        ("NULL::DOUBLE", "0.0::DOUBLE"),
        ("''::VARCHAR", "NULL::VARCHAR"),
        ("'1'::VARCHAR", "'1.0'::VARCHAR"),
        ("true", "false"),
        ("TIMESTAMP '2024-01-01 00:00:00'", "TIMESTAMP '2024-01-01 00:00:00.000001'"),
        ("[1.0::DOUBLE]", "[1.0::DOUBLE, 1.0]"),
        ("[1.0::DOUBLE]", "NULL::DOUBLE[]"),
        ("{'a': 1.0::DOUBLE, 'b': 'x'}", "{'a': 1.0::DOUBLE, 'b': 'y'}"),
        ("MAP {'a': 1.0::DOUBLE}", "MAP {'b': 1.0::DOUBLE}"),
        ("9223372036854775807", "-9223372036854775808"),
    ],
)
@pytest.mark.parametrize("rules", [{}, {"absolute_tolerance": 2, "relative_tolerance": 1.5}])
def test_no_tolerance_makes_these_equal(files: Files, output: str, baseline: str, rules: dict[str, Any]) -> None:
    if "9223372036854775807" in output:
        rules = {name: value / 2 for name, value in rules.items()}
    message = tell(files, f"SELECT {output} AS v, 1 AS n", f"SELECT {baseline} AS v, 1 AS n", **rules)
    assert message.startswith("out/t.parquet differs from its baseline: 1 row differs")


@pytest.mark.parametrize(
    ("output", "baseline"),
    [
        ("1.0::DOUBLE", "1.05::DOUBLE"),
        ("1.0::FLOAT", "1.05::FLOAT"),
        ("1.00::DECIMAL(10, 2)", "1.10::DECIMAL(10, 2)"),
        ("1.00::DECIMAL(38, 2)", "1.05::DECIMAL(38, 2)"),
        ("[1.0::DOUBLE, NULL]", "[1.05::DOUBLE, NULL]"),
        (
            "{'a': 1.0::DOUBLE, 'b': [{'c': 2.0::DOUBLE, 'd': 'x'}]}",
            "{'a': 1.0::DOUBLE, 'b': [{'c': 2.1::DOUBLE, 'd': 'x'}]}",
        ),
        ("MAP {'a': 1.0::DOUBLE}", "MAP {'a': 1.1::DOUBLE}"),
    ],
)
@pytest.mark.parametrize("rules", [{}, {"unordered": True}])
def test_a_tolerance_reaches_into_what_is_nested(
    files: Files, output: str, baseline: str, rules: dict[str, Any]
) -> None:
    one, other = f"SELECT {output} AS v", f"SELECT {baseline} AS v"
    assert tell(files, one, other, **rules, absolute_tolerance=0.1) == ""
    assert tell(files, one, other, **rules, absolute_tolerance=0.01) != ""
    assert tell(files, one, other, **rules) != ""


def test_another_type_is_told(files: Files) -> None:
    assert tell(files, "SELECT 1::BIGINT AS v, 'x' AS s", "SELECT 1::INTEGER AS v, 'x' AS s").splitlines() == [
        "out/t.parquet differs from its baseline: `v` is BIGINT, and INTEGER in the baseline",
        "rows: 1 here, 1 in the baseline",
    ]
    assert tell(files, "SELECT {'a': 1} AS v", "SELECT {'b': 1} AS v", schema_only=True) != ""


def test_rows_stay_in_their_order_over_groups_of_rows_and_threads(files: Files) -> None:
    query = "SELECT range AS n, (range * 7919) % 1000 AS v FROM range(300000)"
    assert tell(files, query, query) == ""
    message = tell(files, query, query.replace("% 1000", "% 1000 + (range = 250000)::INTEGER"))
    assert message.splitlines()[-1] == "  250000  v       1         0"


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no table at all, and more of it"])
def test_a_file_that_is_no_table_is_told(files: Files, content: bytes) -> None:
    sound = write_parquet(files.root / "made.parquet", "SELECT 1 AS a")
    found = files.compare("t.parquet", content, sound)
    assert found is not None
    assert found.kind == ReasonKind.OUTPUT_UNREADABLE
    assert found.message.startswith("out/t.parquet is not a valid Parquet file: ")
    assert ".data" not in found.message
    assert len(found.message.splitlines()) == 1


def test_a_file_that_is_cut_short_or_broken_within_is_told(files: Files) -> None:
    sound = write_parquet(files.root / "made.parquet", "SELECT range AS n, hash(range) AS h FROM range(100000)")
    for broken in (sound[: len(sound) // 2], sound[:1000] + b"\xff" * 5000 + sound[6000:]):
        for rules in ({}, {"key": ["n"]}, {"unordered": True}):
            found = files.compare("t.parquet", broken, sound, **rules)
            assert found is not None
            assert found.kind in {ReasonKind.OUTPUT_UNREADABLE, ReasonKind.OUTPUT_DIFFERS}
            found = files.compare("t.parquet", sound, broken, **rules)
            assert found is not None
            assert found.kind in {ReasonKind.BASELINE_UNREADABLE, ReasonKind.OUTPUT_DIFFERS}


def test_a_format_is_recognised_where_the_name_does_not_tell(files: Files) -> None:
    table = write_parquet(files.root / "made.parquet", "SELECT 1 AS a")
    assert files.tell("t.out", table, table, compare="table", key=["a"]) == ""
    assert files.tell("t.out", '{"a": 1}\n', '{"a":1}\n', compare="table", key=["a"]) == ""
    assert files.tell("t.out", "a;b\n1;2\n", "a;b\n1;2\n", compare="table", key=["a"]) == ""
