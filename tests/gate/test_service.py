from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import GatewayError
from pytest_golden.gate.service import RegressionGuard, choose_keeping, join_reads
from pytest_golden.gateway.model import AgentRole, Ending, Permissions, PipelineOutcome
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.manifest.model import GoldenProjectConfig, Mount, Quarantine, find_independent
from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus
from pytest_golden.regression.slowdown import DurationTrend, SlowdownJudge
from tests.gateway.conftest import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WAITING = """echo '{"name": "waiting"}' > "$GOLDEN_STEPS"; exec sleep 30"""
MUST_PASS = GoldenProjectConfig("a", "a.py")
MUST_FAIL = GoldenProjectConfig("b", "b.py", expected_outcome="exit_code:3")


@dataclass
class Workspace:
    """A workspace with a gateway on it, and a folder outside the projects that pipelines may really write to."""

    gateway: ExecutionGateway
    path: Path
    outside: Path

    def declare(self, name: str, script: str, /, **keys: Any) -> GoldenProjectConfig:
        """Write a shell pipeline into a folder of its own; it runs with the outside folder as $OUTSIDE."""
        folder = self.path / name
        folder.mkdir()
        (folder / "run.sh").write_text(script + "\n")
        outside = str(self.outside)
        mounts = (Mount(outside, "write"),)
        return GoldenProjectConfig(name, f"{name}/run.sh", mounts=mounts, set_env={"OUTSIDE": outside}, **keys)

    def check_one(self, project: GoldenProjectConfig) -> GoldenProjectResult:
        return RegressionGuard(self.gateway).check_one(project, {})

    def count_runs(self) -> int:
        """Count the runs of a script that says so by COUNTED."""
        return len((self.outside / "runs").read_text().splitlines())


COUNTED = 'echo ran >> "$OUTSIDE/runs"\n'


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    for name in ("workspace", "outside"):
        (tmp_path / name).mkdir()
    with ExecutionGateway(tmp_path / "workspace", view="copy") as gateway:
        yield Workspace(gateway, tmp_path / "workspace", tmp_path / "outside")


@pytest.fixture
def interrupt_when_waiting(workspace: Workspace) -> Iterator[Callable[[], None]]:
    """Send this process a Ctrl-C as soon as a pipeline says that it waits."""

    def interrupt() -> None:
        if wait_until(lambda: workspace.gateway.present_step() == "waiting"):
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    yield thread.start
    thread.join()


@dataclass
class PluggedIn:
    """A gateway of a third party, which the guard knows by its one method only."""

    given: list[Any]
    asked: list[tuple[str, AgentRole, Permissions]] = field(default_factory=list)

    def run_pipeline(
        self, project: GoldenProjectConfig, *, role: AgentRole, permissions: Permissions
    ) -> PipelineOutcome:
        self.asked.append((project.name, role, permissions))
        given = self.given.pop(0)
        if isinstance(given, Exception):
            raise given
        outcome: PipelineOutcome = given
        return outcome


PASS = PipelineOutcome(Ending.EXITED, 0)


def test_real_pipelines_are_judged_in_order(workspace: Workspace) -> None:
    projects = [workspace.declare("bad", "exit 4"), workspace.declare("good", "exit 0")]
    check = RegressionGuard(workspace.gateway).check(projects)
    assert [(result.name, result.status) for result in check.results] == [("bad", "FAILED"), ("good", "PASSED")]
    assert check.failed_count == 1


def test_guard_asks_with_its_role_and_may_not_edit_sources() -> None:
    gateway = PluggedIn([PASS])
    RegressionGuard(gateway).check([GoldenProjectConfig("one", "one.sh")])
    assert gateway.asked == [("one", AgentRole.REGRESSION_GUARD, Permissions(can_edit_source=False))]


def test_retries_stop_at_the_first_pass(workspace: Workspace) -> None:
    project = workspace.declare("one", COUNTED + '[ "$(wc -l < "$OUTSIDE/runs")" -eq 2 ]', retries=3)
    result = workspace.check_one(project)
    assert (result.status, result.attempts, result.is_flaky) == ("PASSED", 2, True)
    assert workspace.count_runs() == 2


