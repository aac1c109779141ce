"""A measured series, its slope, and the word for it."""

from __future__ import annotations

import gc
import math
import statistics
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from side_by_side import seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

# Of an exponent: less is flat, and so far around a law it is that law.
_FLAT, _NEAR = 0.2, 0.1
#: What is slow is measured less often.
MOST_SECONDS_A_POINT = 6.0


@dataclass(frozen=True, slots=True)
class Point:
    """One size: median seconds of ours and of the floor, and the median of their ratios, taken round by round."""

    size: int
    ours: float
    floor: float
    ratio: float
    rounds: int


@dataclass(frozen=True, slots=True)
class Floor:
    """What stands beside a cost. `power` is the exponent that it has by its nature: 1 for a loop, 0 for what is done once."""

    told: str
    power: int | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """What a thing costs at each size. `unit` says what is counted, `floor` what stands beside it."""

    group: str
    name: str
    unit: str
    floor: Floor
    points: tuple[Point, ...]

    @property
    def slope(self) -> float | None:
        """The exponent of the cost at the larger sizes, where what is fixed hides least.

        Beside a floor whose own exponent is known it is that of the ratios, which a machine that is busy now and then leaves alone.
        """
        if self.floor.power is None:
            return find_slope([(point.size, point.ours) for point in self.points])
        beyond = find_slope([(point.size, point.ratio) for point in self.points])
        return None if beyond is None else beyond + self.floor.power

    @property
    def floor_slope(self) -> float | None:
        """The same of the floor."""
        return find_slope([(point.size, point.floor) for point in self.points])

    @property
    def word(self) -> str:
        """The slope in a word."""
        return name_slope(self.slope, [point.size for point in self.points])

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values."""
        return {**asdict(self), "slope": self.slope, "floor_slope": self.floor_slope, "word": self.word}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read back what `to_dict` gave."""
        points = tuple(Point(**point) for point in plain["points"])
        return cls(plain["group"], plain["name"], plain["unit"], Floor(**plain["floor"]), points)


def find_slope(pairs: Sequence[tuple[int, float]]) -> float | None:
    """Return the slope of cost over size, both as logarithms, by least squares; None for fewer than three sizes.

    Only the larger sizes count: those within a factor of 100 of the largest, three at least.
    """
    if len(pairs) < 3:
        return None
    largest = pairs[-1][0]
    end = [pair for pair in pairs if pair[0] * 100 >= largest]
    logs = [(math.log(size), math.log(cost)) for size, cost in (end if len(end) >= 3 else pairs[-3:])]
    return statistics.linear_regression(*zip(*logs, strict=True)).slope


def name_slope(slope: float | None, sizes: Sequence[int]) -> str:
    """Say a slope in a word: flat, less than linear, linear, n log n, worse."""
    if slope is None:
        return "too few sizes"
    if slope < _FLAT:
        return "flat"
    if slope < 1 - 2 * _NEAR:
        return "less than linear"
    low, high = max(2, sizes[-1] // 100, sizes[0]), sizes[-1]
    n_log_n = 1 + math.log(math.log(high) / math.log(low)) / math.log(high / low)
    if slope <= max(1 + _NEAR, (1 + n_log_n) / 2):
        return "linear"
    return "n log n" if slope <= n_log_n + _NEAR else "worse"


def measure(size: int, rounds: int, floor: Callable[[], object], ours: Callable[[], object]) -> Point:
    """Measure both in turns, at most so often: slow ones less often, once at least."""
    gc.collect()
    until = time.monotonic() + MOST_SECONDS_A_POINT
    pairs = [(seconds(floor), seconds(ours))]
    while len(pairs) < rounds and time.monotonic() < until:
        pairs.append((seconds(floor), seconds(ours)))
    return make_point(size, pairs)


def make_point(size: int, pairs: Sequence[tuple[float, float]]) -> Point:
    """Make a point of pairs of seconds, the floor's and ours."""
    bare, took = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
    return Point(size, took, bare, statistics.median(ours / max(floor, 1e-9) for floor, ours in pairs), len(pairs))


@dataclass(frozen=True, slots=True)
class Study:
    """Series that are measured together, a size after another. `begin` gives what measures one size, in a folder of its own.

    `floors` says of each series by name what stands beside it.
    """

    group: str
    unit: str
    sizes: tuple[int, ...]
    floors: Mapping[str, Floor]
    begin: Callable[[Path], AbstractContextManager[Callable[[int], Mapping[str, Point]]]]
