"""The values of the execution gateway: roles and what each may do, and the facts of an execution."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from pytest_golden.errors import PermissionDeniedError
from pytest_golden.values.checking import check_mapping
from pytest_golden.values.shape import Count, Shape, form, in_form, read_shape

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.gateway.table_difference import TableDifference  # noqa: TC004 - a gate without a difference does not import it
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.trajectory.model import Trajectory  # noqa: TC004 - a gate without a report of steps does not import it

_HIDDEN = form(hidden=True)


class AgentRole(StrEnum):
    """The role of a caller."""

    ENVIRONMENT = "environment"
    PROJECT = "project"
    USER = "user"
    OBSERVER = "observer"
    IMPROVEMENT = "improvement"
    REVIEWER = "reviewer"
    REGRESSION_GUARD = "regression_guard"
    CURRICULUM = "curriculum"
    CONVERGENCE = "convergence"


@dataclass(frozen=True, slots=True)
class Permissions:
    """What a request asks to be allowed."""

    can_execute_tasks: bool = True
    can_edit_source: bool = False


_EXECUTING = {
    AgentRole.ENVIRONMENT,
    AgentRole.PROJECT,
    AgentRole.USER,
    AgentRole.IMPROVEMENT,
    AgentRole.REGRESSION_GUARD,
}
#: The most that each role may have. Only an improvement edits sources: a guard that could would guard nothing.
GRANTED = MappingProxyType(
    {role: Permissions(role in _EXECUTING, can_edit_source=role is AgentRole.IMPROVEMENT) for role in AgentRole}
)


def require_execution(role: AgentRole | str, permissions: Permissions) -> None:
    """Check that a request for an execution stays within what its role may have.

    Raises:
        PermissionDeniedError: the role is unknown, the permissions ask for more than it may have, or they do not
            include executing.
    """
    try:
        role = AgentRole(role)
    except ValueError:
        allowed = ", ".join(AgentRole)
        raise PermissionDeniedError(f"unknown role {role!r}; the roles are {allowed}") from None
    granted = GRANTED[role]
    for name in Permissions.__slots__:
        if getattr(permissions, name) and not getattr(granted, name):
            raise PermissionDeniedError(f"role {role} may not have {name}; ask with {name}=False")
    if not permissions.can_execute_tasks:
        raise PermissionDeniedError(f"role {role} asked to run a pipeline without can_execute_tasks=True")


def choose_request(
    role: AgentRole | str | None,
    permissions: Permissions | None,
    agent_role: AgentRole | str | None,
    agent_permissions: Permissions | None,
) -> tuple[AgentRole | str, Permissions]:
    """Return the role and the permissions of a request. Callers may use either pair of names.

    Raises:
        TypeError: one of them is missing, or both pairs of names are used.
    """
    names = "`role` and `permissions`, or `agent_role` and `agent_permissions`"
    given = [pair for pair in ((role, permissions), (agent_role, agent_permissions)) if pair != (None, None)]
    if len(given) > 1:
        raise TypeError(f"run_pipeline() takes {names}: give one of the two pairs, not both")
    role, permissions = given[0] if given else (None, None)
    if role is None or permissions is None:
        raise TypeError(f"run_pipeline() needs a role and permissions: give {names}")
    return role, permissions


class Ending(StrEnum):
    """How an execution ended."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMEOUT = "timeout"
    MEMORY_LIMIT = "memory_limit"
    CPU_LIMIT = "cpu_limit"
    PROCESS_LIMIT = "process_limit"
    DISK_LIMIT = "disk_limit"
    INTERRUPTED = "interrupted"
    NOT_STARTED = "not_started"


class Problem(StrEnum):
    """Why the harness could not run a pipeline, or cannot vouch for its run, apart from `Ending`."""

    PATH_NOT_FOUND = "path_not_found"
    PATH_NOT_ALLOWED = "path_not_allowed"
    PERMISSION_DENIED = "permission_denied"
    COMMAND_NOT_FOUND = "command_not_found"
    RUNNER_UNKNOWN = "runner_unknown"
    SANDBOX_UNAVAILABLE = "sandbox_unavailable"
    NETWORK_UNAVAILABLE = "network_unavailable"
    BEFORE_FAILED = "before_failed"
    AFTER_FAILED = "after_failed"
    PROJECT_CHANGED = "project_changed"
    SCRATCH_FULL = "scratch_full"
    SKIP_IF_MISSING = "skip_if_missing"
    HARNESS = "harness"


