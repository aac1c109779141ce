"""Whether a change made a golden project worse: a verdict from the runs of base and head, and what to run again. Pure.

Only what passed on the base and fails on the head can be the change's doing. Such a project is run again on both
sides, until Fisher's exact test says that the head is worse or it cannot say so any more. One that never does both,
pass and fail, on one side is no matter of chance: it needs no test to be a regression.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pytest_golden.regression.fisher import fisher_worse
from pytest_golden.regression.model import GoldenProjectResult, ReasonKind, ResultStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Chance is believed from this probability on.
SIGNIFICANCE = 0.05
# One failure alone is no proof, however often the base has passed.
_LEAST_FAILURES = 2
_FAILURES = frozenset({ResultStatus.FAILED, ResultStatus.ERROR})
# The project said nothing: the machine, or what was missing on it, kept it from running.
_NO_NEWS = frozenset(
    {
        ReasonKind.PATH_NOT_FOUND,
        ReasonKind.PERMISSION_DENIED,
        ReasonKind.COMMAND_NOT_FOUND,
        ReasonKind.RUNNER_UNKNOWN,
        ReasonKind.SANDBOX_UNAVAILABLE,
        ReasonKind.NETWORK_UNAVAILABLE,
        ReasonKind.PROJECT_CHANGED,
        ReasonKind.SCRATCH_FULL,
        ReasonKind.WORKER_CRASHED,
        ReasonKind.HARNESS,
    }
)


class Verdict(StrEnum):
    """What the change did to a project."""

    OK = "ok"
    NEW_REGRESSION = "new_regression"
    KNOWN = "known"
    NEW_PROJECT = "new_project"
    UNSTABLE = "unstable"
    FIXED = "fixed"
    REMOVED = "removed"
    SKIPPED = "skipped"


class Side(StrEnum):
    """Before the change, or with it."""

    BASE = "base"
    HEAD = "head"


@dataclass(frozen=True, slots=True)
class Tally:
    """How often a project passed and failed. What was skipped is in neither."""

    passed: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        """How often it ran to its end."""
        return self.passed + self.failed

    @property
    def is_mixed(self) -> bool:
        """Tell whether it did both, which makes it a matter of chance."""
        return bool(self.passed and self.failed)

    def count(self, status: ResultStatus) -> Tally:
        """Give the tally with one more run."""
        return Tally(self.passed + (status is ResultStatus.PASSED), self.failed + (status in _FAILURES))

    def to_dict(self) -> dict[str, int]:
        """Give `{passed, failed}`."""
        return {"passed": self.passed, "failed": self.failed}


@dataclass(frozen=True, slots=True)
class SideRuns:
    """What one side's runs of a project gave: the first result, or the newest recorded one, and how often what.

    `result` is None where the project is not declared.
    """

    result: GoldenProjectResult | None = None
    tally: Tally = field(default_factory=Tally)

    @classmethod
    def begin(cls, result: GoldenProjectResult) -> SideRuns:
        """Give what a first run gave."""
        return cls(result, Tally().count(result.status))

    @property
    def status(self) -> ResultStatus | None:
        """The result's status."""
        return None if self.result is None else self.result.status

    @property
    def failed(self) -> bool:
        """Tell whether it did not pass, in a quarantine too, or was kept from running by a need that did not."""
        return self.status in _FAILURES or self.is_kept_by_need

    @property
    def is_kept_by_need(self) -> bool:
        """Tell whether it was not run since a project that it needs did not pass."""
        return self.status is ResultStatus.SKIPPED and ReasonKind.NEED_NOT_PASSED in self.kinds

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of its reasons."""
        return frozenset() if self.result is None else frozenset(reason.kind for reason in self.result.reasons)

    def count(self, status: ResultStatus) -> SideRuns:
        """Give the runs with one more."""
        return SideRuns(self.result, self.tally.count(status))


@dataclass(frozen=True, slots=True)
class ProjectRuns:
    """The runs of one project on both sides; `needs` are the head's."""

    name: str
    base: SideRuns = field(default_factory=SideRuns)
    head: SideRuns = field(default_factory=SideRuns)
    needs: tuple[str, ...] = ()

    @property
    def is_tested(self) -> bool:
        """Tell whether chance could be the reason: it fails on the head, and on the base not, or not always."""
        base, head = self.base, self.head
        if base.result is None or head.status not in _FAILURES:
            return False
        return base.tally.is_mixed or base.status is ResultStatus.PASSED

    @property
    def is_skipped_alike(self) -> bool:
        """Tell whether neither side was run, and for the same reason. What is left out as unchanged says nothing here."""
        base, head = self.base.result, self.head.result
        if base is None or head is None or ReasonKind.UNCHANGED in self.base.kinds | self.head.kinds:
            return False
        is_skipped = base.status is head.status is ResultStatus.SKIPPED
        return is_skipped and base.reasons == head.reasons

    @property
    def p_value(self) -> float | None:
        """How probable such failures of the head are by chance alone; None where chance is no question."""
        base, head = self.base.tally, self.head.tally
        return fisher_worse(base.passed, base.failed, head.passed, head.failed) if self.is_tested else None

    def count(self, side: Side, status: ResultStatus) -> ProjectRuns:
        """Give the runs with one more on a side."""
        if side is Side.BASE:
            return ProjectRuns(self.name, self.base.count(status), self.head, self.needs)
        return ProjectRuns(self.name, self.base, self.head.count(status), self.needs)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict on one project, and the figures that it rests on."""

    runs: ProjectRuns
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """Give it as in the command's JSON."""
        base, head = self.runs.base, self.runs.head
        return {
            "name": self.runs.name,
            "verdict": str(self.verdict),
            "base_status": None if base.status is None else str(base.status),
            "head_status": None if head.status is None else str(head.status),
            "repeats": {"base": base.tally.to_dict(), "head": head.tally.to_dict()},
            "p_value": self.runs.p_value,
        }


