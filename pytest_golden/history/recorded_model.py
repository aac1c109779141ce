"""Recorded runs, results and projects as faces show them: lines of lists, details, explanations, a project's history."""

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
    """A gate run. Without `finished_at` it still runs, or was killed and no other run has found it since.

    `verdict` is what the run ended with. Until then it has no status and counts the results so far.
    `selected_count` counts the projects that were to run. `is_own` is False for one in a worktree that was made for it, as
    the base of a verification: no turn in what people ran before and after.
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
        """The id of its entry."""
        return self.entry_id

    @property
    @in_form()
    def is_interrupted(self) -> bool:
        """Tell whether it was stopped, or found killed."""
        return self.verdict.status is RunStatus.INTERRUPTED

    @property
    @in_form()
    def is_running(self) -> bool:
        """Tell whether it has no end yet; `ListedRun` says what that may mean."""
        return self.verdict.status is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedResult(Shape):
    """One project's result in a gate run. `message` is the first reason, None for a pass; `number` counts as they came in."""

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
    """What is wrong with one output: a sentence, and a readable difference, empty if there is none."""

    path: str | None
    kind: str
    message: str
    difference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedResult(Shape):
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
        """What is wrong with its outputs."""
        return tuple(read_differences(self.result.reasons))

    @property
    @in_form()
    def failing_step(self) -> Mapping[str, Any] | None:
        """The last step that says that it failed."""
        return find_failing_step(self.result.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureExplanation(Shape):
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

    @property
    @in_form(first=True)
    def explanation(self) -> str:
        """The same in words, a line each: the status, the reasons, the failing step, what changed, and what is known."""
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
        """Explain a result; `lessons` are those that apply now: a recorded one of which a person may think otherwise by now is left out."""
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
    """Yield those reasons of a result that are about outputs."""
    for reason in reasons:
        if reason.kind in OUTPUT_KINDS:
            yield OutputDifference(reason.path, str(reason.kind), reason.headline, reason.difference)


def _name_lesson(known: Mapping[str, Any]) -> Any:
    lesson = known.get("lesson")
    return lesson.get("id") if isinstance(lesson, dict) else id(known)


@dataclass(frozen=True, slots=True)
class Declaration(Shape):
    """What is declared of a project; None for what is not known."""

    name: str
    path: str | None
    description: str | None
    expected_outcome: str | None
    is_declared: bool

    @classmethod
    def of(cls, name: str, declared: GoldenProjectConfig | None) -> Declaration:
        """Return what is declared of a project that may be gone."""
        if declared is None:
            return cls(name, None, None, None, is_declared=False)
        return cls(name, declared.path, declared.description, declared.expected_outcome, is_declared=True)


_SHORT_KEYS = (*("entry_id", "run_id", "status", "execution_time_seconds", "is_flaky", "is_interrupted", "created_at"),)


def _shorten(results: tuple[PastResult, ...]) -> list[dict[str, Any]]:
    return [{key: form[key] for key in _SHORT_KEYS} for form in map(PastResult.to_dict, results)]


@dataclass(frozen=True, slots=True)
class ListedProject(Shape):
    """A project with its newest results, which stand first and have no messages. `declared` is None for one that is gone."""

    name: str = field(metadata=_HIDDEN)
    declared: GoldenProjectConfig | None = field(metadata=_HIDDEN)
    recent: tuple[PastResult, ...] = field(
        default=(), metadata=form(write=_shorten, as_type=tuple[Mapping[str, Any], ...])
    )

    @property
    @in_form(merged=True, first=True)
    def declaration(self) -> Declaration:
        """What is declared of it."""
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
        """How the newest result fits in with those before it; empty where there is none that ran to its end."""
        return describe_streak(self.recent)

    @property
    @in_form()
    def flakiness(self) -> float | None:
        """The share of consecutive results on one commit that differ, of those in `recent`."""
        return flakiness(self.recent)

    @property
    @in_form()
    def median_seconds(self) -> float | None:
        """The usual duration of a pass, of those in `recent`."""
        return usual_duration(self.recent).median_seconds


@dataclass(frozen=True, slots=True)
class PastDifference(Shape):
    """The last result of a project whose outputs differed, and how."""

    entry_id: str
    run_id: str
    created_at: datetime
    differences: tuple[OutputDifference, ...]


@dataclass(frozen=True, slots=True)
class ProjectDetails(Shape):
    """A project's past, the last difference of its outputs, and the newest lessons that it has taught."""

    history: ProjectHistory = field(metadata=_MERGED)
    declared: GoldenProjectConfig | None = field(metadata=_HIDDEN)
    last_difference: PastDifference | None
    lessons: tuple[ListedLesson, ...]

    @property
    @in_form(merged=True, first=True)
    def declaration(self) -> Declaration:
        """What is declared of it."""
        return Declaration.of(self.history.name, self.declared)

    @property
    @in_form()
    def last_status(self) -> ResultStatus | None:
        """The status of its newest result; None without one."""
        return self.history.runs[0].status if self.history.runs else None


@dataclass(frozen=True, slots=True)
class ProjectTrend(Shape):
    """What the next run's duration is judged by: passes like the last one, the declared factor, and the limit of both."""

    durations: DurationTrend | None = field(metadata=_HIDDEN)
    max_slowdown: float | None

    @property
    @in_form(first=True)
    def pass_count(self) -> int:
        """How many passes it is judged by."""
        return 0 if self.durations is None else self.durations.pass_count

    @property
    @in_form(merged=True, first=True)
    def usual(self) -> UsualDuration:
        """The usual duration of these passes; None where there are none."""
        known = self.durations
        return UsualDuration(known.median_seconds, known.mad_seconds) if known and known.pass_count else NO_DURATION

    @property
    @in_form()
    def limit_seconds(self) -> float | None:
        """The limit; None where nothing is declared, or too few passes are known."""
        if self.max_slowdown is None or self.durations is None or not self.durations.is_enough:
            return None
        return self.durations.limit_seconds(self.max_slowdown)


@dataclass(frozen=True, slots=True)
class ProjectHistory(Shape):
    """A project's newest results, which stand first. `runs` are those that are shown; `recent` may have more of them.

    `trend` is None where nobody has asked for it.
    """

    name: str
    runs: tuple[PastResult, ...]
    recent: tuple[PastResult, ...] = field(metadata=_HIDDEN)
    trend: ProjectTrend | None = field(default=None, metadata=form(unless_none=True))

    @property
    @in_form()
    def streak(self) -> str:
        """How the newest result fits in with those before it; empty where it did not run to its end."""
        return describe_streak(self.recent)

    @property
    @in_form()
    def flakiness(self) -> float | None:
        """The share of consecutive results on one commit that differ, of those in `runs`."""
        return flakiness(self.runs)

    @property
    @in_form(merged=True)
    def usual(self) -> UsualDuration:
        """The usual duration of a pass, of those in `runs`."""
        return usual_duration(self.runs)
