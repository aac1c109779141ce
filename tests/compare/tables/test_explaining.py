"""What differs between two tables, explained by its cause and as values."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections import Counter
from contextlib import suppress
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_golden.compare.comparing import compare_files
from pytest_golden.gateway.table_difference import PairedBy, RenamedColumn, TableDifference
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.model import Reason
from tests.compare.files import Files
from tests.compare.tables.parquet import write_parquet

if TYPE_CHECKING:
    from collections.abc import Callable

Row = dict[str, Any]
ORDERS: list[Row] = [
    {
        "order_id": at,
        "customer": f"c{at % 7}",
        "status": ("paid", "returned", "open")[at % 3],
        "amount": f"{(at * 37) % 90}.50",
        "day": f"2024-01-{1 + at % 27:02d}",
    }
    for at in range(60)
]


def as_csv(rows: list[Row], names: list[str] | None = None) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, names or list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def differ(files: Files, output: object, baseline: object, *, name: str = "t.csv", **rules: Any) -> TableDifference:
    found = files.compare(name, output, baseline, **rules)
    assert found is not None
    assert found.difference is not None
    assert TableDifference.from_dict(json.loads(json.dumps(found.difference.to_dict()))) == found.difference
    return found.difference


def later(row: Row) -> Row:
    return {**row, "day": row["day"][:-2] + f"{int(row['day'][-2:]) + 1:02d}"}


BREAKS: dict[str, tuple[Callable[[list[Row]], list[Row]], list[str]]] = {
    "rename": (lambda rows: [{("client" if k == "customer" else k): v for k, v in row.items()} for row in rows], ["`customer` was renamed to `client`"]),
    "wrong join": (lambda rows: [row for row in rows for _ in range(1 + (row["customer"] == "c3"))], ["rows were multiplied", "`order_id`"]),
    "off-by-one date": (lambda rows: [later(row) for row in rows], ["60 rows differ in `day`", "each by 1 day"]),
    "null handling": (lambda rows: [{**row, "status": "" if row["status"] == "open" else row["status"]} for row in rows], ["20 rows differ in `status`", "nulls 0 -> 20"]),
    "dropped filter": (lambda rows: rows + [{**row, "order_id": 100 + at, "status": "test"} for at, row in enumerate(rows[:9])], ["the 9 rows only here all have `status` = test, which no row of the baseline has"]),
}  # fmt: skip


KINDS = {
    "number": "range + 0.5",
    "whole number": "range",
    "text": "CASE WHEN range % 2 = 0 THEN 't' ELSE 'f' END",
    "boolean": "range % 2 = 0",
    "time": "TIMESTAMP '2024-01-01' + to_days(range::INTEGER)",
    "list": "[range]",
    "bytes": "'a'::BLOB",
}


@pytest.mark.parametrize("columns", [0, 120])
@pytest.mark.parametrize("rules", [{}, {"unordered": True}, {"key": ("id",)}, {"key": ("c",)}], ids=str)
def test_a_column_of_any_other_type_is_told(tmp_path: Path, rules: dict[str, Any], columns: int) -> None:
    more = "".join(f", range + {at} AS w{at}" for at in range(columns))
    place = {kind: tmp_path / f"{kind}.parquet" for kind in KINDS}
    for kind, sql in KINDS.items():
        write_parquet(place[kind], f"SELECT range AS id, {sql} AS c{more} FROM range(20)")
    declared = DeclaredOutput(path="t.parquet", **rules)
    for one, other in permutations(KINDS, 2):
        found = compare_files(declared, place[one], place[other], shown_as="t.parquet")
        assert found is not None
        is_told = "`c` is " in found.message or "key that is not unique: `c`" in found.message
        assert is_told, (one, other, found.message)


def test_a_key_that_became_text_still_pairs_the_rows(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", "SELECT range::VARCHAR AS id, range * 2 AS v FROM range(9)")
    write_parquet(tmp_path / "b.parquet", "SELECT range AS id, if(range = 3, 1, range * 2) AS v FROM range(9)")
    declared = DeclaredOutput(path="a.parquet", key=("id",))
    found = compare_files(declared, tmp_path / "a.parquet", tmp_path / "b.parquet", shown_as="a.parquet")
    assert found is not None
    assert "`id` is VARCHAR, and BIGINT in the baseline; 1 row differs in `v`" in found.message


@pytest.mark.parametrize(
    "rules", [{}, {"unordered": True}, {"key": ["order_id"]}], ids=["in order", "unordered", "key"]
)
@pytest.mark.parametrize("name", BREAKS)
def test_the_first_lines_name_the_cause_of_a_break(files: Files, name: str, rules: dict[str, Any]) -> None:
    change, told = BREAKS[name]
    message = files.tell("t.csv", as_csv(change(ORDERS)), as_csv(ORDERS), **rules)
    first = "\n".join(message.splitlines()[:4])
    if name == "wrong join" and rules.get("key"):
        told = ["a key that is not unique: `order_id`", "their rows are otherwise equal"]
    assert [words for words in told if words not in first] == []


def test_rows_are_paired_by_what_agrees_where_there_is_no_key(files: Files) -> None:
    rows: list[Row] = [{"city": f"c{at // 4}", "kind": "a", "v": at % 4} for at in range(40)]
    other = [{**row, "v": row["v"] + 10 * (at == 17)} for at, row in enumerate(rows)]
    found = differ(files, as_csv(other), as_csv(rows), unordered=True)
    assert found.paired_by is PairedBy.VALUES
    assert (found.rows_changed, found.rows_added, found.rows_removed) == (1, 0, 0)
    assert [column.name for column in found.columns] == ["v"]


def test_an_inferred_key_decides_nothing(files: Files) -> None:
    table = as_csv(ORDERS)
    turned = as_csv(ORDERS[::-1])
    assert "the rows are the same in another order" in files.tell("t.csv", turned, table)
    assert files.tell("t.csv", turned, table, unordered=True) == ""


def test_a_renamed_column_needs_most_of_its_values(files: Files) -> None:
    rows = [{"id": at, "a": at * 3} for at in range(50)]
    found = differ(
        files, as_csv([{"id": r["id"], "b": r["a"] + (r["id"] < 3)} for r in rows]), as_csv(rows), key=["id"]
    )
    assert found.columns_renamed == (RenamedColumn("a", "b"),)
    assert found.rows_changed == 3
    found = differ(files, as_csv([{"id": r["id"], "b": r["a"] + 1_000} for r in rows]), as_csv(rows), key=["id"])
    assert (found.columns_added, found.columns_removed, found.columns_renamed) == (("b",), ("a",), ())


def test_figures_and_bars_are_those_of_the_column(files: Files) -> None:
    rows = [{"id": at, "v": at} for at in range(100)]
    other = [{"id": at, "v": "" if at < 5 else at + 100 * (at >= 90)} for at in range(100)]
    column = differ(files, as_csv(other), as_csv(rows), key=["id"]).columns[0]
    assert (column.cells, column.equal_share, column.nulls_before, column.nulls_after) == (15, 0.85, 0, 5)
    assert (column.distinct_before, column.distinct_after, column.largest_change) == (100, 95, None)
    assert sum(bar.before for bar in column.histogram) == 100
    assert sum(bar.after for bar in column.histogram) == 95
    assert column.histogram[-1].before == 0
    assert column.histogram[-1].after == 10


def test_a_change_of_numbers_and_of_times_is_measured(files: Files) -> None:
    query = "SELECT range AS id, {} AS v FROM range(20)"
    for now, was, largest, is_time in (
        ("range::DOUBLE + 0.5", "range::DOUBLE", 0.5, False),
        ("(range * 2)::DECIMAL(9, 2)", "range::DECIMAL(9, 2)", 19.0, False),
        ("DATE '2024-01-02' + range::INTEGER", "DATE '2024-01-01' + range::INTEGER", 86_400.0, True),
        ("TIMESTAMP '2024-01-01 01:00:00' + to_days(range::INTEGER)", "TIMESTAMP '2024-01-01' + to_days(range::INTEGER)", 3_600.0, True),
    ):  # fmt: skip
        sides = [write_parquet(files.root / "made.parquet", query.format(each)) for each in (now, was)]
        column = differ(files, sides[0], sides[1], name="t.parquet", key=["id"]).columns[0]
        assert (column.largest_change, column.is_time) == (largest, is_time)


def test_what_names_a_secret_is_in_no_figure(files: Files) -> None:
    rows = [{"id": at, "password": f"hunter{at}"} for at in range(10)]
    other = [{"id": at, "password": f"hunted{at}"} for at in range(10)]
    actual = files.write("view", "t.csv", as_csv(other))
    accepted = files.write("baselines", "t.csv", as_csv(rows))
    declared = DeclaredOutput(path="t.csv", key=("id",))
    found = compare_files(declared, actual, accepted, shown_as="t.csv", redact=redact)
    assert found is not None
    told = json.dumps(Reason("output_differs", found.message, "t.csv", found.difference).to_dict())
    assert "hunte" not in told
    assert "[REDACTED]" in told


def test_rows_and_texts_that_are_kept_are_bounded(files: Files) -> None:
    rows = [{"id": at, "a": "x" * 3_000, "b": at} for at in range(2_000)]
    other = [{**row, "a": f"y{row['a']}", "b": 0} for row in rows]
    found = differ(files, as_csv(other), as_csv(rows), key=["id"])
    assert found.rows_changed == 2_000
    assert 10 < len(found.changed_rows) <= 200
    assert len(json.dumps(found.to_dict())) < 100_000


@pytest.mark.parametrize("rules", [{}, {"unordered": True}, {"key": ["id"]}, {"relative_tolerance": 0.1}])
def test_tables_of_every_type_are_explained(files: Files, rules: dict[str, Any]) -> None:
    duckdb = pytest.importorskip("duckdb")
    kept = []
    for name, *_ in duckdb.sql("DESCRIBE SELECT * FROM test_all_types()").fetchall():
        # What a version of DuckDB cannot write into Parquet is not an output.
        with suppress(duckdb.Error):
            write_parquet(files.root / "made.parquet", f'SELECT "{name}" FROM test_all_types()')
            kept.append(f'"{name}"')
    assert len(kept) > 40
    types = f"SELECT {', '.join(kept)} FROM test_all_types()"
    query = f"SELECT row_number() OVER () AS id, * FROM ({types})"
    table = write_parquet(files.root / "made.parquet", query)
    changed = write_parquet(
        files.root / "made.parquet",
        f"SELECT * REPLACE (id + (id = 2)::INTEGER * 10 AS id, NOT bool AS bool) FROM ({query})",
    )
    assert files.tell("t.parquet", table, table, **rules) == ""
    found = differ(files, changed, table, name="t.parquet", **rules)
    assert found.rows_after == found.rows_before == 3


@pytest.mark.parametrize(
    "name", ['a "quoted" one', "with.dots", "it's", "ünïcode", "x" * 300, "SELECT", "a\tb", "{braces}"]
)
def test_odd_names_are_told(files: Files, name: str) -> None:
    rows = [{"id": at, name: at} for at in range(9)]
    other = [{"id": at, name: at + (at == 4)} for at in range(9)]
    found = differ(files, as_csv(other), as_csv(rows))
    assert found.rows_changed == 1
    assert len(found.columns) == 1


def test_numbers_that_are_written_otherwise_are_equal_and_said(files: Files) -> None:
    told: list[str] = []
    actual = files.write("view", "t.csv", "id,v,s\n1,33.0,a\n2,1.50,1e3\n")
    accepted = files.write("baselines", "t.csv", "id,v,s\n1,33,a\n2,1.5,1e3\n")
    declared = DeclaredOutput(path="t.csv")
    assert compare_files(declared, actual, accepted, shown_as="t.csv", warn=told.append) is None
    assert told == ["t.csv: numbers of `v` are written differently than in the baseline, but are equal"]
    assert compare_files(declared, actual, actual, shown_as="t.csv", warn=told.append) is None
    assert len(told) == 1
    for one, other in (("1", "1.01"), ("007", "7.0"), ("1e3", "1000"), ("-0.0", "0"), ("+5", "5.0")):
        is_equal = one == "-0.0"
        assert (files.tell("t.csv", f"v\n{one}\n", f"v\n{other}\n") == "") is is_equal


def test_a_file_without_a_header_has_numbered_columns(files: Files) -> None:
    assert files.tell("t.csv", "2,b\n1,a\n", "1,a\n2,b\n", header=False, key=["column1"]) == ""
    message = files.tell("t.csv", "1,a\n2,c\n", "1,a\n2,b\n", header=False, key=["column1"])
    assert message.startswith("out/t.csv differs from its baseline: 1 row differs in `column2`\n")
    # With one, the first row would be names, and its values other columns.
    assert "rows: 1 here, 1 in the baseline" in files.tell("t.csv", "5,a\n2,b\n", "1,a\n2,b\n")
    assert "1 row differs in `column1`" in files.tell("t.csv", "5,a\n2,b\n", "1,a\n2,b\n", header=False)


CELLS = st.sampled_from(["", "0", "1", "1.0", "2.50", "2.5", "x", "y", "007", "NaN"])
TABLES = st.dictionaries(st.integers(0, 12), st.tuples(CELLS, CELLS, CELLS), min_size=1)


def mean(text: str) -> str:
    """Return what a cell means: the same for two that are equal."""
    if text.replace(".", "", 1).isdigit() and not (text.startswith("0") and text[1:2].isdigit()):
        return f"number {float(text)}"
    return text


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(TABLES, TABLES)
def test_it_counts_what_plain_python_counts(
    here: dict[int, tuple[str, ...]], there: dict[int, tuple[str, ...]]
) -> None:
    def write(table: dict[int, tuple[str, ...]]) -> str:
        return as_csv([{"id": key, **dict(zip("abc", row, strict=True))} for key, row in table.items()])

    both = here.keys() & there.keys()
    changed = {key for key in both if list(map(mean, here[key])) != list(map(mean, there[key]))}
    by_column = Counter("abc"[at] for key in both for at in range(3) if mean(here[key][at]) != mean(there[key][at]))
    with tempfile.TemporaryDirectory() as folder:
        files = Files(Path(folder))
        found = files.compare("t.csv", write(here), write(there), key=["id"])
        if not changed and here.keys() == there.keys():
            assert found is None
            return
        told = differ(files, write(here), write(there), key=["id"])
    assert (told.rows_changed, told.rows_added, told.rows_removed) == (
        len(changed),
        len(here.keys() - there.keys()),
        len(there.keys() - here.keys()),
    )
    assert {column.name: column.cells for column in told.columns} == by_column
    assert {int(str(row.place[0])) for row in told.changed_rows} == changed
    for column in told.columns:
        at = "abc".index(column.name)
        assert column.nulls_before == sum(not row[at] for row in there.values())
        assert column.nulls_after == sum(not row[at] for row in here.values())
        assert column.distinct_after == len({mean(row[at]) for row in here.values() if row[at]})
