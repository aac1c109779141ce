"""The verdict of a run, from its results, its floor and what was left out.

`judge_run` is the only function that makes it. Reports and pages show it and count nothing themselves.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from pytest_golden.regression.model import GoldenProjectResult, ResultStatus
from pytest_golden.values.shape import Count, Shape, form, in_form

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

_OK, _TESTS_FAILED, _INTERRUPTED, _INTERNAL_ERROR, _NO_TESTS = 0, 1, 2, 3, 5


class RunStatus(StrEnum):
    """The verdict of a run in one word. Only `passed` is good."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    INTERRUPTED = "interrupted"
    NOTHING_RAN = "nothing_ran"

    @property
    def shown(self) -> str:
        """The word as people see it, such as `NOTHING RAN`."""
        return self.value.replace("_", " ").upper()


@dataclass(frozen=True, slots=True)
class RunVerdict(Shape):
    """The verdict of a run, with every count that is shown.

    `status` is None until the run ends. Each result counts once among `passed`, `failed` (which fails the gate,
    whatever its status), `skipped` and `quarantined`. `errors` counts those of `failed` that are ERROR, `flaky` those of
    `passed` that needed another attempt, `unchanged` those of `skipped` that were left out as unchanged,
    `narrowed` those of all of which only a part was run.

    `is_partial`: some projects were left out, in whole or in part: unchanged, deselected, run by another shard, or not reached.
    `other_failures` counts tests beside the golden projects; `problems` say why the harness could not do its job.
    """

    status: RunStatus | None = field(
        metadata=form(key="final_status", about="The run's verdict; null until the run ends.")
    )
    _: KW_ONLY
    is_partial: bool = field(default=False, metadata=form(about="Some projects were left out."))
    total: Count = field(default=0, metadata=form(key="total_count", about="All results."))
    passed: Count = field(default=0, metadata=form(key="passed_count"))
    failed: Count = field(
        default=0, metadata=form(key="failed_count", about="Results that fail the gate, whatever their status.")
    )
    errors: Count = field(default=0, metadata=form(key="error_count", about="Failing results with status ERROR."))
    skipped: Count = field(default=0, metadata=form(key="skipped_count", about="Skipped without failing the gate."))
    quarantined: Count = field(default=0, metadata=form(key="quarantined_count", about="Not passed, but quarantined."))
    flaky: Count = field(default=0, metadata=form(key="flaky_count", about="Passed, but not on the first attempt."))
    unchanged: Count = field(default=0, metadata=form(key="unchanged_count", about="Skipped because unchanged."))
    narrowed: Count = field(default=0, metadata=form(key="narrowed_count", about="Run in part: --golden-changed."))
    deselected: Count = field(default=0, metadata=form(key="deselected_count"))
    other_shards: Count = field(default=0, metadata=form(key="other_shards_count", about="Run by another shard."))
    not_run: Count = field(default=0, metadata=form(key="not_run_count", about="Selected, but not reached."))
    weakenings: Count = field(
        default=0, metadata=form(key="weakening_count", about="Ways in which the floor is weaker.")
    )
    floor_accepted: bool = field(default=False, metadata=form(about="A person has accepted a weaker floor."))
    other_failures: Count = field(default=0, metadata=form(key="other_failures_count", about="Other failed tests."))
    problems: tuple[str, ...] = field(default=(), metadata=form(about="Why the harness could not do its job."))

    @property
    def is_good(self) -> bool:
        """Tell whether the run passed. Nothing else may be shown in green."""
        return self.status is RunStatus.PASSED

    @property
    def is_bad(self) -> bool:
        """Tell whether something failed: a run that is neither good nor bad was interrupted or had nothing to run."""
        return self.status in {RunStatus.FAILED, RunStatus.ERROR}

    @property
    def is_floor_bad(self) -> bool:
        """Tell whether the floor is weaker and nobody has accepted that."""
        return self.weakenings > 0 and not self.floor_accepted

    @property
    def word(self) -> str:
        """The status as people see it; `NOT FINISHED` until the run ends."""
        return "NOT FINISHED" if self.status is None else self.status.shown

    @property
    def heading(self) -> str:
        """The status, and what was left out: `PASSED (partial: 2 deselected)`."""
        counts = {
            "unchanged": self.unchanged,
            "run in part": self.narrowed,
            "deselected": self.deselected,
            "in other shards": self.other_shards,
            "not run": self.not_run,
        }
        left_out = _join_counts(counts)
        return f"{self.word} (partial: {left_out})" if left_out else self.word

    @property
    def count(self) -> str:
        """The counts of the results, and what else makes the run fail; empty if there is nothing to count."""
        counts = {
            "passed": self.passed,
            "failed": self.failed,
            "skipped": self.skipped - self.unchanged,
            "quarantined": self.quarantined,
            "flaky": self.flaky,
        }
        floor = "floor weakened" if self.is_floor_bad else "weakened floor accepted by a person"
        told = [_join_counts(counts), floor if self.weakenings else "", *self.causes]
        return ", ".join(filter(None, told))

    @property
    def causes(self) -> tuple[str, ...]:
        """What makes the run fail besides its golden projects and their floor, in a few words each."""
        others = self.other_failures
        failed = f"{others} other test{'' if others == 1 else 's'} failed"
        return (*([failed] if others else []), *self.problems)

    @property
    @in_form(key="verdict", about="The verdict in one sentence.")
    def sentence(self) -> str:
        """The verdict in one line: `FAILED (partial: 2 deselected): 1 passed, 1 failed`."""
        return ": ".join(filter(None, [self.heading, self.count]))

    def exit_code(self, before: int) -> int:
        """Return the session's exit code. `before` is the code without this verdict; it is kept unless it is 0 or 5.

        A gate that ran nothing never ends with 0.
        """
        if before not in {_OK, _NO_TESTS}:
            return before
        if self.status is RunStatus.ERROR:
            return _TESTS_FAILED if self.failed else _INTERNAL_ERROR
        if self.status is RunStatus.FAILED:
            return _TESTS_FAILED
        if self.status is RunStatus.INTERRUPTED:
            return _INTERRUPTED
        # An empty shard is no fault: other shards run the projects.
        return _NO_TESTS if self.status is RunStatus.NOTHING_RAN and not self.other_shards else before


