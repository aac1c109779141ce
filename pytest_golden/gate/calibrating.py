"""Run a golden project several times under different conditions, and find the parts of its outputs that change by themselves.

The first run is pinned to one processor. Later runs have another time (with libfaketime), another hash seed, another temporary folder, and
one thread in libraries with such a setting. libfaketime breaks some programs, such as those that call Python's `time.sleep`. A run that
does not pass with it is repeated without it.
"""

from __future__ import annotations

import glob
import math
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pytest_golden.compare.baselines import match_outputs, settle_runs
from pytest_golden.compare.calibration import Calibration, calibrate
from pytest_golden.compare.examination import export_tables
from pytest_golden.gateway.model import AgentRole, Ending, Permissions
from pytest_golden.gateway.project_clock import find_faketime, set_clock
from pytest_golden.gateway.view import copy_content
from pytest_golden.gateway.write_set import take_fingerprint
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.rules import judge
from pytest_golden.regression.unexpected import put_run
from pytest_golden.regression.wording import name_some, show_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_golden.compare.baselines import ExpectedFile
    from pytest_golden.gateway.model import OutputFinding, PipelineOutcome
    from pytest_golden.gateway.service import ExecutionGateway
    from pytest_golden.gateway.write_set import WrittenFiles
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult

    Draft = Callable[[WrittenFiles], tuple[DeclaredOutput, ...]]

_FAKETIME = "faketime"
_HANGS_AFTER_SECONDS, _TIMES_AS_LONG = 15, 5
# A day, seven hours and some minutes: another day of the week, hour and minute.
_LATER_SECONDS = 24 * 3600 + 7 * 3600 + 13 * 60
_MOST_NAMED = 5
_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "RAYON_NUM_THREADS",
    "GOMAXPROCS",
)


@dataclass(frozen=True, slots=True)
class ProjectCalibration:
    """The result of one project's runs.

    `changed_inputs` are mounts and passed files that changed between the runs, so they may explain the differences. `found` is None in that
    case, or if a run did not end as expected. `failed_by_clock` is the first line of the failure of a run with another time, which was
    repeated without. `moved_by_day` is the difference that only a `clock:` covers; that clock is then in `project`. None if there is none.
    """

    project: GoldenProjectConfig
    results: tuple[GoldenProjectResult, ...]
    varied: tuple[str, ...]
    found: Calibration | None = None
    changed_inputs: tuple[str, ...] = ()
    failed_by_clock: str | None = None
    moved_by_day: str | None = None

    @property
    def runs(self) -> int:
        """Return the number of runs."""
        return len(self.results)

    @property
    def told(self) -> str | None:
        """Say that all runs used the real time although libfaketime is installed, and why."""
        if self.failed_by_clock is None:
            return None
        return f"all runs had the real time: with another one (libfaketime) it did not pass: {self.failed_by_clock}"

    @property
    def failed(self) -> GoldenProjectResult | None:
        """Return the result of the run that did not end as expected, which is always the last one."""
        return None if self.results[-1].status is ResultStatus.PASSED else self.results[-1]


def calibrate_project(
    project: GoldenProjectConfig,
    open_gateway: Callable[[], ExecutionGateway],
    *,
    runs: int = 2,
    watch: Callable[[int, ExecutionGateway], object] = lambda *_: None,
    draft: Draft | None = None,
) -> ProjectCalibration:
    """Run a project several times, and find the rules that make its outputs stable.

    If no rule is enough because the result depends on the date, run it as often again with a `clock:`. The clock is proposed if it makes
    the outputs stable.

    Args:
        project: the project, with `outputs:`.
        open_gateway: makes the gateway of one run; each has its own threads and scratch.
        runs: the number of runs, at least 2.
        watch: receives the number of the run, from 1, and its gateway.
        draft: for a project without `outputs:`, makes entries from the files that the first run wrote.

    Raises:
        GoldenError: the harness could not do its job.
        KeyboardInterrupt: a run was interrupted.
    """
    found = _calibrate(project, open_gateway, runs, watch, draft)
    unsolved = () if found.found is None else tuple(file for file in found.found.files if file.unsolved)
    # A file that only one run wrote may be named by the second in which it was written: no clock makes that stable.
    if not unsolved or "time" not in found.varied:
        return found
    today = f"{datetime.now(UTC):%Y-%m-%d} 00:00:00"
    again = _calibrate(replace(project, clock=today), open_gateway, runs, watch, draft)
    if again.found is None or not again.found.is_solved:
        return found
    first = unsolved[0]
    return replace(again, moved_by_day=f"{show_path(first.path)}: {first.unsolved[0].partition(': ')[0]}")


