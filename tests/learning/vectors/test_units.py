from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.learning.model import VectorsError
from pytest_golden.learning.vectors.vector_keeping import read_units, read_vector, write_vector

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


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
