"""The result of one golden project: its status, its reasons, and what happened to its outputs. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pytest_golden.gateway.model import WriteSet, import_table_types
from pytest_golden.values.shape import Amount, Count, Shape, form, in_form

if TYPE_CHECKING:
    from collections.abc import Collection

    from pytest_golden.gateway.table_difference import TableDifference  # noqa: TC004 - a gate without a difference does not import it
    from pytest_golden.manifest.model import GoldenProjectConfig


class ResultStatus(StrEnum):
    """The judgement in one word."""

    PASSED = "PASSED"
    FAILED = "FAILED"
    ERROR = "ERROR"
    SKIPPED = "SKIPPED"

    @property
    def is_failure(self) -> bool:
        """Tell whether it is FAILED or ERROR."""
        return self in {ResultStatus.FAILED, ResultStatus.ERROR}


class ReasonKind(StrEnum):
    """Why a result is not PASSED: first the reasons of FAILED, then those of ERROR, then those of SKIPPED."""

    EXIT_CODE = "exit_code"
    UNEXPECTED_SUCCESS = "unexpected_success"
    PATTERN_ABSENT = "pattern_absent"
    UNEXPECTED_FILE = "unexpected_file"
    BASELINE_MISSING = "baseline_missing"
    BASELINE_UNREADABLE = "baseline_unreadable"
    OUTPUT_MISSING = "output_missing"
    OUTPUT_UNREADABLE = "output_unreadable"
    OUTPUT_DIFFERS = "output_differs"
    RULE_BROKEN = "rule_broken"
    SLOWDOWN = "slowdown"

    PATH_NOT_FOUND = "path_not_found"
    PATH_NOT_ALLOWED = "path_not_allowed"
    PERMISSION_DENIED = "permission_denied"
    COMMAND_NOT_FOUND = "command_not_found"
    RUNNER_UNKNOWN = "runner_unknown"
    TIMEOUT = "timeout"
    MEMORY_LIMIT = "memory_limit"
    CPU_LIMIT = "cpu_limit"
    PROCESS_LIMIT = "process_limit"
    DISK_LIMIT = "disk_limit"
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


#: Reasons that prevented a run or its judgement, and say nothing about the project itself.
MACHINE_KINDS = frozenset(
    {
        ReasonKind.SANDBOX_UNAVAILABLE,
        ReasonKind.NETWORK_UNAVAILABLE,
        ReasonKind.PROJECT_CHANGED,
        ReasonKind.SCRATCH_FULL,
        ReasonKind.HARNESS,
    }
)
#: Reasons that prevented the start of a pipeline.
START_KINDS = frozenset(
    {
        ReasonKind.PATH_NOT_FOUND,
        ReasonKind.PERMISSION_DENIED,
        ReasonKind.COMMAND_NOT_FOUND,
        ReasonKind.RUNNER_UNKNOWN,
    }
)
#: Reasons that the comparison of outputs finds. A readable difference may follow the first line of their messages.
OUTPUT_KINDS = frozenset(
    {
        ReasonKind.BASELINE_MISSING,
        ReasonKind.BASELINE_UNREADABLE,
        ReasonKind.OUTPUT_MISSING,
        ReasonKind.OUTPUT_UNREADABLE,
        ReasonKind.OUTPUT_DIFFERS,
        ReasonKind.RULE_BROKEN,
    }
)
#: If a result has one of these, no output of the project becomes a baseline.
LACKING_KINDS = frozenset({ReasonKind.OUTPUT_MISSING, ReasonKind.OUTPUT_UNREADABLE, ReasonKind.RULE_BROKEN})


@dataclass(frozen=True, slots=True)
class Reason(Shape):
    """One reason against a pass. `kind` is a `ReasonKind` or the own word of a plugged-in judge.

    `table` is the difference between a table and its baseline, as values.
    """

    kind: str
    message: str
    path: str | None = field(default=None, metadata=form(unless_none=True))
    table: TableDifference | None = field(default=None, metadata=form(unless_none=True))

    @staticmethod
    def _import_types() -> Mapping[str, Any]:
        return import_table_types()

    @property
    def headline(self) -> str:
        """The reason in one sentence, without the difference that may follow the first line of an output's message."""
        return self.message.partition("\n")[0] if self.kind in OUTPUT_KINDS else self.message

    @property
    def difference(self) -> str:
        """The lines of an output's message below the first one; empty if there is no baseline."""
        return "" if self.kind == ReasonKind.BASELINE_MISSING else self.message[len(self.headline) :].strip("\n")


