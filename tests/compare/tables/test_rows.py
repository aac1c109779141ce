"""Rows compared by key, by position, and as multisets."""

from __future__ import annotations

import csv
import io
import tempfile
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_golden.compare.comparing import compare_files
from pytest_golden.compare.tables import equality as sampling
from pytest_golden.compare.tables import rows
from pytest_golden.compare.tables.rows import can_all_be_paired
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.regression.model import ReasonKind
from tests.compare.files import Files

if TYPE_CHECKING:
    import random


TABLE = "id,v,s\n1,1.5,a\n2,2.5,b\n3,3.5,c\n"
OTHER = "id,v,s\n2,2.5,b\n1,1.51,a\n4,3.5,\n"


def test_rows_by_key_are_shown_side_by_side(files: Files) -> None:
    assert files.tell("t.csv", TABLE, OTHER, key=["id"]).splitlines() == [
        "out/t.csv differs from its baseline: 1 row differs in `v`, 1 row is only here, 1 row is only in the baseline",
        "rows: 3 here, 3 in the baseline",
        "the row only in the baseline has no `s`, which every other row has",
        "`v`: 1 cell differs (50 % equal), by 0.01 at most",
        "they are:",
        "  id  column  baseline  here",
        "  1   v       1.51      1.5",
        "only here:",
        "  id=3",
        "only in the baseline:",
        "  id=4",
    ]


def test_rows_by_position_are_shown_by_number(files: Files) -> None:
    message = files.tell("t.csv", TABLE, TABLE.replace("2.5", "2.6"))
    assert message.splitlines()[-2:] == ["  id  column  baseline  here", "  2   v       2.6       2.5"]
    assert "rows are paired by `id` (inferred; declare `key: id`)" in message
    message = files.tell("t.csv", "a,b\n1,1\n1,2\n", "a,b\n1,1\n1,3\n")
    assert message.splitlines()[-2:] == ["  row  column  baseline  here", "  2    b       3         2"]


def test_rows_in_another_order_are_said_to_be(files: Files) -> None:
    message = files.tell("t.csv", TABLE, "id,v,s\n3,3.5,c\n1,1.5,a\n2,2.5,b\n")
    assert (
        "the rows are the same in another order: if that does not matter, declare `unordered: true` or a `key`"
        in message
    )


def test_a_row_put_in_is_found_among_those_that_it_moved(files: Files) -> None:
    numbers = "".join(f"{number}\n" for number in range(100))
    assert files.tell("t.csv", f"n\n{numbers}", f"n\n{numbers}".replace("\n5\n", "\n")).splitlines() == [
        "out/t.csv differs from its baseline: 1 row is only here",
        "rows: 100 here, 99 in the baseline; rows are paired by `n` (inferred; declare `key: n`)",
        "the rest has moved: row by row, 95 rows differ",
        "only here:",
        "  n=5",
    ]


def test_rows_as_multisets_are_counted_as_often_as_they_stand(files: Files) -> None:
    assert files.tell("t.csv", "a\n1\n2\n1\n", "a\n1\n1\n2\n", unordered=True) == ""
    message = files.tell("t.csv", "a\n1\n2\n2\n", "a\n1\n1\n2\n", unordered=True)
    assert message.startswith(
        "out/t.csv differs from its baseline: 1 row is only here, 1 row is only in the baseline\n"
    )


@pytest.mark.parametrize("rules", [{}, {"key": ["id"]}, {"unordered": True}])
def test_a_tolerance_is_the_larger_of_both(files: Files, rules: dict[str, Any]) -> None:
    output, baseline = "id,v\n1,100\n2,1000.0\n", "id,v\n1,101\n2,1010.0\n"
    assert files.tell("t.csv", output, baseline, **rules, absolute_tolerance=1) != ""
    assert files.tell("t.csv", output, baseline, **rules, absolute_tolerance=1, relative_tolerance=0.00995) == ""
    assert files.tell("t.csv", output, baseline, **rules, relative_tolerance=0.0098) != ""


def test_the_border_of_a_tolerance_is_within(files: Files) -> None:
    assert files.tell("t.csv", "v\n1.1\n", "v\n1.0\n", absolute_tolerance=0.1) == ""
    assert files.tell("t.csv", "v\n1.1000001\n", "v\n1.0\n", absolute_tolerance=0.1) != ""


