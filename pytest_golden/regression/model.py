"""Judgements: a result for one golden project, and all results of a gate run. Values only; `rules.py` judges."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pytest_golden.gateway.model import WriteSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


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
    BASELINE_MISSING = "baseline_missing"
    BASELINE_UNREADABLE = "baseline_unreadable"
    OUTPUT_MISSING = "output_missing"
    OUTPUT_UNREADABLE = "output_unreadable"
    OUTPUT_DIFFERS = "output_differs"
    SLOWDOWN = "slowdown"

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
    UNCHANGED = "unchanged"


#: What an examination of the outputs finds; a readable difference may follow the first line of such a message.
OUTPUT_KINDS = frozenset(
    {
        ReasonKind.BASELINE_MISSING,
        ReasonKind.BASELINE_UNREADABLE,
        ReasonKind.OUTPUT_MISSING,
        ReasonKind.OUTPUT_UNREADABLE,
        ReasonKind.OUTPUT_DIFFERS,
    }
)


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason against a pass. `kind` is a `ReasonKind` or a plugged-in judge's own word."""

    kind: str
    message: str
    path: str | None = None

    @property
    def headline(self) -> str:
        """The one sentence of it: what follows the first line of an output's message is the difference."""
        return self.message.partition("\n")[0] if self.kind in OUTPUT_KINDS else self.message

    def to_dict(self) -> dict[str, Any]:
        """Give `{kind, message}` and `path` where there is one."""
        plain: dict[str, Any] = {"kind": str(self.kind), "message": self.message}
        return plain if self.path is None else {**plain, "path": self.path}

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Reason:
        """Read back what `to_dict` gave; unknown keys are tolerated."""
        return cls(str(mapping["kind"]), str(mapping["message"]), mapping.get("path"))


class OutputChange(StrEnum):
    """What became of one baseline when the present outputs were accepted."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class AcceptedOutput:
    """One output, or one baseline that was removed. `message` says what changed, or why it was refused."""

    path: str
    change: OutputChange
    message: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Give `{path, change, message}`."""
        return {"path": self.path, "change": str(self.change), "message": self.message}

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> AcceptedOutput:
        """Read back what `to_dict` gave; unknown keys are tolerated."""
        return cls(str(mapping["path"]), OutputChange(mapping["change"]), str(mapping.get("message", "")))


@dataclass(frozen=True, slots=True)
class GoldenProjectResult:
    """The judgement on one golden project, already redacted.

    `exit_code` is None when nothing ran. `attempts` counts executions. `is_flaky` tells a pass after a failed attempt.
    `regression_kind` is `new` or `known` where a base was compared. `quarantined` holds the quarantine's reason while
    it lasts: the result is reported and does not fail the gate. `trajectory` is the trajectory as plain values but for
    its `steps`, which stand beside it; `known` is what earlier runs have taught about this failure. `accepted` is None
    unless this run was accepted as the new baseline, of its outputs and of its duration; it may be empty then.
    `output_colours` are the lines of `output_summary` that were printed in colours, by what they are without.
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
    accepted: tuple[AcceptedOutput, ...] | None = None
    output_colours: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", ResultStatus(self.status))
        for name in ("reasons", "steps", "warnings", "command", "known"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.accepted is not None:
            object.__setattr__(self, "accepted", tuple(self.accepted))

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

    @property
    def is_left_out_as_unchanged(self) -> bool:
        """Tell whether it was not run since nothing of it changed: its last run, which passed, stands for it."""
        return any(reason.kind == ReasonKind.UNCHANGED for reason in self.reasons)

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
            "output_colours": dict(self.output_colours),
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
            "accepted": None if self.accepted is None else [output.to_dict() for output in self.accepted],
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
            accepted=_read_accepted(mapping.get("accepted")),
        )


def _read_accepted(plain: Iterable[Mapping[str, Any]] | None) -> tuple[AcceptedOutput, ...] | None:
    return None if plain is None else tuple(map(AcceptedOutput.from_dict, plain))


_PLAIN_FIELDS = (
    "name",
    "path",
    "exit_code",
    "output_summary",
    "output_colours",
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
