"""The cycle's values: its task and limits, checked when they are given; its ten steps with their roles; its state and events."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_golden.clock import new_id
from pytest_golden.gateway.model import AgentRole
from pytest_golden.manifest.model import GoldenProjectConfig
from pytest_golden.manifest.reader import parse_golden_projects_input
from pytest_golden.regression.verdict import RegressionCheckResult
from pytest_golden.values.shape import Shape, form

_UNVERIFIABLE = "No golden projects configured: an approved improvement cannot be verified."
_REQUIRED = "Golden projects are required, and none is configured: the cycle does not begin."
DEFAULT_TASK = "Scheduled maintenance cycle"
_DEFAULT_HOURS = 8.0


class CycleStep(StrEnum):
    """One of the ten steps."""

    ENV_VALIDATION = "env_validation"
    PROJECT_SELECTION = "project_selection"
    USER_EXECUTION = "user_execution"
    OBSERVATION = "observation"
    IMPROVEMENT = "improvement"
    REVIEW = "review"
    REGRESSION_CHECKS = "regression_checks"
    MEMORY_PERSISTENCE = "memory_persistence"
    SUMMARY = "summary"
    EXIT = "exit"


CYCLE_ORDER: tuple[CycleStep, ...] = tuple(CycleStep)

#: Whose step each one is.
STEP_ROLES: Mapping[CycleStep, AgentRole] = MappingProxyType(
    {
        CycleStep.ENV_VALIDATION: AgentRole.ENVIRONMENT,
        CycleStep.PROJECT_SELECTION: AgentRole.PROJECT,
        CycleStep.USER_EXECUTION: AgentRole.USER,
        CycleStep.OBSERVATION: AgentRole.OBSERVER,
        CycleStep.IMPROVEMENT: AgentRole.IMPROVEMENT,
        CycleStep.REVIEW: AgentRole.REVIEWER,
        CycleStep.REGRESSION_CHECKS: AgentRole.REGRESSION_GUARD,
        CycleStep.MEMORY_PERSISTENCE: AgentRole.CURRICULUM,
        CycleStep.SUMMARY: AgentRole.CONVERGENCE,
        CycleStep.EXIT: AgentRole.CONVERGENCE,
    }
)


class StepStatus(StrEnum):
    """How a step ended."""

    DONE = "done"
    SKIPPED = "skipped"
    ERROR = "error"


class CycleVerdict(StrEnum):
    """The verdict of a cycle on the improvement: `none` if there is nothing to judge, or nothing to judge it by."""

    VERIFIED = "verified"
    FLAGGED = "flagged"
    REJECTED = "rejected"
    NONE = "none"


class CycleEventType(StrEnum):
    """What an event is about."""

    STARTED = "cycle_started"
    STEP_STARTED = "step_started"
    STEP_DONE = "step_done"
    STEP_SKIPPED = "step_skipped"
    STEP_ERROR = "step_error"
    WARNING = "warning"
    FINISHED = "cycle_finished"


@dataclass(frozen=True, slots=True)
class CycleEvent(Shape):
    """An event of a running cycle. `step` and `agent_role` are those of the step that it is about."""

    event_type: CycleEventType
    step: CycleStep
    agent_role: AgentRole
    message: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class StepRecord(Shape):
    """One finished step; `reason` says why it was skipped, what went wrong, or how it went.

    `seconds` is how long it took, None where that is not known. `facts` may have `cost_usd`, which its command told, and of a
    check `run_id`, the gate run's entry, and the `commit`. Neither is a part of `to_dict`.
    """

    step: CycleStep
    status: StepStatus
    reason: str = ""
    seconds: float | None = field(default=None, compare=False, metadata=form(hidden=True))
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False, metadata=form(hidden=True))


@dataclass(frozen=True, slots=True)
class CycleState(Shape):
    """The state of a cycle. It never changes: each step makes the next one.

    `exit_status` is "" or "error". `regressions_detected` and `regression_check` are those of the last check, which judged
    all of the work as it then stood. `weakened_floor` tells in what way that work lowers the floor, and `proposal` is what
    is under review: both are handed to the steps, and are not part of `to_dict`.
    """

    cycle_id: str = field(default_factory=lambda: new_id("cycle"))
    completed: bool = False
    interrupted: bool = False
    exit_status: str = ""
    improvements_approved: int = 0
    improvements_rejected: int = 0
    regressions_detected: int = 0
    steps: tuple[StepRecord, ...] = ()
    regression_check: RegressionCheckResult | None = None
    verdict: CycleVerdict = CycleVerdict.NONE
    started_at: datetime | None = None
    finished_at: datetime | None = None
    warnings: tuple[str, ...] = ()
    weakened_floor: tuple[Mapping[str, Any], ...] = field(default=(), metadata=form(hidden=True))
    proposal: Any = field(default=None, compare=False, repr=False, metadata=form(hidden=True))

    def __post_init__(self) -> None:
        object.__setattr__(self, "verdict", CycleVerdict(self.verdict))
        object.__setattr__(self, "steps", tuple(self.steps))
        object.__setattr__(self, "warnings", tuple(self.warnings))
        object.__setattr__(self, "weakened_floor", tuple(self.weakened_floor))


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
        raise ValueError(f"project_root {str(root)!r:.300} is not a folder: give the project's root")
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