def test_multisets_within_a_tolerance_are_paired_as_well_as_can_be(files: Files) -> None:
    output = "k,x,y\na,1.00,5\na,1.01,3\nb,7.0,7\n"
    assert (
        files.tell("t.csv", output, "k,x,y\nb,7.0,7\na,1.01,5\na,1.00,3\n", unordered=True, absolute_tolerance=0.02)
        == ""
    )
    assert (
        files.tell("t.csv", output, "k,x,y\nb,7.0,7\na,1.01,5\na,1.00,4\n", unordered=True, absolute_tolerance=0.02)
        != ""
    )
    assert files.tell("t.csv", "x\n0\n1\n", "x\n2\n1\n", unordered=True, absolute_tolerance=1) == ""
    assert files.tell("t.csv", "x,s\n0,a\n1,b\n", "x,s\n1,a\n0,c\n", unordered=True, absolute_tolerance=1) != ""
    assert files.tell("t.csv", "s\na\nb\n", "s\nb\nc\n", unordered=True, absolute_tolerance=1) != ""


@pytest.mark.parametrize(
    ("output", "baseline", "told"),
    [
        ("id\n5\n5\n", "id\n5\n5\n", "out/t.csv has a key that is not unique: `id`\n  id=5 occurs 2 times"),
        ("id\n5\n5\n5\n", "id\n5\n", "out/t.csv has a key that is not unique: `id`\n  id=5 occurs 3 times"),
        ("id\n5\n5\n", "id\n7\n", "out/t.csv has a key that is not unique: `id`\n  id=5 occurs 2 times"),
        (
            "id\n7\n",
            "id\n5\n5\n",
            "out/t.csv has a baseline with a key that is not unique: `id`\n  id=5 occurs 2 times",
        ),
        (
            "id\n5\n",
            "id\n5\n5\n",
            "out/t.csv has a baseline with a key that is not unique: `id`\n  id=5 occurs 2 times",
        ),
        ("x\n5\n", "id\n6\n", "out/t.csv has no column `id`, which is its key\n  columns: `x`"),
        ("id\n5\n", "x\n6\n", "out/t.csv has a baseline with no column `id`, which is its key\n  columns: `x`"),
    ],
)
def test_a_key_that_does_not_hold_is_told(files: Files, output: str, baseline: str, told: str) -> None:
    message = files.tell("t.csv", output, baseline, key=["id"]).splitlines()
    assert [message[0], message[-1]] == told.splitlines()


def test_a_key_that_was_renamed_still_pairs_the_rows(files: Files) -> None:
    message = files.tell("t.csv", "x,v\n5,1\n6,2\n7,4\n", "id,v\n7,3\n6,2\n5,1\n", key=["id"])
    assert message.splitlines() == [
        "out/t.csv differs from its baseline: `id` was renamed to `x`; 1 row differs in `v`",
        "rows: 3 here, 3 in the baseline",
        "`v`: 1 cell differs (66.6 % equal), by 1 at most",
        "they are:",
        "  x  column  baseline  here",
        "  7  v       3         4",
    ]


def test_a_key_that_could_join_more_rows_than_can_be_counted_ends_soon(files: Files) -> None:
    table = "id,n\n" + "".join(f"same,{number}\n" for number in range(200_000))
    message = files.tell("t.csv", table, table, key=["id"])
    assert message.splitlines() == [
        "out/t.csv has a key that is not unique: `id`",
        "rows: 200,000 here, 200,000 in the baseline",
        "1 key occurs more than once: its rows differ in `n`",
        "  id=same occurs 200,000 times",
    ]


def test_a_key_may_be_of_several_columns_and_null(files: Files) -> None:
    output, baseline = "a,b,v\n1,,x\n1,2,y\n,,z\n", "a,b,v\n,,z\n1,2,y\n1,,w\n"
    message = files.tell("t.csv", output, baseline, key=["a", "b"])
    assert message.splitlines()[-2:] == ["  a, b     column  baseline  here", "  1, NULL  v       w         x"]


def test_ignored_columns_count_nowhere(files: Files) -> None:
    output, baseline = "id,at,v\n1,10:00,x\n", "id,v\n1,x\n"
    for rules in ({}, {"key": ["id"]}, {"unordered": True}, {"schema_only": True}):
        assert files.tell("t.csv", output, baseline, ignore_columns=["at"], **rules) == ""
    assert files.tell("t.csv", "id\n1\n", "id\n2\n", ignore_columns=["id"]) == ""
    for rules in ({}, {"unordered": True}):
        assert "1 row is only here" in files.tell("t.csv", "id\n1\n2\n", "id\n2\n", ignore_columns=["id"], **rules)


def test_other_columns_are_told(files: Files) -> None:
    assert files.tell("t.csv", "a,c,d\n1,2,3\n", "a,b\n1,2\n").splitlines() == [
        "out/t.csv differs from its baseline: `b` was renamed to `c`, column `d` is new",
        "rows: 1 here, 1 in the baseline",
    ]
    assert files.tell("t.csv", "b,a,c\n1,2,3\n", "a,b,c\n1,2,3\n").splitlines() == [
        "out/t.csv differs from its baseline: its columns are in another order; 1 row differs in `b`, `a`",
        "rows: 1 here, 1 in the baseline",
        "columns here: `b`, `a`",
        "in the baseline: `a`, `b`",
        "`b`: 1 cell differs (0 % equal), by 1 at most",
        "`a`: 1 cell differs (0 % equal), by 1 at most",
        "they are:",
        "  row  column  baseline  here",
        "  1    b       2         1",
        "       a       1         2",
    ]


