"""The cycle's values: its ten steps in order with their roles, its state, and its events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from pytest_golden.clock import new_id
from pytest_golden.gateway.model import AgentRole
from pytest_golden.regression.verdict import RegressionCheckResult
from pytest_golden.values.shape import Shape, form


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
    """One finished step; `reason` says why it was skipped, what went wrong, or how it went."""

    step: CycleStep
    status: StepStatus
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CycleState(Shape):
    """The state of a cycle. It never changes: each step makes the next one.

    `exit_status` is "" or "error". `regressions_detected` and `regression_check` are those of the last check, which judged
    all of the work as it then stood. `weakened_floor` tells in what way that work lowers the floor, and `proposal` is what
    is under review: both are handed to the steps, and are no part of `to_dict`.
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
