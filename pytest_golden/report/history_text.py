"""A project's history as text: its strip of results, its durations as bars, and what changed since its last pass."""

from __future__ import annotations

import shlex
from math import ceil
from typing import TYPE_CHECKING

from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.slowdown import show_seconds
from pytest_golden.regression.wording import count_of
from pytest_golden.report.result_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from pytest_golden.history.changes import ChangedSincePass, PastResult
    from pytest_golden.history.checkout import CheckoutChanges


MOST_COMMITS_SHOWN = 3
_MOST_LINES = 4
_LONGEST_SUBJECT = 60
_SHORT = 7
_PLACES = "the manifest or the installed versions"
_PLACES_WITH_INPUTS = "the manifest, the installed versions or the inputs"
_FLAKY = "~"
_INTERRUPTED = "^"
_SIGNS: Mapping[bool, Mapping[ResultStatus, str]] = {
    True: {ResultStatus.PASSED: "✓", ResultStatus.FAILED: "✗", ResultStatus.ERROR: "!", ResultStatus.SKIPPED: "-"},
    False: {ResultStatus.PASSED: "P", ResultStatus.FAILED: "F", ResultStatus.ERROR: "E", ResultStatus.SKIPPED: "-"},
}
_LEVELS = {True: "▁▂▃▄▅▆▇█", False: "_.:-=+*#"}
_HEIGHT = 6
_EIGHTHS, _ASCII_EIGHTHS = " ▁▂▃▄▅▆▇█", " ...#####"
_GAP, _WIDEST_BAR = 1, 3


def describe_changes(changed: ChangedSincePass, project: str = "") -> tuple[str, ...]:
    """Return the lines about the last pass and what is different now, for a failure's text.

    With the project's name, they offer to find the commit if there are several.
    """
    lines = [_fit(line) for line in _describe_all(changed)]
    if project and (changed.checkout.commit_count or 0) > 1:
        lines.append(f"find the commit: golden bisect {shlex.quote(project)}")
    return tuple(lines)


def _describe_all(changed: ChangedSincePass) -> Iterator[str]:
    edited = " with uncommitted edits" if changed.dirty else ""
    at = "" if changed.commit is None else f" at {changed.commit[:_SHORT]}{edited}"
    yield f"last passed {show_moment(changed.passed_at)} UTC{at}"
    told = [*_describe_checkout(changed.checkout, changed.later_commit_count)]
    told += [*_list("manifest", changed.declaration), *_list("versions", changed.surroundings)]
    told += _list("inputs", changed.inputs)
    if not told:
        yield f"since then: nothing changed in git, {_PLACES_WITH_INPUTS if changed.is_input_known else _PLACES}"
    yield from told
    if changed.parted:
        yield f"first difference from the last good run: {changed.parted}"


def _describe_checkout(checkout: CheckoutChanges, later_commit_count: int | None) -> Iterator[str]:
    if checkout.commit_range is not None and later_commit_count is not None:
        yield _describe_break(checkout, later_commit_count)
    elif checkout.commit_range is not None:
        yield f"since then: {_describe_commits(checkout)}"
    elif checkout.files:
        yield "since then: no commit, but files changed"
    if checkout.note is not None:
        yield f"git: {checkout.note}"
    yield from _list("files", checkout.files, checkout.inside_count + checkout.outside_count)


def _describe_commits(checkout: CheckoutChanges) -> str:
    if checkout.commit_count is None:
        return str(checkout.commit_range)
    counted = f"{count_of(checkout.commit_count, 'commit')} {checkout.commit_range}"
    if checkout.lost_count:
        counted += f", and {count_of(checkout.lost_count, 'commit')} gone"
    return f"{counted}{_list_subjects(checkout)}"


def _describe_break(checkout: CheckoutChanges, later_commit_count: int) -> str:
    good, _, bad = str(checkout.commit_range).partition("..")
    many = f", {count_of(checkout.commit_count or 0, 'commit')}" if checkout.commit_count != 1 else ""
    since = f" ({count_of(later_commit_count, 'commit')} since)" if later_commit_count else ""
    return f"broke between {good} and {bad}{many}{_list_subjects(checkout)}{since}"


def _list_subjects(checkout: CheckoutChanges) -> str:
    cut = [
        text if len(text) <= _LONGEST_SUBJECT else f"{text[: _LONGEST_SUBJECT - 3]}..." for text in checkout.subjects
    ]
    quoted = [f"'{subject}'" for subject in cut]
    return "".join(_list("", quoted, checkout.commit_count or 0, MOST_COMMITS_SHOWN))