def test_retries_end(workspace: Workspace) -> None:
    result = workspace.check_one(workspace.declare("one", COUNTED + "exit 3", retries=1))
    assert (result.status, result.attempts, result.is_flaky) == ("FAILED", 2, False)
    assert workspace.count_runs() == 2


def test_interrupted_project_is_not_tried_again_and_no_quarantine_covers_it(
    workspace: Workspace, interrupt_when_waiting: Callable[[], None]
) -> None:
    quarantine = Quarantine(until=date(2999, 1, 1), reason="flaky")
    project = workspace.declare("one", COUNTED + WAITING, retries=3, quarantine=quarantine)
    interrupt_when_waiting()
    result = workspace.check_one(project)
    assert (result.status, result.attempts, result.quarantined) == ("ERROR", 1, None)
    assert workspace.count_runs() == 1


@pytest.mark.parametrize(("today", "covered"), [(date(2026, 5, 1), True), (date(2026, 5, 2), False)])
def test_quarantine_lasts_until_its_day(workspace: Workspace, today: date, covered: bool) -> None:
    project = workspace.declare("one", "exit 3", quarantine=Quarantine(until=date(2026, 5, 1), reason="flaky"))
    result = RegressionGuard(workspace.gateway, today=lambda: today).check_one(project, {})
    assert (result.quarantined is not None) is covered
    assert result.is_regression is not covered
    assert bool(result.warnings) is not covered


def test_pass_is_not_quarantined(workspace: Workspace) -> None:
    project = workspace.declare("one", "exit 0", quarantine=Quarantine(until=date(2999, 1, 1), reason="flaky"))
    assert workspace.check_one(project).quarantined is None


def test_unmet_need_is_skipped_and_a_regression(workspace: Workspace) -> None:
    projects = [
        workspace.declare("base", COUNTED + "exit 3"),
        workspace.declare("next", COUNTED, needs=("base",)),
        workspace.declare("last", COUNTED, needs=("next",)),
    ]
    check = RegressionGuard(workspace.gateway).check(projects)
    assert [result.status for result in check.results] == ["FAILED", "SKIPPED", "SKIPPED"]
    assert [result.attempts for result in check.results] == [1, 0, 0]
    assert check.failed_count == 3
    assert check.results[1].reasons[0].kind == ReasonKind.NEED_NOT_PASSED
    assert workspace.count_runs() == 1


def test_need_that_began_and_never_ended_is_unmet(workspace: Workspace) -> None:
    project = workspace.declare("next", COUNTED, needs=("base",))
    result = RegressionGuard(workspace.gateway).check_one(project, {"base": None})
    assert result.status is ResultStatus.SKIPPED
    assert "never finished" in (result.error_message or "")
    assert list(workspace.outside.iterdir()) == []


@pytest.mark.parametrize("error", [GatewayError("no sandbox here"), ValueError("a bug")])
def test_trouble_of_a_plugged_in_gateway_is_an_error_and_the_next_project_runs(error: Exception) -> None:
    projects = [GoldenProjectConfig("one", "a.sh"), GoldenProjectConfig("two", "b.sh")]
    first, second = RegressionGuard(PluggedIn([error, PASS])).check(projects).results
    assert (first.status, first.reasons[0].kind) == ("ERROR", "harness")
    assert str(error) in (first.error_message or "")
    assert ("Traceback" in first.output_summary) is isinstance(error, ValueError)
    assert second.status is ResultStatus.PASSED


def test_further_reasons_fail_a_pass_and_join_a_failure(
    workspace: Workspace, interrupt_when_waiting: Callable[[], None]
) -> None:
    def complain(project: GoldenProjectConfig, outcome: PipelineOutcome) -> tuple[Reason, ...]:
        return (Reason("too_quiet", f"{project.name} said nothing"),) if not outcome.stdout else ()

    scripts = {"one": "exit 0", "two": "exit 3", "fine": "echo well", "stopped": WAITING}
    projects = [workspace.declare(name, script) for name, script in scripts.items()]
    interrupt_when_waiting()
    passed, failed, fine, stopped = RegressionGuard(workspace.gateway, further_judge=complain).check(projects).results
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
    result = RegressionGuard(PluggedIn([outcome])).check_one(GoldenProjectConfig("one", "one.sh"), {})
    assert result.status is ResultStatus.PASSED


