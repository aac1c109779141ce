from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from pytest_golden.regression.comparison import fisher_worse

counts = st.integers(0, 60)


@given(base_passed=counts, base_failed=counts, head_passed=counts, head_failed=counts)
def test_p_value_is_the_one_of_scipy(base_passed: int, base_failed: int, head_passed: int, head_failed: int) -> None:
    table = [[head_failed, head_passed], [base_failed, base_passed]]
    expected = fisher_exact(table, alternative="greater").pvalue
    assert fisher_worse(base_passed, base_failed, head_passed, head_failed) == pytest.approx(expected, rel=1e-9)


@given(passed=st.integers(0, 100_000), failed=st.integers(0, 2_000), head=st.integers(1, 2_000))
def test_figures_of_any_size_give_a_probability(passed: int, failed: int, head: int) -> None:
    assert 0.0 <= fisher_worse(passed, failed, 0, head) <= 1.0


@pytest.mark.parametrize(
    ("figures", "p_value"),
    [((0, 0, 0, 0), 1.0), ((1, 0, 0, 1), 1 / 2), ((3, 0, 0, 3), 1 / 20), ((3, 0, 0, 4), 1 / 35), ((5, 5, 5, 0), 1.0)],
)
def test_p_value_of_few_runs_is_known_by_hand(figures: tuple[int, int, int, int], p_value: float) -> None:
    assert fisher_worse(*figures) == pytest.approx(p_value)


def test_negative_count_is_refused() -> None:
    with pytest.raises(ValueError, match=r"negative, and these are \(1, -1, 0, 0\)"):
        fisher_worse(1, -1, 0, 0)
