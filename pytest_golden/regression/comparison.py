"""Whether a change made a golden project worse: the verdict from runs of base and head, and what to run again. Pure.

The change may have caused a failure of the head if the base passes, or fails for other reasons. Such a project is run
again on both sides until Fisher's exact test says that the head is worse, or cannot say so any more. If each side repeats
itself exactly, two runs of each are enough: then it is not chance.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.regression.model import (
    MACHINE_KINDS,
    OUTPUT_KINDS,
    START_KINDS,
    GoldenProjectResult,
    ReasonKind,
    ResultStatus,
)
from pytest_golden.regression.rules import SKIP_FAILS
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

#: At this probability or above, a difference counts as chance.
SIGNIFICANCE = 0.05
# A single failure proves nothing, however often the base has passed.
_LEAST_FAILURES = 2
# If both sides repeat themselves, this many runs of each are enough.
_ENOUGH = 2
_MOST_REASONS_TOLD, _MOST_OF_MESSAGE = 20, 2_000
# These say nothing about the project: the machine, or something missing on it, kept it from running.
_NO_NEWS = MACHINE_KINDS | START_KINDS | {ReasonKind.WORKER_CRASHED}


def compare_runs(runs: Mapping[str, ProjectRuns], repeat: int) -> tuple[Comparison, ...]:
    """Return the verdict on each project, in the order given, from the runs so far."""
    verdicts: dict[str, Verdict] = {}
    for name in runs:
        _judge(name, runs, repeat, verdicts)
    return tuple(Comparison(runs[name], verdicts[name]) for name in runs)


def choose_repeats(runs: Mapping[str, ProjectRuns], repeat: int) -> dict[Side, tuple[str, ...]]:
    """Return the names of the projects to run once more on each side; empty when every verdict is certain.

    Each side runs a project at most `repeat` times, including the first run.
    """
    chosen: dict[Side, list[str]] = {Side.HEAD: [], Side.BASE: []}
    for name, project in runs.items():
        if project.is_tested and not _is_quarantined(project) and _test(project, repeat) is None:
            chosen[_choose_side(project, repeat)].append(name)
    return {side: tuple(names) for side, names in chosen.items() if names}


def find_unjudged(project: ProjectRuns) -> str | None:
    """Say why the base tells nothing about a project that fails on the head; None if it does, or the head passes.

    A base that was skipped, or kept from running by the machine, is neither green nor red. Nor is one that lacks the
    baselines: its outputs may be right.
    """
    base, head = project.base, project.head
    if base.result is None or not head.failed or base.tally.passed:
        return None
    told = base.result.error_message or str(base.status)
    if base.status is ResultStatus.SKIPPED and not (base.is_kept_by_need and head.is_kept_by_need):
        return f"{project.name} fails on the head, and on the base it was skipped: {told}"
    # What the machine does to both sides alike excuses nothing: what would differ was never compared.
    if tells_nothing(base.result) and not base.kinds & (head.kinds - MACHINE_KINDS):
        return f"{project.name} fails on the head, and on the base it could not be run: {told}"
    if base.kinds == {ReasonKind.BASELINE_MISSING} and head.kinds <= OUTPUT_KINDS and project.fails_otherwise:
        lacking = ", ".join(dict.fromkeys(reason.path or "?" for reason in base.result.reasons))
        return (
            f"{project.name} fails on the head, and the base has no baseline for {lacking}: commit baselines that are "
            "accepted on the base (`golden accept`), and make sure that git does not ignore them"
        )
    return None


def tells_nothing(result: GoldenProjectResult) -> bool:
    """Tell whether a result says nothing about the project, since the machine could not run it."""
    return result.status is ResultStatus.ERROR and result.has_reason(_NO_NEWS)


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


#: The subject of a reason: its kind, and the output, the exit code or the step.
About = tuple[str, ...]
#: The details of a reason in several forms, the most exact one first.
Details = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one run failed, in a form that can be compared with other runs.

    All details have the same number of forms. `digest` stands for everything that the run showed: two runs with the
    same digest are equal byte for byte.
    """

    reasons: Mapping[About, frozenset[Details]]
    digest: str

    def is_other_than(self, others: Sequence[Failure]) -> bool:
        """Tell whether it has a reason that no other failure has."""
        return any(_is_new(about, details, others) for about, details in self.reasons.items())


