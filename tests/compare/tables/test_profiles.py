"""Profiles of large tables: what they tell apart without the rows."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_golden.compare.baselines import ExpectedFile
from pytest_golden.compare.comparing import compare_files
from pytest_golden.compare.tables.database_files import write_sorted
from pytest_golden.compare.tables.duckdb_engine import open_engine
from pytest_golden.compare.tables.profiles import is_profile, is_profiled, put_profile
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.redaction.redactor import redact
from pytest_golden.redaction.rule import MARK
from pytest_golden.regression.model import ReasonKind, ResultStatus
from tests.compare.conftest import kinds
from tests.compare.tables.test_database_outputs import duckdb_script, orders

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.compare.opening import Mismatch
    from tests.compare.conftest import Workspace

duckdb: Any = import_module("duckdb")

# All are read out of a table of 1,000 rows whose `i` is 0 to 999.
PLAIN = "i AS id, i % 7 AS kind, i / 3 AS share, 'n' || i AS name"
TYPES = """i AS id, i::TINYINT::HUGEINT AS huge, i::DECIMAL(12, 2) AS price, (i / 7)::FLOAT AS ratio, i % 2 = 0 AS flag,
    'x' || i AS text, ('x' || i)::BLOB AS raw, DATE '2024-01-01' + i::INT AS day, TIME '10:00:00' AS clock,
    TIMESTAMP '2024-01-01' + INTERVAL (i) HOUR AS moment, (TIMESTAMP '2024-01-01' + INTERVAL (i) HOUR)::TIMESTAMPTZ AS zoned,
    INTERVAL (i) DAY AS lasting, [i, NULL] AS list, {'a': i, 'b': [i / 2]} AS struct, MAP {i: 'x'} AS map,
    '{"a": 1}'::JSON AS json, '5f1c1b3e-0000-4000-8000-000000000000'::UUID AS uuid, NULL AS nothing"""


def table(folder: Path, select: str, *, rows: int = 1000, name: str = "t.parquet", order: str = "i") -> Path:
    """Write rows as those of a database are written."""
    with open_engine() as engine:
        engine.query(f"CREATE TABLE source AS SELECT (i % 100)::INT AS j, i FROM range({rows}) t(i)")
        chosen = select.replace("i::TINYINT", "j::TINYINT")
        engine.query(f"CREATE TABLE t AS SELECT {chosen} FROM source ORDER BY {order}")
        write_sorted(engine, "t", (), folder / name)
    return folder / name


def entry(**rules: Any) -> DeclaredOutput:
    return DeclaredOutput("wh.duckdb", table="t", profile_above=1, **rules)


def profile(folder: Path, select: str, *, rows: int = 1000, redact: Any = str, **rules: Any) -> Path:
    place = table(folder, select, rows=rows, name="profile.parquet")
    assert put_profile(ExpectedFile("t", (entry(**rules),), True), place, redact)
    return place


def compare(actual: Path, baseline: Path, **rules: Any) -> Mismatch | None:
    return compare_files(entry(**rules), actual, baseline, shown_as="t")


def tell(folder: Path, select: str, baseline: str, *, rows: int = 1000, **rules: Any) -> str:
    found = compare(table(folder, select, rows=rows), profile(folder, baseline, **rules), **rules)
    return "" if found is None else found.message


@pytest.mark.parametrize("order", ["i", "-i", "hash(i)"])
def test_equal_rows_hold_in_any_order_and_for_every_type(tmp_path: Path, order: str) -> None:
    kept = profile(tmp_path, TYPES)
    assert compare(table(tmp_path, TYPES, order=order), kept) is None
    assert kept.stat().st_size < 30_000


COLUMNS = (
    ("huge", "0::HUGEINT"),
    ("price", "0::DECIMAL(12, 2)"),
    ("ratio", "1e-30::FLOAT"),
    ("flag", "NULL"),
    ("text", "'x8 '"),
    ("raw", "'\\x00'::BLOB"),
    ("day", "DATE '1999-12-31'"),
    ("clock", "TIME '10:00:01'"),
    ("moment", "TIMESTAMP '2024-01-01 08:00:00.000001'"),
    ("zoned", "TIMESTAMPTZ '2024-01-01 08:00:01+00'"),
    ("lasting", "INTERVAL 9 MONTH"),
    ("list", "[8, 8]"),
    ("struct", "{'a': 8, 'b': [4.5]}"),
    ("map", "MAP {8: 'y'}"),
    ("json", "'{\"a\": 2}'::JSON"),
    ("uuid", "'5f1c1b3e-0000-4000-8000-000000000001'::UUID"),
)


@pytest.mark.parametrize(("column", "value"), COLUMNS, ids=[column for column, _ in COLUMNS])
def test_one_changed_cell_names_its_column(tmp_path: Path, column: str, value: str) -> None:
    changed = f"* REPLACE (CASE WHEN id = 8 THEN {value} ELSE {column} END AS {column}) FROM (SELECT {TYPES}"
    now = table(tmp_path, f"{changed} FROM source) --")
    found = compare(now, profile(tmp_path, TYPES))
    assert found is not None
    assert found.message.startswith(f"t differs from its baseline: at least 1 row differs in `{column}`\n")
    assert found.kind is ReasonKind.OUTPUT_DIFFERS
    assert found.difference is not None
    assert found.difference.rows_changed == 1


def test_figures_of_a_changed_column_are_told_and_where_the_rows_are(tmp_path: Path) -> None:
    told = tell(tmp_path, PLAIN.replace("i / 3", "CASE WHEN i < 20 THEN NULL ELSE i * 2.0::DOUBLE END"), PLAIN)
    headline, rows, share, about = told.split("\n")
    assert headline.startswith("t differs from its baseline: at least ")
    assert headline.endswith(" rows differ in `share`")
    assert rows == "rows: 1,000 here, 1,000 in the baseline"
    assert share.startswith("`share`: nulls 0 -> 20, least 0.0 -> 40.0, greatest 333.0 -> 1998.0, mean 166.5 -> ")
    assert (
        about == "the baseline is a profile, since the table is large: `golden diff` shows which rows a change alters"
    )


def test_values_that_changed_their_rows_are_a_difference(tmp_path: Path) -> None:
    swapped = PLAIN.replace("'n' || i", "'n' || CASE WHEN i = 3 THEN 4 WHEN i = 4 THEN 3 ELSE i END")
    headline = tell(tmp_path, swapped, PLAIN).partition("\n")[0]
    assert headline == "t differs from its baseline: at least 2 rows differ"


@pytest.mark.parametrize(
    ("rows", "headline"), [(1003, "3 rows are only here"), (998, "2 rows are only in the baseline")]
)
def test_rows_of_one_side_alone_are_counted(tmp_path: Path, rows: int, headline: str) -> None:
    assert tell(tmp_path, PLAIN, PLAIN, rows=rows).partition("\n")[0] == f"t differs from its baseline: {headline}"


@pytest.mark.parametrize(
    ("select", "headline"),
    [
        (PLAIN.replace("AS share", "AS part"), "`share` was renamed to `part`"),
        (PLAIN.replace("i / 3 AS share, ", ""), "column `share` is missing"),
        (f"{PLAIN}, 1 AS extra", "column `extra` is new"),
        (PLAIN.replace("i % 7", "(i % 7)::INTEGER"), "`kind` is INTEGER, and BIGINT in the baseline"),
        ("i % 7 AS kind, i AS id, i / 3 AS share, 'n' || i AS name", "its columns are in another order"),
    ],
    ids=["renamed", "missing", "new", "retyped", "moved"],
)
def test_columns_themselves_are_compared(tmp_path: Path, select: str, headline: str) -> None:
    told = tell(tmp_path, select, PLAIN)
    assert told.partition("\n")[0] == f"t differs from its baseline: {headline}"
    assert tell(tmp_path, select, PLAIN, schema_only=True).partition("\n")[0] == told.partition("\n")[0]


def test_only_columns_are_compared_if_that_is_declared(tmp_path: Path) -> None:
    assert tell(tmp_path, PLAIN.replace("i / 3", "i / 4"), PLAIN, rows=1050, schema_only=True) == ""
    told = tell(tmp_path, PLAIN, PLAIN, rows=1200, schema_only=True, row_count_change=0.1)
    assert "1,200 rows here, 1,000 in the baseline" in told


def test_ignored_columns_are_not_in_the_profile_and_another_rule_needs_another_one(tmp_path: Path) -> None:
    other = PLAIN.replace("i / 3", "i / 4")
    assert tell(tmp_path, other, PLAIN, ignore_columns=("share",)) == ""
    kept = profile(tmp_path, PLAIN, ignore_columns=("share",))
    assert b"share" not in kept.read_bytes().replace(b'"ignored": ["share"]', b"")
    found = compare(table(tmp_path, PLAIN), kept)
    assert found is not None
    assert (found.kind, found.message) == (
        ReasonKind.BASELINE_UNREADABLE,
        "the baseline of t is a profile that was made with `ignore_columns: [share]`: accept the table again",
    )


def test_table_with_a_tolerance_is_kept_whole_and_its_profile_is_no_baseline(tmp_path: Path) -> None:
    tolerant = DeclaredOutput("wh.duckdb", table="t", relative_tolerance=1e-9)
    assert not is_profiled(ExpectedFile("t", (tolerant,), True), 1 << 40)
    found = compare_files(tolerant, table(tmp_path, PLAIN), profile(tmp_path, PLAIN), shown_as="t")
    assert found is not None
    assert (found.kind, found.message) == (
        ReasonKind.BASELINE_UNREADABLE,
        "the baseline of t is a profile, and a tolerance needs all rows of the table: accept the table again",
    )


@pytest.mark.parametrize("values", ["'inf'::DOUBLE", "'nan'::DOUBLE", "'-inf'::DOUBLE"])
def test_numbers_without_bounds_are_equal_to_themselves_alone(tmp_path: Path, values: str) -> None:
    odd = PLAIN.replace("i / 3", f"CASE WHEN i = 4 THEN {values} ELSE i / 3 END")
    assert tell(tmp_path, odd, odd) == ""
    assert "`share`" in tell(tmp_path, odd, PLAIN)


def test_minus_zero_is_zero_and_a_text_is_no_null(tmp_path: Path) -> None:
    assert tell(tmp_path, "-0.0::DOUBLE AS a, i", "0.0::DOUBLE AS a, i") == ""
    assert tell(tmp_path, "['NULL', NULL] AS a, i", "[NULL, 'NULL'] AS a, i") != ""
    assert tell(tmp_path, "'a,b' AS a, NULL::VARCHAR AS b, i", "NULL::VARCHAR AS a, 'a,b' AS b, i") != ""


def test_table_without_rows(tmp_path: Path) -> None:
    assert compare(table(tmp_path, "i", rows=0), profile(tmp_path, "i", rows=0)) is None


def test_table_with_many_columns(tmp_path: Path) -> None:
    select = ", ".join(f"i AS c{at}" for at in range(1200))
    kept = profile(tmp_path, select, rows=20)
    assert compare(table(tmp_path, select, rows=20), kept) is None
    found = compare(table(tmp_path, select.replace("i AS c777", "i + (i = 3)::INT AS c777"), rows=20), kept)
    assert found is not None
    assert "in `c777`" in found.message


ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([None, "", "a", "NULL"]), st.sampled_from([0.0, 0.1, None])),
    max_size=6,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, ROWS)
def test_profiles_tell_apart_what_differs_as_rows(tmp_path: Path, one: list[Any], other: list[Any]) -> None:
    places = []
    for at, rows in enumerate((one, other)):
        place = tmp_path / f"{at}.parquet"
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE t (a BIGINT, b VARCHAR, c DOUBLE)")
            if rows:
                connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
            connection.execute(f"COPY t TO '{place}' (FORMAT parquet)")
        places.append(place)
    assert put_profile(ExpectedFile("t", (entry(),), True), places[1], str)
    are_equal = sorted(map(str, one)) == sorted(map(str, other))
    assert (compare(*places) is None) == are_equal


def test_rules_that_need_the_rows_are_checked_beside_a_profile(tmp_path: Path) -> None:
    kept = profile(tmp_path, PLAIN)
    broken = compare(table(tmp_path, PLAIN), kept, between={"share": (0, 100)})
    assert broken is not None
    assert broken.kind is ReasonKind.RULE_BROKEN
    twice = compare(table(tmp_path, PLAIN.replace("i AS id", "i // 2 AS id")), kept, key=("id",))
    assert twice is not None
    assert "a key that is not unique" in twice.message


def test_no_secret_value_is_kept(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    kept = profile(tmp_path, f"i, '{token}' AS told, 'hunter2' AS password, i AS api_key", redact=redact)
    with duckdb.connect() as connection:
        rows = {row[0]: row[3:6] for row in connection.execute(f"SELECT * FROM '{kept}'").fetchall()}
    assert token not in str(rows)
    assert "hunter2" not in str(rows)
    assert rows["api_key"] == (MARK, MARK, None)
    assert compare(table(tmp_path, f"i, '{token}' AS told, 'hunter2' AS password, i AS api_key"), kept) is None


def test_small_tables_files_and_entries_that_ignore_other_columns_are_kept_whole() -> None:
    assert not is_profiled(ExpectedFile("t", (DeclaredOutput("wh.duckdb", table="t"),), True), 50_000_000)
    assert is_profiled(ExpectedFile("t", (DeclaredOutput("wh.duckdb", table="t"),), True), 50_000_001)
    assert not is_profiled(ExpectedFile("t.parquet", (DeclaredOutput("t.parquet"),), True), 1 << 40)
    assert not is_profiled(ExpectedFile("t", (entry(), entry(ignore_columns=("a",))), True), 1 << 40)


@pytest.mark.parametrize("told", ["no json", "[]", json.dumps({"rows": 1, "ignored": [], "groups": 7}), "{}"])
def test_damaged_profile_is_an_unreadable_baseline(tmp_path: Path, told: str) -> None:
    place = tmp_path / "forged.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT 1 AS a) TO '{place}' (FORMAT parquet, KV_METADATA {{golden_profile: '{told}'}})"
        )
    found = compare(table(tmp_path, PLAIN), place)
    assert found is not None
    assert found.kind is ReasonKind.BASELINE_UNREADABLE
    assert found.message.startswith("the baseline of t is not a valid profile of a table: ")


def test_large_table_is_accepted_as_a_profile_and_a_small_one_whole_again(workspace: Workspace) -> None:
    large = DeclaredOutput("wh.duckdb", table="marts.orders", profile_above=1)
    accepted = workspace.accept(workspace.declare(orders(), large))
    kept = workspace.baselines / "wh.duckdb/marts.orders.parquet"
    assert is_profile(kept)
    [told] = accepted.accepted or ()
    assert told.message.endswith(", kept as a profile")
    assert workspace.check(workspace.declare(orders(order="-i"), large)).status is ResultStatus.PASSED
    differing = workspace.check(workspace.declare(orders("i * 2 + (i = 5)::INT"), large))
    assert kinds(differing) == [("output_differs", "wh.duckdb/marts.orders.parquet")]
    assert "in `amount`" in differing.reasons[0].headline
    whole = DeclaredOutput("wh.duckdb", table="marts.orders")
    assert workspace.check(workspace.declare(orders(), whole)).status is ResultStatus.PASSED
    workspace.accept(workspace.declare(orders("i * 3"), whole))
    assert not is_profile(kept)
    changed = workspace.accept(workspace.declare(orders("i * 4"), large))
    assert is_profile(kept)
    [told] = changed.accepted or ()
    assert told.message.split("\n")[-1].endswith(", kept as a profile")


def test_noise_is_not_looked_for_in_a_profile(workspace: Workspace) -> None:
    large = DeclaredOutput("wh.duckdb", table="t", profile_above=1)
    script = duckdb_script("CREATE TABLE t AS SELECT 1 AS id, now() AS name")
    workspace.accept(workspace.declare(script, large))
    differing = workspace.check(workspace.declare(script, large))
    assert kinds(differing) == [("output_differs", "wh.duckdb/main.t.parquet")]
    assert "noise" not in differing.reasons[0].message


def test_table_that_names_a_profile_is_searched_for_secrets_unless_it_becomes_one(workspace: Workspace) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    script = duckdb_script(f"CREATE TABLE t AS SELECT 'golden_profile' AS a, '{token}' AS b")
    refused = workspace.accept(workspace.declare(script, DeclaredOutput("wh.duckdb", table="t")))
    assert "redaction finds a secret in row 1, column b" in refused.reasons[0].message
    accepted = workspace.accept(workspace.declare(script, DeclaredOutput("wh.duckdb", table="t", profile_above=1)))
    assert accepted.status is ResultStatus.PASSED
    kept = (workspace.baselines / "wh.duckdb/main.t.parquet").read_bytes()
    assert token.encode() not in kept
