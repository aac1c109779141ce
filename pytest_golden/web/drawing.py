"""What pages draw: durations, periods and steps as bars, results as cells, and unseen characters made visible.

The geometry is in per cent; templates draw it.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Literal

from markupsafe import Markup, escape

from pytest_golden.clock import iso_utc
from pytest_golden.journal.review import SuccessRate
from pytest_golden.report.result_text import escape_character, read_duration_ms, read_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_golden.history.changes import PastResult
    from pytest_golden.history.recorded_model import ListedResult, ListedRun

WHOLE = 100.0
# More bars would be too thin on a phone.
MOST_BARS = 60
MOST_STEP_BARS = 200
Unit = Literal["day", "week", "month", "year"]
_MOST_TICK_STEPS = 4
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_SHORT_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30)
_LONG_STEPS = (60, 120, 300, 600, 900, 1_800, _HOUR, 2 * _HOUR, 4 * _HOUR, 12 * _HOUR)
# Labels nearer to an edge than this begin or end there, so that none is cut off.
_EDGE_WIDTH = 12.0
_BAR_SHARE, _WIDEST_BAR, _LOWEST_BAR = 0.8, 3.0, 1.0
# The unit for a period of up to so many days.
_SPANS: tuple[tuple[int, Unit], ...] = ((31, "day"), (182, "week"), (3 * 366, "month"))
_MOST_COLUMNS = 60
_WIDEST_COLUMN = 6.0
_THINNEST_STEP = 0.4
_DEEPEST_STEP = 8
_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if code not in {0x09, 0x0A}} | {0x7F: "\u2421"}
# C1 controls, marks that reorder text, Unicode line ends, characters without a width, surrogates.
_UNSEEN = re.compile(
    "[\x80-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_CELL = '<li><a class="{status}" href="{address}" title="{title}"></a></li>'
# For a list beside a table with the same links: the Tab key should reach each link once.
_PASSED_OVER = _CELL.replace("<a ", '<a tabindex="-1" ')
_MOST_LETTERS = 60


@dataclass(frozen=True, slots=True)
class Tick:
    """A position on an axis, in per cent from its beginning, and the label there."""

    place: float
    words: str

    @property
    def anchor(self) -> str:
        """Return which part of the label stands at the position, as SVG's `text-anchor` names it."""
        return "start" if self.place < _EDGE_WIDTH else "end" if self.place > WHOLE - _EDGE_WIDTH else "middle"


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from zero to `top`, with a few round ticks."""

    top: float
    ticks: tuple[Tick, ...]

    def place(self, value: float) -> float:
        """Return how high a value lies, in per cent."""
        return value / self.top * WHOLE


@dataclass(frozen=True, slots=True)
class DurationBar:
    """One run's bar; one that failed hangs below the zero line too."""

    run: PastResult
    x: float
    width: float
    height: float

    @property
    def hangs(self) -> bool:
        """Tell whether the run failed."""
        return self.run.status.is_failure


@dataclass(frozen=True, slots=True)
class DurationPlot:
    """Bars from the oldest run to the newest; `median` and `limit` are the heights of those lines, None if not known."""

    bars: tuple[DurationBar, ...]
    scale: Scale
    labels: tuple[Tick, ...]
    longest_seconds: float
    median: float | None
    limit: float | None

    @property
    def failed_count(self) -> int:
        """Return how many of the runs failed."""
        return sum(bar.hangs for bar in self.bars)


def plot_runs(
    runs: Sequence[PastResult], median_seconds: float | None, limit_seconds: float | None
) -> DurationPlot | None:
    """Lay out the durations of the newest runs, given newest first, with median and limit; None if none ran to its end."""
    shown = [run for run in runs if run.counts][:MOST_BARS][::-1]
    if not shown:
        return None
    longest = max(run.execution_time_seconds for run in shown)
    scale = scale_seconds(max(longest, median_seconds or 0.0, limit_seconds or 0.0))
    bars = [
        DurationBar(
            run, *_place_bar(at, len(shown), _WIDEST_BAR), max(_LOWEST_BAR, scale.place(run.execution_time_seconds))
        )
        for at, run in enumerate(shown)
    ]
    return DurationPlot(
        tuple(bars),
        scale,
        _label_runs([run.created_at for run in shown]),
        longest,
        None if median_seconds is None else scale.place(median_seconds),
        None if limit_seconds is None else scale.place(limit_seconds),
    )


def _place_bar(at: int, of: int, widest: float) -> tuple[float, float]:
    """Return where a bar begins, of some that share the axis evenly, and its width."""
    step = WHOLE / of
    width = min(step * _BAR_SHARE, widest)
    return (at + 0.5) * step - width / 2, width