def test_the_rows_are_counted_with_and_without_a_baseline(files: Files) -> None:
    actual = files.write("view", "t.csv", TABLE)
    for rules, told in (
        ({"min_rows": 4}, "out/t.csv has 3 rows, less than min_rows: 4"),
        ({"max_rows": 2}, "out/t.csv has 3 rows, more than max_rows: 2"),
        ({"min_rows": 3, "max_rows": 3}, None),
        ({"key": ["id"]}, None),
        ({"key": ["no"]}, "out/t.csv has no column `no`, which is its key\n  columns: `id`, `v`, `s`"),
    ):
        declared = DeclaredOutput(path="t.csv", compare="table", **rules)
        for baseline in (None, actual):
            found = compare_files(declared, actual, baseline, shown_as="out/t.csv")
            assert (found and found.message) == told
            assert found is None or found.kind == ReasonKind.OUTPUT_DIFFERS
    declared = DeclaredOutput(path="t.csv", compare="table", key=("id",))
    twice = files.write("view", "u.csv", TABLE + "1,1,1\n")
    found = compare_files(declared, twice, None, shown_as="out/u.csv")
    assert found is not None
    assert found.message == "out/u.csv has a key that is not unique: `id`\n  id=1 occurs 2 times"


def test_a_difference_stays_within_what_can_be_read(files: Files) -> None:
    header = ",".join(["id", *(f"column_{'n' * 100}_{at}" for at in range(60))])
    rows = [",".join([str(row), *(f"{'v' * 300}{row}{at}" for at in range(60))]) for row in range(100)]
    other = [row.replace("v", "w") for row in rows[:50]] + [row.replace(",", ",x", 1) for row in rows[50:]]
    extra = [f"new{row}" + "," * 60 for row in range(50)]
    message = files.tell("t.csv", "\n".join([header, *rows, *extra]), "\n".join([header, *other]), key=["id"])
    assert len(message.splitlines()) <= 40
    assert len(message.encode()) <= 6 << 10
    assert "100 rows differ in `column_" in message
    assert "52 more columns differ" in message
    assert "the first 4 of them:" in message
    assert "only here, the first 5:" in message


def test_long_values_are_cut_where_they_differ(files: Files) -> None:
    text = "x" * 500
    message = files.tell("t.csv", f"id,v\n1,{text}a{text}\n", f"id,v\n1,{text}b{text}\n")
    cells = message.splitlines()[-1].split()
    assert "a" in cells[-1]
    assert "b" in cells[-2]


def test_values_that_would_be_overlooked_are_quoted(files: Files) -> None:
    message = files.tell("t.csv", 'id,a,b\n1,"",NULL\n', "id,a,b\n1,,x \n", key=["id"])
    assert message.splitlines()[-2:] == ["  1   a       NULL      ''", "      b       'x '      'NULL'"]


@pytest.mark.parametrize(
    ("columns", "at_once", "rules"), [(1010, 1000, {}), (110, 100, {"key": ["c0"]}), (110, 100, {"unordered": True})]
)
def test_a_table_of_many_columns_is_compared_in_parts(
    files: Files, monkeypatch: pytest.MonkeyPatch, columns: int, at_once: int, rules: dict[str, Any]
) -> None:
    monkeypatch.setattr(sampling.part, "__defaults__", (at_once,))
    header = ",".join(f"c{at}" for at in range(columns))
    rows = [",".join(f"{row * 10_000 + at}" for at in range(columns)) for row in range(4)]
    table = "\n".join([header, *rows, ""])
    assert files.tell("t.csv", table, table, **rules) == ""
    changed = table.replace("20007", "-7").replace(f"{20_000 + at_once + 7}", "-8")
    message = files.tell("t.csv", table, changed, **rules)
    if "unordered" in rules:
        assert files.tell("t.csv", table, "\n".join([header, *reversed(rows), ""]), **rules) == ""
        assert "1 row is only here, 1 row is only in the baseline" in message
        assert message.splitlines()[-4:] == ["only here:", "  row=3", "only in the baseline:", "  row=3"]
    else:
        assert "at least 1 row differs" in message
        assert f"differs in `c7`, `c{at_once + 7}`" in message


