"""Results in one line."""

from __future__ import annotations

from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus
from pytest_golden.report.result_text import note_unchecked_needs, short_reason, summarize_reasons


def result(status: str = "FAILED", **facts: object) -> GoldenProjectResult:
    return GoldenProjectResult("orders", "orders.sh", ResultStatus(status), **facts)  # type: ignore[arg-type]


def test_reasons_are_one_line_in_which_nothing_is_unseen() -> None:
    reasons = (Reason("mine", "too\n  slow\x1b[0m"), Reason("mine", "bell\x07"))
    assert summarize_reasons(result(reasons=reasons)) == "too slow; bell\\x07"
    assert summarize_reasons(result(error_message="broken\n  pipe")) == "broken pipe"
    assert summarize_reasons(result()) == "FAILED"


def test_long_pattern_hides_nothing_that_stands_beside_it() -> None:
    pattern = "Custom check 'amount_is_not_negative' failed\\. Found 3 invalid rows"
    message = f"exit code 2: no such column, but `specific_error:{pattern}` was expected and is not in the output"
    told = summarize_reasons(result(reasons=(Reason(ReasonKind.PATTERN_ABSENT, message),)))
    assert told == (
        "exit code 2: no such column, but `specific_error:Custom check 'amoun...und 3 invalid rows` was expected "
        "and is not in the output"
    )


def test_what_is_to_be_known_beside_a_status_is_brief() -> None:
    assert short_reason(result("PASSED")) == ""
    assert short_reason(result("PASSED", is_flaky=True, attempts=2)) == "flaky: passed on attempt 2"
    assert short_reason(result(quarantined="upstream")) == "quarantined, upstream"


def test_needs_that_were_left_out_are_named_with_what_ran_without_them() -> None:
    assert note_unchecked_needs({}) is None
    assert note_unchecked_needs({"load": ["sales"]}) == "load was deselected: sales ran without it having been checked"
    many = note_unchecked_needs({f"need{n}": [f"user{m}" for m in range(7)] for n in range(7)})
    assert many is not None
    assert "user4 and 2 more ran without it having been checked" in many
    assert many.endswith("; and 2 more such needs")
