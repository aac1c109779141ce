"""The verdict of a run, from everything that may speak against it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus
from pytest_golden.regression.verdict import RegressionCheckResult, RunStatus, RunVerdict, judge_run


def make(status: str, kind: str | None = None, **fields: Any) -> GoldenProjectResult:
    reasons = () if kind is None else (Reason(kind, "why"),)
    return GoldenProjectResult("orders", "orders.sh", ResultStatus(status), reasons=reasons, **fields)


PASSED, FAILED, ERROR, SKIPPED = (make(str(status)) for status in ResultStatus)
FLAKY = make("PASSED", attempts=2, is_flaky=True)
HELD = make("FAILED", quarantined="upstream")
HELD_SKIP = make("SKIPPED", quarantined="upstream")
UNMET = make("SKIPPED", ReasonKind.NEED_NOT_PASSED)
UNCHANGED = make("SKIPPED", ReasonKind.UNCHANGED)


@pytest.mark.parametrize(
    ("results", "facts", "sentence", "exit_code"),
    [
        ([PASSED, PASSED], {}, "PASSED: 2 passed", 0),
        ([FAILED], {}, "FAILED: 1 failed", 1),
        ([ERROR, PASSED], {}, "ERROR: 1 passed, 1 failed", 1),
        ([ERROR, FAILED], {}, "FAILED: 2 failed", 1),
        ([PASSED, UNMET], {}, "FAILED: 1 passed, 1 failed", 1),
        ([PASSED, SKIPPED], {}, "PASSED: 1 passed, 1 skipped", 0),
        ([PASSED, SKIPPED], {"skips_fail": True}, "FAILED: 1 passed, 1 failed", 1),
        ([PASSED, HELD_SKIP], {}, "PASSED: 1 passed, 1 quarantined", 0),
        ([PASSED, HELD_SKIP], {"skips_fail": True}, "FAILED: 1 passed, 1 failed", 1),
        ([UNCHANGED], {"skips_fail": True}, "PASSED (partial: 1 unchanged)", 0),
        ([PASSED, HELD], {}, "PASSED: 1 passed, 1 quarantined", 0),
        ([FLAKY], {}, "PASSED: 1 passed, 1 flaky", 0),
        ([PASSED], {"weakenings": 2}, "FAILED: 1 passed, floor weakened", 1),
        (
            [PASSED],
            {"weakenings": 1, "floor_accepted": True},
            "PASSED: 1 passed, weakened floor accepted by a person",
            0,
        ),
        (
            [],
            {"weakenings": 1, "deselected": "a", "exit_status": 5},
            "FAILED (partial: 1 deselected): floor weakened",
            1,
        ),
        (
            [PASSED],
            {"deselected": "ab", "other_shards": "b"},
            "PASSED (partial: 1 deselected, 1 in other shards): 1 passed",
            0,
        ),
        ([FAILED], {"not_run": "a", "exit_status": 1}, "FAILED (partial: 1 not run): 1 failed", 1),
        ([PASSED], {"other_failures": 2, "exit_status": 1}, "FAILED: 1 passed, 2 other tests failed", 1),
        ([PASSED], {"exit_status": 1}, "FAILED: 1 passed, something else failed: pytest ended with exit status 1", 1),
        (
            [PASSED],
            {"exit_status": 1, "weakenings": 1, "floor_accepted": True},
            "FAILED: 1 passed, weakened floor accepted by a person, something else failed: pytest ended with exit status 1",
            1,
        ),
        (
            [PASSED],
            {"problems": ["1 report could not be written"]},
            "ERROR: 1 passed, 1 report could not be written",
            3,
        ),
        ([FAILED], {"problems": ["no"], "exit_status": 1}, "FAILED: 1 failed, no", 1),
        ([PASSED], {"exit_status": 3}, "ERROR: 1 passed, pytest ended with exit status 3", 3),
        ([PASSED], {"exit_status": 2, "not_run": "a"}, "INTERRUPTED (partial: 1 not run): 1 passed", 2),
        ([FAILED], {"is_interrupted": True}, "INTERRUPTED: 1 failed", 2),
        ([], {"exit_status": 5, "deselected": "a"}, "NOTHING RAN (partial: 1 deselected)", 5),
        ([], {"other_shards": "a"}, "NOTHING RAN (partial: 1 in other shards)", 0),
        ([], {}, "NOTHING RAN", 5),
        ([PASSED], {"is_running": True}, "NOT FINISHED: 1 passed", 0),
    ],
)
def test_every_cause_has_its_verdict(
    results: list[GoldenProjectResult], facts: dict[str, Any], sentence: str, exit_code: int
) -> None:
    verdict = judge_run(results, **facts)
    assert verdict.sentence == sentence
    assert verdict.exit_code(facts.get("exit_status", 0)) == exit_code
    assert verdict.is_partial is ("partial" in sentence)
    assert RunVerdict.from_dict(verdict.to_dict()) == verdict


@given(
    st.lists(st.sampled_from([PASSED, FAILED, ERROR, SKIPPED, FLAKY, HELD, UNMET, UNCHANGED]), max_size=6),
    st.fixed_dictionaries(
        {
            "skips_fail": st.booleans(),
            "weakenings": st.integers(0, 2),
            "floor_accepted": st.booleans(),
            "not_run": st.sets(st.sampled_from("abc")),
            "other_failures": st.integers(0, 2),
            "problems": st.lists(st.just("no"), max_size=1),
            "exit_status": st.none() | st.integers(0, 6),
            "is_interrupted": st.booleans(),
        }
    ),
)
def test_what_exits_with_anything_but_0_is_never_passed(
    results: list[GoldenProjectResult], facts: dict[str, Any]
) -> None:
    verdict = judge_run(results, **facts)
    before = facts["exit_status"] or 0
    code = verdict.exit_code(before)
    assert verdict.is_good <= (code == 0)
    assert (code == 0) <= (verdict.status in {RunStatus.PASSED, RunStatus.NOTHING_RAN})
    assert before in {0, 5} or code == before
    assert verdict.total == verdict.passed + verdict.failed + verdict.skipped + verdict.quarantined
    assert RunVerdict.from_dict(verdict.to_dict()) == verdict


def test_results_alone_say_what_the_function_says() -> None:
    check = RegressionCheckResult((PASSED, ERROR, HELD))
    assert (check.final_status, check.failed_count, check.total_count) == ("error", 1, 3)
    assert check.to_dict()["verdict"] == "ERROR: 1 passed, 1 failed, 1 quarantined"
