"""Run and judge golden projects: needs, retries, outputs, quarantine, further judges. The one place for all faces."""

from __future__ import annotations

import inspect
import json
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import utc_now
from pytest_golden.compare.baselines import find_baselines_folder
from pytest_golden.compare.examination import BaselineKeeper
from pytest_golden.errors import GatewayError, GoldenError
from pytest_golden.gateway.model import AgentRole, Ending, Permissions, PipelineOutcome
from pytest_golden.gateway.runners.runner import CHANGED_FILES
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.model import (
    GoldenProjectResult,
    OutputChange,
    Reason,
    ReasonKind,
    ResultStatus,
    error_result,
    result_without_run,
)
from pytest_golden.regression.rules import judge
from pytest_golden.regression.slowdown import SlowdownJudge
from pytest_golden.regression.verdict import RegressionCheckResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import date

    from pytest_golden.compare.examination import Examination
    from pytest_golden.gateway.model import Gateway
    from pytest_golden.manifest.model import GoldenProjectConfig

    KeepIf = Callable[[GoldenProjectConfig, PipelineOutcome], bool]
    FurtherJudge = Callable[[GoldenProjectConfig, PipelineOutcome], Iterable[Reason]]

_READS, _READS_INSIDE = "reads", "reads_inside"
_NO_EXAMINE = (
    "this project declares `outputs:`, but the gateway of a plug-in does not examine them: "
    "its `run_pipeline` must take `examine` and call it while the written files still exist"
)