def _label_runs(timestamps: Sequence[datetime]) -> tuple[Tick, ...]:
    """Label the days of runs, or the times of day (UTC) if all ran within two days."""
    if timestamps[-1] - timestamps[0] < timedelta(days=2):
        return spread([f"{timestamp.day} {timestamp:%b %H:%M} UTC" for timestamp in timestamps], 2)
    return spread([f"{timestamp.day} {timestamp:%b}" for timestamp in timestamps], 4)


@dataclass(frozen=True, slots=True)
class PeriodColumn:
    """A column: its position, and how high its parts reach: entries that succeeded, were assessed, all."""

    name: str
    rate: SuccessRate
    x: float
    width: float
    success: float
    assessed: float
    whole: float


@dataclass(frozen=True, slots=True)
class Stacks:
    """Columns for what became of the entries that began in each period, oldest first, with empty periods between them.

    `left_out` tells that there are older periods than have room.
    """

    columns: tuple[PeriodColumn, ...]
    unit: Unit
    scale: Scale
    labels: tuple[Tick, ...]
    left_out: bool


def stack_periods(by_time: Mapping[str, SuccessRate]) -> Stacks:
    """Lay out the rates of days, in the unit that fits the time between the first and the last of them."""
    days = {date.fromisoformat(day): rate for day, rate in by_time.items()}
    first, last = min(days, default=None), max(days, default=None)
    if first is None or last is None:
        return Stacks((), "day", scale_counts(0), (), left_out=False)
    unit = _choose_unit((last - first).days)
    rates: defaultdict[date, list[SuccessRate]] = defaultdict(list)
    for day, rate in days.items():
        rates[_begin_period(day, unit)].append(rate)
    begins = _list_periods(first, last, unit)
    sums = {begin: _add_rates(rates.get(begin, ())) for begin in begins}
    scale = scale_counts(max(_count_entries(rate) for rate in sums.values()))
    columns = [
        _make_column(_name_period(begin, unit), sums[begin], at, len(begins), scale) for at, begin in enumerate(begins)
    ]
    labels = spread([_label_period(begin, unit) for begin in begins], 3 if unit == "month" else 4)
    return Stacks(tuple(columns), unit, scale, labels, left_out=begins[0] > first)


def _choose_unit(days: int) -> Unit:
    return next((unit for most, unit in _SPANS if days < most), "year")


def _begin_period(day: date, unit: Unit) -> date:
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit == "day":
        return day
    return day.replace(day=1) if unit == "month" else day.replace(month=1, day=1)


def _list_periods(first: date, last: date, unit: Unit) -> list[date]:
    begins = [_begin_period(last, unit)]
    while begins[-1] > first and len(begins) < _MOST_COLUMNS:
        begins.append(_begin_period(begins[-1] - timedelta(days=1), unit))
    return begins[::-1]


def _add_rates(rates: Iterable[SuccessRate]) -> SuccessRate:
    known = tuple(rates)
    n = sum(rate.n for rate in known)
    succeeded = sum(_count_successes(rate) for rate in known)
    share = succeeded / n if n else None
    return SuccessRate(n, share, sum(rate.open for rate in known), sum(rate.expired for rate in known))


def _count_successes(rate: SuccessRate) -> int:
    return round((rate.success_rate or 0.0) * rate.n)


def _count_entries(rate: SuccessRate) -> int:
    return rate.n + rate.open + rate.expired


def _name_period(begin: date, unit: Unit) -> str:
    told = begin.isoformat()
    return {"day": told, "week": f"week of {told}", "month": told[:7], "year": told[:4]}[unit]


def _label_period(begin: date, unit: Unit) -> str:
    if unit == "year":
        return str(begin.year)
    return f"{begin:%b %Y}" if unit == "month" else f"{begin.day} {begin:%b}"


def _make_column(name: str, rate: SuccessRate, at: int, of: int, scale: Scale) -> PeriodColumn:
    parts = (_count_successes(rate), rate.n, _count_entries(rate))
    return PeriodColumn(name, rate, *_place_bar(at, of, _WIDEST_COLUMN), *map(scale.place, parts))


@dataclass(frozen=True, slots=True)
class StepBar:
    """A step, its nesting depth, and where its bar begins and how long it is; `width` is None without a duration."""

    step: Mapping[str, Any]
    depth: int
    start: float
    width: float | None
    error: str | None

    @property
    def seconds(self) -> float | None:
        """Return how long the step took."""
        took = read_duration_ms(self.step)
        return None if took is None else took / 1000


def lay_out_steps(steps: Sequence[Mapping[str, Any]]) -> tuple[StepBar, ...]:
    """Return bars on one time line for the last steps of a run: a failure is at the end."""
    shown = steps[-MOST_STEP_BARS:]
    begins = [_begin_ms(step) for step in shown]
    known = [at for at in begins if at is not None]
    first = min(known, default=0.0)
    ends = [at + (read_duration_ms(step) or 0.0) for step, at in zip(shown, begins, strict=True) if at is not None]
    span = max(max(ends, default=0.0) - first, 1e-6)
    return tuple(_lay_out(shown, begins, first, span))