def _calibrate(
    project: GoldenProjectConfig,
    open_gateway: Callable[[], ExecutionGateway],
    runs: int,
    watch: Callable[[int, ExecutionGateway], object],
    draft: Draft | None,
) -> ProjectCalibration:
    clock, failed_by_clock = list_clocks(project)[0], None
    kept: list[dict[str, Path]] = []
    results: list[GoldenProjectResult] = []
    marks: list[Mapping[str, tuple[int, ...]]] = []
    with TemporaryDirectory(prefix="golden-calibrate-") as scratch:
        for number in range(runs):
            marks.append(_look_at_inputs(project))
            for used in dict.fromkeys((clock, None)):
                collector = OutputCollector(project.outputs, Path(scratch, f"{number}-{used is None}"), draft)
                with open_gateway() as gateway, _threads(1 if number == 0 else None):
                    watch(number + 1, gateway)
                    took = results[0].execution_time_seconds if results else math.inf
                    is_sealed = gateway.describe().seal != "none"
                    varying = vary(project, number, used, took_seconds=took, is_sealed=is_sealed)
                    result = _run_once(project, varying, gateway, collector)
                if number == 0 or used is None or result.status is ResultStatus.PASSED:
                    clock = used
                    break
                failed_by_clock = (result.error_message or "").partition("\n")[0]
            project = replace(project, outputs=collector.outputs)
            results.append(result)
            varied = ("hash seed", "temporary folder", "one thread", *(("time",) if clock else ()))
            if result.status is not ResultStatus.PASSED:
                return ProjectCalibration(project, tuple(results), varied)
            kept.append(collector.files)
        changed = {path for one, other in pairwise(marks) for path in one if one[path] != other.get(path)}
        if changed:
            return ProjectCalibration(project, tuple(results), varied, changed_inputs=tuple(sorted(changed)))
        with open_gateway() as gateway:
            if draft is not None:
                project = replace(project, outputs=_name_stamps(project.outputs, kept))
            found = calibrate(project.outputs, kept, lambda text: gateway.redact(project, text))
    return ProjectCalibration(project, tuple(results), varied, found, failed_by_clock=failed_by_clock)


def _run_once(
    project: GoldenProjectConfig, varying: GoldenProjectConfig, gateway: ExecutionGateway, collector: OutputCollector
) -> GoldenProjectResult:
    outcome = gateway.run_pipeline(
        varying,
        role=AgentRole.REGRESSION_GUARD,
        permissions=Permissions(can_edit_source=False),
        examine=collector,
    )
    if outcome.ending is Ending.INTERRUPTED:
        raise KeyboardInterrupt
    return judge(replace(project, timeout=varying.timeout), outcome)


def _name_stamps(outputs: tuple[DeclaredOutput, ...], kept: list[dict[str, Path]]) -> tuple[DeclaredOutput, ...]:
    """Give drafted files whose path holds the time or id of a run one entry with `{run}`, and rename the copies."""
    first, *others = kept
    for path in sorted(first):
        alike = [[other for other in run if put_run(path, other) and other not in first] for run in others]
        if not alike or not all(len(some) == 1 for some in alike):
            continue
        stable = str(put_run(path, alike[0][0]))
        gone = {glob.escape(one) for one in (path, *(some[0] for some in alike))}
        outputs = (*(output for output in outputs if output.path not in gone), DeclaredOutput(stable))
        for run, old in zip(kept, (path, *(some[0] for some in alike)), strict=True):
            run[stable] = run.pop(old)
    return outputs


class OutputCollector:
    """Copies the declared outputs of a run while its view exists, or if none are declared, the drafted ones.

    `files` are the copies by the paths of the outputs, `expected` their entries, with the keys that dbt or SQLMesh knows, and
    `upstream` the paths that a model is made of.
    """

    def __init__(self, outputs: tuple[DeclaredOutput, ...], folder: Path, draft: Draft | None = None) -> None:
        self.outputs = outputs
        self._draft = draft
        self._folder = folder
        self.files: dict[str, Path] = {}
        self.expected: dict[str, ExpectedFile] = {}
        self.upstream: Mapping[str, tuple[str, ...]] = {}

    def __call__(self, outcome: PipelineOutcome, written: WrittenFiles, /) -> tuple[OutputFinding, ...]:  # noqa: ARG002
        """Copy the outputs of a run, and report no problem with them."""
        if self._draft is not None:
            self.outputs = tuple(dict.fromkeys((*self.outputs, *self._draft(written))))
        self._folder.mkdir(parents=True, exist_ok=True)
        written, _ = settle_runs(self.outputs, written)
        exports = export_tables(self.outputs, written, self._folder)
        if exports is not None:
            written, self.upstream = exports.add_to(written), exports.upstream
        for file in match_outputs(self.outputs, written.paths, (), written.exported).files:
            if not file.needs_baseline:
                continue
            self.expected[file.path] = file if exports is None else exports.complete(file)
            if exports is not None and file.path in exports.files:
                self.files[file.path] = exports.files[file.path]
                continue
            copy = self._folder / file.path
            copy.parent.mkdir(parents=True, exist_ok=True)
            # The gate reports what is missing or not a regular file.
            with suppress(OSError):
                copy_content(str(written.locate(file.path)), str(copy))
                self.files[file.path] = copy
        return ()


