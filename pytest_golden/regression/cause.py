"""The one line of what a pipeline left behind that most likely says why it failed. Pure; a guess, shown beside the facts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_golden.gateway.model import PipelineOutcome
    from pytest_golden.trajectory.step import Step

# A long message often begins with where it was noticed and ends with why.
_MOST_OF_HEAD, _MOST_OF_TAIL = 115, 80
_TRACEBACK = "Traceback (most recent call last):"
# As dbt begins its errors.
_HEADLINE = re.compile(r"(?:[A-Z]\w* (?:Error|Failure)|Failure)(?: in \w+ \S+ \(.*\))?")
# What follows in more lines than a message has is news of its own.
_MOST_LINES = 8
_SOUNDS_LIKE_AN_ERROR = re.compile("error|exception|failed|fatal|traceback|not found|denied|invalid", re.IGNORECASE)


def find_cause(outcome: PipelineOutcome) -> str | None:
    """Give the failed step's error, else one line of standard error, else one of standard output, else None.

    Of standard error it is the last line, or, where that is part of what a traceback ends with, the exception's own line.
    Of standard output it is the last line that sounds like an error, since many tools print a summary below it; else
    the last one.
    """
    steps = outcome.trajectory.steps if outcome.trajectory is not None else ()
    for step in reversed(steps):
        line = _error_of(step)
        if line:
            return _cut(f"{step.content}: {line}")
    line = (
        _last_exception(outcome.stderr)
        or _last_line(outcome.stderr)
        or _last_error(outcome.stdout)
        or _last_line(outcome.stdout)
    )
    return _cut(line) if line else None


def _error_of(step: Step) -> str:
    """Give the first line of a step's error, and the second where the first is a headline that tells no cause."""
    error = step.metadata.get("error")
    lines = [line.strip() for line in error.splitlines() if line.strip()] if isinstance(error, str) else []
    if not lines or step.type == "observation":
        return ""
    return " ".join(lines[:2]) if _HEADLINE.fullmatch(lines[0]) else lines[0]


def _last_exception(text: str) -> str:
    """Give the first line of the exception that a traceback at the end of a text tells; empty when there is none.

    What stands below an exception of several lines (the query, a pointer into it, an address) says less than it.
    """
    head, found, told = text.rpartition(_TRACEBACK)
    if not found:
        return ""
    margin = head.rpartition("\n")[2]
    lines = told.splitlines()[1:]
    start = next(
        (at for at, line in enumerate(lines) if line.strip() and not line.startswith(f"{margin} ")), len(lines)
    )
    below = [line for line in lines[start:] if line.strip()]
    return below[0].strip() if start and 1 <= len(below) <= _MOST_LINES else ""


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _last_error(text: str) -> str:
    return _last_line("\n".join(line for line in text.splitlines() if _SOUNDS_LIKE_AN_ERROR.search(line)))


def _cut(line: str) -> str:
    if len(line) <= _MOST_OF_HEAD + _MOST_OF_TAIL:
        return line
    return f"{line[:_MOST_OF_HEAD]} ... {line[-_MOST_OF_TAIL:]}"