def judge_run(
    results: Iterable[GoldenProjectResult],
    *,
    skips_fail: bool = False,
    weakenings: int = 0,
    floor_accepted: bool = False,
    deselected: Collection[str] = (),
    other_shards: Collection[str] = (),
    not_run: Collection[str] = (),
    other_failures: int = 0,
    problems: Iterable[str] = (),
    exit_status: int | None = None,
    is_interrupted: bool = False,
    is_running: bool = False,
) -> RunVerdict:
    """Return the verdict of a run.

    Args:
        results: one for each judged project.
        skips_fail: whether a skipped project fails the gate (`--golden-require`).
        weakenings: in how many ways the floor is weaker than in the base.
        floor_accepted: whether a person has accepted that.
        deselected: names of the projects that were not selected.
        other_shards: names of those that another shard runs; they may be among the deselected.
        not_run: names of the selected projects without a result.
        other_failures: how many tests beside the golden projects failed.
        problems: why the harness could not do its job, in a few words each.
        exit_status: pytest's exit status so far; only 0 can be `passed`. None if there is no session.
        is_interrupted: whether the run was stopped or killed; an exit status of 2 means the same.
        is_running: whether it has not ended yet.
    """
    counted = _count(tuple(results), partial(fails_the_gate, skips_fail=skips_fail))
    has_cause = bool(counted.failed or (weakenings and not floor_accepted) or other_failures)
    left_out = {name for name in deselected if name not in other_shards}
    verdict = replace(
        counted,
        deselected=len(left_out),
        other_shards=len(other_shards),
        not_run=len(not_run),
        weakenings=weakenings,
        floor_accepted=floor_accepted,
        other_failures=other_failures,
        problems=(*problems, *_explain_exit(exit_status, has_cause=has_cause)),
    )
    is_partial = bool(left_out or other_shards or not_run or verdict.unchanged or verdict.narrowed)
    if is_running:
        return replace(verdict, is_partial=is_partial)
    status = RunStatus.INTERRUPTED if is_interrupted else _find_status(verdict, exit_status)
    return replace(verdict, is_partial=is_partial, status=status)


def fails_the_gate(result: GoldenProjectResult, *, skips_fail: bool) -> bool:
    """Tell whether a result fails the gate; with `--golden-require` a skipped one does too, unless it is unchanged."""
    return result.is_regression or (
        skips_fail and result.status is ResultStatus.SKIPPED and not result.is_left_out_as_unchanged
    )


