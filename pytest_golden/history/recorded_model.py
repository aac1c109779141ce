"""Recorded runs, results and projects as faces show them: list rows, details, explanations, the history of a project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pytest_golden.gateway.execution import last_lines
from pytest_golden.history.changes import PastResult
from pytest_golden.history.trends import NO_DURATION, UsualDuration, describe_streak, flakiness, usual_duration
from pytest_golden.learning.learned_pages import ListedLesson
from pytest_golden.manifest.model import GoldenProjectConfig
from pytest_golden.regression.model import OUTPUT_KINDS, GoldenProjectResult, Reason, ResultStatus
from pytest_golden.regression.slowdown import DurationTrend
from pytest_golden.regression.verdict import RunStatus, RunVerdict
from pytest_golden.regression.wording import find_failing_step
from pytest_golden.values.shape import Shape, form, in_form

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


#: The kind under which a result keeps the changes since the project's last pass.
CHANGED = "changed_since_pass"
_LAST_LINES = 15
_HIDDEN, _MERGED = form(hidden=True), form(merged=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun(Shape):
    """A gate run. Without `finished_at`, it is still running, or it was killed and no later run has noticed yet.

    `verdict` is the final verdict. Until then it has no status, and counts the results so far.
    `selected_count` is the number of selected projects. `is_own` is False for a run in a worktree that was made for it, such as
    the base of a verification; such runs are not part of the sequence of people's own runs.
    """

    entry_id: str
    started_at: datetime
    finished_at: datetime | None
    verdict: RunVerdict = field(metadata=_MERGED)
    commit: str | None
    branch: str | None
    dirty: bool | None
    manifest: str
    host: str
    selected_count: int
    is_own: bool

    @property
    @in_form(first=True)
    def id(self) -> str:
        """The id of its journal entry."""
        return self.entry_id

    @property
    @in_form()
    def is_interrupted(self) -> bool:
        """Tell whether it was interrupted, or killed."""
        return self.verdict.status is RunStatus.INTERRUPTED

    @property
    @in_form()
    def is_running(self) -> bool:
        """Tell whether it has not ended; see `ListedRun` for what this can mean."""
        return self.verdict.status is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedResult(Shape):
    """One project's result in a gate run. `message` is the first reason, None for a pass. `number` is its position in the run."""

    number: int = field(metadata=_HIDDEN)
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


