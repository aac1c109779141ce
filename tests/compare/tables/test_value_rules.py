"""Rules on the values of a table, and on texts, with and without a baseline."""

from __future__ import annotations

import gzip
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.clock import utc_now
from pytest_golden.compare.comparing import compare_files
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.model import ReasonKind
from tests.compare.tables.parquet import write_parquet

if TYPE_CHECKING:
    from tests.compare.files import Files

ORDERS = "id,status,amount,day\n1,paid,5,2024-01-01\n2,open,7.5,2024-12-31\n"


@pytest.mark.parametrize("compare", ["table", "exists"])
@pytest.mark.parametrize(
    "rules",
    [
        {"not_null": ["id", "status"]},
        {"unique": ["id", "status"]},
        {"between": {"amount": [5, 7.5], "day": ["2024-01-01", "2024-12-31"]}},
        {"between": {"amount": [None, 7.5], "day": ["2024-01-01", None]}},
        {"accepted": {"status": ["paid", "open", "never"], "id": [1.0, 2]}},
    ],
)
def test_what_holds_is_nothing(files: Files, compare: str, rules: dict[str, Any]) -> None:
    assert files.tell("t.csv", ORDERS, ORDERS, compare=compare, **rules) == ""
    lines = '{"id": 1, "status": "paid", "amount": 5, "day": "2024-01-01"}\n{"id": 2, "status": "open", "amount": 7.5, "day": "2024-12-31"}\n'
    assert files.tell("t.jsonl", lines, lines, compare=compare, **rules) == ""
    query = "SELECT * REPLACE (id::INTEGER AS id, amount::DECIMAL(9, 2) AS amount, day::DATE AS day) FROM (VALUES ('1', 'paid', '5', '2024-01-01'), ('2', 'open', '7.5', '2024-12-31')) AS t(id, status, amount, day)"
    table = write_parquet(files.root / "made.parquet", query)
    assert files.tell("t.parquet", table, table, compare=compare, **rules) == ""


@pytest.mark.parametrize("compare", ["table", "exists"])
@pytest.mark.parametrize(
    ("table", "rules", "told"),
    [
        ("id\n1\n\"\"\n", {"not_null": "id"}, None),
        ("id,n\n1,1\n,1\n,2\n", {"not_null": "id"}, "not_null: `id` has no value in 2 rows"),
        ("id\n1\n1\n2\n2\n2\n3\n", {"unique": "id"}, "unique: `id` occurs more than once in 5 rows: 2 (3 rows), 1 (2 rows)"),
        ("id,n\n,1\n,1\n", {"unique": "id"}, None),
        ("n\n-1\n5\nx\nnan\n", {"between": {"n": [0, 9]}}, "between: `n` is not from 0 to 9 in 3 rows: -1 (1 row), nan (1 row), x (1 row)"),
        ("n\n11\n10\n9\n", {"between": {"n": [None, 10]}}, "between: `n` is not up to 10 in 1 row: 11 (1 row)"),
        ("n\n9\n10\n", {"between": {"n": [10, None]}}, "between: `n` is below 10 in 1 row: 9 (1 row)"),
        ("d\n2024-01-01\n2024-01-02 00:00:01\n", {"between": {"d": ["2024-01-01", "2024-01-02"]}}, "in 1 row: 2024-01-02 00:00:01 (1 row)"),
        ("s\na\nb\nb\nc\nd\ne\n", {"accepted": {"s": ["a"]}}, "accepted: `s` is not one of a in 5 rows: b (2 rows), c (1 row), d (1 row) and 1 more"),
        ("s,n\n,1\n", {"accepted": {"s": ["a"]}}, None),
        ("s\n1\n", {"unique": "no"}, "unique: there is no column `no`; the columns are `s`"),
        ("s\n1\n", {"newest": {"column": "no", "max_age": "1d"}}, "newest: there is no column `no`"),
        ("at\nOLD\nNOW\n", {"newest": {"column": "at", "max_age": "1d"}}, None),
        ("at\nOLD\n", {"newest": {"column": "at", "max_age": "1d"}}, "newest: `at` is 3.0 days old at its newest, more than 24h 00m"),
        ("at,n\n,1\nx,1\n", {"newest": {"column": "at", "max_age": "1d"}}, "newest: `at` holds no time"),
        ("", {"not_null": "id"}, "not_null: there is no column `id`; the columns are none"),
    ],
)  # fmt: skip
def test_a_broken_rule_names_column_and_values(
    files: Files, compare: str, table: str, rules: dict[str, Any], told: str | None
) -> None:
    now = utc_now()
    table = table.replace("NOW", f"{now:%Y-%m-%dT%H:%M:%S}").replace(
        "OLD", f"{now - timedelta(days=3):%Y-%m-%dT%H:%M:%S+00:00}"
    )
    found = files.compare("t.csv", table, table, compare=compare, **rules)
    if told is None:
        assert found is None
        return
    assert found is not None
    assert found.kind is ReasonKind.RULE_BROKEN
    assert found.message.startswith("out/t.csv breaks a rule: ")
    assert told in found.message