def _lay_out(
    shown: Sequence[Mapping[str, Any]], begins: Sequence[float | None], first: float, span: float
) -> Iterator[StepBar]:
    depths: dict[Any, int] = {}
    for step, at in zip(shown, begins, strict=True):
        depth = min(depths.get(step.get("parent_step_id"), -1) + 1, _DEEPEST_STEP)
        depths[step.get("id")] = depth
        took = read_duration_ms(step)
        start = 0.0 if at is None else min(WHOLE - _THINNEST_STEP, (at - first) / span * WHOLE)
        width = None if took is None else max(_THINNEST_STEP, min(WHOLE - start, took / span * WHOLE))
        yield StepBar(step, depth, start, width, read_error(step) or None)


def _begin_ms(step: Mapping[str, Any]) -> float | None:
    try:
        return datetime.fromisoformat(str(step.get("timestamp"))).timestamp() * 1000
    except ValueError:
        return None


def scale_seconds(longest: float) -> Scale:
    """Return an axis of durations that reaches at least this many seconds."""
    step = _choose_step(longest, chain(_SHORT_STEPS, _LONG_STEPS, (_DAY * 2**power for power in count())))
    return _make_scale(longest, step, _tell_seconds)


def scale_counts(highest: int) -> Scale:
    """Return an axis of whole numbers that reaches at least this one."""
    step = _choose_step(highest, (digit * 10**power for power in count() for digit in (1, 2, 5)))
    return _make_scale(highest, step, lambda number: f"{round(number):,}")


def spread(words: Sequence[str], most: int) -> tuple[Tick, ...]:
    """Return ticks for at most `most` of these labels, which share the axis evenly: the first, the last, and some between."""
    shown = min(most, len(words))
    chosen = sorted({round(at * (len(words) - 1) / max(1, shown - 1)) for at in range(shown)})
    return tuple(Tick((at + 0.5) / len(words) * WHOLE, words[at]) for at in chosen)


def _choose_step(top: float, steps: Iterable[float]) -> float:
    return next(step for step in steps if top <= step * _MOST_TICK_STEPS)


def _make_scale(highest: float, step: float, tell: Callable[[float], str]) -> Scale:
    steps = max(1, math.ceil(highest / step))
    ticks = tuple(Tick(at / steps * WHOLE, tell(at * step)) for at in range(steps + 1))
    return Scale(steps * step, ticks)


def _tell_seconds(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{seconds:g}s"
    minutes, rest = divmod(round(seconds), _MINUTE)
    if seconds < _HOUR:
        return f"{minutes}m {rest:02d}s" if rest else f"{minutes}m"
    hours, rest = divmod(minutes, _MINUTE)
    return f"{hours}h {rest:02d}m" if rest else f"{hours}h"


def show_cells(results: Sequence[PastResult], url: Callable[..., str]) -> Markup:
    """Return results, given newest first, as list items, the oldest first; each says in words what it is.

    Cells are built here and not in a template: a page has hundreds, and a template would take longer for them than for the rest.
    """
    return _join_cells(
        _show_cell(_CELL, one.status, url("results", one.entry_id), f"{one.status} {show_minute(one.created_at)}")
        for one in reversed(results)
    )


def show_run_cells(results: Sequence[ListedResult], url: Callable[..., str]) -> Markup:
    """Return the results of one run as list items, in the order in which they came in."""
    return _join_cells(
        _show_cell(_PASSED_OVER, one.status, url("results", one.entry_id), f"{one.status} {one.name[:_MOST_LETTERS]}")
        for one in sorted(results, key=lambda one: (one.created_at, one.number))
    )


def show_gate_cells(runs: Sequence[ListedRun], url: Callable[..., str]) -> Markup:
    """Return gate runs, given newest first, as list items, the oldest first."""
    return _join_cells(
        _show_cell(
            _PASSED_OVER,
            name_class(one),
            url("runs", one.entry_id),
            f"{one.verdict.heading} {show_minute(one.started_at)}",
        )
        for one in reversed(runs)
    )


def name_class(run: ListedRun) -> str:
    """Return the CSS class of a gate run's cell: the word of its verdict."""
    return run.verdict.word.replace(" ", "_")


def _join_cells(cells: Iterable[str]) -> Markup:
    return Markup("".join(cells))


def _show_cell(cell: str, status: str, address: str, title: str) -> str:
    return cell.format(status=escape(str(status)), address=escape(address), title=escape(make_visible(title)))


def show_minute(timestamp: datetime) -> str:
    """Return a timestamp as plain text in UTC, to the minute."""
    return f"{iso_utc(timestamp)[:16].replace('T', ' ')} UTC"


def make_visible(text: str) -> str:
    """Return a text with control characters as pictures (U+2400 on) and other unseen ones as escapes.

    They could hide a text, reverse it, or forge a line. Tabs and newlines stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub(escape_character, text.replace("\r\n", "\n").translate(_PICTURES))