class RegressionGuard:
    """Runs golden projects one after another through a gateway and judges them.

    `further_judge` returns more reasons against a pass. `today` decides whether a quarantine is still valid. `baselines` is what
    outputs are compared with; by default the baselines in the gateway's workspace root. `slowdowns` knows the durations of passes.
    `narrowed` are the projects of which only the part that depends on these changed files runs, as in `history.unchanged.Selection`.
    """

    def __init__(
        self,
        gateway: Gateway,
        *,
        further_judge: FurtherJudge | None = None,
        today: Callable[[], date] = lambda: utc_now().date(),
        baselines: BaselineKeeper | None = None,
        slowdowns: SlowdownJudge | None = None,
        narrowed: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self._gateway = gateway
        self._further_judge = further_judge
        self._today = today
        root = Path(getattr(gateway, "workspace_root", "."))
        self._baselines = baselines or BaselineKeeper(find_baselines_folder(None, root))
        self._slowdowns = slowdowns or SlowdownJudge(trouble="no earlier run is known")
        self._narrowed = narrowed or {}

    def check(self, projects: Iterable[GoldenProjectConfig]) -> RegressionCheckResult:
        """Run and judge the projects in the order given; never raises for a project."""
        statuses: dict[str, ResultStatus | None] = {}
        results = []
        for project in projects:
            result = self.check_one(project, statuses)
            statuses[project.name] = result.status
            results.append(result)
        return RegressionCheckResult(tuple(results))

    def check_one(
        self, project: GoldenProjectConfig, statuses: Mapping[str, ResultStatus | None]
    ) -> GoldenProjectResult:
        """Run and judge one project; retry after a failure as often as it allows. Never raises for a project.

        `statuses` are the statuses of the projects before it, as for `find_unmet_need`.
        """
        unmet = find_unmet_need(project, statuses)
        if unmet is not None:
            reason = Reason(ReasonKind.NEED_NOT_PASSED, unmet)
            return result_without_run(project, ResultStatus.SKIPPED, reason)
        result = self._attempt(project, is_last=not project.retries)
        attempts = 1
        while attempts <= project.retries and _is_worth_a_retry(result):
            result = join_reads(result, self._attempt(project, is_last=attempts == project.retries))
            attempts += 1
        is_flaky = attempts > 1 and result.status is ResultStatus.PASSED
        return self._quarantine(project, replace(result, attempts=attempts, is_flaky=is_flaky))

    def _attempt(self, project: GoldenProjectConfig, *, is_last: bool) -> GoldenProjectResult:
        changed = self._narrowed.get(project.name, ())
        try:
            examination = self._baselines.begin(project, changed)
            outcome = self._run(_narrow(project, changed), examination)
            result = judge(project, outcome)
            if outcome.ending in {Ending.NOT_STARTED, Ending.INTERRUPTED}:
                return result
            result = _tell_narrowed(result, changed, examination) if changed else self._slowdowns.judge(project, result)
            result = _add_reasons(result, tuple(self._ask_further(project, outcome)))
            result = examination.settle(result, is_last=is_last)
            return self._try_first_baselines(project, result) if self._baselines.calibrates else result
        except GoldenError as error:
            return self._harness_failed(project, str(error), "")
        except Exception as error:
            # A problem of one project must not hide the results of others.
            message = f"{type(error).__name__}: {error}"
            return self._harness_failed(project, message, traceback.format_exc())

    def _run(self, project: GoldenProjectConfig, examination: Examination) -> PipelineOutcome:
        run: Callable[..., object] = self._gateway.run_pipeline
        request = {"role": AgentRole.REGRESSION_GUARD, "permissions": Permissions(can_edit_source=False)}
        if not project.outputs:
            return _require_outcome(run(project, **request))
        if not _takes_examine(run):
            raise GatewayError(_NO_EXAMINE)
        outcome = _require_outcome(run(project, **request, examine=examination))
        if outcome.ending is Ending.EXITED and outcome.problem is None and not examination.was_asked:
            raise GatewayError(_NO_EXAMINE)
        return outcome

    def _try_first_baselines(self, project: GoldenProjectConfig, result: GoldenProjectResult) -> GoldenProjectResult:
        """Run a project again under other conditions after its first outputs were accepted, and warn about unstable parts."""
        changes = {output.change for output in result.accepted or ()}
        if changes != {OutputChange.NEW} or result.status is not ResultStatus.PASSED:
            return result
        from pytest_golden.gate.calibrating import describe_second_run, ends_as_expected, list_clocks, vary

        for clock in list_clocks(project):
            varying = vary(project, 1, clock, took_seconds=result.execution_time_seconds)
            outcome = self._run(varying, BaselineKeeper(self._baselines.folder).begin(project))
            if ends_as_expected(project, outcome):
                break
        warning = describe_second_run(project, outcome, clock)
        return result if warning is None else replace(result, warnings=(*result.warnings, warning))

    def _ask_further(self, project: GoldenProjectConfig, outcome: PipelineOutcome) -> Iterator[Reason]:
        for reason in self._further_judge(project, outcome) if self._further_judge is not None else ():
            path = None if reason.path is None else self._redact(project, reason.path)
            yield Reason(reason.kind, self._redact(project, reason.message), path)

    def _redact(self, project: GoldenProjectConfig, text: str) -> str:
        """Redact as the gateway does, because only it knows the secrets of a project. A plugged-in gateway may not offer this."""
        own: Callable[[GoldenProjectConfig, str], str] | None = getattr(self._gateway, "redact", None)
        return redact(text) if own is None else own(project, text)

    def _harness_failed(self, project: GoldenProjectConfig, message: str, details: str) -> GoldenProjectResult:
        failed = error_result(project, ReasonKind.HARNESS, self._redact(project, message))
        return replace(failed, output_summary=self._redact(project, details))

    def _quarantine(self, project: GoldenProjectConfig, result: GoldenProjectResult) -> GoldenProjectResult:
        quarantine = project.quarantine
        if quarantine is None or not result.status.is_failure or result.is_interrupted:
            return result
        if self._today() <= quarantine.until:
            return replace(result, quarantined=f"{quarantine.reason} (until {quarantine.until})")
        warning = f"The quarantine of {project.name} ended on {quarantine.until}: {quarantine.reason}."
        return replace(result, warnings=(*result.warnings, warning))


def _narrow(project: GoldenProjectConfig, changed: tuple[str, ...]) -> GoldenProjectConfig:
    """Return the project with the changed files for its runner, so that only the part that depends on them runs."""
    if not changed:
        return project
    return replace(project, set_env={**project.set_env, CHANGED_FILES: json.dumps(changed)})


def _tell_narrowed(
    result: GoldenProjectResult, changed: tuple[str, ...], examination: Examination
) -> GoldenProjectResult:
    """Return the result of a run in part. Its reads are not all reads of the project."""
    trajectory = result.trajectory
    if trajectory is not None and _READS in _get_metadata(result):
        unknown = {_READS: None, _READS_INSIDE: None}
        trajectory = {**trajectory, "metadata": {**_get_metadata(result), **unknown}}
    return replace(result, narrowed_to=changed, left_out=examination.left_out, trajectory=trajectory)


def find_unmet_need(project: GoldenProjectConfig, statuses: Mapping[str, ResultStatus | None]) -> str | None:
    """Say which needed project did not pass, or None if all did.

    `statuses` are the statuses of this session so far; None for a project that began and never ended. A needed project that
    is missing there was not selected, and does not count.
    """
    for name in project.needs:
        if name in statuses and statuses[name] is not ResultStatus.PASSED:
            ended = statuses[name] or "never finished"
            return f"{project.name} needs {name}, which did not pass ({ended}): make {name} pass first."
    return None


def join_reads(earlier: GoldenProjectResult, last: GoldenProjectResult) -> GoldenProjectResult:
    """Return the last attempt's result with the reads of both attempts; unknown if those of one are unknown."""
    if last.trajectory is None or _READS not in _get_metadata(last):
        return last
    before, now = (_get_metadata(result).get(_READS) for result in (earlier, last))
    reads = None if before is None or now is None else sorted({*before, *now})
    metadata = {**_get_metadata(last), _READS: reads}
    return replace(last, trajectory={**last.trajectory, "metadata": metadata})


def _get_metadata(result: GoldenProjectResult) -> Mapping[str, Any]:
    return (result.trajectory or {}).get("metadata") or {}


def _takes_examine(run: Callable[..., object]) -> bool:
    try:
        parameters = inspect.signature(run).parameters
    except (TypeError, ValueError):  # Its signature is not known; whether it called `examine` is checked afterwards.
        return True
    return "examine" in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def _require_outcome(given: object) -> PipelineOutcome:
    if not isinstance(given, PipelineOutcome):
        raise GatewayError(f"the gateway returned {given!r}; its `run_pipeline` must return a PipelineOutcome")
    return given


def _add_reasons(result: GoldenProjectResult, further: tuple[Reason, ...]) -> GoldenProjectResult:
    if not further:
        return result
    status = ResultStatus.FAILED if result.status is ResultStatus.PASSED else result.status
    message = result.error_message or further[0].message
    return replace(result, status=status, error_message=message, reasons=(*result.reasons, *further))


def _is_worth_a_retry(result: GoldenProjectResult) -> bool:
    """Tell whether another attempt may help. Changed files stay changed, and accepted outputs are final."""
    final = {ReasonKind.INTERRUPTED, ReasonKind.PROJECT_CHANGED}
    is_final = result.accepted is not None or result.has_reason(final)
    return result.status.is_failure and not is_final


def choose_keeping(word: str, read_slowdowns: Callable[[], SlowdownJudge] | None = None) -> KeepIf | None:
    """Return the rule for `--golden-keep` and `GOLDEN_KEEP`: `none`, `failed` or `all`; None keeps nothing.

    `read_slowdowns` returns the judge of durations, because a run may fail only because it is slow. It is called after a run.
    """

    def is_wanted(project: GoldenProjectConfig, outcome: PipelineOutcome) -> bool:
        if word == "all":
            return True
        result = judge(project, outcome)
        if read_slowdowns is not None:
            result = read_slowdowns().judge(project, result)
        return result.status.is_failure

    return None if word == "none" else is_wanted
