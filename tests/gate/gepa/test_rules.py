from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.gate.gepa import describe_verdict, find_step_errors, name_steps, score_result
from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus

DONE: dict[str, Any] = {"type": "action", "content": "load"}
FAILED: dict[str, Any] = {"type": "action", "content": "join", "metadata": {"error": "KeyError: 'id'"}}
ERROR_OBJECT: dict[str, Any] = {"type": "action", "content": "fit", "metadata": {"error": {"code": 7}}}
MARKED: dict[str, Any] = {"type": "action", "content": "save", "metadata": {"failed": True}}
OF_HARNESS: dict[str, Any] = {"type": "observation", "content": "why", "metadata": {"error": "why"}}


def make_result(status: ResultStatus, *kinds: str, steps: tuple[dict[str, Any], ...] = ()) -> GoldenProjectResult:
    reasons = tuple(Reason(kind, "why") for kind in kinds)
    return GoldenProjectResult("etl", "etl.py", status, reasons=reasons, steps=steps)


@pytest.mark.parametrize(
    ("result", "score"),
    [
        (make_result(ResultStatus.PASSED), 1.0),
        (make_result(ResultStatus.FAILED, ReasonKind.UNEXPECTED_FILE), 0.75),
        (make_result(ResultStatus.FAILED, "my_own_judge"), 0.75),
        (make_result(ResultStatus.FAILED, ReasonKind.EXIT_CODE), 0.1),
        (make_result(ResultStatus.FAILED, ReasonKind.EXIT_CODE, ReasonKind.UNEXPECTED_FILE), 0.1),
        (make_result(ResultStatus.FAILED, ReasonKind.EXIT_CODE, steps=(OF_HARNESS,)), 0.1),
        (make_result(ResultStatus.FAILED, ReasonKind.EXIT_CODE, steps=(DONE, FAILED)), 0.3),
        (make_result(ResultStatus.FAILED, ReasonKind.EXIT_CODE, steps=(DONE, DONE, DONE, MARKED)), 0.4),
        (make_result(ResultStatus.FAILED, ReasonKind.EXIT_CODE, steps=(DONE,)), 0.5),
        (make_result(ResultStatus.ERROR, ReasonKind.TIMEOUT, steps=(DONE,)), 0.0),
        (make_result(ResultStatus.SKIPPED, ReasonKind.SKIP_IF_MISSING), 0.0),
    ],
)
def test_score_follows_the_table(result: GoldenProjectResult, score: float) -> None:
    assert score_result(result) == pytest.approx(score)


@given(
    st.sampled_from(ResultStatus),
    st.lists(st.sampled_from([*ReasonKind, "own"]), max_size=4),
    st.lists(st.sampled_from([DONE, FAILED, MARKED, OF_HARNESS]), max_size=6),
)
def test_only_a_pass_is_perfect(status: ResultStatus, kinds: list[str], steps: list[dict[str, Any]]) -> None:
    score = score_result(make_result(status, *kinds, steps=tuple(steps)))
    assert 0.0 <= score <= 1.0
    assert (score == 1.0) == (status is ResultStatus.PASSED)


def test_more_steps_that_work_are_never_worth_less() -> None:
    for failing in range(1, 4):
        scores = [
            score_result(
                make_result(ResultStatus.FAILED, ReasonKind.EXIT_CODE, steps=(DONE,) * done + (FAILED,) * failing)
            )
            for done in range(5)
        ]
        assert scores == sorted(scores)


def test_verdict_says_whether_the_text_is_to_blame() -> None:
    assert "keep what makes it pass" in describe_verdict(make_result(ResultStatus.PASSED), 1.0)
    by_text = make_result(ResultStatus.FAILED, ReasonKind.EXIT_CODE)
    assert describe_verdict(by_text, 0.1) == "FAILED, score 0.10, to be improved."
    not_by_text = make_result(ResultStatus.ERROR, ReasonKind.SCRATCH_FULL)
    assert "not by this text" in describe_verdict(not_by_text, 0.0)


def test_steps_are_named_without_that_of_the_harness() -> None:
    steps = (DONE, FAILED, ERROR_OBJECT, MARKED, OF_HARNESS)
    result = make_result(ResultStatus.FAILED, ReasonKind.EXIT_CODE, steps=steps)
    assert name_steps(result) == ["load", "join", "fit", "save"]
    assert find_step_errors(result) == ["join: KeyError: 'id'", "fit: {'code': 7}", "save: failed"]
