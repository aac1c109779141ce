"""Moments as the tables keep them: whole milliseconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def to_ms(moment: datetime) -> int:
    """Give the milliseconds since the epoch at an aware moment; what is below a millisecond is dropped."""
    return (moment - _EPOCH) // _MILLISECOND


def from_ms(milliseconds: int) -> datetime:
    """Give the aware UTC moment that is so many milliseconds after the epoch."""
    return _EPOCH + milliseconds * _MILLISECOND
