from __future__ import annotations

import pytest

from pytest_golden.cli.screen import show_status
from pytest_golden.regression.wording import format_elapsed


@pytest.mark.parametrize(("seconds", "told"), [(0.04, "0.0s"), (59.9, "59.9s"), (59.96, "1m 00s"), (3725, "1h 02m")])
def test_durations_are_brief(seconds: float, told: str) -> None:
    assert format_elapsed(seconds) == told


def test_nothing_is_shown_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with show_status("x", lambda: pytest.fail("asked for a step")):
        pass
    assert capsys.readouterr() == ("", "")
