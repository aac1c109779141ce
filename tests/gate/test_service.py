from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GatewayError
from pytest_golden.gate import RegressionGuard
from pytest_golden.gate.order import find_independent
from pytest_golden.gateway import AgentRole, Ending, ExecutionGateway, Permissions, PipelineOutcome, Problem
from pytest_golden.manifest import GoldenProjectConfig
from pytest_golden.manifest.model import Quarantine
from pytest_golden.regression import GoldenProjectResult, Reason, ReasonKind, ResultStatus

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Scripted:
    """A gateway that gives what was written down for it, as a plugged-in one might."""

    outcomes: list[PipelineOutcome | Exception]
    asked: list[tuple[str, AgentRole, Permissions]] = field(default_factory=list)

    def run_pipeline(
        self, project: GoldenProjectConfig, *, role: AgentRole, permissions: Permissions
    ) -> PipelineOutcome:
        self.asked.append((project.name, role, permissions))
        given = self.outcomes.pop(0)
        if isinstance(given, Exception):
            raise given
        return given


PASS = PipelineOutcome(Ending.EXITED, 0)
FAIL = PipelineOutcome(Ending.EXITED, 3)
STOP = PipelineOutcome(Ending.INTERRUPTED)


def check_one(project: GoldenProjectConfig, *outcomes: PipelineOutcome | Exception) -> GoldenProjectResult:
    return RegressionGuard(Scripted([*outcomes])).check_one(project, {})


def test_real_pipelines_are_judged_in_order(tmp_path: Path) -> None:
    (tmp_path / "good.sh").write_text("exit 0\n")
    (tmp_path / "bad.sh").write_text("exit 4\n")
    projects = [GoldenProjectConfig("bad", "bad.sh"), GoldenProjectConfig("good", "good.sh")]
    with ExecutionGateway(tmp_path, view="copy") as gateway:
        check = RegressionGuard(gateway).check(projects)
    assert [(result.name, result.status) for result in check.results] == [("bad", "FAILED"), ("good", "PASSED")]
    assert check.failed_count == 1


def test_guard_asks_with_its_role_and_may_not_edit_sources() -> None:
    gateway = Scripted([PASS])
    RegressionGuard(gateway).check([GoldenProjectConfig("one", "one.sh")])
    assert gateway.asked == [("one", AgentRole.REGRESSION_GUARD, Permissions(can_edit_source=False))]


def test_retries_stop_at_the_first_pass() -> None:
    result = check_one(GoldenProjectConfig("one", "one.sh", retries=3), FAIL, PASS, FAIL)
    assert (result.status, result.attempts, result.is_flaky) == ("PASSED", 2, True)


def test_retries_end() -> None:
    result = check_one(GoldenProjectConfig("one", "one.sh", retries=1), FAIL, FAIL, PASS)
    assert (result.status, result.attempts, result.is_flaky) == ("FAILED", 2, False)


def test_interrupted_project_is_not_tried_again_and_no_quarantine_covers_it() -> None:
    quarantine = Quarantine(until=date(2999, 1, 1), reason="flaky")
    result = check_one(GoldenProjectConfig("one", "one.sh", retries=3, quarantine=quarantine), STOP, PASS)
    assert (result.status, result.attempts, result.quarantined) == ("ERROR", 1, None)


@pytest.mark.parametrize(("today", "covered"), [(date(2026, 5, 1), True), (date(2026, 5, 2), False)])
def test_quarantine_lasts_until_its_day(today: date, covered: bool) -> None:
    project = GoldenProjectConfig("one", "one.sh", quarantine=Quarantine(until=date(2026, 5, 1), reason="flaky"))
    result = RegressionGuard(Scripted([FAIL]), today=lambda: today).check_one(project, {})
    assert (result.quarantined is not None) is covered
    assert result.is_regression is not covered
    assert bool(result.warnings) is not covered


def test_pass_is_not_quarantined() -> None:
    project = GoldenProjectConfig("one", "one.sh", quarantine=Quarantine(until=date(2999, 1, 1), reason="flaky"))
    assert check_one(project, PASS).quarantined is None


