from __future__ import annotations

import pytest

from pytest_golden.regression.model import GoldenProjectResult, ResultStatus
from pytest_golden.regression.wording import format_elapsed
from pytest_golden.session import header as table


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0s"), (59.94, "59.9s"), (59.96, "1m 00s"), (185, "3m 05s"), (3599.6, "1h 00m"), (3725, "1h 02m")],
)
def test_durations_are_brief(seconds: float, text: str) -> None:
    assert format_elapsed(seconds) == text


def test_long_names_stick_out_of_their_column() -> None:
    assert table.name_width(["a", "b" * 12]) == 12
    assert table.name_width(["a", "b" * 90]) == 40
    assert table.name_width([]) == 0


def test_reason_comes_before_what_a_narrow_terminal_may_cut() -> None:
    result = GoldenProjectResult("one", "p.py", ResultStatus.FAILED, quarantined="flaky upstream")
    row = table.fit(table.result_row(result, 3, 60, history="failed in each of the last 10"), 60)
    assert row.startswith("one     0.0s  quarantined, flaky upstream; failed")


def test_cut_is_marked() -> None:
    assert table.fit("abcdef", 6) == "abcdef"
    assert table.fit("abcdefg", 6) == "abc..."
    assert table.fit("abcdefg", 2) == "..."


def test_what_runs_is_named_with_its_step() -> None:
    assert table.running_text([], None) is None
    assert table.running_text([("orders", 2.0)], "load\x1b[31m") == "orders  2.0s  load"
    assert table.running_text([("orders", 2.0), ("sales", 0.5)], None) == "orders  2.0s, sales  0.5s"