class PatternVerdict(StrEnum):
    """What the search for an expected error found in the whole output, before redaction."""

    FOUND = "found"
    ABSENT = "absent"
    TIMED_OUT = "timed_out"


@dataclass(frozen=True, slots=True)
class WrittenFile(Shape):
    """One file or symlink that a pipeline created or changed.

    `kind` is `file`, `symlink` or `mode` (only the permission bits changed). `sha256` is the hex digest of the content, or
    of a symlink's target text. It is empty if the file was not read; the outcome's problem says why.
    """

    path: str = field(metadata=_HIDDEN)
    kind: str = field(metadata=form(schema={"enum": ["file", "symlink", "mode"]}))
    size_bytes: Count
    sha256: str


@dataclass(frozen=True, slots=True)
class WriteSet(Shape):
    """Every path a pipeline created, changed or removed in its view, relative to project_dir, sorted, with `/`.

    `files` gives kind, size and content hash of each created or changed path.
    """

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    files: Mapping[str, WrittenFile] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("created", "changed", "removed"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> WriteSet:
        """Return the value of which `to_dict` made this form."""
        rest = dict(mapping)
        files = check_mapping("files", rest.pop("files", {}))
        return read_shape(
            cls, rest, files={path: read_shape(WrittenFile, facts, path=path) for path, facts in files.items()}
        )


def import_table_types() -> Mapping[str, Any]:
    """Return what the annotations of a finding name, once one is read; a gate without a difference does not import it."""
    from pytest_golden.gateway.table_difference import TableDifference

    return {"TableDifference": TableDifference}


@dataclass(frozen=True, slots=True)
class OutputFinding(Shape):
    """A problem of a file that was written, or should have been: `kind` is a word of `ReasonKind`.

    The first line of `message` is one sentence; a readable difference may follow. `table` is the difference of a table, as values.
    """

    kind: str
    message: str
    path: str | None = None
    table: TableDifference | None = field(default=None, metadata=form(unless_none=True))

    @staticmethod
    def _import_types() -> Mapping[str, Any]:
        return import_table_types()


@dataclass(frozen=True, slots=True)
class PipelineOutcome(Shape):
    """The facts of one execution.

    `duration_seconds` is the pipeline's own time. `prepare_seconds` is the time to make its view, to run `before:` and `after:` and to
    clean up; `compare_seconds` the time to find the written files and compare them. `disk_bytes` is the written size, measured only with a
    `disk_limit`. `exit_code` is the pipeline's own, the negative signal number if a signal ended it, and None if it never started.
    `stdout` and `stderr` are redacted and keep the beginning and the end of the output (`stdout_bytes`, `stderr_bytes` in
    total). `sealed` tells that the pipeline ran in namespaces, where a death by signal n is
    reported as exit code 128+n. `pattern_verdict` is the result of the search for `specific_error:` in the whole output.
    `found_texts` are the texts of `stdout:` and `stderr:` that are in the whole output; None if nothing was searched.
    `output_findings` are the findings of `examine`, if the gateway received one. `coloured_lines` are the lines of both
    streams that were printed in colours, by their text without colours.
    """

    ending: Ending
    exit_code: int | None = None
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    duration_seconds: float = 0.0
    prepare_seconds: float = 0.0
    compare_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    disk_bytes: int = 0
    stdout: str = ""
    stderr: str = ""
    write_set: WriteSet = WriteSet()
    trajectory: Trajectory | None = None
    message: str = ""
    problem: Problem | None = None
    sealed: bool = False
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    pattern_verdict: PatternVerdict | None = None
    found_texts: Mapping[str, tuple[str, ...]] | None = None
    changed_underneath: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    log_path: str | None = None
    kept_view: str | None = None
    output_findings: tuple[OutputFinding, ...] = ()
    coloured_lines: Mapping[str, str] = field(default_factory=dict)
    engine_files: tuple[str, ...] = ()

    @staticmethod
    def _import_types() -> Mapping[str, Any]:
        from pytest_golden.trajectory.model import Trajectory

        return {"Trajectory": Trajectory}

    def __post_init__(self) -> None:
        # A plugged-in gateway may use the plain words.
        settle = object.__setattr__
        settle(self, "ending", Ending(self.ending))
        settle(self, "problem", None if self.problem is None else Problem(self.problem))
        settle(self, "pattern_verdict", None if self.pattern_verdict is None else PatternVerdict(self.pattern_verdict))
        for name in ("changed_underneath", "warnings", "command", "output_findings", "engine_files"):
            settle(self, name, tuple(getattr(self, name)))


@dataclass(frozen=True, slots=True)
class RunnerCommand:
    """The command of a pipeline. `{path}` in `argv` stands for the pipeline's absolute path inside the view.

    `environment` is added to the clean one. `step_readers` names the readers for the traces that it leaves.
    `engine_files` are patterns of the engine's own files; they are never unexpected. `is_incremental` means
    that the engine skips work that is already done, so it sees only tracked files unless the manifest says otherwise.
    `list_data` returns the data that the engine tracks outside git, relative to the project's folder. It receives that folder and the tracked
    files. `hint` is shown if the pipeline fails; empty if there is nothing to say.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    step_readers: tuple[str, ...] = ()
    engine_files: tuple[str, ...] = ()
    is_incremental: bool = False
    list_data: Callable[[Path, Collection[str]], Iterable[str]] | None = None
    hint: str = ""

    def sees_tracked_files(self, view: str) -> bool:
        """Tell whether a project's `view` shows only tracked files; with `auto`, this holds if git tracks the project."""
        return view == "tracked" or (view == "auto" and self.is_incremental)

    def __post_init__(self) -> None:
        object.__setattr__(self, "argv", tuple(self.argv))
        object.__setattr__(self, "step_readers", tuple(self.step_readers))
        object.__setattr__(self, "engine_files", tuple(self.engine_files))


@dataclass(frozen=True, slots=True)
class GatewayAbilities(Shape):
    """What the gateway uses on this machine, and why.

    `view` is `overlay` or `copy`; `seal` is `namespaces` or `none`; `limits` names the limits that are enforced;
    `network` is `own`, or `host` if pipelines with `network: true` reach the servers of this machine;
    `limits_by` is `cgroup` if the kernel enforces memory and process limits. The rest are
    texts for people, empty if there is nothing to say: the location of scratch, why it is not the better view, seal or
    network, how to get that, and the path of the sandbox program.
    """

    view: str
    seal: str
    limits: tuple[str, ...]
    network: str = "host"
    limits_by: str = "polling"
    scratch: str = field(default="", metadata=_HIDDEN)
    view_reason: str = field(default="", metadata=_HIDDEN)
    seal_reason: str = field(default="", metadata=_HIDDEN)
    network_reason: str = field(default="", metadata=_HIDDEN)
    advice: str = field(default="", metadata=_HIDDEN)
    program: str = field(default="", metadata=_HIDDEN)

    @property
    def summary(self) -> str:
        """Return view, seal and the enforcer of the limits in a few words."""
        seal = "no seal" if self.seal == "none" else f"sealed by {self.seal}"
        return f"{self.view} view, {seal}, limits by {self.limits_by}"

    @property
    @in_form()
    def reasons(self) -> tuple[str, ...]:
        """Return everything there is to say as sentences; advice comes last."""
        scratch = f"scratch in {self.scratch}" if self.scratch else ""
        advice = f"to get better: {self.advice}" if self.advice else ""
        return tuple(filter(None, (self.view_reason, self.seal_reason, self.network_note, scratch, advice)))

    @property
    def network_note(self) -> str:
        """Return the sentence about a network that is not its own; empty if there is nothing to say."""
        told = f"pipelines with `network: true` reach the servers of this machine: {self.network_reason}"
        return told if self.network_reason else ""


class Gateway(Protocol):
    """Anything that executes pipelines: ours, or one plugged in by `pytest_golden_gateway`.

    A gateway that can also have outputs examined takes another keyword, `examine`, as `ExecutionGateway.run_pipeline` does.
    """

    def run_pipeline(
        self, project: GoldenProjectConfig, *, role: AgentRole, permissions: Permissions
    ) -> PipelineOutcome:
        """Execute one golden project and return the facts; never raises for what the project does."""
