"""The axes of plots: round numbers up the side, moments along the foot. Geometry alone, in per cent; a template draws it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

WHOLE = 100.0
_MOST_STEPS = 4
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30)
_LONGER = (60, 120, 300, 600, 900, 1_800, _HOUR, 2 * _HOUR, 4 * _HOUR, 12 * _HOUR)
# Words at an edge begin or end there, so that none is cut off.
_EDGE = 12.0


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis, from its beginning, and what is written there."""

    place: float
    words: str

    @property
    def anchor(self) -> str:
        """Which part of the words stands at the place, as SVG names it."""
        return "start" if self.place < _EDGE else "end" if self.place > WHOLE - _EDGE else "middle"


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from zero to `top`, with a few round ticks."""

    top: float
    ticks: tuple[Tick, ...]

    def place(self, value: float) -> float:
        """Give how far up a value lies."""
        return value / self.top * WHOLE


def scale_seconds(longest: float) -> Scale:
    """Give an axis of time that reaches up to this many seconds."""
    step = _choose_step(longest, chain(_SECONDS, _LONGER, (_DAY * 2**power for power in count())))
    return _mark(longest, step, _tell_seconds)


def scale_counts(highest: int) -> Scale:
    """Give an axis of whole numbers that reaches up to this one."""
    step = _choose_step(highest, (digit * 10**power for power in count() for digit in (1, 2, 5)))
    return _mark(highest, step, lambda number: f"{round(number):,}")


def spread(words: Sequence[str], most: int) -> tuple[Tick, ...]:
    """Write some of these, which share the axis evenly: the first, the last, and as many between them as have room."""
    shown = min(most, len(words))
    chosen = sorted({round(at * (len(words) - 1) / max(1, shown - 1)) for at in range(shown)})
    return tuple(Tick((at + 0.5) / len(words) * WHOLE, words[at]) for at in chosen)


def _choose_step(top: float, steps: Iterable[float]) -> float:
    return next(step for step in steps if top <= step * _MOST_STEPS)


def _mark(highest: float, step: float, tell: Callable[[float], str]) -> Scale:
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