@dataclass(frozen=True, slots=True)
class OutputDifference(Shape):
    """What is wrong with one output: a sentence, and a readable difference, which may be empty."""

    path: str | None
    kind: str
    message: str
    difference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedResult(Shape):
    """One project's result in a gate run. `result` has its steps, its trajectory and what was known about the failure at the time.

    `gate` are facts from the run's report. `environment` are interpreter, platform, processor, view and seal.
    `distributions` are the installed packages and their versions. `declaration` is the declaration in the manifest of that time.
    `previous_entry_id` and `next_entry_id` are the project's results in the neighbouring runs that people started. `has_log` tells that the full
    log still exists on this machine. `output_summary` of the result is the beginning and the end of its output.
    """

    entry_id: str
    run_id: str
    created_at: datetime
    pass_streak: int
    is_own: bool
    result: GoldenProjectResult = field(metadata=_MERGED)
    gate: Mapping[str, Any]
    environment: Mapping[str, Any] = field(default_factory=dict)
    distributions: Mapping[str, str] = field(default_factory=dict)
    declaration: Mapping[str, Any] = field(default_factory=dict)
    previous_entry_id: str | None = None
    next_entry_id: str | None = None
    has_log: bool = False

    @property
    @in_form()
    def differences(self) -> tuple[OutputDifference, ...]:
        """The problems of its outputs."""
        return tuple(read_differences(self.result.reasons))

    @property
    @in_form()
    def failing_step(self) -> Mapping[str, Any] | None:
        """The last step with an error."""
        return find_failing_step(self.result.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureExplanation(Shape):
    """Why a project's last result is not a pass. `status` is None if it has no result. A pass has nothing to explain.

    `changed_since_last_pass` is what the gate found out at the failure: `lines` for people, and the facts behind them. `known`
    has the same form, for what earlier runs and lessons say about the failure.
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

    @property
    @in_form(first=True)
    def explanation(self) -> str:
        """The same as text, one line each: the status, the reasons, the failing step, the changes, and what is known."""
        if self.status is None:
            return f"{self.project} has no result yet"
        if not self.status.is_failure:
            told = "; ".join(reason.message for reason in self.reasons)
            return f"{self.project} is {self.status}{f': {told}' if told else ''}"
        lines = [f"{self.project} is {self.status}", *(reason.message for reason in self.reasons)]
        step = self.failing_step or {}
        if step.get("content"):
            error = str((step.get("metadata") or {}).get("error") or "").strip().partition("\n")[0]
            lines.append(f"it failed in the step {step['content']}{f': {error}' if error else ''}")
        for one in filter(None, (self.changed_since_last_pass, *self.known)):
            lines += map(str, one.get("lines") or ())
        return "\n".join(lines)

    @classmethod
    def of(cls, recorded: RecordedResult, lessons: Iterable[Mapping[str, Any]] = ()) -> FailureExplanation:
        """Explain a result. `lessons` are the ones that apply now; a recorded lesson that a person has rejected since is left out."""
        result = recorded.result
        now = {_name_lesson(one): one for one in lessons}
        changed = next((one for one in result.known if one.get("kind") == CHANGED), None)
        known = [
            one for one in result.known if one is not changed and ("lesson" not in one or _name_lesson(one) in now)
        ]
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
            known=(*known, *(one for name, one in now.items() if name not in told)),
        )


def read_differences(reasons: Iterable[Reason]) -> Iterator[OutputDifference]:
    """Yield the reasons of a result that are about outputs."""
    for reason in reasons:
        if reason.kind in OUTPUT_KINDS:
            yield OutputDifference(reason.path, str(reason.kind), reason.headline, reason.difference)


def _name_lesson(known: Mapping[str, Any]) -> Any:
    lesson = known.get("lesson")
    return lesson.get("id") if isinstance(lesson, dict) else id(known)


@dataclass(frozen=True, slots=True)
class Declaration(Shape):
    """The declared facts about a project; None for unknown ones."""

    name: str
    path: str | None
    description: str | None
    expected_outcome: str | None
    is_declared: bool

    @classmethod
    def of(cls, name: str, declared: GoldenProjectConfig | None) -> Declaration:
        """Return the declared facts about a project, which may no longer be declared."""
        if declared is None:
            return cls(name, None, None, None, is_declared=False)
        return cls(name, declared.path, declared.description, declared.expected_outcome, is_declared=True)


_SHORT_KEYS = (*("entry_id", "run_id", "status", "execution_time_seconds", "is_flaky", "is_interrupted", "created_at"),)


def _shorten(results: tuple[PastResult, ...]) -> list[dict[str, Any]]:
    return [{key: form[key] for key in _SHORT_KEYS} for form in map(PastResult.to_dict, results)]


@dataclass(frozen=True, slots=True)
class ListedProject(Shape):
    """A project with its newest results, newest first and without messages. `declared` is None if it is no longer declared."""

    name: str = field(metadata=_HIDDEN)
    declared: GoldenProjectConfig | None = field(metadata=_HIDDEN)
    recent: tuple[PastResult, ...] = field(
        default=(), metadata=form(write=_shorten, as_type=tuple[Mapping[str, Any], ...])
    )

    @property
    @in_form(merged=True, first=True)
    def declaration(self) -> Declaration:
        """Its declaration."""
        return Declaration.of(self.name, self.declared)

    @property
    @in_form()
    def last_status(self) -> ResultStatus | None:
        """The status of its newest result; None without one."""
        return self.recent[0].status if self.recent else None

    @property
    @in_form()
    def last_entry_id(self) -> str | None:
        """The entry of its newest result; None without one."""
        return self.recent[0].entry_id if self.recent else None

    @property
    @in_form()
    def last_run_at(self) -> datetime | None:
        """When its newest result was recorded; None without one."""
        return self.recent[0].created_at if self.recent else None

    @property
    @in_form()
    def streak(self) -> str:
        """How the newest result compares with the ones before; empty if no result is complete."""
        return describe_streak(self.recent)

    @property
    @in_form()
    def flakiness(self) -> float | None:
        """The share of consecutive results on one commit that differ, among those in `recent`."""
        return flakiness(self.recent)

    @property
    @in_form()
    def median_seconds(self) -> float | None:
        """The usual duration of a pass, among those in `recent`."""
        return usual_duration(self.recent).median_seconds


@dataclass(frozen=True, slots=True)
class PastDifference(Shape):
    """The last result of a project whose outputs differed, with the differences."""

    entry_id: str
    run_id: str
    created_at: datetime
    differences: tuple[OutputDifference, ...]


@dataclass(frozen=True, slots=True)
class ProjectDetails(Shape):
    """The history of a project, the last difference of its outputs, and the newest lessons from it."""

    history: ProjectHistory = field(metadata=_MERGED)
    declared: GoldenProjectConfig | None = field(metadata=_HIDDEN)
    last_difference: PastDifference | None
    lessons: tuple[ListedLesson, ...]

    @property
    @in_form(merged=True, first=True)
    def declaration(self) -> Declaration:
        """Its declaration."""
        return Declaration.of(self.history.name, self.declared)

    @property
    @in_form()
    def last_status(self) -> ResultStatus | None:
        """The status of its newest result; None without one."""
        return self.history.runs[0].status if self.history.runs else None


@dataclass(frozen=True, slots=True)
class ProjectTrend(Shape):
    """The basis for judging the next run's duration: passes in the same environment, the declared factor, and the resulting limit."""

    durations: DurationTrend | None = field(metadata=_HIDDEN)
    max_slowdown: float | None

    @property
    @in_form(first=True)
    def pass_count(self) -> int:
        """The number of these passes."""
        return 0 if self.durations is None else self.durations.pass_count

    @property
    @in_form(merged=True, first=True)
    def usual(self) -> UsualDuration:
        """The usual duration of these passes; None if there are none."""
        known = self.durations
        return UsualDuration(known.median_seconds, known.mad_seconds) if known and known.pass_count else NO_DURATION

    @property
    @in_form()
    def limit_seconds(self) -> float | None:
        """The limit; None if no factor is declared, or if there are too few passes."""
        if self.max_slowdown is None or self.durations is None or not self.durations.is_enough:
            return None
        return self.durations.limit_seconds(self.max_slowdown)


@dataclass(frozen=True, slots=True)
class ProjectHistory(Shape):
    """A project's newest results, newest first. `runs` are the ones to show; `recent` may contain more.

    `trend` is None if it was not requested.
    """

    name: str
    runs: tuple[PastResult, ...]
    recent: tuple[PastResult, ...] = field(metadata=_HIDDEN)
    trend: ProjectTrend | None = field(default=None, metadata=form(unless_none=True))

    @property
    @in_form()
    def streak(self) -> str:
        """How the newest result compares with the ones before; empty if it is not complete."""
        return describe_streak(self.recent)

    @property
    @in_form()
    def flakiness(self) -> float | None:
        """The share of consecutive results on one commit that differ, among those in `runs`."""
        return flakiness(self.runs)

    @property
    @in_form(merged=True)
    def usual(self) -> UsualDuration:
        """The usual duration of a pass, among those in `runs`."""
        return usual_duration(self.runs)