def test_unmet_need_is_skipped_and_a_regression() -> None:
    gateway = Scripted([FAIL])
    projects = [
        GoldenProjectConfig("base", "a.sh"),
        GoldenProjectConfig("next", "b.sh", needs=("base",)),
        GoldenProjectConfig("last", "c.sh", needs=("next",)),
    ]
    check = RegressionGuard(gateway).check(projects)
    assert [result.status for result in check.results] == ["FAILED", "SKIPPED", "SKIPPED"]
    assert [result.attempts for result in check.results] == [1, 0, 0]
    assert check.failed_count == 3
    assert check.results[1].reasons[0].kind == ReasonKind.NEED_NOT_PASSED


def test_need_that_began_and_never_ended_is_unmet() -> None:
    result = RegressionGuard(Scripted([])).check_one(
        GoldenProjectConfig("next", "b.sh", needs=("base",)), {"base": None}
    )
    assert result.status is ResultStatus.SKIPPED
    assert "never finished" in (result.error_message or "")


@pytest.mark.parametrize("error", [GatewayError("no sandbox here"), ValueError("a bug")])
def test_trouble_of_the_harness_is_an_error_and_the_next_project_runs(error: Exception) -> None:
    projects = [GoldenProjectConfig("one", "a.sh"), GoldenProjectConfig("two", "b.sh")]
    first, second = RegressionGuard(Scripted([error, PASS])).check(projects).results
    assert (first.status, first.reasons[0].kind) == ("ERROR", "harness")
    assert str(error) in (first.error_message or "")
    assert ("Traceback" in first.output_summary) is isinstance(error, ValueError)
    assert second.status is ResultStatus.PASSED


def test_further_reasons_fail_a_pass_and_join_a_failure() -> None:
    def complain(project: GoldenProjectConfig, outcome: PipelineOutcome) -> tuple[Reason, ...]:
        return (Reason("too_quiet", f"{project.name} said nothing"),) if project.name != "fine" else ()

    guard = RegressionGuard(Scripted([PASS, FAIL, PASS, STOP]), further_judge=complain)
    passed, failed, fine, stopped = guard.check(
        [GoldenProjectConfig(name, "a.sh") for name in ("one", "two", "fine", "stopped")]
    ).results
    assert (passed.status, passed.error_message) == ("FAILED", "one said nothing")
    assert [reason.kind for reason in failed.reasons] == ["exit_code", "too_quiet"]
    assert fine.status is ResultStatus.PASSED
    assert [reason.kind for reason in stopped.reasons] == ["interrupted"]


def test_only_projects_tied_to_no_other_are_independent() -> None:
    projects = [
        GoldenProjectConfig("free", "a.sh", independent=True),
        GoldenProjectConfig("plain", "b.sh"),
        GoldenProjectConfig("needed", "c.sh", independent=True),
        GoldenProjectConfig("needing", "d.sh", needs=("needed",)),
    ]
    assert find_independent(projects) == {"free"}


def test_plain_words_of_a_plugged_in_gateway_are_understood() -> None:
    outcome = PipelineOutcome(ending="exited", exit_code=0)  # type: ignore[arg-type]
    assert check_one(GoldenProjectConfig("one", "one.sh"), outcome).status is ResultStatus.PASSED


def test_gateway_that_gives_no_outcome_is_named() -> None:
    result = check_one(GoldenProjectConfig("one", "one.sh"), None)  # type: ignore[arg-type]
    assert result.status is ResultStatus.ERROR
    assert result.error_message == "the gateway gave None; its `run_pipeline` must give a PipelineOutcome"


def test_another_attempt_does_not_hide_that_the_project_was_changed() -> None:
    changed = PipelineOutcome(Ending.EXITED, 0, problem=Problem.PROJECT_CHANGED, changed_underneath=("data.csv",))
    result = check_one(GoldenProjectConfig("one", "one.sh", retries=3), changed, PASS)
    assert (result.status, result.attempts) == (ResultStatus.ERROR, 1)
    assert "data.csv" in str(result.error_message)


def test_secret_in_a_further_reason_is_redacted_with_what_the_gateway_knows(tmp_path: Path) -> None:
    (tmp_path / "one.sh").write_text("true\n")
    project = GoldenProjectConfig("one", "one.sh", set_env={"API_TOKEN": "zebra-stripes-77"})

    def judge_further(*_: object) -> tuple[Reason, ...]:
        return (Reason("mine", "it said zebra-stripes-77", "out/zebra-stripes-77.txt"),)

    with ExecutionGateway(tmp_path, view="copy") as gateway:
        result = RegressionGuard(gateway, further_judge=judge_further).check_one(project, {})
    assert result.status is ResultStatus.FAILED
    assert "zebra" not in str(result.to_dict())
