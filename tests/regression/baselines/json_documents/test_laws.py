"""What holds for all documents: equality is what a plain comparison with recursion says, and each difference has its place."""

from __future__ import annotations

from copy import deepcopy
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.compare.documents.compare_documents import find_differences, write_place
from pytest_golden.compare.documents.document_parsing import take_out
from pytest_golden.compare.documents.document_values import Equality
from pytest_golden.manifest.units import parse_json_path

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


@given(JSON, JSON, st.integers(0, 1))
def test_documents_are_equal_when_a_plain_comparison_says_so(one: Any, other: Any, tolerance: int) -> None:
    equality = Equality(absolute=Decimal(tolerance))
    expected = equals(one, other, tolerance)
    assert equality.is_equal(one, other) == expected
    assert (next(find_differences(one, other, equality), None) is None) == expected


@given(JSON, JSON)
def test_in_any_order_documents_are_equal_when_they_are_so_sorted(one: Any, other: Any) -> None:
    expected = equals(canonical(one), canonical(other), 0)
    assert (next(find_differences(one, other, Equality(unordered=True)), None) is None) == expected
    assert next(find_differences(one, canonical(one), Equality(unordered=True)), None) is None


@given(JSON, JSON)
def test_to_ignore_every_place_that_differs_makes_documents_equal(one: Any, other: Any) -> None:
    ignored: list[str] = []
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
