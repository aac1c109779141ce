"""The one line of what a pipeline left behind that most likely says why it failed. Pure; a guess, shown beside the facts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_golden.gateway.model import PipelineOutcome
    from pytest_golden.trajectory.step import Step

_MOST_CHARACTERS = 200
_SOUNDS_LIKE_AN_ERROR = re.compile("error|exception|failed|fatal|traceback|not found|denied|invalid", re.IGNORECASE)


def find_cause(outcome: PipelineOutcome) -> str | None:
    """Give the failed step's error, else the last line on standard error, else one of standard output, else None.

    Of standard output it is the last line that sounds like an error, since many tools print a summary below it; else
    the last one.
    """
    steps = outcome.trajectory.steps if outcome.trajectory is not None else ()
    for step in reversed(steps):
        line = _error_of(step)
        if line:
            return _cut(f"{step.content}: {line}")
    line = _last_line(outcome.stderr) or _last_error(outcome.stdout) or _last_line(outcome.stdout)
    return _cut(line) if line else None


def _error_of(step: Step) -> str:
    """Give the first line of a step's error; a tool's own headline comes first."""
    error = step.metadata.get("error")
    lines = [line.strip() for line in error.splitlines() if line.strip()] if isinstance(error, str) else []
    return lines[0] if lines and step.type != "observation" else ""


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _last_error(text: str) -> str:
    return _last_line("\n".join(line for line in text.splitlines() if _SOUNDS_LIKE_AN_ERROR.search(line)))


def _cut(line: str) -> str:
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]} ..."
