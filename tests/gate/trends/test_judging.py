from __future__ import annotations

import json

import pytest

from pytest_golden.history.trends import SlowdownJudge
from pytest_golden.manifest.model import GoldenProjectConfig
from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus
from pytest_golden.regression.slowdown import DurationTrend

PROJECT = GoldenProjectConfig("sales", "sales.py", max_slowdown=2.0)
JUDGE = SlowdownJudge({"sales": DurationTrend(3, 1.0, 0.0)})


def result(seconds: float, *kinds: ReasonKind, status: ResultStatus = ResultStatus.PASSED) -> GoldenProjectResult:
    reasons = tuple(Reason(kind, "it is so") for kind in kinds)
    message = "it is so" if kinds else None
    return GoldenProjectResult("sales", "sales.py", status, 0, "", message, seconds, reasons=reasons)


def test_slow_pass_fails_with_both_figures() -> None:
    judged = JUDGE.judge(PROJECT, result(2.5))
    assert judged.status is ResultStatus.FAILED
    assert [reason.kind for reason in judged.reasons] == [ReasonKind.SLOWDOWN]
    assert judged.error_message == judged.reasons[0].message
    assert all(figure in judged.reasons[0].message for figure in ("2.50s", "2.00s", "1.00s", "3 passes"))
    assert judged.is_regression


def test_pass_within_the_limit_stays_as_it_is() -> None:
    assert JUDGE.judge(PROJECT, result(2.0)) == result(2.0)


def test_other_outputs_and_too_slow_are_both_told() -> None:
    judged = JUDGE.judge(PROJECT, result(2.5, ReasonKind.OUTPUT_DIFFERS, status=ResultStatus.FAILED))
    assert [reason.kind for reason in judged.reasons] == [ReasonKind.OUTPUT_DIFFERS, ReasonKind.SLOWDOWN]
    assert judged.error_message == "it is so"


@pytest.mark.parametrize(
    "unjudged",
    [
        result(9.0, ReasonKind.EXIT_CODE, status=ResultStatus.FAILED),
        result(9.0, ReasonKind.TIMEOUT, status=ResultStatus.ERROR),
        result(0.0, ReasonKind.SKIP_IF_MISSING, status=ResultStatus.SKIPPED),
    ],
)
def test_run_that_did_not_end_as_expected_says_nothing_of_its_time(unjudged: GoldenProjectResult) -> None:
    assert JUDGE.judge(PROJECT, unjudged) == unjudged


def test_too_few_passes_are_said_once_and_fail_nothing() -> None:
    judged = SlowdownJudge().judge(PROJECT, result(99.0))
    assert judged.status is ResultStatus.PASSED
    assert judged.warnings == ("max_slowdown is not judged: 0 of at least 3 passes in the same environment so far",)


def test_undeclared_or_accepted_durations_are_not_judged() -> None:
    undeclared = GoldenProjectConfig("sales", "sales.py")
    assert JUDGE.judge(undeclared, result(99.0)) == result(99.0)
    assert SlowdownJudge(JUDGE.trends, is_off=True).judge(PROJECT, result(99.0)) == result(99.0)


def test_judge_travels_as_json() -> None:
    assert SlowdownJudge.from_dict(json.loads(json.dumps(JUDGE.to_dict()))) == JUDGE
    troubled = SlowdownJudge(trouble="no store", is_off=True)
    assert SlowdownJudge.from_dict(json.loads(json.dumps(troubled.to_dict()))) == troubled
