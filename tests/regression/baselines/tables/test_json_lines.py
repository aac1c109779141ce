"""JSON Lines: a column for each key, objects within opened up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.regression.model import ReasonKind

if TYPE_CHECKING:
    from tests.regression.baselines.files import Files

LINES = '{"id":1,"a":{"x":1.0,"y":"q"},"l":[1,2.5]}\n{"id":2,"a":null,"l":[]}\n'


def test_keys_may_stand_in_any_order_and_null_may_be_left_out(files: Files) -> None:
    other = '{"id":1,"a":{"y":"q","x":1},"l":[1, 2.50]}\n\n{"id":2,"l":[]}\n'
    for rules in ({}, {"key": ["id"]}, {"unordered": True}):
        assert files.tell("t.jsonl", LINES, other, **rules) == ""


def test_objects_within_are_columns_and_lists_of_numbers_are_compared_by_value(files: Files) -> None:
    other = LINES.replace("1.0", "1.04").replace("2.5", "2.55")
    assert files.tell("t.ndjson", LINES, other, key=["id"], absolute_tolerance=0.1) == ""
    message = files.tell("t.ndjson", LINES, other, key=["id"], absolute_tolerance=0.01)
    assert "columns that differ: `a.x` (1 row), `l` (1 row)" in message.splitlines()
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
    message = files.tell("t.jsonl", '{"a":{"x":1}}\n', '{"a":{"y":1}}\n')
    assert message.splitlines()[1:] == ["  missing: `a.y`", "  additional: `a.x`"]


def test_an_object_with_very_many_keys_is_one_value(files: Files) -> None:
    line = json.dumps({"id": 1, "by_day": {f"day{day}": day for day in range(1500)}})
    assert files.tell("t.jsonl", line, line) == ""
    assert "columns that differ: `by_day`" in files.tell("t.jsonl", line, line.replace("1499", "-1"))


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("[1]\n", "has a line that is no object but an array, and so no row of a table"),
        ("5\n", "has a line that is no object but a number, and so no row of a table"),
        ('{"a":1}\n\n{"a":\n', "is no JSON Lines file: line 3 is no JSON (column 1: Expecting value)"),
        ('{"a":1,"a":2}\n', "has a line in which the key `a` stands twice, and so no row of a table"),
        ('{"a":{"x":1,"y":1,"x":2}}\n', "has a line in which the key `a.x` stands twice, and so no row of a table"),
        (b'{"a":1}\n{"a":"\xe9"}\n', "is no JSON Lines file: line 2 is not UTF-8"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(files: Files, output: str | bytes, told: str) -> None:
    found = files.compare("t.jsonl", output, LINES)
    assert found is not None
    assert found.kind == ReasonKind.OUTPUT_UNREADABLE
    assert found.message == f"out/t.jsonl {told}" or "line 3 is no JSON" in found.message


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
    assert "columns that differ: `id`" in files.tell(
        "t.jsonl", b"\xef\xbb\xbf" + LINES.encode(), LINES.replace("2,", "3,")
    )


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
        assert "1 row differs, 1 row is only in the baseline" in message
        assert "columns that differ: `k77` (1 row)" in message