def test_plugged_in_gateway_that_gives_no_outcome_is_named() -> None:
    result = RegressionGuard(PluggedIn([None])).check_one(GoldenProjectConfig("one", "one.sh"), {})
    assert result.status is ResultStatus.ERROR
    assert result.error_message == "the gateway returned None; its `run_pipeline` must return a PipelineOutcome"


def test_another_attempt_does_not_hide_that_the_project_was_changed(workspace: Workspace) -> None:
    script = COUNTED + 'while [ ! -e "$OUTSIDE/go" ]; do sleep 0.01; done'
    project = workspace.declare("one", script, retries=3, timeout=120)

    def change_underneath() -> None:
        wait_until((workspace.outside / "runs").exists)
        (workspace.path / "one" / "data.csv").write_text("id\n1\n")
        (workspace.outside / "go").touch()

    thread = threading.Thread(target=change_underneath)
    thread.start()
    result = workspace.check_one(project)
    thread.join()
    assert (result.status, result.attempts, workspace.count_runs()) == (ResultStatus.ERROR, 1, 1)
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


def result(status: ResultStatus, **metadata: Any) -> GoldenProjectResult:
    return GoldenProjectResult("a", "a.sh", status, trajectory={"id": status.value, "metadata": metadata})


@pytest.mark.parametrize(
    ("earlier", "last", "told"),
    [(["b", "a"], ["c", "a"], ["a", "b", "c"]), (None, ["a"], None), (["a"], None, None), ([], [], [])],
)
def test_reads_of_all_attempts_count_and_unknown_ones_are_unknown(earlier: Any, last: Any, told: Any) -> None:
    joined = join_reads(result(ResultStatus.FAILED, reads=earlier), result(ResultStatus.PASSED, reads=last, other=1))
    assert joined.status is ResultStatus.PASSED
    assert joined.trajectory == {"id": "PASSED", "metadata": {"reads": told, "other": 1}}


def test_without_reads_or_a_trajectory_the_last_result_stays_as_it_is() -> None:
    failed, last = result(ResultStatus.FAILED, reads=["a"]), result(ResultStatus.PASSED)
    assert join_reads(failed, last) is last
    bare = GoldenProjectResult("a", "a.sh", ResultStatus.ERROR)
    assert join_reads(failed, bare) is bare
    unknown = join_reads(bare, result(ResultStatus.PASSED, reads=["a"])).trajectory
    assert unknown is not None
    assert unknown["metadata"] == {"reads": None}


@pytest.mark.parametrize(
    ("project", "exit_code", "is_kept"),
    [(MUST_PASS, 0, False), (MUST_PASS, 3, True), (MUST_FAIL, 3, False), (MUST_FAIL, 0, True)],
)
def test_failed_is_what_is_judged_so_and_not_an_exit_code(
    project: GoldenProjectConfig, exit_code: int, is_kept: bool
) -> None:
    keep_if = choose_keeping("failed")
    assert keep_if is not None
    assert keep_if(project, PipelineOutcome(Ending.EXITED, exit_code)) is is_kept


@pytest.mark.parametrize(("median", "is_kept"), [(0.5, True), (5.0, False)])
def test_run_that_is_too_slow_alone_has_failed(median: float, is_kept: bool) -> None:
    slowdowns = SlowdownJudge({"c": DurationTrend(3, median, 0.0)})
    keep_if = choose_keeping("failed", lambda: slowdowns)
    assert keep_if is not None
    outcome = PipelineOutcome(Ending.EXITED, 0, duration_seconds=3.0)
    assert keep_if(GoldenProjectConfig("c", "c.py", max_slowdown=2.0), outcome) is is_kept


def test_all_and_none_ask_for_no_judgement() -> None:
    keep_if = choose_keeping("all")
    assert keep_if is not None
    assert keep_if(MUST_PASS, PipelineOutcome(Ending.EXITED, 0))
    assert choose_keeping("none") is None
