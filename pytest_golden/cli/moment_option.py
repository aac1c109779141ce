"""Options whose value is a moment, told as an age or as a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pytest_golden.clock import utc_now
from pytest_golden.errors import SettingsError

_UNITS = {"d": 24 * 60, "h": 60, "m": 1}
_LAST_MINUTE = 10**9


def read_moment(option: str, text: str) -> datetime:
    """Read `90d`, `12h` or `30m` ago, or a time; one without a zone is local.

    Raises:
        SettingsError: it is no moment.
    """
    number, unit = text[:-1], text[-1:]
    if unit in _UNITS and number.isascii() and number.isdigit() and int(number[:12]) * _UNITS[unit] < _LAST_MINUTE:
        return utc_now() - timedelta(minutes=int(number) * _UNITS[unit])
    try:
        moment = datetime.fromisoformat(text)
        # A time without a zone is meant as it is shown: local.
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise SettingsError(
            f"{option} {text} is no time; give 90d, 12h, 30m or a time such as 2026-03-01T12:00Z"
        ) from None
