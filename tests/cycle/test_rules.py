from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.cycle.model import CycleState, CycleVerdict
from pytest_golden.cycle.rules import get_final_status, judge_proposal, make_fingerprint
from pytest_golden.regression.model import GoldenProjectResult, ResultStatus
from pytest_golden.regression.verdict import RegressionCheckResult


@pytest.mark.parametrize(
    ("told", "final"),
    [
        ({}, "FAILURE"),
        ({"completed": True, "interrupted": True}, "FAILURE"),
        ({"completed": True, "exit_status": "error", "regressions_detected": 2}, "FAILURE"),
        (
            {"completed": True, "regressions_detected": 2, "improvements_rejected": 1},
            "PARTIAL (2 golden project(s) failed)",
        ),
        ({"completed": True, "improvements_rejected": 3}, "PARTIAL (all improvements rejected)"),
        ({"completed": True, "improvements_rejected": 3, "improvements_approved": 1}, "SUCCESS"),
        ({"completed": True, "verdict": "flagged"}, "PARTIAL (the floor is weakened)"),
        ({"completed": True}, "SUCCESS"),
    ],
)
def test_the_final_status_says_how_a_cycle_ended(told: dict[str, Any], final: str) -> None:
    assert get_final_status(CycleState(**told)) == final


@given(st.booleans(), st.lists(st.sampled_from(ResultStatus), max_size=4), st.booleans())
def test_only_an_approved_proposal_on_which_all_passed_and_the_floor_holds_is_verified(
    approved: bool, statuses: list[ResultStatus], is_weaker: bool
) -> None:
    check = RegressionCheckResult(tuple(GoldenProjectResult(f"p{n}", "x", one) for n, one in enumerate(statuses)))
    verdict = judge_proposal(check, approved=approved, is_floor_weaker=is_weaker)
    all_passed = bool(statuses) and set(statuses) == {ResultStatus.PASSED}
    assert (verdict is CycleVerdict.VERIFIED) == (approved and all_passed and not is_weaker)
    assert (verdict is CycleVerdict.REJECTED) == (not approved)
    assert (verdict is CycleVerdict.FLAGGED) == (approved and (is_weaker or check.regression_detected))


def test_equal_proposals_have_equal_fingerprints() -> None:
    assert make_fingerprint({"a": 1, "b": [2]}) == make_fingerprint({"b": [2], "a": 1})
    assert make_fingerprint({"a": 1}) != make_fingerprint({"a": 2})
    assert make_fingerprint("\ud800")
