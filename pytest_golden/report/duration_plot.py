"""Durations as bars in a terminal, one a run, the newest on the right. Pure text, no colours."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.regression.trends import show_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_HEIGHT = 6
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_GAP, _WIDEST_BAR = 1, 3


class _Mark(NamedTuple):
    """A duration that is marked beside the bars."""

    name: str
    seconds: float


def plot_durations(
    durations: Sequence[float | None],
    width: int,
    *,
    median: float | None = None,
    limit: float | None = None,
    is_unicode: bool = False,
) -> tuple[str, ...]:
    """Give the lines of a plot no wider than `width`; nothing where no duration is known, or where there is no room.

    Args:
        durations: in seconds, oldest first; None leaves a gap. The oldest go where there is no room for all.
        width: in columns of the terminal.
        median: is marked beside its row.
        limit: is marked likewise.
        is_unicode: draws with block characters, which tell eighths of a row apart.
    """
    known = [one for one in durations if one is not None]
    if not known:
        return ()
    marks = [_Mark(name, at) for name, at in (("median", median), ("limit", limit)) if at is not None]
    top = max(*known, *(mark.seconds for mark in marks), 1e-9)
    labels = _label_rows(top, marks)
    margin = max(map(len, labels)) + 2
    room = width - margin
    if room < 1:
        return ()
    shown = durations[-room:]
    step = min(_WIDEST_BAR + _GAP, room // len(shown))
    bars = [_draw_bar(one, top, is_unicode=is_unicode) for one in shown]
    axis = "│" if is_unicode else "|"
    return tuple(
        f"{label:>{margin - 2}} {axis}{_draw_row(bars, row, step)}".rstrip() for row, label in enumerate(labels)
    )


def _label_rows(top: float, marks: Sequence[_Mark]) -> list[str]:
    """Give the text beside each row, the highest first; marks that fall into one row share it."""
    labels = [""] * _HEIGHT
    labels[0] = show_seconds(top)
    for mark in reversed(marks):
        # The row in which a bar of this duration ends.
        row = _HEIGHT - max(1, ceil(round(mark.seconds / top * _HEIGHT, 6)))
        told = f"{mark.name} {show_seconds(mark.seconds)}"
        labels[row] = f"{told}, {labels[row]}" if row and labels[row] else told
    return labels


def _draw_bar(seconds: float | None, top: float, *, is_unicode: bool) -> str:
    """Draw one bar from its top to its foot, a character a row."""
    if seconds is None:
        return " " * _HEIGHT
    # Whatever ran can be seen.
    eighths = max(1, round(seconds / top * _HEIGHT * 8))
    filled = [min(8, max(0, eighths - row * 8)) for row in range(_HEIGHT)]
    signs = [_EIGHTHS[part] if is_unicode else _draw_ascii(part) for part in filled]
    return "".join(reversed(signs))


def _draw_ascii(eighths: int) -> str:
    return " " if eighths == 0 else "." if eighths < 4 else "#"


def _draw_row(bars: Sequence[str], row: int, step: int) -> str:
    return "".join(_widen(bars, row, step))


def _widen(bars: Sequence[str], row: int, step: int) -> Iterator[str]:
    bar_width = max(1, step - _GAP)
    for bar in bars:
        yield bar[row] * bar_width + " " * (step - bar_width)
