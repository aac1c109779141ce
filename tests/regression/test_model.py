"""Results and their counts, and the way to JSON and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.gateway.model import WriteSet, WrittenFile
from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus
from pytest_golden.regression.verdict import RegressionCheckResult

# Surrogates too: a pipeline's output and file names may hold any byte.
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=20)
MAYBE_TEXT = st.none() | ANY_TEXT
TUPLES = st.lists(ANY_TEXT, max_size=3).map(tuple)
FILES = st.dictionaries(ANY_TEXT, st.tuples(ANY_TEXT, st.integers(0), ANY_TEXT), max_size=2).map(
    lambda files: {path: WrittenFile(path, *facts) for path, facts in files.items()}
)
STEPS = st.lists(
    st.fixed_dictionaries({"id": ANY_TEXT, "content": ANY_TEXT, "metadata": st.dictionaries(ANY_TEXT, MAYBE_TEXT)}),
    max_size=2,
).map(tuple)
RESULTS = st.builds(
    GoldenProjectResult,
    name=ANY_TEXT,
    path=ANY_TEXT,
    status=st.sampled_from(ResultStatus),
    exit_code=st.none() | st.integers(-64, 255),
    output_summary=ANY_TEXT,
    error_message=MAYBE_TEXT,
    execution_time_seconds=st.floats(0, 1e6),
    reasons=st.lists(st.builds(Reason, ANY_TEXT, ANY_TEXT, MAYBE_TEXT), max_size=3).map(tuple),
    attempts=st.integers(0, 9),
    is_flaky=st.booleans(),
    regression_kind=st.sampled_from([None, "new", "known"]),
    steps_total=st.integers(0, 9),
    steps=STEPS,
    write_set=st.builds(WriteSet, created=TUPLES, changed=TUPLES, removed=TUPLES, files=FILES),
    log_path=MAYBE_TEXT,
    kept_view=MAYBE_TEXT,
    warnings=TUPLES,
    quarantined=MAYBE_TEXT,
    command=TUPLES,
    trajectory=st.none() | st.fixed_dictionaries({"id": st.text(), "outcome": MAYBE_TEXT}),
)


@given(RESULTS)
def test_results_survive_json(result: GoldenProjectResult) -> None:
    plain = result.to_dict()
    assert plain["is_regression"] == result.is_regression
    again = GoldenProjectResult.from_dict({**json.loads(json.dumps(plain)), "a_later_key": 1})
    assert again == result


def test_a_result_needs_no_more_than_its_name_path_and_status() -> None:
    result = GoldenProjectResult.from_dict({"name": "a", "path": "a.py", "status": "PASSED"})
    assert result == GoldenProjectResult("a", "a.py", ResultStatus.PASSED)


def make_result(
    status: ResultStatus, *, quarantined: str | None = None, kind: ReasonKind | None = None
) -> GoldenProjectResult:
    reasons = (Reason(kind, "why"),) if kind else ()
    return GoldenProjectResult("a", "a.py", status, reasons=reasons, quarantined=quarantined)


@pytest.mark.parametrize(
    ("result", "is_regression"),
    [
        (make_result(ResultStatus.PASSED), False),
        (make_result(ResultStatus.FAILED), True),
        (make_result(ResultStatus.ERROR), True),
        (make_result(ResultStatus.SKIPPED), False),
        (make_result(ResultStatus.SKIPPED, kind=ReasonKind.SKIP_IF_MISSING), False),
        (make_result(ResultStatus.SKIPPED, kind=ReasonKind.NEED_NOT_PASSED), True),
        (make_result(ResultStatus.FAILED, quarantined="flaky upstream"), False),
    ],
)
def test_what_is_a_regression(result: GoldenProjectResult, is_regression: bool) -> None:
    assert result.is_regression is is_regression


def test_counts_follow_from_the_results() -> None:
    check = RegressionCheckResult(
        (
            make_result(ResultStatus.PASSED),
            make_result(ResultStatus.FAILED),
            make_result(ResultStatus.ERROR),
            make_result(ResultStatus.SKIPPED, kind=ReasonKind.SKIP_IF_MISSING),
            make_result(ResultStatus.SKIPPED, kind=ReasonKind.NEED_NOT_PASSED),
            make_result(ResultStatus.FAILED, quarantined="flaky"),
        )
    )
    assert (check.total_count, check.passed_count, check.failed_count, check.skipped_count) == (6, 1, 3, 1)
    assert check.regression_detected
    assert check.final_status == "failed"
    plain = check.to_dict()
    assert plain["final_status"] == check.final_status
    assert [result["status"] for result in plain["results"]][:2] == ["PASSED", "FAILED"]


def test_nothing_run_is_no_success() -> None:
    assert RegressionCheckResult().final_status == "nothing_ran"
    assert not RegressionCheckResult().regression_detected
