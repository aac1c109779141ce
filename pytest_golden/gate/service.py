"""Run and judge golden projects: needs, retries, quarantine and further judges. One place for pytest, cycle and CLI."""

from __future__ import annotations

import traceback
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_golden.clock import utc_now
from pytest_golden.errors import GatewayError, GoldenError
from pytest_golden.gate.order import find_unmet_need
from pytest_golden.gateway.model import AgentRole, Ending, Permissions, PipelineOutcome
from pytest_golden.redaction import redact
from pytest_golden.regression import judge
from pytest_golden.regression.model import (
    GoldenProjectResult,
    Reason,
    ReasonKind,
    RegressionCheckResult,
    ResultStatus,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import date

    from pytest_golden.gateway.model import Gateway
    from pytest_golden.manifest.model import GoldenProjectConfig

    FurtherJudge = Callable[[GoldenProjectConfig, PipelineOutcome], Iterable[Reason]]

_REGRESSIONS = frozenset({ResultStatus.FAILED, ResultStatus.ERROR})


class RegressionGuard:
    """Runs golden projects one after another through a gateway and judges them.

    `further_judge` gives more reasons against a pass. `today` decides whether a quarantine lasts.
    """

    def __init__(
        self,
        gateway: Gateway,
        *,
        further_judge: FurtherJudge | None = None,
        today: Callable[[], date] = lambda: utc_now().date(),
    ) -> None:
        self._gateway = gateway
        self._further_judge = further_judge
        self._today = today

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
        """Run and judge one project, again after a failure as often as it may; never raises for a project.

        `statuses` tells what ran before it, as `find_unmet_need` wants it.
        """
        unmet = find_unmet_need(project, statuses)
        if unmet is not None:
            reason = Reason(ReasonKind.NEED_NOT_PASSED, unmet)
            return _without_run(project, ResultStatus.SKIPPED, reason)
        result = self._attempt(project)
        attempts = 1
        while attempts <= project.retries and _is_worth_a_retry(result):
            result = self._attempt(project)
            attempts += 1
        is_flaky = attempts > 1 and result.status is ResultStatus.PASSED
        return self._quarantine(project, replace(result, attempts=attempts, is_flaky=is_flaky))

    def _attempt(self, project: GoldenProjectConfig) -> GoldenProjectResult:
        try:
            outcome = self._gateway.run_pipeline(
                project, role=AgentRole.REGRESSION_GUARD, permissions=Permissions(can_edit_source=False)
            )
            result = judge(project, _require_outcome(outcome))
            if outcome.ending in {Ending.NOT_STARTED, Ending.INTERRUPTED}:
                return result
            return _add_reasons(result, tuple(self._ask_further(project, outcome)))
        except GoldenError as error:
            return self._harness_failed(project, str(error), "")
        except Exception as error:
            # One project's trouble must not hide the others' results.
            message = f"{type(error).__name__}: {error}"
            return self._harness_failed(project, message, traceback.format_exc())

    def _ask_further(self, project: GoldenProjectConfig, outcome: PipelineOutcome) -> Iterator[Reason]:
        for reason in self._further_judge(project, outcome) if self._further_judge is not None else ():
            path = None if reason.path is None else self._redact(project, reason.path)
            yield Reason(reason.kind, self._redact(project, reason.message), path)

    def _redact(self, project: GoldenProjectConfig, text: str) -> str:
        """Redact as the gateway does, which alone knows a project's secret values; a plugged-in one may not offer it."""
        own: Callable[[GoldenProjectConfig, str], str] | None = getattr(self._gateway, "redact", None)
        return redact(text) if own is None else own(project, text)

    def _harness_failed(self, project: GoldenProjectConfig, message: str, details: str) -> GoldenProjectResult:
        failed = error_result(project, ReasonKind.HARNESS, self._redact(project, message))
        return replace(failed, output_summary=self._redact(project, details))

    def _quarantine(self, project: GoldenProjectConfig, result: GoldenProjectResult) -> GoldenProjectResult:
        quarantine = project.quarantine
        if quarantine is None or result.status not in _REGRESSIONS or _was_interrupted(result):
            return result
        if self._today() <= quarantine.until:
            return replace(result, quarantined=f"{quarantine.reason} (until {quarantine.until})")
        warning = f"The quarantine of {project.name} ended on {quarantine.until}: {quarantine.reason}."
        return replace(result, warnings=(*result.warnings, warning))


def _require_outcome(given: object) -> PipelineOutcome:
    if not isinstance(given, PipelineOutcome):
        raise GatewayError(f"the gateway gave {given!r}; its `run_pipeline` must give a PipelineOutcome")
    return given


def error_result(project: GoldenProjectConfig, kind: ReasonKind, message: str) -> GoldenProjectResult:
    """Make the ERROR result of a project whose run left none, such as one whose worker crashed."""
    return _without_run(project, ResultStatus.ERROR, Reason(kind, message), attempts=1)


def _without_run(
    project: GoldenProjectConfig, status: ResultStatus, reason: Reason, attempts: int = 0
) -> GoldenProjectResult:
    return GoldenProjectResult(
        name=project.name,
        path=str(project.path),
        status=status,
        error_message=reason.message,
        reasons=(reason,),
        attempts=attempts,
    )


def _add_reasons(result: GoldenProjectResult, further: tuple[Reason, ...]) -> GoldenProjectResult:
    if not further:
        return result
    status = ResultStatus.FAILED if result.status is ResultStatus.PASSED else result.status
    message = result.error_message or further[0].message
    return replace(result, status=status, error_message=message, reasons=(*result.reasons, *further))


def _is_worth_a_retry(result: GoldenProjectResult) -> bool:
    """Tell whether another attempt may count: a project that was touched stays touched, whatever the next one shows."""
    final = {ReasonKind.INTERRUPTED, ReasonKind.PROJECT_CHANGED}
    return result.status in _REGRESSIONS and not any(reason.kind in final for reason in result.reasons)


def _was_interrupted(result: GoldenProjectResult) -> bool:
    return any(reason.kind == ReasonKind.INTERRUPTED for reason in result.reasons)