def test_all_broken_rules_are_told_before_any_difference(files: Files) -> None:
    message = files.tell("t.csv", "id,s\n1,a\n1,\n", ORDERS, unique="id", not_null="s")
    assert message.splitlines() == [
        "out/t.csv breaks 2 rules: not_null: `s` has no value in 1 row, and more",
        "not_null: `s` has no value in 1 row",
        "unique: `id` occurs more than once in 2 rows: 1 (2 rows)",
    ]


def test_rows_may_change_by_a_share(files: Files) -> None:
    def tell(here: int, there: int) -> str:
        sides = ("n\n" + "1\n" * count for count in (here, there))
        return files.tell("t.csv", *sides, schema_only=True, row_count_change="10%")

    assert (tell(110, 100), tell(90, 100), tell(0, 0)) == ("", "", "")
    assert tell(111, 100) == "out/t.csv breaks a rule: 111 rows here, 100 in the baseline: row_count_change allows 10 %"
    assert "breaks a rule" in tell(1, 0)


def test_values_that_are_told_are_redacted(files: Files) -> None:
    actual = files.write("view", "t.csv", "password\nhunter2hunter2\n")
    declared = DeclaredOutput("t.csv", compare="exists", accepted={"password": ("x",)})
    found = compare_files(declared, actual, None, shown_as="t.csv", redact=redact)
    assert found is not None
    assert "hunter2" not in found.message


def test_what_is_no_table_is_told(files: Files) -> None:
    found = files.compare("t.csv", b"\0\1", "", compare="exists", not_null="a")
    assert found is not None
    assert found.kind is ReasonKind.OUTPUT_UNREADABLE


@pytest.mark.parametrize("name", ["a.log", "a.log.gz"])
def test_texts_are_searched_in_the_whole_file(files: Files, name: str) -> None:
    text = "x" * (3 << 20) + "needle\nfailed tasks: 2 é\n"
    content: bytes = gzip.compress(text.encode()) if name.endswith("gz") else text.encode()
    for compare in ("text", "exists"):
        assert files.tell(name, content, content, compare=compare, contains=["needle\nfailed", "é"]) == ""
        message = files.tell(name, content, content, compare=compare, contains="no", not_contains=["failed tasks", "y"])
        assert message.splitlines() == [
            f"out/{name} breaks 2 rules: `no` is not in it, and more",
            "`no` is not in it",
            "`failed tasks` is in it, and must not be",
        ]


@pytest.mark.parametrize("start", [(1 << 20) - 3, (1 << 20), (1 << 20) - 7])
def test_a_text_across_the_border_of_a_chunk_is_found(files: Files, start: int) -> None:
    text = "x" * start + "needle" + "x" * 100
    assert files.tell("a.log", text, text, compare="exists", contains="needle") == ""


@pytest.mark.parametrize(
    ("query", "rules", "told"),
    [
        (
            "'a' AS name, DATE '2024-01-01' AS day",
            {"relative_tolerance": 1e-9},
            "relative_tolerance is for numbers, and no column holds any (`name` is VARCHAR, `day` is DATE): remove it",
        ),
        (
            "'a' AS name, 1 AS id",
            {"absolute_tolerance": 1, "ignore_columns": "id"},
            "absolute_tolerance is for numbers, and no column holds any (`name` is VARCHAR): remove it",
        ),
        ("'a' AS name, [{'b': 1.5}] AS list", {"absolute_tolerance": 1}, ""),
        ("'a' AS name", {}, ""),
    ],
    ids=["texts and dates", "numbers are ignored", "nested numbers", "no tolerance"],
)
def test_tolerance_is_refused_where_no_column_holds_numbers(
    files: Files, query: str, rules: dict[str, Any], told: str
) -> None:
    table = write_parquet(files.root / "made.parquet", f"SELECT {query}")
    assert files.tell("t.parquet", table, table, **rules) == (told and f"out/t.parquet breaks a rule: {told}")
    both = [files.write(folder, "t.parquet", table) for folder in ("view", "baselines")]
    for entry, expected in (
        (DeclaredOutput("*.parquet", **rules), ""),
        (DeclaredOutput("w.db", table="t", **rules), told),
    ):
        found = compare_files(entry, *both, shown_as="t")
        assert (found.message if found else "") == (expected and f"t breaks a rule: {expected}")
