"""The report: one HTML page without a script that needs nothing from outside, for light and dark screens."""

from __future__ import annotations

from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from scale.plot import draw, show_seconds, show_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scale.model import Series

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --quiet: #59636e; --line: #d8dee4; --ours: #0b5cad; --floor: #9a5b00; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181d; --ink: #e6edf3; --quiet: #9da7b1; --line: #323a43; --ours: #6cb6ff; --floor: #e3a857; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 76rem; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
p { max-width: 46rem; } .quiet { color: var(--quiet); }
.series { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr)); gap: 1.2rem; }
figure { margin: 0; padding: 1rem; border: 1px solid var(--line); border-radius: 6px; min-width: 0; }
figcaption { margin-bottom: .5rem; } figcaption b { display: block; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--quiet); font: 12px system-ui, sans-serif; }
polyline { fill: none; stroke-width: 2; } .grid { stroke: var(--line); }
polyline.ours { stroke: var(--ours); } circle.ours { fill: var(--ours); }
polyline.floor { stroke: var(--floor); stroke-dasharray: 5 4; } circle.floor { fill: var(--paper); stroke: var(--floor); stroke-width: 2; }
.table { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .5rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } th { font-weight: 600; } caption { text-align: left; }
.key i { display: inline-block; width: 1.8rem; margin-right: .4rem; vertical-align: middle; border-top: 2px solid var(--ours); }
.key i.floor { border-top: 2px dashed var(--floor); margin-left: 1rem; }
.word { text-align: left; } td:first-child { white-space: normal; min-width: 5rem; }
@media (max-width: 30rem) { body { padding: 1rem .7rem; } figure { padding: .7rem .6rem; } th, td { padding: .2rem .3rem; } }
"""


def make_page(all_series: Sequence[Series], facts: Mapping[str, str]) -> str:
    """Make the page."""
    told = "; ".join(f"{name}: {value}" for name, value in facts.items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Cost against size</title>'
        f"<style>{_STYLE}</style></head><body><h1>Cost against size</h1>"
        f'<p class="quiet">{escape(told)}</p>'
        "<p>Each cost stands beside its floor: the least that the same work could take, measured in the same run and in turns. "
        "The slope is the exponent of the cost at the larger sizes: 0 is flat, 1 is linear.</p>"
        '<p class="key"><i></i>ours<i class="floor"></i>floor</p>'
        f"{_make_summary(all_series)}{''.join(_make_groups(all_series))}</body></html>\n"
    )


def _make_summary(all_series: Sequence[Series]) -> str:
    rows = "".join(
        f"<tr><td>{escape(one.group)}: {escape(one.name)}</td><td>{show_size(one.points[-1].size, one.unit)}</td>"
        f"<td>{show_seconds(one.points[-1].ours)}</td><td>{one.points[-1].ratio:.3g}</td>"
        f'<td>{_show_slope(one.slope)}</td><td>{_show_slope(one.floor_slope)}</td><td class="word">{one.word}</td></tr>'
        for one in all_series
    )
    head = '<th>what</th><th>largest size</th><th>cost there</th><th>times its floor</th><th>slope</th><th>of the floor</th><th class="word">in a word</th>'
    return f'<h2>All of them</h2><div class="table" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _make_groups(all_series: Sequence[Series]) -> Iterator[str]:
    for group, some in groupby(all_series, key=lambda one: one.group):
        figures = "".join(map(_make_figure, some))
        yield f'<h2>{escape(group)}</h2><div class="series">{figures}</div>'


def _make_figure(series: Series) -> str:
    rows = "".join(
        f"<tr><td>{_show_bare(point.size, series.unit)}</td><td>{show_seconds(point.ours)}</td>"
        f"<td>{show_seconds(point.floor)}</td><td>{point.ratio:.3g}</td></tr>"
        for point in series.points
    )
    return (
        f"<figure><figcaption><b>{escape(series.name)}: {series.word}</b>"
        f'<span class="quiet">slope {_show_slope(series.slope)}; floor: {escape(series.floor.told)}</span></figcaption>'
        f'{draw(series)}<div class="table" tabindex="0"><table><thead><tr><th>{escape(series.unit)}</th><th>ours</th><th>floor</th><th>times</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div></figure>"
    )


def _show_bare(size: int, unit: str) -> str:
    """Write a size whose unit stands above it."""
    return show_size(size, unit) if unit == "bytes" else f"{size:,}"


def _show_slope(slope: float | None) -> str:
    return "–" if slope is None else f"{slope:.2f}"
