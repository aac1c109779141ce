"""Mistakes in a value, each with its path inside the value; `reader.py` adds line numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

Step = str | int
Check = Callable[[Any], Any]

# Stands where a value was refused and reported before the checks began; they pass over it.
UNREADABLE: Final = object()


class Finding(NamedTuple):
    """One mistake: the way to it from the value that was checked, and whether it is the last key itself that is wrong."""

    path: tuple[Step, ...]
    message: str
    at_key: bool = False

    def __str__(self) -> str:
        """Return `mounts[0].mode: message`."""
        shown = self.path[:-1] if self.at_key else self.path
        way = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in shown).lstrip(".")
        return f"{way}: {self.message}" if way else self.message


class WrongValueError(ValueError):
    """A value with several mistakes, or with one that lies inside it."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("; ".join(str(finding) for finding in self.findings))


def wrong(message: str) -> WrongValueError:
    """Make the error for a value that is wrong as a whole; of a wrong type too, since all refusals are `ValueError`."""
    return WrongValueError([Finding((), message)])


def findings_below(step: Step, error: ValueError) -> list[Finding]:
    """Return the mistakes of a part as mistakes of the whole that holds it at `step`."""
    inner = error.findings if isinstance(error, WrongValueError) else (Finding((), str(error)),)
    return [finding._replace(path=(step, *finding.path)) for finding in inner]


def check_each(items: Iterable[Any], check: Check) -> tuple[Any, ...]:
    """Check every item of a list.

    Raises:
        WrongValueError: all mistakes of all items.
    """
    clean: list[Any] = []
    findings: list[Finding] = []
    for index, item in enumerate(items):
        if item is UNREADABLE:
            continue
        try:
            clean.append(check(item))
        except ValueError as error:
            findings += findings_below(index, error)
    if findings:
        raise WrongValueError(findings)
    return tuple(clean)
