"""Durations of a project's runs as bars, with the median and the limit as lines. Geometry alone, in per cent; a template draws it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from pytest_golden.gate.history import FAILURES
from pytest_golden.web.shown.axes import WHOLE, Scale, Tick, scale_seconds, spread

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pytest_golden.gate.past import PastResult

# More would be too thin on a phone.
MOST_BARS = 60
_SHARE, _WIDEST, _LOWEST = 0.8, 3.0, 1.0


@dataclass(frozen=True, slots=True)
class DurationBar:
    """One run's bar; one that failed hangs below the zero line too."""

    run: PastResult
    x: float
    width: float
    height: float

    @property
    def hangs(self) -> bool:
        """Tell whether it failed."""
        return self.run.status in FAILURES


@dataclass(frozen=True, slots=True)
class DurationPlot:
    """Bars from the oldest run to the newest; `median` and `limit` are how high those lie, None where they are not known."""

    bars: tuple[DurationBar, ...]
    scale: Scale
    labels: tuple[Tick, ...]
    longest_seconds: float
    median: float | None
    limit: float | None

    @property
    def failed_count(self) -> int:
        """How many of the bars hang."""
        return sum(bar.hangs for bar in self.bars)


def plot_runs(
    runs: Sequence[PastResult], median_seconds: float | None, limit_seconds: float | None
) -> DurationPlot | None:
    """Lay out the newest runs, which are given newest first; None where none ran to its end."""
    shown = [run for run in runs if run.counts][:MOST_BARS][::-1]
    if not shown:
        return None
    longest = max(run.execution_time_seconds for run in shown)
    scale = scale_seconds(max(longest, median_seconds or 0.0, limit_seconds or 0.0))
    step = WHOLE / len(shown)
    width = min(step * _SHARE, _WIDEST)
    bars = [
        DurationBar(run, (at + 0.5) * step - width / 2, width, max(_LOWEST, scale.place(run.execution_time_seconds)))
        for at, run in enumerate(shown)
    ]
    return DurationPlot(
        tuple(bars),
        scale,
        _label([run.created_at for run in shown]),
        longest,
        None if median_seconds is None else scale.place(median_seconds),
        None if limit_seconds is None else scale.place(limit_seconds),
    )


def _label(moments: Sequence[datetime]) -> tuple[Tick, ...]:
    """Write the days of runs, or the times of day (UTC) where all ran within two days."""
    if moments[-1] - moments[0] < timedelta(days=2):
        return spread([f"{moment.day} {moment:%b %H:%M} UTC" for moment in moments], 2)
    return spread([f"{moment.day} {moment:%b}" for moment in moments], 4)
