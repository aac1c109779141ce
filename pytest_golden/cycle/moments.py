"""The time of a cycle by one clock, whether that gives seconds or moments."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import monotonic_seconds, utc_now

if TYPE_CHECKING:
    from collections.abc import Callable


class Moments:
    """Tells the time by a clock that gives seconds, or aware datetimes, that never go back."""

    def __init__(self, clock: Callable[[], Any] | None = None) -> None:
        self._clock = clock or monotonic_seconds

    def read_seconds(self) -> float:
        """Give seconds of which only differences mean anything."""
        told = self._clock()
        return told.timestamp() if isinstance(told, datetime) else float(told)

    def read_utc(self) -> datetime:
        """Give the present moment: the clock's own where it tells one."""
        told = self._clock()
        return told.astimezone(UTC) if isinstance(told, datetime) else utc_now()
