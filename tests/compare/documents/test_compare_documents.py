"""JSON documents compared by value."""

from __future__ import annotations

import gzip
import json
from copy import deepcopy
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.compare.documents import compare_documents as comparing
from pytest_golden.compare.documents.compare_documents import find_differences, parse_json, take_out, write_place
from pytest_golden.compare.documents.document_values import Equality
from pytest_golden.manifest.units import parse_json_path
from pytest_golden.regression.model import ReasonKind

if TYPE_CHECKING:
    from tests.compare.files import Files


ROWS = [{"id": number, "name": f"row {number}", "price": number / 8} for number in range(40)]


def lines(files: Files, output: object, baseline: object, **rules: Any) -> list[str]:
    """Return the differences alone."""
    return files.tell("a.json", output, baseline, **rules).splitlines()[1:]


def test_documents_are_compared_by_value(files: Files) -> None:
    output = '{"b": [1.0, 1e2, true],\r\n "a": "\\u00e9"}'
    assert files.compare("a.json", output, '{"a":"é","b":[1,100,true]}\n') is None
    assert files.compare("a.json", b"\xef\xbb\xbf[]", "[ ]".encode("utf-16")) is None
    assert files.compare("a.json.gz", gzip.compress(b"[1 ]"), gzip.compress(b"[1]")) is None


def test_each_difference_has_its_path_and_both_values(files: Files) -> None:
    output = {"rows": [{"id": 1, "price": 10.7}, {"id": 2}], "new": {"deep": [1, {"er": None}]}, "kind": 5, "a b": 1}
    baseline = {"rows": [{"id": 1, "price": 10.5}, {"id": 2}], "gone": None, "kind": "5", "a b": 2}
    assert files.tell("a.json", output, baseline).splitlines() == [
        "out/a.json differs from its baseline in 5 places (baseline -> output)",
        "$.rows[0].price: 10.5 -> 10.7",
        "$.gone: only in the baseline: null",
        '$.kind: "5" -> 5  (text became number)',
        "$['a b']: 2 -> 1",
        '$.new: only in the output: {"deep": [1, {"er": null}]}',
    ]
    assert lines(files, [1], {"a": 1}) == ['$: {"a": 1} -> [1]  (object became array)']
    assert lines(files, "1", "2") == ["$: 2 -> 1"]


@pytest.mark.parametrize(
    ("output", "baseline", "told"),
    [
        ("true", "1", "$: 1 -> true  (number became true or false)"),
        ("null", "0", "$: 0 -> null  (number became null)"),
        ("NaN", "null", "$: null -> NaN  (null became number)"),
        ("NaN", "NaN ", None),
        ("Infinity", "-Infinity", "$: -Infinity -> Infinity"),
        ("0.0", "-0", None),
        ("9007199254740993", "9007199254740992", "$: 9007199254740992 -> 9007199254740993"),
        ("9007199254740993.0", "9007199254740993", None),
        ("0.30000000000000004", "0.30000000000000005", "$: 0.30000000000000005 -> 0.30000000000000004"),
        ("1e400", "1e401", "$: 1e401 -> 1e400"),
        ("1e3", "1000.000", None),
        ("1" * 5000, "1" * 4999 + "2", "$: ..." + "1" * 26 + "2 -> ..." + "1" * 27),
        ("1" + "0" * 5000, "1e5000", None),
        ('{"a": 1, "a": 2}', '{"a": 2}', "$.a: 2 -> 2 values of one key: 1, 2  (number became repeated key)"),
        (
            '{"a": 1, "a": 2, "a": 3}',
            '{"a": 1, "a": 2}',
            "$.a: 2 values of one key: 1, 2 -> 3 values of one key: 1, 2, 3",
        ),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 3}', "$.a: 3 -> 2"),
        ('{"a": 1, "a": 2}', '{"a":1,"a":2}', None),
        ('"\\ud800"', '"\\ud801"', '$: "\\ud801" -> "\\ud800"'),
        ('"a\\u001b[0m\\n"', '"b"', '$: "b" -> "a\\x1b[0m\\n"'),
    ],
)
def test_scalars_are_exact_and_shown_as_they_are(files: Files, output: str, baseline: str, told: str | None) -> None:
    assert lines(files, output, baseline) == ([] if told is None else [told])