class OutputChange(StrEnum):
    """What happened to one baseline when outputs were accepted."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class AcceptedOutput(Shape):
    """One output, or one baseline that was removed.

    `message` says what changed, or why the output was refused. `allowed` says where the secret is, and why `allow_secret`
    allows it; None if there is no secret.
    """

    path: str
    change: OutputChange
    message: str = ""
    allowed: str | None = field(
        default=None,
        metadata=form(
            unless_none=True, about="Where redaction finds a secret in it, and why allow_secret allows that."
        ),
    )


@dataclass(frozen=True, slots=True)
class GoldenProjectResult(Shape):
    """The judgement on one golden project, already redacted.

    `exit_code` is None if nothing ran. `attempts` counts executions. `is_flaky` means a pass after a failed attempt.
    `regression_kind` is `new` or `known` if a base was compared. `quarantined` holds the quarantine's reason while
    it lasts: the result is reported and does not fail the gate. `trajectory` is the trajectory as plain values, except
    its `steps`, which are a separate field; `known` is what earlier runs taught about this failure. `accepted` is None
    unless this run's outputs and duration were accepted as the new baseline; it can be empty then.
    `narrowed_to` are the changed files if only the part that depends on them ran, `left_out` the outputs that were not compared then.
    `unwatched` are the first tables that it made and that no output names, as `wh.duckdb/main.orders`.
    `output_colours` maps lines of `output_summary`, without colours, to their coloured form.
    """

    name: str
    path: str
    status: ResultStatus
    exit_code: int | None = field(
        default=None, metadata=form(about="Negative: the signal that ended it. null: never ran.")
    )
    output_summary: str = ""
    error_message: str | None = None
    execution_time_seconds: Amount = 0.0
    _: KW_ONLY
    prepare_seconds: Amount = field(
        default=0.0, metadata=form(about="Making the view, before:, after: and cleaning up, of the last attempt.")
    )
    compare_seconds: Amount = field(
        default=0.0, metadata=form(about="Finding and comparing what the last attempt wrote.")
    )
    reasons: tuple[Reason, ...] = ()
    attempts: Count = 1
    is_flaky: bool = False
    regression_kind: str | None = field(default=None, metadata=form(schema={"enum": ["new", "known", None]}))
    steps_total: Count = 0
    steps: tuple[Mapping[str, Any], ...] = field(default=(), metadata=form(write=list))
    write_set: WriteSet = field(default_factory=WriteSet)
    log_path: str | None = None
    kept_view: str | None = None
    warnings: tuple[str, ...] = ()
    quarantined: str | None = field(default=None, metadata=form(about="The quarantine's reason while it lasts."))
    command: tuple[str, ...] = ()
    trajectory: Mapping[str, Any] | None = field(
        default=None, metadata=form(write=dict, about="The trajectory without its steps.")
    )
    known: tuple[Mapping[str, Any], ...] = field(
        default=(), metadata=form(write=list, about="What earlier runs tell about a failure.")
    )
    accepted: tuple[AcceptedOutput, ...] | None = field(
        default=None,
        metadata=form(about="null unless --golden-update made this run the new baseline, of its duration too."),
    )
    narrowed_to: tuple[str, ...] = field(
        default=(),
        metadata=form(about="The changed files, if --golden-changed ran only the part that depends on them."),
    )
    left_out: tuple[str, ...] = field(default=(), metadata=form(about="The outputs that a narrowed run left out."))
    unwatched: tuple[str, ...] = field(
        default=(), metadata=form(about="Tables of its databases that no output names, 500 at most.")
    )
    output_colours: Mapping[str, str] = field(
        default_factory=dict, metadata=form(about="Lines of the summary as a terminal coloured them.")
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", ResultStatus(self.status))
        for name in ("reasons", "steps", "warnings", "command", "known", "narrowed_to", "left_out", "unwatched"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.accepted is not None:
            object.__setattr__(self, "accepted", tuple(self.accepted))

    @property
    @in_form()
    def trajectory_id(self) -> str | None:
        """The id of its trajectory; None if there is none."""
        return None if self.trajectory is None else str(self.trajectory["id"])

    @property
    @in_form()
    def is_regression(self) -> bool:
        """Tell whether this result fails the gate: FAILED or ERROR outside a quarantine, or a need that did not pass."""
        if self.quarantined is not None:
            return False
        if self.status is ResultStatus.SKIPPED:
            return self.has_reason({ReasonKind.NEED_NOT_PASSED})
        return self.status.is_failure

    @property
    def is_narrowed(self) -> bool:
        """Tell whether only a part of the project ran, because nothing that the rest depends on has changed."""
        return bool(self.narrowed_to)

    @property
    def is_left_out_as_unchanged(self) -> bool:
        """Tell whether it was not run because nothing of it changed since its last run, which passed."""
        return self.has_reason({ReasonKind.UNCHANGED})

    @property
    def is_interrupted(self) -> bool:
        """Tell whether it was stopped before its end."""
        return self.has_reason({ReasonKind.INTERRUPTED})

    def has_reason(self, kinds: Collection[str]) -> bool:
        """Tell whether it has a reason of one of these kinds."""
        return any(reason.kind in kinds for reason in self.reasons)


def result_without_run(
    project: GoldenProjectConfig, status: ResultStatus, reason: Reason, attempts: int = 0
) -> GoldenProjectResult:
    """Return the result of a project that was not run, or whose run left nothing."""
    return GoldenProjectResult(
        name=project.name,
        path=str(project.path),
        status=status,
        error_message=reason.message,
        reasons=(reason,),
        attempts=attempts,
    )


def error_result(project: GoldenProjectConfig, kind: ReasonKind, message: str) -> GoldenProjectResult:
    """Return the ERROR result of a project whose run left none, for example because its worker crashed."""
    return result_without_run(project, ResultStatus.ERROR, Reason(kind, message), attempts=1)


def was_interrupted(reasons: Any) -> bool:
    """Tell from a result's stored reasons whether it was stopped before its end; ignore invalid reasons."""
    return any(isinstance(reason, dict) and reason.get("kind") == ReasonKind.INTERRUPTED for reason in reasons or ())