@pytest.mark.parametrize("rules", [{}, {"key": ["c0"]}])
def test_columns_that_all_differ_are_each_counted_in_parts_of_parts(
    files: Files, monkeypatch: pytest.MonkeyPatch, rules: dict[str, Any]
) -> None:
    monkeypatch.setattr(sampling.part, "__defaults__", (20,))
    monkeypatch.setattr(sampling, "_MANY", 5)
    monkeypatch.setattr(rows, "COUNTED_AT_ONCE", 6)
    header = ",".join(f"c{at}" for at in range(50))
    here, there = (
        "\n".join([header, *(",".join([f"{row}", *[f"{row + step}"] * 49]) for row in range(4)), ""]) for step in (0, 1)
    )
    message = files.tell("t.csv", here, there, **rules)
    assert message.startswith(
        "out/t.csv differs from its baseline: at least 4 rows differ in `c1`, `c2`, `c3` and 46 more\n"
    )
    assert "41 more columns differ" in message


def test_pairs_within_a_tolerance_that_were_not_tried_are_told(files: Files) -> None:
    # Paired in the order of both numbers each row is too far off, and every row has a partner all the same.
    rows = [(at * 10 + side, at % 2 * 100) for at in range(600) for side in (0, 0.2)]
    here = "".join(f"{a},{b}\n" for a, b in rows)
    there = "".join(f"{a + (0.3 if at % 2 == 0 else -0.1)},{b + at % 2 * 50 - 25}\n" for at, (a, b) in enumerate(rows))
    message = files.tell("t.csv", f"a,b\n{here}", f"a,b\n{there}", unordered=True, absolute_tolerance=0.5)
    assert "rows are beyond the tolerance when rows are paired in order, too many to try other pairs" in message
    assert "declare a `key` instead of `unordered`" in message


def test_tolerance_that_many_columns_leave_out_is_told(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling.part, "__defaults__", (100,))
    header = ",".join(f"c{at}" for at in range(110))
    here, there = (f"{header}\n{end}{',1' * 109}\n" for end in ("1.0", "1.01"))
    message = files.tell("t.csv", here, there, unordered=True, absolute_tolerance=0.5)
    assert "rows of so many columns are compared without the tolerance" not in message
    other = f"{header}\n2{',1' * 109}\n1.0{',1' * 109}\n"
    mixed = f"{header}\n1.01{',1' * 109}\n2{',1' * 109}\n"
    message = files.tell("t.csv", other, mixed, unordered=True, absolute_tolerance=0.5)
    assert "rows of so many columns are compared without the tolerance" in message


PAIRS = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)))


@given(st.integers(0, 5), PAIRS)
def test_it_says_what_trying_all_says(count: int, near: set[tuple[int, int]]) -> None:
    near = {(left, right) for left, right in near if left < count and right < count}
    tried = any(all((at, to) in near for at, to in enumerate(order)) for order in permutations(range(count)))
    assert can_all_be_paired(count, sorted(near)) is tried


CELLS = st.one_of(
    st.sampled_from(["", "0", "1", "1.0", "1.50", "-2", "007", "NaN", "NULL", "a", "b", " ", "1e3"]),
    st.floats(allow_nan=False).map(repr),
    st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=5),
)
TABLES = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=6).map(
        lambda rows: [[f"c{at}" for at in range(width)], *rows]
    )
)
RULES: list[dict[str, Any]] = [{}, {"unordered": True}, {"absolute_tolerance": 0.5}]
RULES.append({"unordered": True, "relative_tolerance": 0.1})
FEW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def write(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return text.getvalue()


def tell(output: list[list[str]], baseline: list[list[str]], **rules: Any) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return Files(Path(folder)).tell("t.csv", write(output), write(baseline), **rules)


@FEW
@given(TABLES, st.sampled_from(RULES))
def test_a_table_equals_itself(table: list[list[str]], rules: dict[str, Any]) -> None:
    assert tell(table, table, **rules) == ""


@FEW
@given(TABLES, TABLES, st.sampled_from(RULES))
def test_a_difference_is_one_from_either_side(
    one: list[list[str]], other: list[list[str]], rules: dict[str, Any]
) -> None:
    assert bool(tell(one, other, **rules)) is bool(tell(other, one, **rules))


@FEW
@given(TABLES, st.randoms(use_true_random=False), st.sampled_from(RULES[1::2]))
def test_a_shuffle_is_nothing_to_an_unordered_table(
    table: list[list[str]], order: random.Random, rules: dict[str, Any]
) -> None:
    shuffled = [table[0], *order.sample(table[1:], len(table) - 1)]
    assert tell(table, shuffled, **rules) == ""


@FEW
@given(TABLES, st.data(), st.sampled_from(RULES))
def test_any_other_text_is_found(table: list[list[str]], data: st.DataObject, rules: dict[str, Any]) -> None:
    changed = [list(row) for row in table]
    if len(table) == 1:
        changed.append(["x"] * len(table[0]))
    else:
        row, at = data.draw(st.integers(1, len(table) - 1)), data.draw(st.integers(0, len(table[0]) - 1))
        changed[row][at] += "x"
    assert tell(table, changed, **rules) != ""
