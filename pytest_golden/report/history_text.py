"""A project's past in a few words and signs: its streak, its strip of results, what changed since its last pass. Pure text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.gate.history import FAILURES, count_leading_failures, count_passes
from pytest_golden.regression.model import ResultStatus
from pytest_golden.report.failure_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from pytest_golden.gate.changes import ChangedSincePass
    from pytest_golden.gate.checkout_changes import CheckoutChanges
    from pytest_golden.gate.past import PastResult

# The last ten that ran tell enough; so many results are read to find them among skipped and interrupted ones.
WINDOW = 10
ENOUGH = 40
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


def describe_streak(recent: Sequence[PastResult]) -> str:
    """Say how a project's newest result, which stands first, fits in with those before it; empty when it did not run to its end.

    It looks at the first `ENOUGH` of them. Skipped and interrupted ones neither count nor break a streak.
    """
    if not recent or not recent[0].counts:
        return ""
    ran = [result for result in recent[:ENOUGH] if result.counts][:WINDOW]
    if len(ran) == 1 and ran[0].pass_streak <= 1:
        return "first run" if len(recent) < ENOUGH else ""
    return _describe_pass(ran) if ran[0].status is ResultStatus.PASSED else _describe_failure(ran)


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


def _describe_pass(ran: Sequence[PastResult]) -> str:
    streak = count_passes(ran)
    if streak >= WINDOW:
        return f"{_ordinal(streak)} pass in a row"
    failures = count_leading_failures(ran[1:])
    if streak == 1 and failures:
        is_cut = failures == len(ran) - 1 and len(ran) >= WINDOW
        return f"passes again after {_count(failures, 'failure', is_least=is_cut)}"
    failed = _describe_window(ran)
    told = f"{_ordinal(streak)} pass in a row" if streak > 1 else ""
    return ", ".join(filter(None, [told, failed])) or "1st pass"


def _describe_failure(ran: Sequence[PastResult]) -> str:
    failures = count_leading_failures(ran)
    if failures == len(ran):
        return f"failed {failures} times in a row" if failures < WINDOW else f"failed in each of the last {failures}"
    first = f"first failure after {_count(count_passes(ran[1:]), 'pass')}"
    told = first if failures == 1 else f"{_ordinal(failures)} failure in a row"
    in_window = sum(result.status in FAILURES for result in ran)
    return told if in_window <= failures else f"{told}, {_describe_window(ran)}"


def _describe_window(ran: Sequence[PastResult]) -> str:
    failed = sum(result.status in FAILURES for result in ran)
    return f"failed {failed} of the last {len(ran)}" if failed else ""


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


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
