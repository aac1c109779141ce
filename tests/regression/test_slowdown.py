from __future__ import annotations

import json
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.manifest.model import GoldenProjectConfig
from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus
from pytest_golden.regression.slowdown import (
    DurationTrend,
    SlowdownJudge,
    describe_durations,
    explain_slowdown,
    explain_unjudged,
    show_seconds,
)

SECONDS = st.floats(0, 1e6)
PROJECT = GoldenProjectConfig("sales", "sales.py", max_slowdown=2.0)
JUDGE = SlowdownJudge({"sales": DurationTrend(3, 1.0, 0.0)})


def test_without_a_pass_there_is_no_trend() -> None:
    assert describe_durations([]) is None


def test_spread_is_the_middle_one_of_the_distances_from_the_median_which_one_far_off_does_not_move() -> None:
    assert describe_durations([10.0, 11.0, 12.0, 15.0, 90.0]) == DurationTrend(5, 12.0, 2.0)


@pytest.mark.parametrize(
    ("factor", "trend", "limit"),
    [
        (2.0, DurationTrend(5, 10.0, 0.1), 20.0),
        (1.1, DurationTrend(5, 10.0, 1.0), 10 + 3 * 1.4826),
        (1.5, DurationTrend(5, 0.01, 0.0), 0.06),
    ],
    ids=["by the factor", "by the spread", "never less than 50 ms more"],
)
def test_limit_is_the_widest_of_three(factor: float, trend: DurationTrend, limit: float) -> None:
    assert trend.limit_seconds(factor) == pytest.approx(limit)


@given(st.lists(SECONDS, min_size=1), st.floats(1.0, 100.0))
def test_median_pass_is_never_too_slow_and_order_is_nothing(seconds: list[float], factor: float) -> None:
    trend = describe_durations(seconds)
    assert trend is not None
    assert trend == describe_durations(sorted(seconds))
    assert trend.limit_seconds(factor) >= max(trend.median_seconds, trend.median_seconds * factor)
    assert min(seconds) <= trend.median_seconds == median(seconds) <= max(seconds)
    assert explain_slowdown(trend.median_seconds, factor, trend) is None
    assert DurationTrend.from_dict(json.loads(json.dumps(trend.to_dict()))) == trend


def test_slowdown_names_the_time_the_limit_the_median_and_how_many_passes() -> None:
    told = explain_slowdown(21.5, 2.0, DurationTrend(7, 10.0, 0.1))
    assert (
        told
        == "took 21.50s, longer than the limit of 20.00s: the median of its last 7 passes is 10.00s (max_slowdown 2)"
    )
    assert explain_slowdown(20.0, 2.0, DurationTrend(7, 10.0, 0.1)) is None


def test_times_that_differ_also_look_so() -> None:
    told = explain_slowdown(20.001, 2.0, DurationTrend(3, 10.0, 0.1))
    assert told is not None
    assert told.startswith("took 20.001s, longer than the limit of 20s")


@pytest.mark.parametrize(
    ("trend", "trouble", "told"),
    [
        (None, "", "max_slowdown is not judged: 0 of at least 3 passes in the same environment so far"),
        (
            DurationTrend(2, 1.0, 0.0),
            "",
            "max_slowdown is not judged: 2 of at least 3 passes in the same environment so far",
        ),
        (None, "no store", "max_slowdown is not judged: no store"),
        (DurationTrend(3, 1.0, 0.0), "", None),
    ],
)
def test_fewer_than_three_passes_are_not_judged_by(trend: DurationTrend | None, trouble: str, told: str | None) -> None:
    assert explain_unjudged(trend, trouble) == told
    if told is not None:
        assert explain_slowdown(1e9, 2.0, trend) is None


def test_durations_are_shown_as_finely_as_they_are_told_apart() -> None:
    shown = [show_seconds(one) for one in (0.0491, 1.0, 1.047, 60.0, 75.0)]
    assert shown == ["49ms", "1.00s", "1.05s", "1m 00s", "1m 15s"]


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
