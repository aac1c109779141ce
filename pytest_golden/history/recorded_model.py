"""Recorded runs, results and projects as faces show them: lines of lists, details, explanations, a project's history."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.gateway.execution import last_lines
from pytest_golden.history.trends import describe_streak, flakiness, usual_duration
from pytest_golden.regression.model import OUTPUT_KINDS
from pytest_golden.regression.slowdown import DurationTrend
from pytest_golden.regression.verdict import RunStatus
from pytest_golden.regression.wording import find_failing_step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from pytest_golden.history.changes import PastResult
    from pytest_golden.learning.learned_pages import ListedLesson
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult, Reason, ResultStatus
    from pytest_golden.regression.verdict import RunVerdict

#: The kind under which a result keeps the changes since the project's last pass.
CHANGED = "changed_since_pass"
_LAST_LINES = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """A gate run. Without `finished_at` it still runs, or was killed and no other run has found it since.

    `verdict` is what the run ended with. Until then it has no status and counts the results so far.
    `selected_count` counts the projects that were to run. `is_own` is False for one in a worktree that was made for it, as
    the base of a verification: no turn in what people ran before and after.
    """

    entry_id: str
    started_at: datetime
    finished_at: datetime | None
    verdict: RunVerdict
    commit: str | None
    branch: str | None
    dirty: bool | None
    manifest: str
    host: str
    selected_count: int
    is_own: bool

    @property
    def is_interrupted(self) -> bool:
        """Tell whether it was stopped, or found killed."""
        return self.verdict.status is RunStatus.INTERRUPTED

    @property
    def is_running(self) -> bool:
        """Tell whether it has no end yet; `ListedRun` says what that may mean."""
        return self.verdict.status is None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name, `id` (the entry's), `is_running`, and the verdict's fields as in the report."""
        moments = {
            "started_at": iso_utc(self.started_at),
            "finished_at": None if self.finished_at is None else iso_utc(self.finished_at),
        }
        told = asdict(self) | moments | {"is_running": self.is_running, "is_interrupted": self.is_interrupted}
        del told["verdict"]
        return {"id": self.entry_id, **self.verdict.to_dict(), **told}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedResult:
    """One project's result in a gate run. `message` is the first reason, None for a pass; `number` counts as they came in."""

    number: int
    entry_id: str
    name: str
    status: ResultStatus
    is_regression: bool
    exit_code: int | None
    execution_time_seconds: float
    attempts: int
    is_flaky: bool
    regression_kind: str | None
    quarantined: str | None
    message: str | None
    pass_streak: int
    created_at: datetime

    def to_dict(self) -> dict[str, Any]:
        """Return all fields but `number`, which is the store's own, under their own names, JSON-safe."""
        told = asdict(self) | {"status": self.status.value, "created_at": iso_utc(self.created_at)}
        del told["number"]
        return told


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """What is wrong with one output: a sentence, and a readable difference, empty if there is none."""

    path: str | None
    kind: str
    message: str
    difference: str

    def to_dict(self) -> dict[str, Any]:
        """Return all fields."""
        return {"path": self.path, "kind": self.kind, "message": self.message, "difference": self.difference}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedResult:
    """One project's result in a gate run. `result` has its steps, trajectory and what was known of its failure then.

    `gate` are the facts of its run's report. `environment` is what it ran in: interpreter, platform, processor, view, seal;
    `distributions` the installed ones with their versions. `declaration` is the manifest's then. `previous_entry_id` and
    `next_entry_id` are the project's results in people's own runs around it. `has_log` tells that the full log, whose place
    is in the result, still lies on this machine. `output_summary` of the result has head and tail of its output.
    """

    entry_id: str
    run_id: str
    created_at: datetime
    pass_streak: int
    is_own: bool
    result: GoldenProjectResult
    gate: Mapping[str, Any]
    environment: Mapping[str, Any] = field(default_factory=dict)
    distributions: Mapping[str, str] = field(default_factory=dict)
    declaration: Mapping[str, Any] = field(default_factory=dict)
    previous_entry_id: str | None = None
    next_entry_id: str | None = None
    has_log: bool = False

    @property
    def differences(self) -> tuple[OutputDifference, ...]:
        """What is wrong with its outputs."""
        return tuple(read_differences(self.result.reasons))

    @property
    def failing_step(self) -> Mapping[str, Any] | None:
        """The last step that says that it failed."""
        return find_failing_step(self.result.steps)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the result as in the gate report, and those of this value beside them, JSON-safe."""
        return {
            **self.result.to_dict(),
            "entry_id": self.entry_id,
            "run_id": self.run_id,
            "created_at": iso_utc(self.created_at),
            "pass_streak": self.pass_streak,
            "is_own": self.is_own,
            "failing_step": self.failing_step,
            "differences": [one.to_dict() for one in self.differences],
            "gate": dict(self.gate),
            "environment": dict(self.environment),
            "distributions": dict(self.distributions),
            "declaration": dict(self.declaration),
            "previous_entry_id": self.previous_entry_id,
            "next_entry_id": self.next_entry_id,
            "has_log": self.has_log,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureExplanation:
    """Why a project's last result is what it is. `status` is None where it has none; of a pass there is nothing to explain.

    `changed_since_last_pass` is what the gate found when it failed: `lines` for people, and what they were made of. `known`
    has alike what earlier runs and lessons say of it.
    """

    project: str
    status: ResultStatus | None = None
    entry_id: str | None = None
    run_id: str | None = None
    created_at: datetime | None = None
    reasons: tuple[Reason, ...] = ()
    failing_step: Mapping[str, Any] | None = None
    output_tail: str = ""
    changed_since_last_pass: Mapping[str, Any] | None = None
    known: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, recorded: RecordedResult, more: Iterable[Mapping[str, Any]] = ()) -> FailureExplanation:
        """Explain a result; `more` is what is known of it besides what is recorded with it."""
        result = recorded.result
        known = [one for one in result.known if one.get("kind") != CHANGED]
        changed = next((one for one in result.known if one.get("kind") == CHANGED), None)
        told = {_name_lesson(one) for one in known}
        return cls(
            project=result.name,
            status=result.status,
            entry_id=recorded.entry_id,
            run_id=recorded.run_id,
            created_at=recorded.created_at,
            reasons=result.reasons,
            failing_step=recorded.failing_step if result.status.is_failure else None,
            output_tail=last_lines(result.output_summary, _LAST_LINES),
            changed_since_last_pass=changed,
            known=(*known, *(one for one in more if _name_lesson(one) not in told)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all fields under their own names, JSON-safe."""
        return {
            "project": self.project,
            "status": None if self.status is None else self.status.value,
            "entry_id": self.entry_id,
            "run_id": self.run_id,
            "created_at": None if self.created_at is None else iso_utc(self.created_at),
            "reasons": [reason.to_dict() for reason in self.reasons],
            "failing_step": None if self.failing_step is None else dict(self.failing_step),
            "output_tail": self.output_tail,
            "changed_since_last_pass": None
            if self.changed_since_last_pass is None
            else dict(self.changed_since_last_pass),
            "known": [dict(one) for one in self.known],
        }


