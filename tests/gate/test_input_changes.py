from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.history.inputs import InputChange, RunInputs, compare_inputs, fold_files

KIB = 1024


def inputs(files: dict[str, Any] | None = None, written: tuple[str, ...] = (), **more: Any) -> RunInputs:
    plain = {"holds": True, "folder": "etl/", "is_all": True, "files": files or {}, "passed": {}, "variables": {}}
    return RunInputs({**plain, **more}, written)


def told(before: RunInputs, now: RunInputs, *known: str) -> list[str]:
    return [str(one) for one in compare_inputs(before, now, known)]


def test_size_content_arrival_and_loss_of_a_file_are_told() -> None:
    before = inputs({"a.csv": [12 * KIB, "w1"], "b.csv": [KIB, "w1"], "c.csv": [5, "w1"], "d.csv": [KIB * KIB, "p1"]})
    now = inputs({"a.csv": [14 * KIB, "w2"], "b.csv": [KIB, "w2"], "d.csv": [KIB * KIB + 3, "p2"], "e.csv": [9, "w"]})
    assert told(before, now) == [
        "a.csv changed (12KiB -> 14KiB)",
        "b.csv changed (1KiB, other content)",
        "c.csv is gone (5B)",
        "d.csv changed (1,048,576 -> 1,048,579 bytes)",
        "e.csv is new (9B)",
    ]
    assert told(now, now) == []


@pytest.mark.parametrize(("before", "now"), [("w1", "p1"), ("w1", None), (None, "w1"), (None, None), ("p1", "p1")])
def test_contents_that_cannot_be_compared_are_no_change(before: str | None, now: str | None) -> None:
    assert told(inputs({"a": [1, before]}), inputs({"a": [1, now]})) == []


def test_where_not_all_was_seen_nothing_is_new_and_nothing_gone() -> None:
    before, now = inputs({"a": [1, "w1"], "b": [1, "w1"]}, is_all=False), inputs({"a": [2, "w2"], "c": [1, "w1"]})
    assert told(before, now) == ["a changed (1B -> 2B)"]


def test_what_a_run_wrote_and_what_is_told_already_is_no_input() -> None:
    before = inputs({"etl/out.csv": [1, "w1"], "etl/in.csv": [1, "w1"], "x.sql": [1, "w1"]})
    now = inputs({"etl/out.csv": [2, "w2"], "etl/in.csv": [2, "w2"], "x.sql": [2, "w2"]})
    wrote = RunInputs(now.found, ("out.csv",))
    assert told(before, wrote, "x.sql") == ["etl/in.csv changed (1B -> 2B)"]
    assert told(RunInputs(before.found, ("out.csv",)), now, "x.sql") == ["etl/in.csv changed (1B -> 2B)"]


def test_folder_that_a_run_wrote_into_is_no_input() -> None:
    before, now = inputs({"etl/parts/": fold_files({"1": 1})}), inputs({"etl/parts/": fold_files({"1": 2})})
    assert told(before, now) == ["etl/parts/ changed (1 files, 1B -> 1 files, 2B)"]
    assert told(before, RunInputs(now.found, ("parts/1",))) == []
    top = inputs({"./": fold_files({"1": 1})}, folder="")
    changed = inputs({"./": fold_files({"1": 2})}, folder="")
    assert told(top, RunInputs(changed.found, ("1",))) == []


def test_folder_of_many_files_is_compared_with_its_single_files() -> None:
    names = {f"{number}.parquet": 10 for number in range(3)}
    single = inputs({f"parts/{name}": [size, "w"] for name, size in names.items()} | {"parts/x/y": [1, "w"]})
    assert told(single, inputs({"parts/": fold_files(names), "parts/x/y": [1, "w"]})) == []
    more = inputs({"parts/": fold_files({**names, "9.parquet": 5}), "parts/x/y": [1, "w"]})
    assert told(single, more) == ["parts/ changed (3 files, 30B -> 4 files, 35B)"]
    assert told(more, single) == ["parts/ changed (4 files, 35B -> 3 files, 30B)"]
    assert told(inputs(), more) == ["parts/ is new (4 files, 35B)", "parts/x/y is new (1B)"]
    renamed = {**dict(list(names.items())[1:]), "0.csv": 10}
    assert told(inputs({"parts/": fold_files(names)}), inputs({"parts/": fold_files(renamed)})) == [
        "parts/ changed (3 files, 30B, other files)"
    ]


def test_passed_files_are_told_by_size_and_variables_by_being_set() -> None:
    before = inputs(passed={"~/.pgpass": [10, None], "~/key": [1, None]}, variables={"A": True, "B": False, "C": True})
    now = inputs(passed={"~/.pgpass": [12, None]}, variables={"A": False, "B": True, "C": True, "D": True})
    assert told(before, now) == [
        "~/.pgpass changed (10B -> 12B)",
        "~/key is gone (1B)",
        "A is not set any more",
        "B is set now",
    ]
    assert compare_inputs(before, now)[-1] == InputChange("variable", "B", "added")


@pytest.mark.parametrize("unknown", [RunInputs(), RunInputs({}), inputs({"a": [1, "w"]}, holds=False)])
def test_nothing_is_told_where_one_side_is_not_known(unknown: RunInputs) -> None:
    known = inputs({"a": [2, "w2"]})
    assert told(unknown, known) == told(known, unknown) == []


def test_whatever_a_store_holds_is_read() -> None:
    write_set = {"created": ["a"], "changed": ["b"], "removed": None}
    assert RunInputs.read({"files": {}}, write_set) == RunInputs({"files": {}}, ("a", "b"))
    assert RunInputs.read("text", [1]) == RunInputs()
    assert not RunInputs.read({}, None).is_known
    assert told(RunInputs({"files": []}), RunInputs({"files": {"a": [1, "w"]}, "is_all": True})) == []


@given(st.dictionaries(st.text(min_size=1), st.integers(0, 10**12), min_size=1))
def test_folder_is_told_by_names_and_sizes_in_any_order(sizes: dict[str, int]) -> None:
    folded = fold_files(dict(reversed(sizes.items())))
    assert folded == fold_files(sizes)
    assert (folded[0], folded[2]) == (sum(sizes.values()), len(sizes))
    assert folded[1] != fold_files({**sizes, "more than these": 1})[1]