def test_only_the_first_differences_are_shown_and_all_counted(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    output, baseline = list(range(1000)), list(range(1, 1001))
    told = files.tell("a.json", output, baseline).splitlines()
    assert told[0] == "out/a.json differs from its baseline in 1,000 places (baseline -> output)"
    assert told[1] == "$[0]: 1 -> 0"
    assert told[21:] == ["[... 980 more ...]"]
    monkeypatch.setattr(comparing, "_MOST_COUNTED", 500)
    assert "in more than 480 places" in files.tell("a.json", output, baseline)


def test_an_item_that_was_added_or_is_gone_does_not_move_all_others(files: Files) -> None:
    assert lines(files, ROWS[:7] + ROWS[8:], ROWS) == [
        '$[7]: only in the baseline: {"id": 7, "name": "row 7", "price": 0.875}'
    ]
    assert lines(files, [*ROWS[:7], 5, *ROWS[7:]], ROWS) == ["$[7]: only in the output: 5"]
    assert lines(files, [0, 1, 9, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, 8, 7, 7]) == [
        "$[0]: only in the output: 0",
        "$[2]: 2 -> 9",
        "$[6]: only in the baseline: 8",
        "$[7]: only in the baseline: 7",
    ]
    assert lines(files, list(range(900)), [*range(1, 901), 5]) == [
        "$[0]: only in the output: 0",
        "$[899]: only in the baseline: 900",
        "$[900]: only in the baseline: 5",
    ]
    vast = files.tell("a.json", list(range(6000)), list(range(5, 6300)))
    assert "[0]: only in the output: 0" in vast


@pytest.mark.parametrize(
    ("output", "baseline", "rules", "holds"),
    [
        ("1.0", "1.1", {"absolute_tolerance": 0.1}, True),
        ("1.0", "1.1000000001", {"absolute_tolerance": 0.1}, False),
        ("90", "100", {"relative_tolerance": 0.1}, True),
        ("-90", "-100", {"relative_tolerance": 0.1}, True),
        ("89", "100", {"relative_tolerance": 0.1}, False),
        ("0", "1e-300", {"relative_tolerance": 0.5}, False),
        ("NaN", "1", {"absolute_tolerance": 9.0}, False),
        ("Infinity", "1e300", {"relative_tolerance": 0.5}, False),
        ("1e999999", "2e999999", {"relative_tolerance": 0.1}, False),
        ("1e99999999", "1", {"absolute_tolerance": 0.1}, False),
        ("true", "1", {"absolute_tolerance": 1.0}, False),
        ('{"a": [1, {"b": 2}]}', '{"a": [1.01, {"b": 2.01}]}', {"absolute_tolerance": 0.01}, True),
    ],
)
def test_numbers_are_equal_within_a_tolerance(
    files: Files, output: str, baseline: str, rules: dict[str, float], *, holds: bool
) -> None:
    assert (files.compare("a.json", output, baseline, **rules) is None) == holds


def test_a_difference_beyond_the_tolerance_says_by_how_much(files: Files) -> None:
    told = lines(files, "10.5", "10", absolute_tolerance=0.1, relative_tolerance=0.02)
    assert told == ["$: 10 -> 10.5  (off by 0.5, allowed 0.21)"]


def test_paths_that_do_not_count_are_left_out(files: Files) -> None:
    output = {"run": {"id": 7, "at": "now"}, "rows": [{"at": 1, "v": 1}, {"at": 2, "v": 3}], "log": ["a", "x", "c"]}
    baseline = {"run": {"id": 8}, "rows": [{"at": 5, "v": 1}, {"at": 6, "v": 2}], "log": ["b", "x", "c"]}
    assert lines(files, output, baseline, ignore_paths=["$.run", "$.rows[*].at", "$.log[0]"]) == ["$.rows[1].v: 2 -> 3"]
    paths = ["$..at", "$.run.id", "$.rows[1].v", "$.log.*"]
    assert files.compare("a.json", output, baseline, ignore_paths=paths) is None
    assert files.compare("a.json", {"a": {"b c": [1]}}, {"a": {"b c": [1, 2]}}, ignore_paths=["$.a['b c'][1]"]) is None
    assert lines(files, ["x", 1, 2], ["y", 1, 3], ignore_paths=["$[0]"]) == ["$[2]: 3 -> 2"]
    assert (
        files.compare("a.json", '{"a": {"x": 1}, "a": {"x": 2}}', '{"a": {}, "a": {"x": 9}}', ignore_paths=["$.a.x"])
        is None
    )


def test_texts_are_masked_and_keys_are_not(files: Files) -> None:
    output, baseline = {"a": ["run 17", {"b": "at 9"}], "n": 17}, {"a": ["run 18", {"b": "at 7"}], "n": 17}
    assert files.compare("a.json", output, baseline, masks=[r"\d+"]) is None
    assert lines(files, {"a 1": "x"}, {"a 2": "x"}, masks=[r"\d"]) != []
    assert lines(files, {"a": "x1y"}, {"a": "x1z"}, masks=[r"\d"]) == ['$.a: "x<masked>z" -> "x<masked>y"']
    long = [f"{number} " + "x" * 1000 for number in range(1000)]
    assert files.compare("a.json", long, [f"7{text}" for text in long], masks=[r"^\d+"]) is None


def test_arrays_in_any_order_show_what_changed_in_which_item(files: Files) -> None:
    assert files.compare("a.json", {"rows": ROWS[::-1]}, {"rows": ROWS}, unordered=True) is None
    assert files.compare("a.json", [[1, 2], [3, 4]], [[4, 3], [2, 1]], unordered=True) is None
    assert files.compare("a.json", [[1], [2]], [[1, 2], []], unordered=True) is not None
    changed = [{**row, "price": 9} if row["id"] == 7 else row for row in ROWS]
    assert lines(files, changed[::-1], ROWS, unordered=True) == ["$[32].price: 0.875 -> 9"]
    assert lines(files, [1, 1, 2], [2, 1, 2], unordered=True) == ["$[1]: 2 -> 1"]
    assert lines(files, [1, 1, "x"], [2, 2, 1], unordered=True) == [
        "$[0]: only in the baseline: 2",
        "$[1]: only in the baseline: 2",
        "$[1]: only in the output: 1",
        '$[2]: only in the output: "x"',
    ]
    assert lines(files, [[1]], [[2]], unordered=True) == ["$[0][0]: 2 -> 1"]


def test_arrays_in_any_order_find_partners_within_a_tolerance(files: Files) -> None:
    rules = {"unordered": True, "absolute_tolerance": 0.1}
    assert files.compare("a.json", [1.1, 1.0], [1.1, 1.2], **rules) is None
    assert files.compare("a.json", [{"v": 1.1}, {"v": 1.0}], [{"v": 1.1}, {"v": 1.2}], **rules) is None
    assert lines(files, [{"v": 1.0}, {"v": 5}], [{"v": 1.1}, {"v": 6}], **rules) == [
        "$[1].v: 6 -> 5  (off by 1, allowed 0.1)"
    ]
    noisy = [{**row, "price": row["id"] / 8 + 0.01} for row in reversed(ROWS * 10)]  # type: ignore[operator]
    assert files.compare("a.json", noisy, ROWS * 10, **rules) is None
    assert files.compare("a.json", [[[1, 5], 2], 3], [3.05, [2.05, [5.05, 1.05]]], **rules) is None


@pytest.mark.parametrize(
    ("left", "right", "rules"),
    [
        ("[", "]", {}),
        ('[{"a":', "}]", {"ignore_paths": ["$..x"], "masks": ["1"]}),
        ("[0,", "]", {"unordered": True}),
        ('{"a":', "}", {"absolute_tolerance": 0.5}),
    ],
)
def test_deep_documents_are_compared(files: Files, left: str, right: str, rules: dict[str, Any]) -> None:
    one, other = (f"{left * 300}{inner}{right * 300}" for inner in ("7", "9"))
    assert files.compare("a.json", one, f"{one}\n", **rules) is None
    (told,) = lines(files, one, other, **rules)
    assert told.startswith("$")
    assert ": 9 -> 7" in told
    assert len(told) < 200


def test_what_nests_too_deep_for_any_order_with_a_tolerance_is_told(files: Files) -> None:
    one, other = (f"{'[1,' * 500}{inner}{']' * 500}" for inner in ("7", "8"))
    found = files.compare("a.json", one, other, unordered=True, absolute_tolerance=0.1)
    assert found is not None
    assert found.kind in {ReasonKind.OUTPUT_UNREADABLE, ReasonKind.OUTPUT_DIFFERS}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1 column 1: Expecting value"),
        ('{"a": 1,\n "b" 2}', "line 2 column 6: Expecting ':' delimiter"),
        ('{"a":1}\n{"a":2}\n', "JSON Lines are compared with `compare: table`"),
        (b"[\xff]", "byte 1 is not utf-8"),
        ('{"a":1,}', "line 1 column"),
        ("[1 2]", "line 1 column"),
        ("01", "line 1 column"),
        ("[" * 200_000, "it nests too deep; declare `compare: text` to compare it line by line"),
    ],
)
def test_what_is_no_json_is_told_with_its_place(files: Files, text: str | bytes, told: str) -> None:
    output = files.compare("a.json", text, "[]")
    baseline = files.compare("a.json", "[]", text)
    assert output is not None
    assert baseline is not None
    assert (output.kind, baseline.kind) == (ReasonKind.OUTPUT_UNREADABLE, ReasonKind.BASELINE_UNREADABLE)
    assert output.message.startswith("out/a.json is not JSON: ")
    assert baseline.message.startswith("the baseline of out/a.json is not JSON: ")
    assert told in output.message
    assert told in baseline.message