@dataclass(frozen=True, slots=True)
class Tally(Shape):
    """How often a project passed and failed. Skipped runs count as neither."""

    passed: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        """How many runs ended with a pass or a failure."""
        return self.passed + self.failed

    def count(self, status: ResultStatus) -> Tally:
        """Return the tally with one more run."""
        return Tally(self.passed + (status is ResultStatus.PASSED), self.failed + status.is_failure)


@dataclass(frozen=True, slots=True)
class SideRuns:
    """One side's runs of a project: the first result, or the newest recorded one, and a tally of all runs.

    `result` is None if the project is not declared. `failures` say why each failed run failed.
    """

    result: GoldenProjectResult | None = None
    tally: Tally = field(default_factory=Tally)
    failures: tuple[Failure, ...] = ()

    @classmethod
    def begin(cls, result: GoldenProjectResult, failure: Failure | None) -> SideRuns:
        """Return the runs of a side after its first run; `failure` is None unless that run failed."""
        return cls(result).count(result.status, failure)

    @property
    def status(self) -> ResultStatus | None:
        """The result's status."""
        return None if self.result is None else self.result.status

    @property
    def failed(self) -> bool:
        """Tell whether it failed, even in quarantine, or was not run because a project that it needs did not pass."""
        return (self.status is not None and self.status.is_failure) or self.is_kept_by_need

    @property
    def is_kept_by_need(self) -> bool:
        """Tell whether it was not run because a project that it needs did not pass."""
        return self.status is ResultStatus.SKIPPED and ReasonKind.NEED_NOT_PASSED in self.kinds

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of its reasons."""
        return frozenset() if self.result is None else frozenset(reason.kind for reason in self.result.reasons)

    @property
    def repeats_itself(self) -> bool:
        """Tell whether there are several runs, and all failed in the same way, byte for byte."""
        digests = {failure.digest for failure in self.failures}
        return len(digests) == 1 and len(self.failures) == self.tally.total >= _ENOUGH

    def count(self, status: ResultStatus, failure: Failure | None = None) -> SideRuns:
        """Return these runs and one more."""
        failures = self.failures if failure is None else (*self.failures, failure)
        return SideRuns(self.result, self.tally.count(status), failures)


class Question(NamedTuple):
    """One question for the test: `passed` counts a side's runs without the failure in question, `failed` those with it."""

    base: Tally
    head: Tally

    @property
    def is_clear(self) -> bool:
        """Tell whether the head always failed and the base never did, so that nothing suggests chance."""
        return not self.base.failed and not self.head.passed

    @property
    def p_value(self) -> float:
        """The probability that the head fails this often by chance alone."""
        return fisher_worse(self.base.passed, self.base.failed, self.head.passed, self.head.failed)


