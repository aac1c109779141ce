"""What became of the entries that began in each day, week, month or year, as columns. Geometry alone, in per cent; a template draws it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Literal

from pytest_golden.journal.reading.summary import SuccessRate
from pytest_golden.web.shown.axes import WHOLE, Scale, Tick, scale_counts, spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Unit = Literal["day", "week", "month", "year"]

# Up to how many days are shown in each unit.
_SPANS: tuple[tuple[int, Unit], ...] = ((31, "day"), (182, "week"), (3 * 366, "month"))
_MOST_COLUMNS = 60
_SHARE, _WIDEST = 0.8, 6.0


@dataclass(frozen=True, slots=True)
class PeriodColumn:
    """A column: its place, and how high the parts are: those that succeeded, all that were assessed, all."""

    name: str
    rate: SuccessRate
    x: float
    width: float
    success: float
    assessed: float
    whole: float


@dataclass(frozen=True, slots=True)
class Stacks:
    """Columns from the oldest to the newest, also those between them in which nothing began.

    `left_out` tells that there are older ones than have room.
    """

    columns: tuple[PeriodColumn, ...]
    unit: Unit
    scale: Scale
    labels: tuple[Tick, ...]
    left_out: bool


def stack_periods(by_time: Mapping[str, SuccessRate]) -> Stacks:
    """Lay out the rates of days, in the unit that fits how far apart the first and the last of them lie."""
    days = {date.fromisoformat(day): rate for day, rate in by_time.items()}
    first, last = min(days, default=None), max(days, default=None)
    if first is None or last is None:
        return Stacks((), "day", scale_counts(0), (), left_out=False)
    unit = _choose_unit((last - first).days)
    rates: defaultdict[date, list[SuccessRate]] = defaultdict(list)
    for day, rate in days.items():
        rates[_begin(day, unit)].append(rate)
    begins = _list_begins(first, last, unit)
    sums = {begin: _add(rates.get(begin, ())) for begin in begins}
    scale = scale_counts(max(_count(rate) for rate in sums.values()))
    columns = [_place(_name(begin, unit), sums[begin], at, len(begins), scale) for at, begin in enumerate(begins)]
    labels = spread([_label(begin, unit) for begin in begins], 3 if unit == "month" else 4)
    return Stacks(tuple(columns), unit, scale, labels, left_out=begins[0] > first)


def _choose_unit(days: int) -> Unit:
    return next((unit for most, unit in _SPANS if days < most), "year")


def _begin(day: date, unit: Unit) -> date:
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit == "day":
        return day
    return day.replace(day=1) if unit == "month" else day.replace(month=1, day=1)


def _list_begins(first: date, last: date, unit: Unit) -> list[date]:
    begins = [_begin(last, unit)]
    while begins[-1] > first and len(begins) < _MOST_COLUMNS:
        begins.append(_begin(begins[-1] - timedelta(days=1), unit))
    return begins[::-1]


def _add(rates: Iterable[SuccessRate]) -> SuccessRate:
    known = tuple(rates)
    n = sum(rate.n for rate in known)
    succeeded = sum(_count_successes(rate) for rate in known)
    share = succeeded / n if n else None
    return SuccessRate(n, share, sum(rate.open for rate in known), sum(rate.expired for rate in known))


def _count_successes(rate: SuccessRate) -> int:
    return round((rate.success_rate or 0.0) * rate.n)


def _count(rate: SuccessRate) -> int:
    return rate.n + rate.open + rate.expired


def _name(begin: date, unit: Unit) -> str:
    told = begin.isoformat()
    return {"day": told, "week": f"week of {told}", "month": told[:7], "year": told[:4]}[unit]


def _label(begin: date, unit: Unit) -> str:
    if unit == "year":
        return str(begin.year)
    return f"{begin:%b %Y}" if unit == "month" else f"{begin.day} {begin:%b}"


def _place(name: str, rate: SuccessRate, at: int, of: int, scale: Scale) -> PeriodColumn:
    step = WHOLE / of
    width = min(step * _SHARE, _WIDEST)
    parts = (_count_successes(rate), rate.n, _count(rate))
    return PeriodColumn(name, rate, (at + 0.5) * step - width / 2, width, *(scale.place(part) for part in parts))