def _list(name: str, lines: Sequence[str], count: int | None = None, most: int = _MOST_LINES) -> Iterator[str]:
    """Yield a line that names the first few and counts the others; nothing if there are none."""
    if lines:
        shown = lines[:most]
        more = (len(lines) if count is None else count) - len(shown)
        yield f"{name}: {', '.join(shown)}{f', +{more} more' if more > 0 else ''}"


def _fit(line: str) -> str:
    # A file's name need not be UTF-8, and the surrogates that represent its bytes cannot be printed.
    printable = line.encode("utf-8", "backslashreplace").decode()
    return " ".join(make_visible(printable).split())


def strip(results: Sequence[PastResult], *, is_unicode: bool = False) -> str:
    """Draw one sign per result, the newest on the right; `results` has the newest first. `explain_signs` explains them."""
    return "".join(_sign(result, _SIGNS[is_unicode]) for result in reversed(results))


def _sign(result: PastResult, signs: Mapping[ResultStatus, str]) -> str:
    if result.is_interrupted:
        return _INTERRUPTED
    return _FLAKY if result.is_flaky else signs[result.status]


def explain_signs(*, is_unicode: bool = False) -> str:
    """Say what the signs of a strip mean."""
    signs = _SIGNS[is_unicode]
    words = {ResultStatus.PASSED: "passed", ResultStatus.FAILED: "failed", ResultStatus.ERROR: "error"}
    told = [f"{signs[status]} {word}" for status, word in words.items()]
    told += [f"{_FLAKY} passed after a retry", f"{signs[ResultStatus.SKIPPED]} skipped", f"{_INTERRUPTED} interrupted"]
    return ", ".join(told)


def sparkline(results: Sequence[PastResult], *, is_unicode: bool = False) -> str:
    """Draw the durations, the newest on the right; `results` has the newest first. A blank is a run without a duration."""
    levels = _LEVELS[is_unicode]
    seconds = [result.execution_time_seconds if result.counts else None for result in reversed(results)]
    known = [one for one in seconds if one is not None]
    if not known:
        return ""
    least, most = min(known), max(known)
    step = (most - least) / (len(levels) - 1) or 1.0
    return "".join(" " if one is None else levels[round((one - least) / step)] for one in seconds)


def show_moment(moment: datetime) -> str:
    """Return a UTC timestamp as text, to the minute."""
    return moment.strftime("%Y-%m-%d %H:%M")


def plot_durations(
    durations: Sequence[float | None],
    width: int,
    *,
    median: float | None = None,
    limit: float | None = None,
    is_unicode: bool = False,
) -> tuple[str, ...]:
    """Return the lines of a plot at most `width` wide; nothing if no duration is known or there is no room.

    Args:
        durations: in seconds, oldest first; None leaves a gap. The oldest are left out if there is no room for all.
        width: in columns of the terminal.
        median: is marked beside its row.
        limit: is marked likewise.
        is_unicode: draws with block characters, which tell eighths of a row apart.
    """
    known = [one for one in durations if one is not None]
    if not known:
        return ()
    marks = {name: at for name, at in (("median", median), ("limit", limit)) if at is not None}
    top = max(*known, *marks.values(), 1e-9)
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


def _label_rows(top: float, marks: Mapping[str, float]) -> list[str]:
    """Return the text beside each row, the highest first; marks that fall into one row share it."""
    labels = [""] * _HEIGHT
    labels[0] = show_seconds(top)
    for name, seconds in reversed([*marks.items()]):
        # The row in which a bar of this duration ends.
        row = _HEIGHT - max(1, ceil(round(seconds / top * _HEIGHT, 6)))
        told = f"{name} {show_seconds(seconds)}"
        labels[row] = f"{told}, {labels[row]}" if row and labels[row] else told
    return labels


def _draw_bar(seconds: float | None, top: float, *, is_unicode: bool) -> str:
    """Draw one bar from top to bottom, one character per row."""
    if seconds is None:
        return " " * _HEIGHT
    # A run is always visible.
    eighths = max(1, round(seconds / top * _HEIGHT * 8))
    filled = [min(8, max(0, eighths - row * 8)) for row in range(_HEIGHT)]
    signs = _EIGHTHS if is_unicode else _ASCII_EIGHTHS
    return "".join(signs[part] for part in reversed(filled))


def _draw_row(bars: Sequence[str], row: int, step: int) -> str:
    bar_width = max(1, step - _GAP)
    return "".join(bar[row] * bar_width + " " * (step - bar_width) for bar in bars)
