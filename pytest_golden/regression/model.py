"""Judgements: a result for one golden project, and all results of a gate run. Values only; `rules.py` judges."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pytest_golden.gateway.model import WriteSet

if TYPE_CHECKING:
    from collections.abc import Mapping


class ResultStatus(StrEnum):
    """The judgement in one word."""

    PASSED = "PASSED"
    FAILED = "FAILED"
    ERROR = "ERROR"
    SKIPPED = "SKIPPED"


class ReasonKind(StrEnum):
    """Why a result is not PASSED: first the project's news (FAILED), then ours (ERROR), then why it was SKIPPED."""

    EXIT_CODE = "exit_code"
    UNEXPECTED_SUCCESS = "unexpected_success"
    PATTERN_ABSENT = "pattern_absent"
    UNEXPECTED_FILE = "unexpected_file"

    PATH_NOT_FOUND = "path_not_found"
    PATH_NOT_ALLOWED = "path_not_allowed"
    PERMISSION_DENIED = "permission_denied"
    COMMAND_NOT_FOUND = "command_not_found"
    RUNNER_UNKNOWN = "runner_unknown"
    TIMEOUT = "timeout"
    MEMORY_LIMIT = "memory_limit"
    CPU_LIMIT = "cpu_limit"
    SIGNALLED = "signalled"
    INTERRUPTED = "interrupted"
    SANDBOX_UNAVAILABLE = "sandbox_unavailable"
    NETWORK_UNAVAILABLE = "network_unavailable"
    PROJECT_CHANGED = "project_changed"
    BEFORE_FAILED = "before_failed"
    AFTER_FAILED = "after_failed"
    PATTERN_TIMED_OUT = "pattern_timed_out"
    SCRATCH_FULL = "scratch_full"
    WORKER_CRASHED = "worker_crashed"
    HARNESS = "harness"

    SKIP_IF_MISSING = "skip_if_missing"
    NEED_NOT_PASSED = "need_not_passed"
    NOTHING_TO_VERIFY = "nothing_to_verify"
    SKIPPED_BY_PYTEST = "skipped_by_pytest"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason against a pass. `kind` is a `ReasonKind` or a plugged-in judge's own word."""

    kind: str
    message: str
    path: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give `{kind, message}` and `path` where there is one."""
        plain: dict[str, Any] = {"kind": str(self.kind), "message": self.message}
        return plain if self.path is None else {**plain, "path": self.path}

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Reason:
        """Read back what `to_dict` gave; unknown keys are tolerated."""
        return cls(str(mapping["kind"]), str(mapping["message"]), mapping.get("path"))


@dataclass(frozen=True, slots=True)
class GoldenProjectResult:
    """The judgement on one golden project, already redacted.

    `exit_code` is None when nothing ran. `attempts` counts executions. `is_flaky` tells a pass after a failed attempt.
    `regression_kind` is `new` or `known` where a base was compared. `quarantined` holds the quarantine's reason while
    it lasts: the result is reported and does not fail the gate. `trajectory` is the trajectory as plain values but for
    its `steps`, which stand beside it; `known` is what earlier runs have taught about this failure.
    """

    name: str
    path: str
    status: ResultStatus
    exit_code: int | None = None
    output_summary: str = ""
    error_message: str | None = None
    execution_time_seconds: float = 0.0
    _: KW_ONLY
    reasons: tuple[Reason, ...] = ()
    attempts: int = 1
    is_flaky: bool = False
    regression_kind: str | None = None
    steps_total: int = 0
    steps: tuple[Mapping[str, Any], ...] = ()
    write_set: WriteSet = field(default_factory=WriteSet)
    log_path: str | None = None
    kept_view: str | None = None
    warnings: tuple[str, ...] = ()
    quarantined: str | None = None
    command: tuple[str, ...] = ()
    trajectory: Mapping[str, Any] | None = None
    known: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", ResultStatus(self.status))
        for name in ("reasons", "steps", "warnings", "command", "known"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def trajectory_id(self) -> str | None:
        """The id of its trajectory; None when it left none."""
        return None if self.trajectory is None else str(self.trajectory["id"])

    @property
    def is_regression(self) -> bool:
        """Tell whether this result fails the gate: FAILED or ERROR outside a quarantine, or a need that did not pass."""
        if self.quarantined is not None:
            return False
        if self.status is ResultStatus.SKIPPED:
            return any(reason.kind == ReasonKind.NEED_NOT_PASSED for reason in self.reasons)
        return self.status in {ResultStatus.FAILED, ResultStatus.ERROR}

    def to_dict(self) -> dict[str, Any]:
        """Give the result as in the gate report (`--golden-json`); JSON-safe when the steps are."""
        return {
            "name": self.name,
            "path": self.path,
            "status": str(self.status),
            "is_regression": self.is_regression,
            "exit_code": self.exit_code,
            "reasons": [reason.to_dict() for reason in self.reasons],
            "output_summary": self.output_summary,
            "error_message": self.error_message,
            "execution_time_seconds": self.execution_time_seconds,
            "attempts": self.attempts,
            "is_flaky": self.is_flaky,
            "regression_kind": self.regression_kind,
            "quarantined": self.quarantined,
            "steps_total": self.steps_total,
            "steps": [dict(step) for step in self.steps],
            "write_set": self.write_set.to_dict(),
            "warnings": list(self.warnings),
            "command": list(self.command),
            "log_path": self.log_path,
            "kept_view": self.kept_view,
            "trajectory_id": self.trajectory_id,
            "trajectory": None if self.trajectory is None else dict(self.trajectory),
            "known": [dict(memory) for memory in self.known],
        }

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> GoldenProjectResult:
        """Read back what `to_dict` gave; unknown keys are tolerated."""
        known = {key: mapping[key] for key in _PLAIN_FIELDS if key in mapping}
        return cls(
            **known,
            status=ResultStatus(mapping["status"]),
            reasons=tuple(Reason.from_dict(reason) for reason in mapping.get("reasons", ())),
            steps=tuple(mapping.get("steps", ())),
            write_set=WriteSet.from_dict(mapping.get("write_set", {})),
            warnings=tuple(mapping.get("warnings", ())),
            command=tuple(mapping.get("command", ())),
            known=tuple(mapping.get("known", ())),
        )


_PLAIN_FIELDS = (
    "name",
    "path",
    "exit_code",
    "output_summary",
    "error_message",
    "execution_time_seconds",
    "attempts",
    "is_flaky",
    "regression_kind",
    "quarantined",
    "steps_total",
    "log_path",
    "kept_view",
    "trajectory",
)


@dataclass(frozen=True, slots=True)
class RegressionCheckResult:
    """All results of a gate run in declaration order; the counts follow from them.

    `failed_count` counts regressions, a need that did not pass among them; a quarantined result counts nowhere but in
    the total.
    """

    results: tuple[GoldenProjectResult, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "results", tuple(self.results))

    @property
    def total_count(self) -> int:
        """How many results there are."""
        return len(self.results)

    @property
    def passed_count(self) -> int:
        """How many are PASSED."""
        return sum(result.status is ResultStatus.PASSED for result in self.results)

    @property
    def failed_count(self) -> int:
        """How many are regressions."""
        return sum(result.is_regression for result in self.results)

    @property
    def skipped_count(self) -> int:
        """How many are SKIPPED and no regression."""
        return sum(result.status is ResultStatus.SKIPPED and not result.is_regression for result in self.results)

    @property
    def regression_detected(self) -> bool:
        """Tell whether any result is a regression."""
        return self.failed_count > 0

    @property
    def final_status(self) -> str:
        """Give `SUCCESS`, or `PARTIAL (n golden project(s) failed)`."""
        return f"PARTIAL ({self.failed_count} golden project(s) failed)" if self.regression_detected else "SUCCESS"

    def to_dict(self) -> dict[str, Any]:
        """Give the counts and the results as in the gate report."""
        return {
            "final_status": self.final_status,
            "total_count": self.total_count,
            "passed_count": self.passed_count,
            "failed_count": self.failed_count,
            "skipped_count": self.skipped_count,
            "regression_detected": self.regression_detected,
            "results": [result.to_dict() for result in self.results],
        }