@dataclass(frozen=True, slots=True)
class RegressionCheckResult(Shape):
    """All results of a gate run in declaration order. Counts and final status come from `judge_run`.

    `failed_count` counts regressions, also of projects whose need did not pass. A quarantined result counts only in the
    total.
    """

    results: tuple[GoldenProjectResult, ...] = field(default=(), metadata=form(about="In declaration order."))

    def __post_init__(self) -> None:
        object.__setattr__(self, "results", tuple(self.results))

    @property
    @in_form(merged=True)
    def verdict(self) -> RunVerdict:
        """The verdict on the results alone. A session knows more, such as its floor and what was left out."""
        return judge_run(self.results)

    @property
    def total_count(self) -> int:
        """How many results there are."""
        return self.verdict.total

    @property
    def passed_count(self) -> int:
        """How many are PASSED."""
        return self.verdict.passed

    @property
    def failed_count(self) -> int:
        """How many are regressions."""
        return self.verdict.failed

    @property
    def skipped_count(self) -> int:
        """How many are SKIPPED without being a regression."""
        return self.verdict.skipped

    @property
    @in_form(about="A golden project failed the gate.")
    def regression_detected(self) -> bool:
        """Tell whether any result is a regression."""
        return any(result.is_regression for result in self.results)

    @property
    def final_status(self) -> str:
        """The status of the results alone: `passed`, `failed`, `error` or `nothing_ran`."""
        return str(self.verdict.status)


class WeakeningKind(StrEnum):
    """What makes the floor weaker."""

    PROJECT_GONE = "project_gone"
    RETIRED = "retired"
    NOT_RUN = "not_run"
    REQUIREMENT = "requirement"
    SETUP = "setup"
    EXPECTATION = "expectation"
    OUTPUT = "output"
    TOLERANCE = "tolerance"
    BASELINE = "baseline"
    LIMIT = "limit"
    RETRIES = "retries"
    SKIP_IF_MISSING = "skip_if_missing"
    NETWORK = "network"
    MOUNTS = "mounts"
    QUARANTINE = "quarantine"
    UNEXPECTED_FILES = "unexpected_files"
    COMMAND = "command"
    ARGS = "args"
    RUNNER = "runner"
    PATH = "path"
    PROJECT_DIR = "project_dir"
    ENVIRONMENT = "environment"
    DEPENDS_ON = "depends_on"
    MANIFEST = "manifest"
    CONFIGURATION = "gate_configuration"


@dataclass(frozen=True, slots=True)
class Weakening(Shape):
    """One way in which the floor is weaker. `project` is None for the manifest as a whole; `base` and `head` are text."""

    project: str | None = field(metadata=form(about="null: the whole manifest."))
    kind: WeakeningKind
    message: str
    base: str | None = None
    head: str | None = None


@dataclass(frozen=True, slots=True)
class ChangedBaseline:
    """A baseline of a project that differs from the base, or is gone.

    `path` is relative to the project's baselines; it is empty if they are a submodule that changed as a whole. `cause` says
    what changed if that is not the file itself.
    """

    project: str
    path: str
    is_gone: bool = False
    cause: str = ""


def _count(results: Sequence[GoldenProjectResult], fails: Callable[[GoldenProjectResult], bool]) -> RunVerdict:
    """Count each result once, and also the errors, flaky passes and unchanged projects among them."""
    failing = [result for result in results if fails(result)]
    passing = [result for result in results if result.status is ResultStatus.PASSED]
    rest = [result for result in results if result.status is not ResultStatus.PASSED and not fails(result)]
    quarantined = sum(result.quarantined is not None for result in rest)
    return RunVerdict(
        None,
        total=len(results),
        passed=len(passing),
        failed=len(failing),
        errors=sum(result.status is ResultStatus.ERROR for result in failing),
        skipped=len(rest) - quarantined,
        quarantined=quarantined,
        flaky=sum(result.is_flaky for result in passing),
        unchanged=sum(result.is_left_out_as_unchanged for result in results),
        narrowed=sum(result.is_narrowed for result in results),
    )


def _find_status(verdict: RunVerdict, exit_status: int | None) -> RunStatus:
    """Return the first status that applies to a run that has ended."""
    has_failed = verdict.failed > verdict.errors or verdict.is_floor_bad or verdict.other_failures > 0
    if exit_status == _INTERRUPTED:
        return RunStatus.INTERRUPTED
    if has_failed or (exit_status == _TESTS_FAILED and not verdict.errors):
        return RunStatus.FAILED
    if verdict.errors or verdict.problems:
        return RunStatus.ERROR
    has_run = verdict.total > verdict.skipped or verdict.unchanged > 0
    return RunStatus.PASSED if has_run and exit_status != _NO_TESTS else RunStatus.NOTHING_RAN


def _explain_exit(exit_status: int | None, *, has_cause: bool) -> list[str]:
    """Report an exit status of pytest that nothing known explains."""
    if exit_status == _TESTS_FAILED:
        return [] if has_cause else ["something else failed: pytest ended with exit status 1"]
    is_known = exit_status in {None, _OK, _INTERRUPTED, _NO_TESTS}
    return [] if is_known else [f"pytest ended with exit status {exit_status}"]


def _join_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)
