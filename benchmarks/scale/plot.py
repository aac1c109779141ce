"""One series as an SVG plot: cost over size, both axes logarithmic, ours as a line with dots and the floor dashed."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scale.model import Series

_WIDTH, _HEIGHT = 440, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 16, 14, 44
_MOST_TICKS = 8


def draw(series: Series) -> str:
    """Draw a series; every dot tells its figures to whoever points at it."""
    sizes = [point.size for point in series.points]
    costs = [cost for point in series.points for cost in (point.ours, point.floor)]
    x = _scale(min(sizes), max(sizes), _LEFT, _WIDTH - _RIGHT)
    low, high = 10 ** math.floor(math.log10(min(costs))), 10 ** math.ceil(math.log10(max(costs)))
    y = _scale(low, high if high > low else low * 10, _HEIGHT - _BOTTOM, _TOP)
    parts = [*_draw_axes(series, x, y, (low, high if high > low else low * 10))]
    for kind in ("floor", "ours"):
        places = [(x(point.size), y(getattr(point, kind)), point) for point in series.points]
        parts.append(f'<polyline class="{kind}" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b, _ in places)}"/>')
        for across, down, point in places:
            told = f"{kind}, {show_size(point.size, series.unit)}: {show_seconds(getattr(point, kind))}"
            parts.append(
                f'<circle class="{kind}" cx="{across:.1f}" cy="{down:.1f}" r="4"><title>{escape(told)}</title></circle>'
            )
    label = escape(f"{series.group}, {series.name}: seconds over {series.unit}, both axes logarithmic")
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def show_seconds(seconds: float) -> str:
    """Write a duration with three digits, in the unit that fits."""
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def show_size(size: int, unit: str) -> str:
    """Write a size with its unit."""
    if unit != "bytes":
        return f"{size:,} {unit}"
    for power, name in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size >= 1024**power:
            return f"{size / 1024**power:g} {name}"
    return f"{size} bytes"


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    span = math.log(high / low) or 1.0
    return lambda value: start + (end - start) * math.log(value / low) / span


def _draw_axes(
    series: Series, x: Callable[[float], float], y: Callable[[float], float], costs: tuple[float, float]
) -> Iterator[str]:
    decades = round(math.log10(costs[1] / costs[0]))
    for power in range(0, decades + 1, max(1, math.ceil(decades / _MOST_TICKS))):
        cost = costs[0] * 10**power
        yield f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(cost):.1f}" y2="{y(cost):.1f}"/>'
        yield f'<text x="{_LEFT - 8}" y="{y(cost) + 4:.1f}" text-anchor="end">{show_seconds(cost)}</text>'
    for point in series.points:
        at = x(point.size)
        yield f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>'
        told = _shorten(point.size, series.unit)
        yield f'<text x="{at:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{told}</text>'
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    yield f'<text x="{middle}" y="{_HEIGHT - 6}" text-anchor="middle">{escape(series.unit)}</text>'


def _shorten(size: int, unit: str) -> str:
    if unit == "bytes":
        return show_size(size, unit).replace(" ", "")
    for factor, letter in ((1_000_000, "M"), (1_000, "k")):
        if size >= factor:
            return f"{size / factor:g}{letter}"
    return str(size)
