"""Days as columns of a plot: what became of the entries that began on each. Geometry alone; a template draws it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.journal.reading.summary import SuccessRate

WIDTH, HEIGHT = 720, 140
_MARGIN = 16
_WIDEST = 26.0


@dataclass(frozen=True, slots=True)
class DayColumn:
    """A day's column: its place, and how high the parts are: those that succeeded, all that were assessed, all."""

    day: str
    rate: SuccessRate
    x: float
    width: float
    success: float
    assessed: float
    whole: float


@dataclass(frozen=True, slots=True)
class DayStacks:
    """Columns from the oldest day to the newest, and how many entries the highest stands for."""

    columns: tuple[DayColumn, ...]
    highest: int
    left_out: int
    width: int = WIDTH
    height: int = HEIGHT


def stack_days(by_time: Mapping[str, SuccessRate], most: int) -> DayStacks:
    """Lay out the last days, also those between them on which nothing began."""
    if not by_time:
        return DayStacks((), 0, 0)
    days = _fill(by_time, most)
    highest = max(_count(rate) for _, rate in days)
    step = WIDTH / len(days)
    columns = [
        _place(day, rate, at * step, min(step * 0.85, _WIDEST), (HEIGHT - _MARGIN) / max(1, highest))
        for at, (day, rate) in enumerate(days)
    ]
    first = days[0][0]
    return DayStacks(tuple(columns), highest, sum(day < first for day in by_time))


def _fill(by_time: Mapping[str, SuccessRate], most: int) -> list[tuple[str, SuccessRate]]:
    last = date.fromisoformat(max(by_time))
    first = max(date.fromisoformat(min(by_time)), last - timedelta(days=most - 1))
    nothing = type(next(iter(by_time.values())))()
    names = [(first + timedelta(days=at)).isoformat() for at in range((last - first).days + 1)]
    return [(name, by_time.get(name, nothing)) for name in names]


def _count(rate: SuccessRate) -> int:
    return rate.n + rate.open + rate.expired


def _place(day: str, rate: SuccessRate, x: float, width: float, unit: float) -> DayColumn:
    success = round((rate.success_rate or 0.0) * rate.n)
    return DayColumn(day, rate, x, width, success * unit, rate.n * unit, _count(rate) * unit)