def read_differences(reasons: Iterable[Reason]) -> Iterator[OutputDifference]:
    """Yield those reasons of a result that are about outputs."""
    for reason in reasons:
        if reason.kind in OUTPUT_KINDS:
            difference = reason.message[len(reason.headline) :].strip("\n")
            yield OutputDifference(reason.path, str(reason.kind), reason.headline, difference)


def _name_lesson(known: Mapping[str, Any]) -> Any:
    lesson = known.get("lesson")
    return lesson.get("id") if isinstance(lesson, dict) else id(known)


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
        """Return what is declared, the last status, and the figures, JSON-safe; `recent` are short forms, newest first."""
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
        """Return all fields under their own names, JSON-safe."""
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
        """Return what is declared, the fields of `golden history --json`, the last status, difference and lessons, JSON-safe."""
        return {
            **describe_declared(self.history.name, self.declared),
            **self.history.to_dict(),
            "last_status": None if self.last_status is None else self.last_status.value,
            "last_difference": None if self.last_difference is None else self.last_difference.to_dict(),
            "lessons": [one.to_dict() for one in self.lessons],
        }


def describe_declared(name: str, declared: GoldenProjectConfig | None) -> dict[str, Any]:
    """Return `{name, path, description, expected_outcome, is_declared}`, None for what is not known."""
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


@dataclass(frozen=True, slots=True)
class ProjectTrend:
    """What the next run's duration is judged by: passes like the last one, the declared factor, and the limit of both."""

    durations: DurationTrend | None
    max_slowdown: float | None

    @property
    def limit_seconds(self) -> float | None:
        """The limit; None where nothing is declared, or too few passes are known."""
        if self.max_slowdown is None or self.durations is None or not self.durations.is_enough:
            return None
        return self.durations.limit_seconds(self.max_slowdown)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values."""
        durations = DurationTrend(0, 0.0, 0.0) if self.durations is None else self.durations
        told = durations.to_dict() if durations.pass_count else {**dict.fromkeys(durations.to_dict()), "pass_count": 0}
        return {**told, "max_slowdown": self.max_slowdown, "limit_seconds": self.limit_seconds}


@dataclass(frozen=True, slots=True)
class ProjectHistory:
    """A project's newest results, which stand first. `runs` are those that are shown; `recent` may have more of them.

    `trend` is None where nobody has asked for it.
    """

    name: str
    runs: tuple[PastResult, ...]
    recent: tuple[PastResult, ...]
    trend: ProjectTrend | None = None

    @property
    def streak(self) -> str:
        """How the newest result fits in with those before it; empty where it did not run to its end."""
        return describe_streak(self.recent)

    def to_dict(self) -> dict[str, Any]:
        """Return `{name, runs, streak, flakiness, median_seconds, mad_seconds, trend}`, JSON-safe."""
        usual = usual_duration(self.runs)
        return {
            "name": self.name,
            "runs": [write_past_result(result) for result in self.runs],
            "streak": self.streak,
            "flakiness": flakiness(self.runs),
            "median_seconds": usual.median_seconds,
            "mad_seconds": usual.mad_seconds,
            **({} if self.trend is None else {"trend": self.trend.to_dict()}),
        }


def write_past_result(result: PastResult) -> dict[str, Any]:
    """Return JSON-safe values, without the project's name."""
    plain = {name: getattr(result, name) for name in result.__slots__ if name != "project"}
    return {**plain, "status": result.status.value, "created_at": iso_utc(result.created_at)}
