"""Durations of a project's runs as bars, with the median and the limit as lines. Geometry alone; a template draws it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.gate.past import PastResult

WIDTH, HEIGHT = 720, 160
_ROOM_ABOVE = 18
_WIDEST = 22.0
_LOWEST = 1.5


@dataclass(frozen=True, slots=True)
class DurationBar:
    """One run's bar."""

    run: PastResult
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class DurationPlot:
    """Bars from the oldest run to the newest; `median_y` and `limit_y` are None where they are not known."""

    bars: tuple[DurationBar, ...]
    longest_seconds: float
    median_y: float | None
    limit_y: float | None
    width: int = WIDTH
    height: int = HEIGHT


def plot_runs(
    runs: Sequence[PastResult], median_seconds: float | None, limit_seconds: float | None
) -> DurationPlot | None:
    """Lay out the runs, which are given newest first; None where none ran to its end."""
    shown = [run for run in reversed(runs) if run.counts]
    if not shown:
        return None
    longest = max(run.execution_time_seconds for run in shown)
    top = max(longest, median_seconds or 0.0, limit_seconds or 0.0, 1e-6)
    unit = (HEIGHT - _ROOM_ABOVE) / top
    step = WIDTH / len(shown)
    bars = [_place(run, at * step, min(step * 0.8, _WIDEST), unit) for at, run in enumerate(shown)]
    return DurationPlot(tuple(bars), longest, _line(median_seconds, unit), _line(limit_seconds, unit))


def _place(run: PastResult, x: float, width: float, unit: float) -> DurationBar:
    height = max(_LOWEST, run.execution_time_seconds * unit)
    return DurationBar(run, x, HEIGHT - height, width, height)


def _line(seconds: float | None, unit: float) -> float | None:
    return None if seconds is None else HEIGHT - seconds * unit