def test_a_document_too_large_to_be_held_is_told(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "MOST_BYTES", 1000)
    found = files.compare("a.json.gz", gzip.compress(b" " * 5_000_000 + b"[]"), gzip.compress(b"[]"))
    assert found is not None
    assert found.kind == ReasonKind.OUTPUT_UNREADABLE
    assert "is more than 128 MiB of JSON" in found.message


def test_a_number_with_an_exponent_beyond_all_bounds_equals_only_itself(files: Files) -> None:
    vast = "1e" + "9" * 30
    assert files.compare("a.json", f"[{vast}, 1]", f"[{vast}, 1.0]", absolute_tolerance=0.1) is None
    assert lines(files, f'{{"a": {vast}}}', f'{{"a": {vast}9}}', absolute_tolerance=0.1) == [f"$.a: {vast}9 -> {vast}"]
    assert files.compare("a.json", f"[{vast}, 2]", f"[2.0, {vast}]", unordered=True) is None


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("[1]", "[true]"),
        ("[0]", "[false]"),
        ('["1"]', "[1]"),
        ('{"a":1,"a":2}', '{"a":[1,2]}'),
        ('{"a":1,"a":2}', '{"a":2}'),
    ],
)
def test_what_python_or_its_json_would_call_equal_differs(files: Files, ours: str, theirs: str) -> None:
    for one, other in ((ours, theirs), (theirs, ours)):
        for nested in ("{}", "[3, {}]", '{{"x": {}}}'):
            assert files.compare("a.json", nested.format(one), nested.format(other)) is not None


