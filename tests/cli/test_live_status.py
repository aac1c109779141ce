from __future__ import annotations

import pytest

from pytest_golden.cli.live_status import format_seconds, show_status


@pytest.mark.parametrize(("seconds", "told"), [(0.04, "0.0s"), (59.9, "59.9s"), (59.96, "1m 00s"), (3725, "1h 02m")])
def test_durations_are_brief(seconds: float, told: str) -> None:
    assert format_seconds(seconds) == told


def test_nothing_is_shown_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with show_status("x", lambda: pytest.fail("asked for a step")):
        pass
    assert capsys.readouterr() == ("", "")
