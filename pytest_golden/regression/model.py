"""Judgements: a result for one golden project, and all results of a gate run. Values only; the rules are in `rules.py`."""

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
    """Why a result is not PASSED. The first group is the project's news (FAILED), the second ours (ERROR), the third SKIPPED."""

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


@dataclass(frozen=True, slots=True)
class GoldenProjectResult:
    """The judgement on one golden project, already redacted.

    `exit_code` is None when nothing ran. `attempts` counts executions. `is_flaky` tells a pass after a failed attempt.
    `regression_kind` is `new` or `known` where a base was compared. `quarantined` holds the quarantine's reason while
    it lasts: the result is reported and does not fail the gate. `steps` are the trajectory's steps as plain values.
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
    trajectory_id: str | None = None

    @property
    def is_regression(self) -> bool:
        """Tell whether this result fails the gate: FAILED or ERROR outside a quarantine, or a need that did not pass."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Give the result as in the gate report (`--golden-json`)."""
        raise NotImplementedError

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> GoldenProjectResult:
        """Read back what `to_dict` gave; unknown keys are tolerated."""
        raise NotImplementedError
