from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_golden.learning.vectors.vector_keeping import Entry, VectorMatrix, read_units

DIMENSION = 4
NAMESPACES = ("a/", "a/b/", "b/")
ROWS = st.lists(st.integers(-3, 3), min_size=DIMENSION, max_size=DIMENSION)


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


@settings(max_examples=150)
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
