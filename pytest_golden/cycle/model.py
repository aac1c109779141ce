"""The cycle's values: its ten steps in order, whose role each is, what has happened so far, and events. Nothing here acts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc, new_id
from pytest_golden.gateway.model import AgentRole
from pytest_golden.regression.model import GoldenProjectResult
from pytest_golden.regression.verdict import RegressionCheckResult

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    """What became of a step."""

    DONE = "done"
    SKIPPED = "skipped"
    ERROR = "error"


class CycleVerdict(StrEnum):
    """What a cycle has to say of the improvement: none where there is nothing to judge, or nothing to judge it by."""

    VERIFIED = "verified"
    FLAGGED = "flagged"
    REJECTED = "rejected"
    NONE = "none"


class CycleEventType(StrEnum):
    """What an event tells of."""

    STARTED = "cycle_started"
    STEP_STARTED = "step_started"
    STEP_DONE = "step_done"
    STEP_SKIPPED = "step_skipped"
    STEP_ERROR = "step_error"
    WARNING = "warning"
    FINISHED = "cycle_finished"


@dataclass(frozen=True, slots=True)
class CycleEvent:
    """News of a cycle while it walks. `step` and `agent_role` are those of the step that it is about."""

    event_type: CycleEventType
    step: CycleStep
    agent_role: AgentRole
    message: str
    is_error: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the same as JSON-safe text."""
        return {
            "event_type": str(self.event_type),
            "step": str(self.step),
            "agent_role": str(self.agent_role),
            "message": self.message,
            "is_error": self.is_error,
        }


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step that was walked; `reason` says why it was skipped or what went wrong, and may say how it went."""

    step: CycleStep
    status: StepStatus
    reason: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return `{step, status, reason}`."""
        return {"step": str(self.step), "status": str(self.status), "reason": self.reason}

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> StepRecord:
        """Read back what `to_dict` gave."""
        return cls(CycleStep(mapping["step"]), StepStatus(mapping["status"]), str(mapping["reason"]))


@dataclass(frozen=True, slots=True)
class CycleState:
    """How far a cycle has come. A state is never changed: each step makes the next one.

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
    weakened_floor: tuple[Mapping[str, Any], ...] = ()
    proposal: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "verdict", CycleVerdict(self.verdict))
        object.__setattr__(self, "steps", tuple(self.steps))
        object.__setattr__(self, "warnings", tuple(self.warnings))
        object.__setattr__(self, "weakened_floor", tuple(self.weakened_floor))

    def to_dict(self) -> dict[str, Any]:
        """Return the same as JSON-safe values, without the proposal and the weakened floor."""
        check = self.regression_check
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "steps": [record.to_dict() for record in self.steps],
            "regression_check": None if check is None else check.to_dict(),
            "verdict": str(self.verdict),
            "started_at": None if self.started_at is None else iso_utc(self.started_at),
            "finished_at": None if self.finished_at is None else iso_utc(self.finished_at),
            "warnings": list(self.warnings),
        }

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> CycleState:
        """Read back what `to_dict` gave; unknown keys are tolerated.

        Raises:
            KeyError, TypeError, ValueError: it is no such mapping.
        """
        check = mapping["regression_check"]
        return cls(
            **{name: _require(mapping[name], kind, name) for name, kind in _PLAIN.items()},
            steps=tuple(StepRecord.from_dict(record) for record in mapping["steps"]),
            regression_check=None if check is None else _read_check(check),
            verdict=CycleVerdict(mapping["verdict"]),
            started_at=_read_moment(mapping["started_at"]),
            finished_at=_read_moment(mapping["finished_at"]),
            warnings=tuple(map(str, mapping["warnings"])),
        )


_PLAIN: Mapping[str, type] = {
    "cycle_id": str,
    "completed": bool,
    "interrupted": bool,
    "exit_status": str,
    "improvements_approved": int,
    "improvements_rejected": int,
    "regressions_detected": int,
}


def _read_check(mapping: Mapping[str, Any]) -> RegressionCheckResult:
    return RegressionCheckResult(tuple(GoldenProjectResult.from_dict(result) for result in mapping["results"]))


def _require(value: Any, kind: type, name: str) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{name} must be {kind.__name__}")
    return value


def _read_moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
