"""Parquet: values of a type, NaN and NULL, nested ones, and files that are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.regression.model import ReasonKind
from tests.regression.baselines.tables.parquet import write_parquet

if TYPE_CHECKING:
    from tests.regression.baselines.files import Files


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
    message = tell(files, f"SELECT {output} AS v", f"SELECT {baseline} AS v", **rules)
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
        "out/t.parquet has another type of column than its baseline: `v`",
        "  `v` is of another type: BIGINT here, INTEGER in the baseline",
    ]
    assert tell(files, "SELECT {'a': 1} AS v", "SELECT {'b': 1} AS v", schema_only=True) != ""


def test_rows_stay_in_their_order_over_groups_of_rows_and_threads(files: Files) -> None:
    query = "SELECT range AS n, (range * 7919) % 1000 AS v FROM range(300000)"
    assert tell(files, query, query) == ""
    message = tell(files, query, query.replace("% 1000", "% 1000 + (range = 250000)::INTEGER"))
    assert message.splitlines()[-1] == "  250001  v       1         0"


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no table at all, and more of it"])
def test_a_file_that_is_no_table_is_told(files: Files, content: bytes) -> None:
    sound = write_parquet(files.root / "made.parquet", "SELECT 1 AS a")
    found = files.compare("t.parquet", content, sound)
    assert found is not None
    assert found.kind == ReasonKind.OUTPUT_UNREADABLE
    assert found.message.startswith("out/t.parquet is no sound Parquet file: ")
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
