"""Moments that people ask about: how long ago, or a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pytest_golden.manifest.unquoted import show

_UNITS = {"d": 24 * 60, "h": 60, "m": 1}
_LAST_MINUTE = 10**9


def parse_moment(text: str, now: datetime) -> datetime:
    """Read `90d`, `12h` or `30m` before now, or a time; one without a zone is local.

    Raises:
        ValueError: it is no moment.
    """
    number, unit = text[:-1], text[-1:]
    if unit in _UNITS and number.isascii() and number.isdigit() and int(number[:12]) * _UNITS[unit] < _LAST_MINUTE:
        return now - timedelta(minutes=int(number) * _UNITS[unit])
    try:
        # A time without a zone is meant as it is shown: local.
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        shown = text if text.isprintable() else show(text)
        raise ValueError(f"{shown} is no time; give 90d, 12h, 30m or a time such as 2026-03-01T12:00Z") from None