@dataclass(frozen=True, slots=True)
class ProjectRuns:
    """The runs of one project on both sides; `needs` are the head's."""

    name: str
    base: SideRuns = field(default_factory=SideRuns)
    head: SideRuns = field(default_factory=SideRuns)
    needs: tuple[str, ...] = ()

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions for the test: does the head fail more often, and does it fail more often for a new reason?

        The first is asked only if the base passed at least once, the second only if the head has a new reason.
        """
        base, head = self.base, self.head
        asked = [Question(base.tally, head.tally)] if base.tally.passed else []
        new = sum(failure.is_other_than(base.failures) for failure in head.failures)
        if base.failures and new:
            odd = _count_odd(base)
            asked.append(Question(Tally(base.tally.total - odd, odd), Tally(head.tally.total - new, new)))
        return tuple(asked)

    @property
    def is_tested(self) -> bool:
        """Tell whether the change could be the cause: the head fails, and the base does not always fail in the same way."""
        has_failed = self.head.status is not None and self.head.status.is_failure
        return has_failed and self.base.result is not None and bool(self.questions)

    @property
    def fails_otherwise(self) -> bool:
        """Tell whether both sides failed, and the head for a reason that the base does not have."""
        return self.base.failed and any(failure.is_other_than(self.base.failures) for failure in self.head.failures)

    @property
    def is_skipped_alike(self) -> bool:
        """Tell whether neither side was run, for the same reason. Projects that are left out as unchanged do not count."""
        base, head = self.base.result, self.head.result
        if base is None or head is None or ReasonKind.UNCHANGED in self.base.kinds | self.head.kinds:
            return False
        is_skipped = base.status is head.status is ResultStatus.SKIPPED
        return is_skipped and _list_skips(base) == _list_skips(head)

    @property
    def p_value(self) -> float | None:
        """The probability that the head fails like this by chance alone; None if no test is needed."""
        if not self.is_tested or self.is_settled:
            return None
        return min(question.p_value for question in self.questions)

    @property
    def is_settled(self) -> bool:
        """Tell whether the head's failure repeats byte for byte, and no run of the base, of several, had it."""
        return self.head.repeats_itself and any(
            question.is_clear and question.base.total >= _ENOUGH for question in self.questions
        )

    def count(self, side: Side, status: ResultStatus, failure: Failure | None = None) -> ProjectRuns:
        """Return these runs and one more on a side."""
        if side is Side.BASE:
            return replace(self, base=self.base.count(status, failure))
        return replace(self, head=self.head.count(status, failure))


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict on one project, and the runs that it is based on."""

    runs: ProjectRuns
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as in the JSON of `golden verify`."""
        base, head = self.runs.base, self.runs.head
        return {
            "name": self.runs.name,
            "verdict": str(self.verdict),
            "base_status": None if base.status is None else str(base.status),
            "head_status": None if head.status is None else str(head.status),
            "base_reasons": _tell_reasons(base.result),
            "head_reasons": _tell_reasons(head.result),
            "repeats": {"base": base.tally.to_dict(), "head": head.tally.to_dict()},
            "p_value": self.runs.p_value,
        }


def fisher_worse(base_passed: int, base_failed: int, head_passed: int, head_failed: int) -> float:
    """Return the one-sided p-value of Fisher's exact test: how likely chance alone makes the head fail this often or more.

    Given all runs and all failures, and if base and head are equally good, the number of failures of the head has a
    hypergeometric distribution, and its upper tail is the p-value. It is exact: all
    counts are integers up to the final division. Return 1.0 if nothing has run.

    Source: R. A. Fisher, "The Logic of Inductive Inference", Journal of the Royal Statistical Society 98 (1935), pp.
    39-82; the tail as in A. Agresti, "Categorical Data Analysis", 3rd ed. (2013), section 3.5.1.

    Raises:
        ValueError: a count is negative.
    """
    counts = (base_passed, base_failed, head_passed, head_failed)
    if min(counts) < 0:
        raise ValueError(f"counts of runs cannot be negative, and these are {counts}")
    base, head, failed = base_passed + base_failed, head_passed + head_failed, base_failed + head_failed
    tail = sum(comb(head, count) * comb(base, failed - count) for count in range(head_failed, min(head, failed) + 1))
    return tail / comb(base + head, failed)


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
    if head.is_kept_by_need:
        return None
    if base.failed and not project.questions:
        return Verdict.KNOWN
    return Verdict.UNSTABLE if _is_quarantined(project) else None


def _follow_needs(
    project: ProjectRuns, runs: Mapping[str, ProjectRuns], repeat: int, verdicts: dict[str, Verdict]
) -> Verdict:
    """Return the verdict on the needs that kept a project from running: it has no failure of its own."""
    failed = [need for need in project.needs if need in runs and runs[need].head.failed]
    told = {_judge(need, runs, repeat, verdicts) for need in failed}
    excuses = (Verdict.UNSTABLE, Verdict.KNOWN)
    if told and told <= set(excuses):
        return next(verdict for verdict in excuses if verdict in told)
    return Verdict.NEW_REGRESSION