def list_clocks(project: GoldenProjectConfig) -> tuple[Path | None, ...]:
    """List the ways to get another time: the library, then None; only None for a project with `clock:` or `faketime`."""
    words = [word for command in (project.command or (), *project.before) for word in command]
    is_own = project.clock is not None or any(os.path.basename(word) == _FAKETIME for word in words)  # noqa: PTH119 - text
    return tuple(dict.fromkeys((None if is_own else find_faketime(), None)))


def vary(
    project: GoldenProjectConfig,
    number: int = 1,
    clock: Path | None = None,
    *,
    took_seconds: float = math.inf,
    is_sealed: bool = False,
) -> GoldenProjectConfig:
    """Return the project for the run with this number, from 0; run 0 is unchanged. What the project sets itself stays.

    `clock` is the library that gives it another time. Some programs, such as kernels of notebooks, hang with it, so the run is
    ended much sooner than by `timeout:` if the first one took `took_seconds`.
    """
    if number == 0:
        return project
    varied = {"PYTHONHASHSEED": str(number)}
    before = project.before
    if is_sealed:
        varied["TMPDIR"] = f"/tmp/golden-calibrate-{number}"
        before = (("mkdir", "-p", varied["TMPDIR"]), *before)
    if number % 2:
        varied |= dict.fromkeys(_THREADS, "1")
    if clock is not None:
        varied |= set_clock(clock, f"+{number * _LATER_SECONDS}")
        project = replace(project, timeout=min(project.timeout, _HANGS_AFTER_SECONDS + _TIMES_AS_LONG * took_seconds))
    return replace(project, set_env={**varied, **project.set_env}, before=before)


@contextmanager
def _threads(most: int | None) -> Iterator[None]:
    """Let what is started in the with-block see this many processors, if the system can do that."""
    if most is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:most])
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _look_at_inputs(project: GoldenProjectConfig) -> Mapping[str, tuple[int, ...]]:
    """Return marks of what the project reads outside its folder: mounts and passed files. They differ if the content changed."""
    marks: dict[str, tuple[int, ...]] = {}
    for declared in (*(mount.path for mount in project.mounts), *project.pass_files):
        path = Path(declared).expanduser()
        if path.is_dir():
            found = take_fingerprint(str(path)).marks
            marks |= {f"{declared}/{name}": mark for name, mark in found.items() if len(mark) != 1}
            continue
        with suppress(OSError):
            looked = path.stat()
            marks[declared] = (looked.st_ino, looked.st_size, looked.st_mtime_ns)
    return marks


def list_uncalibrated(projects: Sequence[GoldenProjectConfig]) -> tuple[str, ...]:
    """Return the names of projects without an output that is compared with a baseline."""
    return tuple(project.name for project in projects if all(output.compare == "exists" for output in project.outputs))


def ends_as_expected(project: GoldenProjectConfig, outcome: PipelineOutcome) -> bool:
    """Tell whether a run passes, whatever it wrote."""
    return judge(project, replace(outcome, output_findings=())).status is ResultStatus.PASSED


def describe_second_run(project: GoldenProjectConfig, outcome: PipelineOutcome, clock: Path | None) -> str | None:
    """Describe how a run under other conditions differs from the baselines that were just accepted; None if it does not."""
    conditions = f"a second run, {'at another time, ' if clock else ''}with another hash seed and one thread,"
    if not ends_as_expected(project, outcome):
        return f"{conditions} did not end as expected: its baselines may not hold tomorrow; see `golden calibrate {project.name}`"
    paths = list(dict.fromkeys(show_path(finding.path or "") for finding in outcome.output_findings))
    if not paths:
        return None
    named = name_some(paths, _MOST_NAMED)
    return f"{conditions} wrote something else: {named}; `golden calibrate {project.name}` proposes rules for what moves by itself"
