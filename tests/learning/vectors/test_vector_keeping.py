from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.learning.model import VectorsError
from pytest_golden.learning.vectors.vector_keeping import Entry, VectorMatrix, read_units, read_vector, write_vector

DIMENSION = 4
NAMESPACES = ("a/", "a/b/", "b/")
ROWS = st.lists(st.integers(-3, 3), min_size=DIMENSION, max_size=DIMENSION)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def unit(row: list[int]) -> Any:
    return read_units([row], 1)[0]


def entry(number: int, row: list[int], stamp: int = 1, namespace: str = "a/") -> Entry:
    return Entry(number, stamp, namespace, unit(row))


def test_nearest_come_first_and_the_newest_of_equals() -> None:
    matrix = VectorMatrix(DIMENSION)
    matrix.add([entry(1, [1, 0, 0, 0]), entry(2, [1, 1, 0, 0]), entry(3, [0, 0, 1, 0]), entry(4, [2, 0, 0, 0])])
    found = matrix.rank(unit([1, 0, 0, 0]), None, 10)
    assert [number for number, _ in found] == [4, 1, 2]
    assert [round(cosine, 4) for _, cosine in found] == [1, 1, 0.7071]
    assert matrix.rank(unit([1, 0, 0, 0]), None, 1)[0][0] == 4


def test_empty_one_finds_nothing() -> None:
    matrix = VectorMatrix(DIMENSION)
    for span in (None, ("a/", "a0")):
        assert matrix.rank(unit([1, 0, 0, 0]), span, 10) == []
        assert matrix.count_empty(span) == (0, 0)
    assert matrix.keep_only([]) == []
    assert matrix.keep_only([(1, 1)]) == [1]
    assert len(matrix) == 0


def test_few_rows_of_many_are_looked_at_alone() -> None:
    matrix = VectorMatrix(DIMENSION)
    matrix.add([entry(number, [1, number % 5, 0, 0], namespace="b/") for number in range(300)])
    matrix.add([entry(1000, [1, 0, 0, 0]), entry(1001, [0, 0, 0, 0], namespace="a/b/")])
    assert [number for number, _ in matrix.rank(unit([1, 0, 0, 0]), ("a/", "a0"), 10)] == [1000]
    assert matrix.count_empty(("a/", "a0")) == (2, 1)
    assert matrix.count_empty(None) == (302, 1)


@given(
    steps=st.lists(
        st.tuples(st.integers(1, 6), ROWS, st.integers(1, 3), st.sampled_from(NAMESPACES), st.booleans()), max_size=12
    ),
    asked=ROWS,
    limit=st.integers(1, 4),
    span=st.sampled_from([None, ("a/", "a0"), ("a/b/", "a/b0"), ("c/", "c0")]),
)
def test_it_ranks_what_it_holds_as_a_plain_loop_does(
    steps: list[tuple[int, list[int], int, str, bool]], asked: list[int], limit: int, span: tuple[str, str] | None
) -> None:
    matrix = VectorMatrix(DIMENSION)
    held: dict[int, Entry] = {}
    for number, row, stamp, namespace, is_kept in steps:
        held[number] = entry(number, row, stamp, namespace)
        matrix.add([held[number]])
        if not is_kept:
            # Somebody removed that one, and changed another.
            del held[number]
            other = min(held, default=None)
            present = {one.number: one.stamp for one in held.values()}
            if other is not None:
                present[other] += 10
            missing = matrix.keep_only(list(present.items()))
            assert missing == ([] if other is None else [other])
            if other is not None:
                held[other] = held[other]._replace(stamp=present[other])
                matrix.add([held[other]])
    inside = [one for one in held.values() if span is None or span[0] <= one.namespace < span[1]]
    cosines = {one.number: round(float(np.dot(one.unit, unit(asked))), 6) for one in inside}
    expected = sorted((number for number, cosine in cosines.items() if cosine > 0), key=lambda n: (-cosines[n], -n))
    found = matrix.rank(unit(asked), span, limit)
    assert len(matrix) == len(held)
    assert len(found) == min(limit, len(expected))
    for (number, cosine), wanted in zip(found, expected, strict=False):
        assert abs(cosine - cosines[wanted]) < 1e-5
        assert abs(cosine - cosines[number]) < 1e-5
    assert matrix.count_empty(span) == (len(inside), sum(not one.unit.any() for one in inside))


@given(row=st.lists(NUMBERS, min_size=1, max_size=8))
def test_any_finite_vector_becomes_one_of_length_one_and_comes_back(row: list[float]) -> None:
    unit = read_units([row], 1)[0]
    assert np.linalg.norm(unit) == pytest.approx(1 if any(row) else 0, abs=1e-5)
    assert unit.dtype == np.float32
    back = read_vector(write_vector(unit))
    assert back is not None
    assert back.tolist() == unit.tolist()


def test_vectors_are_kept_as_little_endian_floats_in_base64() -> None:
    assert write_vector(np.array([1.0, 0.5], np.float32)) == base64.b64encode(b"\0\0\x80\x3f\0\0\0\x3f").decode()


@pytest.mark.parametrize("text", ["", "?", "AAA", "AAAA", "AADAfw==", "ä"])
def test_what_is_no_vector_is_none(text: str) -> None:
    assert read_vector(text) is None


@pytest.mark.parametrize("given", [[[1, 2], [3, 4]], ((1.0, 2.0), (3.0, 4.0)), np.ones((2, 2), np.float16)])
def test_rows_of_any_numbers_are_taken(given: Any) -> None:
    assert read_units(given, 2).shape == (2, 2)


@pytest.mark.parametrize("given", [{}, "text", [[1 + 2j]], [[None]], 3, [[[1.0]]], object()])
def test_anything_else_is_refused(given: Any) -> None:
    with pytest.raises(VectorsError, match="gave n"):
        read_units(given, 1)