def compare_runs(runs: Mapping[str, ProjectRuns], repeat: int) -> tuple[Comparison, ...]:
    """Give the verdict on each project, in the order given, from the runs that there are; nothing is run again."""
    verdicts: dict[str, Verdict] = {}
    for name in runs:
        _judge(name, runs, repeat, verdicts)
    return tuple(Comparison(runs[name], verdicts[name]) for name in runs)


def choose_repeats(runs: Mapping[str, ProjectRuns], repeat: int) -> dict[Side, tuple[str, ...]]:
    """Give the names that are to be run once more on each side; empty when every verdict is certain.

    A side has `repeat` runs of a project at most, the first one among them.
    """
    chosen: dict[Side, list[str]] = {Side.HEAD: [], Side.BASE: []}
    for name, project in runs.items():
        if project.is_tested and not _is_quarantined(project) and _test(project, repeat) is None:
            chosen[_choose_side(project, repeat)].append(name)
    return {side: tuple(names) for side, names in chosen.items() if names}


def find_unjudged(project: ProjectRuns) -> str | None:
    """Say why the base tells nothing of a project that fails on the head; None where it does, or nobody asks.

    A base that was skipped, or kept from running by the machine, is neither green nor red.
    """
    base, head = project.base, project.head
    if base.result is None or not head.failed or base.tally.passed:
        return None
    told = base.result.error_message or str(base.status)
    if base.status is ResultStatus.SKIPPED and not base.is_kept_by_need:
        return f"{project.name} fails on the head, and on the base it was skipped: {told}"
    if tells_nothing(base.result) and not base.kinds & head.kinds:
        return f"{project.name} fails on the head, and on the base it could not be run: {told}"
    return None


def tells_nothing(result: GoldenProjectResult) -> bool:
    """Tell whether a result is the machine's news and not the project's: it could not be run."""
    return result.status is ResultStatus.ERROR and any(reason.kind in _NO_NEWS for reason in result.reasons)


def _judge(name: str, runs: Mapping[str, ProjectRuns], repeat: int, verdicts: dict[str, Verdict]) -> Verdict:
    if name not in verdicts:
        project = runs[name]
        verdict = _judge_by_status(project)
        if verdict is None and project.head.is_kept_by_need:
            verdict = _follow_needs(project, runs, repeat, verdicts)
        verdicts[name] = verdict or _test(project, repeat) or _give_up(project)
    return verdicts[name]


def _judge_by_status(project: ProjectRuns) -> Verdict | None:
    base, head = project.base, project.head
    if head.result is None:
        return Verdict.REMOVED
    if base.result is None:
        return Verdict.NEW_PROJECT
    if not head.failed:
        if head.status is ResultStatus.SKIPPED:
            return Verdict.SKIPPED
        return Verdict.FIXED if base.failed else Verdict.OK
    if base.failed and not base.tally.is_mixed:
        return Verdict.KNOWN
    return Verdict.UNSTABLE if _is_quarantined(project) else None


def _follow_needs(
    project: ProjectRuns, runs: Mapping[str, ProjectRuns], repeat: int, verdicts: dict[str, Verdict]
) -> Verdict:
    """Give what is said of the needs that kept it from running: it has no failure of its own."""
    failed = [need for need in project.needs if need in runs and runs[need].head.failed]
    told = {_judge(need, runs, repeat, verdicts) for need in failed}
    excuses = (Verdict.UNSTABLE, Verdict.KNOWN)
    if told and told <= set(excuses):
        return next(verdict for verdict in excuses if verdict in told)
    return Verdict.NEW_REGRESSION


def _test(project: ProjectRuns, repeat: int) -> Verdict | None:
    """Decide by the figures; None when further runs may decide, and there may be further ones."""
    base, head = project.base.tally, project.head.tally
    is_mixed = base.is_mixed or head.is_mixed
    is_spent = base.total >= repeat and head.total >= repeat
    p_value = fisher_worse(base.passed, base.failed, head.passed, head.failed)
    if p_value < SIGNIFICANCE and (head.failed >= _LEAST_FAILURES or head.total >= repeat):
        return Verdict.NEW_REGRESSION
    if not is_mixed:
        return Verdict.NEW_REGRESSION if is_spent else None
    return Verdict.UNSTABLE if is_spent or _is_hopeless(base, head, repeat) else None


def _give_up(project: ProjectRuns) -> Verdict:
    """Give what is said when there are no further runs to decide: only a matter of chance excuses a failure."""
    is_chance = project.base.tally.is_mixed or project.head.tally.is_mixed
    return Verdict.UNSTABLE if is_chance else Verdict.NEW_REGRESSION


def _is_hopeless(base: Tally, head: Tally, repeat: int) -> bool:
    """Tell whether not even the clearest further runs could show that the head is worse."""
    passed, failed = base.passed + max(0, repeat - base.total), head.failed + max(0, repeat - head.total)
    return fisher_worse(passed, base.failed, head.passed, failed) >= SIGNIFICANCE


def _choose_side(project: ProjectRuns, repeat: int) -> Side:
    """Give the side that has run less, the head first: it needs no worktree."""
    base, head = project.base.tally.total, project.head.tally.total
    return Side.HEAD if base >= repeat or head <= base else Side.BASE


def _is_quarantined(project: ProjectRuns) -> bool:
    return project.head.result is not None and project.head.result.quarantined is not None
