"""A cycle's task and limits, checked when they are given, and the clock by which it runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import monotonic_seconds, utc_now
from pytest_golden.manifest.inline import parse_golden_projects_input
from pytest_golden.manifest.model import GoldenProjectConfig

if TYPE_CHECKING:
    from collections.abc import Callable


_UNVERIFIABLE = "No golden projects configured: an approved improvement cannot be verified."
_REQUIRED = "Golden projects are required, and none is configured: the cycle does not begin."
DEFAULT_TASK = "Scheduled maintenance cycle"
_DEFAULT_HOURS = 8.0


@dataclass(frozen=True, slots=True)
class CycleConfig:
    """A cycle's task and its limits.

    `golden_projects` are configurations, mappings of their keys, or the text of an inline form; paths in it count from
    `project_root`. With `gated_improvements=False` a proposal needs no review.

    Raises:
        ValueError: a value that cannot be used; the message names it.
        ManifestError: the inline form of `golden_projects` cannot be read.
    """

    project_root: Path
    task_description: str = DEFAULT_TASK
    max_improvements: int = 3
    max_runtime_hours: float = _DEFAULT_HOURS
    gated_improvements: bool = True
    stop_on_convergence: bool = True
    golden_projects: tuple[GoldenProjectConfig, ...] = ()
    require_golden_projects: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.project_root, str | Path) or not str(self.project_root).strip():
            raise ValueError(f"project_root must be a folder's path, not {self.project_root!r:.100}")
        object.__setattr__(self, "project_root", _require_folder(Path(self.project_root).absolute()))
        if not isinstance(self.task_description, str) or not self.task_description.strip():
            raise ValueError(f"task_description must be a text that says something, not {self.task_description!r:.100}")
        for name in ("gated_improvements", "stop_on_convergence", "require_golden_projects"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, not {getattr(self, name)!r:.100}")  # noqa: TRY004 - one kind of refusal
        count = self.max_improvements
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ValueError(f"max_improvements must be a whole number from 0 on, not {count!r:.100}")
        object.__setattr__(self, "max_runtime_hours", _check_hours(self.max_runtime_hours))
        object.__setattr__(self, "golden_projects", _read_projects(self.golden_projects, self.project_root))

    @property
    def is_learning_mode(self) -> bool:
        """Tell whether the cycle only observes: no improvement is requested."""
        return self.max_improvements == 0

    @property
    def is_improvement_mode(self) -> bool:
        """Tell whether the cycle requests improvements."""
        return not self.is_learning_mode

    @property
    def max_runtime_seconds(self) -> float:
        """The time limit in seconds."""
        return self.max_runtime_hours * 3600

    def validate_golden_projects_for_mode(self) -> tuple[str, ...]:
        """Return warnings if the golden projects do not fit the mode, else an empty tuple."""
        if self.is_learning_mode or self.golden_projects:
            return ()
        return (_REQUIRED if self.require_golden_projects else _UNVERIFIABLE,)


def _require_folder(root: Path) -> Path:
    try:
        is_there = root.is_dir()
    except (OSError, ValueError):
        is_there = False
    if not is_there:
        raise ValueError(f"project_root {str(root)!r:.300} is no folder: give the project's root")
    return root


def _check_hours(hours: Any) -> float:
    is_number = isinstance(hours, int | float) and not isinstance(hours, bool)
    if not is_number or not math.isfinite(hours) or hours <= 0:
        raise ValueError(f"max_runtime_hours must be a number of hours above 0, not {hours!r:.100}")
    return float(hours)


def _read_projects(given: Any, root: Path) -> tuple[GoldenProjectConfig, ...]:
    if given is None or (isinstance(given, str) and not given.strip()):
        return ()
    if isinstance(given, str):
        return parse_golden_projects_input(given, root)
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise ValueError(f"golden_projects must be a list of projects or a text, not {given!r:.100}")  # noqa: TRY004
    projects = tuple(_read_project(project, number) for number, project in enumerate(given, start=1))
    names = [project.name for project in projects]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ValueError(f"golden_projects: two projects are called {', '.join(doubled)}")
    return projects


def _read_project(given: Any, number: int) -> GoldenProjectConfig:
    if isinstance(given, GoldenProjectConfig):
        return given
    if not isinstance(given, Mapping):
        raise ValueError(f"golden_projects: number {number} is {given!r:.100}, neither a project nor a mapping")  # noqa: TRY004
    try:
        return GoldenProjectConfig(**{str(key): value for key, value in given.items()})
    except ValueError as error:
        raise ValueError(f"golden_projects: number {number}: {error}") from None


class Moments:
    """Reads the time from a clock that returns seconds or aware datetimes, and never goes back."""

    def __init__(self, clock: Callable[[], Any] | None = None) -> None:
        self._clock = clock or monotonic_seconds

    def read_seconds(self) -> float:
        """Return the time in seconds; only differences are meaningful."""
        told = self._clock()
        return told.timestamp() if isinstance(told, datetime) else float(told)

    def read_utc(self) -> datetime:
        """Return the current timestamp: the clock's own if it returns datetimes."""
        told = self._clock()
        return told.astimezone(UTC) if isinstance(told, datetime) else utc_now()
