"""A project's past in signs and lines: its strip of results, its durations, what changed since its last pass. Pure text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.regression.model import ResultStatus
from pytest_golden.report.failure_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from pytest_golden.gate.changes import ChangedSincePass
    from pytest_golden.gate.checkout_changes import CheckoutChanges
    from pytest_golden.gate.past import PastResult

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


def describe_changes(changed: ChangedSincePass) -> tuple[str, ...]:
    """Give the lines that a failure's text adds: the last pass, and what is different now."""
    return tuple(_fit(line) for line in _describe(changed))


def strip(results: Sequence[PastResult], *, is_unicode: bool = False) -> str:
    """Draw one sign a result, the newest, which stands first, on the right; `explain_signs` says what they mean."""
    return "".join(_sign(result, _SIGNS[is_unicode]) for result in reversed(results))


def explain_signs(*, is_unicode: bool = False) -> str:
    """Say what the signs of a strip mean."""
    signs = _SIGNS[is_unicode]
    words = {ResultStatus.PASSED: "passed", ResultStatus.FAILED: "failed", ResultStatus.ERROR: "error"}
    told = [f"{signs[status]} {word}" for status, word in words.items()]
    told += [f"{_FLAKY} passed after a retry", f"{signs[ResultStatus.SKIPPED]} skipped", f"{_INTERRUPTED} interrupted"]
    return ", ".join(told)


def sparkline(results: Sequence[PastResult], *, is_unicode: bool = False) -> str:
    """Draw the durations, the newest, which stands first, on the right, from the shortest to the longest; blank: no end."""
    levels = _LEVELS[is_unicode]
    seconds = [result.execution_time_seconds if result.counts else None for result in reversed(results)]
    known = [one for one in seconds if one is not None]
    if not known:
        return ""
    least, most = min(known), max(known)
    step = (most - least) / (len(levels) - 1) or 1.0
    return "".join(" " if one is None else levels[round((one - least) / step)] for one in seconds)


def show_moment(moment: datetime) -> str:
    """Write a UTC moment to the minute."""
    return moment.strftime("%Y-%m-%d %H:%M")


def _sign(result: PastResult, signs: Mapping[ResultStatus, str]) -> str:
    if result.is_interrupted:
        return _INTERRUPTED
    return _FLAKY if result.is_flaky else signs[result.status]


def _describe(changed: ChangedSincePass) -> Iterator[str]:
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
    more = checkout.inside_count + checkout.outside_count - len(checkout.files[:_MOST_LINES])
    if checkout.files:
        shown = ", ".join(checkout.files[:_MOST_LINES])
        yield f"files: {shown}{f', +{more} more' if more > 0 else ''}"


def _describe_commits(checkout: CheckoutChanges) -> str:
    if checkout.commit_count is None:
        return str(checkout.commit_range)
    counted = f"{_count(checkout.commit_count, 'commit')} {checkout.commit_range}"
    if checkout.lost_count:
        counted += f", and {_count(checkout.lost_count, 'commit')} gone"
    return f"{counted}{_list_subjects(checkout)}"


def _describe_break(checkout: CheckoutChanges, later_commit_count: int) -> str:
    good, _, bad = str(checkout.commit_range).partition("..")
    many = f", {_count(checkout.commit_count or 0, 'commit')}" if checkout.commit_count != 1 else ""
    since = f" ({_count(later_commit_count, 'commit')} since)" if later_commit_count else ""
    return f"broke between {good} and {bad}{many}{_list_subjects(checkout)}{since}"


def _list_subjects(checkout: CheckoutChanges) -> str:
    subjects = [f"'{_cut(subject)}'" for subject in checkout.subjects[:MOST_COMMITS_SHOWN]]
    more = (checkout.commit_count or 0) - len(subjects)
    return f": {', '.join(subjects)}{f', +{more} more' if more > 0 else ''}" if subjects else ""


def _list(name: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        more = len(lines) - _MOST_LINES
        yield f"{name}: {', '.join(lines[:_MOST_LINES])}{f', +{more} more' if more > 0 else ''}"


def _cut(subject: str) -> str:
    return subject if len(subject) <= _LONGEST_SUBJECT else f"{subject[: _LONGEST_SUBJECT - 3]}..."


def _fit(line: str) -> str:
    # A file's name need not be UTF-8, and what stands for its bytes cannot be printed.
    printable = line.encode("utf-8", "backslashreplace").decode()
    return " ".join(make_visible(printable).split())


def _count(number: int, word: str, *, is_least: bool = False) -> str:
    plural = "" if number == 1 else "es" if word.endswith("s") else "s"
    return f"{number}{' or more' if is_least else ''} {word}{plural}"
