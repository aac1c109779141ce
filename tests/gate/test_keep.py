from __future__ import annotations

import pytest

from pytest_golden.gate.hiding import choose_keeping
from pytest_golden.gateway.model import Ending, PipelineOutcome
from pytest_golden.history.trends import SlowdownJudge
from pytest_golden.manifest.model import GoldenProjectConfig
from pytest_golden.regression.slowdown import DurationTrend

MUST_PASS = GoldenProjectConfig("a", "a.py")
MUST_FAIL = GoldenProjectConfig("b", "b.py", expected_outcome="exit_code:3")


@pytest.mark.parametrize(
    ("project", "exit_code", "is_kept"),
    [(MUST_PASS, 0, False), (MUST_PASS, 3, True), (MUST_FAIL, 3, False), (MUST_FAIL, 0, True)],
)
def test_failed_is_what_is_judged_so_and_not_an_exit_code(
    project: GoldenProjectConfig, exit_code: int, is_kept: bool
) -> None:
    keep_if = choose_keeping("failed")
    assert keep_if is not None
    assert keep_if(project, PipelineOutcome(Ending.EXITED, exit_code)) is is_kept


@pytest.mark.parametrize(("median", "is_kept"), [(0.5, True), (5.0, False)])
def test_run_that_is_too_slow_alone_has_failed(median: float, is_kept: bool) -> None:
    slowdowns = SlowdownJudge({"c": DurationTrend(3, median, 0.0)})
    keep_if = choose_keeping("failed", lambda: slowdowns)
    assert keep_if is not None
    outcome = PipelineOutcome(Ending.EXITED, 0, duration_seconds=3.0)
    assert keep_if(GoldenProjectConfig("c", "c.py", max_slowdown=2.0), outcome) is is_kept


def test_all_and_none_ask_for_no_judgement() -> None:
    keep_if = choose_keeping("all")
    assert keep_if is not None
    assert keep_if(MUST_PASS, PipelineOutcome(Ending.EXITED, 0))
    assert choose_keeping("none") is None
