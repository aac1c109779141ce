"""A project as a line of a list and as a page: what is declared of it, and what earlier runs say. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.gate.history import flakiness, usual_duration
from pytest_golden.gate.streak import describe_streak

if TYPE_CHECKING:
    from datetime import datetime

    from pytest_golden.gate.past import PastResult
    from pytest_golden.gate.recorded.projects.history import ProjectHistory
    from pytest_golden.gate.recorded.results.model import OutputDifference
    from pytest_golden.learning.lessons.paging import ListedLesson
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import ResultStatus


@dataclass(frozen=True, slots=True)
class ListedProject:
    """A project with its newest results, which stand first and have no messages. `declared` is None for one that is gone."""

    name: str
    declared: GoldenProjectConfig | None
    recent: tuple[PastResult, ...] = ()

    @property
    def last_status(self) -> ResultStatus | None:
        """The status of its newest result; None without one."""
        return self.recent[0].status if self.recent else None

    @property
    def streak(self) -> str:
        """How the newest result fits in with those before it; empty where there is none that ran to its end."""
        return describe_streak(self.recent)

    @property
    def flakiness(self) -> float | None:
        """The share of neighbouring results on one commit that differ, of those in `recent`."""
        return flakiness(self.recent)

    @property
    def median_seconds(self) -> float | None:
        """The usual duration of a pass, of those in `recent`."""
        return usual_duration(self.recent).median_seconds

    def to_dict(self) -> dict[str, Any]:
        """Give what is declared, the last status, and the figures, JSON-safe; `recent` are short forms, newest first."""
        last = self.recent[0] if self.recent else None
        return {
            **describe_declared(self.name, self.declared),
            "last_status": None if last is None else last.status.value,
            "last_entry_id": None if last is None else last.entry_id,
            "last_run_at": None if last is None else iso_utc(last.created_at),
            "streak": self.streak,
            "flakiness": self.flakiness,
            "median_seconds": self.median_seconds,
            "recent": [_shorten(result) for result in self.recent],
        }


@dataclass(frozen=True, slots=True)
class PastDifference:
    """The last result of a project whose outputs differed, and how."""

    entry_id: str
    run_id: str
    created_at: datetime
    differences: tuple[OutputDifference, ...]

    def to_dict(self) -> dict[str, Any]:
        """Give all fields under their own names, JSON-safe."""
        return {
            "entry_id": self.entry_id,
            "run_id": self.run_id,
            "created_at": iso_utc(self.created_at),
            "differences": [one.to_dict() for one in self.differences],
        }


@dataclass(frozen=True, slots=True)
class ProjectDetails:
    """A project's past, the last difference of its outputs, and the newest lessons that it has taught."""

    history: ProjectHistory
    declared: GoldenProjectConfig | None
    last_difference: PastDifference | None
    lessons: tuple[ListedLesson, ...]

    @property
    def last_status(self) -> ResultStatus | None:
        """The status of its newest result; None without one."""
        return self.history.runs[0].status if self.history.runs else None

    def to_dict(self) -> dict[str, Any]:
        """Give what is declared, the fields of `golden history --json`, the last status, difference and lessons, JSON-safe."""
        return {
            **describe_declared(self.history.name, self.declared),
            **self.history.to_dict(),
            "last_status": None if self.last_status is None else self.last_status.value,
            "last_difference": None if self.last_difference is None else self.last_difference.to_dict(),
            "lessons": [one.to_dict() for one in self.lessons],
        }


def describe_declared(name: str, declared: GoldenProjectConfig | None) -> dict[str, Any]:
    """Give `{name, path, description, expected_outcome, is_declared}`, None for what is not known."""
    return {
        "name": name,
        "path": None if declared is None else declared.path,
        "description": None if declared is None else declared.description,
        "expected_outcome": None if declared is None else declared.expected_outcome,
        "is_declared": declared is not None,
    }


def _shorten(result: PastResult) -> dict[str, Any]:
    return {
        "entry_id": result.entry_id,
        "run_id": result.run_id,
        "status": result.status.value,
        "execution_time_seconds": result.execution_time_seconds,
        "is_flaky": result.is_flaky,
        "is_interrupted": result.is_interrupted,
        "created_at": iso_utc(result.created_at),
    }