def test_long_texts_are_cut_around_what_differs(files: Files) -> None:
    (told,) = lines(files, {"a": "x" * 5000 + "A"}, {"a": "x" * 5000 + "B"})
    assert 'xB" -> ...xxx' in told
    assert told.endswith('xA"')
    vast = {f"key {number}": [[[[number]]]] * 100 for number in range(1000)}
    (told,) = lines(files, {"a": vast}, json.dumps({}))
    assert told.startswith('$.a: only in the output: {"key 0": [[[...]], [[...]]')
    assert len(told) < 130


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from(["", "a", "b c", "1"]))
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "x y", "it's"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def equals(one: Any, other: Any, tolerance: int) -> bool:
    if isinstance(one, bool) or isinstance(other, bool) or not isinstance(one, int) or not isinstance(other, int):
        if type(one) is not type(other):
            return False
        if isinstance(one, dict):
            return one.keys() == other.keys() and all(equals(one[key], other[key], tolerance) for key in one)
        if isinstance(one, list):
            return len(one) == len(other) and all(map(equals, one, other, [tolerance] * len(one)))
        return bool(one == other)
    return abs(one - other) <= tolerance


def canonical(value: Any) -> Any:
    """Sort all arrays."""
    if isinstance(value, dict):
        return {key: canonical(value[key]) for key in sorted(value)}
    return sorted(map(canonical, value), key=repr) if isinstance(value, list) else value


def read(value: Any) -> Any:
    """Return a value as it is read from a file."""
    return parse_json(json.dumps(value).encode())


@given(JSON, JSON, st.integers(0, 1))
def test_documents_are_equal_when_a_plain_comparison_says_so(one: Any, other: Any, tolerance: int) -> None:
    equality = Equality(absolute=Decimal(tolerance))
    expected = equals(one, other, tolerance)
    one, other = read(one), read(other)
    assert equality.is_equal(one, other) == expected
    assert (next(find_differences(one, other, equality), None) is None) == expected


@given(JSON, JSON)
def test_in_any_order_documents_are_equal_when_they_are_so_sorted(one: Any, other: Any) -> None:
    expected = equals(canonical(one), canonical(other), 0)
    turned, one, other = read(canonical(one)), read(one), read(other)
    assert (next(find_differences(one, other, Equality(unordered=True)), None) is None) == expected
    assert next(find_differences(one, turned, Equality(unordered=True)), None) is None


@given(JSON, JSON)
def test_to_ignore_every_place_that_differs_makes_documents_equal(one: Any, other: Any) -> None:
    ignored: list[str] = []
    one, other = read(one), read(other)
    for _ in range(50):
        ours, theirs = (take_out(deepcopy(document), ignored) for document in (one, other))
        found = next(find_differences(ours, theirs, Equality()), None)
        if found is None or found.place is None:
            return
        path = write_place(found.place)
        assert parse_json_path(path)
        assert path not in ignored
        ignored.append(path)
    raise AssertionError("it does not end")