def _test(project: ProjectRuns, repeat: int) -> Verdict | None:
    """Return the verdict by the test; None if further runs are allowed and may decide."""
    if project.is_settled:
        return Verdict.NEW_REGRESSION
    answers = {_answer(question, repeat) for question in _list_questions(project)}
    return next((verdict for verdict in (Verdict.NEW_REGRESSION, None) if verdict in answers), Verdict.UNSTABLE)


def _answer(question: Question, repeat: int) -> Verdict | None:
    base, head = question.base, question.head
    is_spent = base.total >= repeat and head.total >= repeat
    if question.p_value < SIGNIFICANCE and (head.failed >= _LEAST_FAILURES or head.total >= repeat):
        return Verdict.NEW_REGRESSION
    if question.is_clear:
        return Verdict.NEW_REGRESSION if is_spent else None
    return Verdict.UNSTABLE if is_spent or _is_hopeless(base, head, repeat) else None


def _list_questions(project: ProjectRuns) -> tuple[Question, ...]:
    return project.questions or (Question(project.base.tally, project.head.tally),)


def _give_up(project: ProjectRuns) -> Verdict:
    """Return the verdict when no further run can decide. A failure is excused only if it may be chance."""
    is_clear = any(question.is_clear for question in _list_questions(project))
    return Verdict.NEW_REGRESSION if is_clear else Verdict.UNSTABLE


def _is_hopeless(base: Tally, head: Tally, repeat: int) -> bool:
    """Tell whether not even the clearest further runs could show that the head is worse."""
    passed, failed = base.passed + max(0, repeat - base.total), head.failed + max(0, repeat - head.total)
    return fisher_worse(passed, base.failed, head.passed, failed) >= SIGNIFICANCE


def _choose_side(project: ProjectRuns, repeat: int) -> Side:
    """Return the side with fewer runs; with equal numbers the head, which needs no worktree.

    If the base has run once and failed, it goes first: its failures may differ from run to run, and that may explain
    the whole difference.
    """
    base, head = project.base.tally.total, project.head.tally.total
    if base < _ENOUGH <= repeat and not project.base.tally.passed:
        return Side.BASE
    return Side.HEAD if base >= repeat or head <= base else Side.BASE


def _is_quarantined(project: ProjectRuns) -> bool:
    return project.head.result is not None and project.head.result.quarantined is not None


def _count_odd(base: SideRuns) -> int:
    """Count the base's failures that none of its other runs had; 0 for a single run, which cannot be compared."""
    if base.tally.total < _ENOUGH:
        return 0
    failures = base.failures
    return sum(one.is_other_than(failures[:at] + failures[at + 1 :]) for at, one in enumerate(failures))


def _is_new(about: About, details: frozenset[Details], others: Iterable[Failure]) -> bool:
    """Tell whether no other failure has these details. Forms in which the others differ from each other are skipped."""
    seen = [other.reasons[about] for other in others if about in other.reasons]
    if not seen:
        return True
    for mine, *theirs in zip(_list_forms(details), *map(_list_forms, seen), strict=True):
        if mine <= frozenset().union(*theirs):
            return False
        if len(set(theirs)) == 1:
            return True
    return False


def _list_forms(details: frozenset[Details]) -> Iterator[frozenset[str]]:
    return map(frozenset, zip(*details, strict=True))


def _list_skips(result: GoldenProjectResult) -> list[tuple[str, str]]:
    """Return the reasons of a skipped project, without the setting that makes skips fail."""
    return [(str(reason.kind), reason.message.partition(SKIP_FAILS)[0]) for reason in result.reasons]


def _tell_reasons(result: GoldenProjectResult | None) -> list[dict[str, Any]]:
    """Return the first reasons of a result, shortened. They are already redacted."""
    reasons = () if result is None else result.reasons[:_MOST_REASONS_TOLD]
    return [replace(reason, message=reason.message[:_MOST_OF_MESSAGE]).to_dict() for reason in reasons]
