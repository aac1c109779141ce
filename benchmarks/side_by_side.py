"""Measures two ways of doing the same thing in turns, so that a noisy machine is noisy for both."""

from __future__ import annotations

import math
import statistics
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def seconds(action: Callable[[], object]) -> float:
    """Time one call."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def in_turns(floor: Callable[[], object], ours: Callable[[], object], rounds: int) -> tuple[float, float, float]:
    """Return the median seconds of both and the median of the ratios ours/floor, taken round by round."""
    pairs = [(seconds(floor), seconds(ours)) for _ in range(rounds)]
    return (
        statistics.median(pair[0] for pair in pairs),
        statistics.median(pair[1] for pair in pairs),
        statistics.median(pair[1] / pair[0] for pair in pairs),
    )


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that so many per cent of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share / 100) - 1)]
