from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.cycle.cycle_runner import CycleRunner
from pytest_golden.cycle.model import CYCLE_ORDER, CycleConfig, CycleEventType, CycleState, CycleStep, CycleVerdict
from pytest_golden.cycle.rules import get_final_status
from pytest_golden.errors import GoldenError
from pytest_golden.journal.model import Assessment
from pytest_golden.journal.service import Journal
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.regression.model import GoldenProjectResult, ResultStatus
from pytest_golden.regression.verdict import RegressionCheckResult
from tests.cycle.conftest import Cycle, InstantGateway, Missing, reasons

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "ghp_" + "a1B2" * 9


def kept(root: Path, state: CycleState) -> Path:
    return root / ".golden" / "cycles" / f"{state.cycle_id}.json"


def test_an_approved_improvement_on_which_all_pass_is_verified(cycle: Cycle) -> None:
    state = cycle.run()
    assert [record.step for record in state.steps] == list(CYCLE_ORDER)
    assert (state.verdict, get_final_status(state)) == (CycleVerdict.VERIFIED, "SUCCESS")
    assert (state.improvements_approved, state.improvements_rejected, state.regressions_detected) == (1, 0, 0)
    assert cycle.called == ["project_selection", "user_execution", "observation", "improvement", "review"]
    assert cycle.gateway.ran == ["etl"]
    assert state.completed
    assert state.started_at is not None
    assert state.finished_at is not None
    assert state.warnings == ()


def test_an_approved_improvement_that_breaks_something_is_flagged_and_not_undone(cycle: Cycle) -> None:
    cycle.gateway.codes["etl"] = 3
    state = cycle.run()
    assert state.verdict is CycleVerdict.FLAGGED
    assert get_final_status(state) == "PARTIAL (1 golden project(s) failed)"
    assert state.regression_check is not None
    assert state.regression_check.results[0].status is ResultStatus.FAILED


def test_what_a_step_does_to_the_state_that_it_is_given_changes_nothing(cycle: Cycle) -> None:
    def cheat(state: CycleState) -> dict[str, bool]:
        for name, value in (("regressions_detected", 0), ("verdict", CycleVerdict.VERIFIED), ("exit_status", "")):
            object.__setattr__(state, name, value)
        return {"approved": True}

    cycle.answers |= {"review": cheat, "summary": cheat, "exit": cheat}
    cycle.gateway.codes["etl"] = 3
    state = cycle.run()
    assert (state.verdict, state.regressions_detected) == (CycleVerdict.FLAGGED, 1)
    assert get_final_status(state) == "PARTIAL (1 golden project(s) failed)"


def test_a_check_of_somebody_elses_may_warn_as_any_step_may(cycle: Cycle) -> None:
    check = RegressionCheckResult((GoldenProjectResult("etl", "etl.py", ResultStatus.PASSED),))
    cycle.answers["regression_checks"] = {"regression_check": check, "warnings": ["the data is of yesterday"]}
    state = cycle.run()
    assert (state.verdict, state.warnings) == (CycleVerdict.VERIFIED, ("the data is of yesterday",))


@pytest.mark.parametrize("answer", [{"approved": False}, {"approved": 1}, {"approved": "yes"}, {}, None])
def test_only_true_approves_and_what_is_rejected_is_checked_all_the_same(cycle: Cycle, answer: Any) -> None:
    cycle.answers["review"] = answer
    state = cycle.run()
    assert (state.verdict, state.improvements_rejected) == (CycleVerdict.REJECTED, 1)
    assert get_final_status(state) == "PARTIAL (all improvements rejected)"
    assert cycle.gateway.ran == ["etl"]


def test_a_missing_review_rejects_and_says_so(cycle: Cycle) -> None:
    cycle.answers["review"] = Missing
    state = cycle.run()
    assert reasons(state)[CycleStep.REVIEW] == ("skipped", "No review is given, so that the proposal is rejected")
    assert state.warnings == ("No review is given, so that the proposal is rejected",)
    assert state.verdict is CycleVerdict.REJECTED


def test_without_a_gate_before_it_a_proposal_needs_no_review(cycle: Cycle) -> None:
    state = cycle.run(gated_improvements=False)
    assert "review" not in cycle.called
    assert reasons(state)[CycleStep.REVIEW][0] == "skipped"
    assert (state.verdict, state.improvements_approved) == (CycleVerdict.VERIFIED, 1)


@pytest.mark.parametrize("answer", [None, {}, {"proposal": None}, {"proposal": ""}, Missing])
def test_without_a_proposal_there_is_nothing_to_review_and_nothing_to_verify(cycle: Cycle, answer: Any) -> None:
    cycle.answers["improvement"] = answer
    state = cycle.run(max_improvements=3)
    assert reasons(state)[CycleStep.REVIEW] == ("skipped", "No proposal to review")
    assert reasons(state)[CycleStep.REGRESSION_CHECKS] == ("skipped", "No improvement to verify")
    assert (state.verdict, get_final_status(state)) == (CycleVerdict.NONE, "SUCCESS")
    assert cycle.gateway.ran == []
    assert len(state.steps) == len(CYCLE_ORDER)


def test_learning_mode_only_looks(cycle: Cycle) -> None:
    state = cycle.run(max_improvements=0, require_golden_projects=True, golden_projects=())
    assert cycle.called == ["user_execution", "observation"]
    assert reasons(state)[CycleStep.PROJECT_SELECTION][0] == "skipped"
    assert reasons(state)[CycleStep.IMPROVEMENT] == ("skipped", "Learning mode: max_improvements is 0")
    assert reasons(state)[CycleStep.REGRESSION_CHECKS] == ("skipped", "No improvement to verify")
    assert get_final_status(state) == "SUCCESS"


def test_approved_without_golden_projects_is_a_success_without_a_verdict_and_a_warning(cycle: Cycle) -> None:
    state = cycle.run(golden_projects=())
    assert reasons(state)[CycleStep.REGRESSION_CHECKS] == ("skipped", "No golden projects configured")
    assert (state.verdict, get_final_status(state)) == (CycleVerdict.NONE, "SUCCESS")
    assert len(state.warnings) == 1


def test_required_golden_projects_that_are_not_there_fail_and_nothing_is_called(cycle: Cycle) -> None:
    state = cycle.run(golden_projects=(), require_golden_projects=True)
    assert get_final_status(state) == "FAILURE"
    assert cycle.called == []
    assert {record.status for record in state.steps} == {"skipped"}


def test_steps_five_to_seven_are_walked_again_up_to_the_limit(cycle: Cycle) -> None:
    cycle.answers["improvement"] = lambda state: {"proposal": f"number {state.improvements_approved}"}
    state = cycle.run(max_improvements=3)
    assert state.improvements_approved == 3
    assert cycle.gateway.ran == ["etl"] * 3


def test_the_same_proposal_again_is_convergence(cycle: Cycle) -> None:
    state = cycle.run(max_improvements=5)
    assert state.improvements_approved == 1
    assert [record.reason for record in state.steps if record.step is CycleStep.IMPROVEMENT] == [
        "",
        "Converged: the same proposal again",
    ]
    assert state.verdict is CycleVerdict.VERIFIED
    assert cycle.called.count("review") == 1


def test_no_further_proposal_is_convergence_and_the_last_check_stands(cycle: Cycle) -> None:
    given = iter([{"proposal": 1}, None])
    cycle.answers["improvement"] = lambda _: next(given)
    cycle.gateway.codes["etl"] = 1
    state = cycle.run(max_improvements=5)
    assert cycle.called.count("improvement") == 2
    assert state.regressions_detected == 1
    assert state.verdict is CycleVerdict.FLAGGED


def test_without_the_stop_every_round_is_walked(cycle: Cycle) -> None:
    state = cycle.run(max_improvements=3, stop_on_convergence=False)
    assert state.improvements_approved == 3
    cycle.answers["improvement"] = None
    assert len(cycle.run(max_improvements=3, stop_on_convergence=False).steps) == len(CYCLE_ORDER) + 6


def test_a_later_rejection_takes_nothing_back_unless_it_breaks_what_was_verified(cycle: Cycle) -> None:
    cycle.answers["improvement"] = lambda state: {"proposal": len(state.steps)}
    cycle.answers["review"] = lambda state: {"approved": state.improvements_approved == 0}
    assert cycle.run(max_improvements=2).verdict is CycleVerdict.VERIFIED

    def break_then_reject(state: CycleState) -> Any:
        cycle.gateway.codes["etl"] = state.improvements_approved
        return {"approved": state.improvements_approved == 0}

    cycle.answers["review"] = break_then_reject
    assert cycle.run(max_improvements=2).verdict is CycleVerdict.FLAGGED


@pytest.mark.parametrize("step", ["user_execution", "observation", "improvement"])
def test_a_step_that_raises_is_an_error_of_the_step_and_the_cycle_a_failure(cycle: Cycle, step: str) -> None:
    cycle.answers[step] = RuntimeError(f"no luck with token {SECRET}")
    state = cycle.run(max_improvements=3)
    status, reason = reasons(state)[CycleStep(step)]
    assert status == "error"
    assert "RuntimeError: no luck" in reason
    assert SECRET not in json.dumps(state.to_dict())
    assert (state.exit_status, get_final_status(state)) == ("error", "FAILURE")
    assert reasons(state)[CycleStep.REGRESSION_CHECKS] == ("skipped", "No improvement to verify")
    assert reasons(state)[CycleStep.SUMMARY][0] == "done"
    assert cycle.called.count("improvement") == (1 if step == "improvement" else 0)


def test_a_step_that_leaves_the_interpreter_by_zero_is_an_error_too(cycle: Cycle) -> None:
    cycle.answers["review"] = SystemExit(0)
    state = cycle.run()
    assert (get_final_status(state), state.verdict) == ("FAILURE", "rejected")


def test_a_review_that_raises_rejects_and_the_proposal_is_checked_all_the_same(cycle: Cycle) -> None:
    cycle.answers["review"] = ValueError("no")
    state = cycle.run(max_improvements=3)
    assert (state.improvements_rejected, cycle.gateway.ran) == (1, ["etl"])
    assert get_final_status(state) == "FAILURE"


@pytest.mark.parametrize(
    "guard",
    [
        Missing,
        RuntimeError("no gateway"),
        None,
        {},
        {"regression_check": "fine"},
        True,
        RegressionCheckResult(()),
        RegressionCheckResult((GoldenProjectResult("another", "x", ResultStatus.PASSED),)),
    ],
)
def test_a_guard_that_cannot_run_is_never_a_success(cycle: Cycle, guard: Any) -> None:
    cycle.answers["regression_checks"] = guard
    state = cycle.run()
    assert reasons(state)[CycleStep.REGRESSION_CHECKS][0] == "error"
    assert get_final_status(state) == "FAILURE"
    assert state.verdict is CycleVerdict.NONE


def test_a_guard_of_somebody_elses_is_believed_and_may_tell_of_a_weakened_floor(cycle: Cycle) -> None:
    check = RegressionCheckResult((GoldenProjectResult("etl", "etl.py", ResultStatus.PASSED),))
    cycle.answers["regression_checks"] = check
    assert cycle.run().verdict is CycleVerdict.VERIFIED
    cycle.answers["regression_checks"] = {"regression_check": check, "weakened_floor": [{"message": "lower"}]}
    state = cycle.run()
    assert (state.verdict, get_final_status(state)) == (CycleVerdict.FLAGGED, "PARTIAL (the floor is weakened)")
    assert cycle.gateway.ran == []


def test_what_did_not_run_is_not_verified(cycle: Cycle) -> None:
    skipped = RegressionCheckResult((GoldenProjectResult("etl", "etl.py", ResultStatus.SKIPPED),))
    cycle.answers["regression_checks"] = skipped
    state = cycle.run()
    assert state.verdict is CycleVerdict.NONE
    assert state.warnings == ("etl did not run, or is in quarantine: the improvement is not verified",)


@pytest.mark.parametrize("kind", ["seconds", "moments"])
def test_no_step_begins_after_the_time_limit(cycle: Cycle, kind: str) -> None:
    now = [0.0]
    start = datetime(2026, 1, 1, tzinfo=UTC)

    def pass_time(_: CycleState) -> Any:
        now[0] += 3601
        return {"proposal": "late"}

    cycle.answers["improvement"] = pass_time
    clock = (lambda: now[0]) if kind == "seconds" else lambda: start + timedelta(seconds=now[0])
    runner = cycle.make(clock=clock, max_runtime_hours=1, max_improvements=3)
    assert runner.seconds_left == 3600
    state = runner.run()
    assert runner.seconds_left == 0
    assert reasons(state)[CycleStep.REVIEW] == ("skipped", "The time limit is reached")
    assert cycle.gateway.ran == []
    assert get_final_status(state) == "FAILURE"
    if kind == "moments":
        assert state.started_at == start


def test_the_time_limit_after_a_verified_improvement_only_ends_the_rounds(cycle: Cycle) -> None:
    now = [0.0]

    def check(_: CycleState) -> Any:
        now[0] += 7200
        return RegressionCheckResult((GoldenProjectResult("etl", "etl.py", ResultStatus.PASSED),))

    cycle.answers["regression_checks"] = check
    state = cycle.make(clock=lambda: now[0], max_runtime_hours=1, max_improvements=3).run()
    assert (state.verdict, get_final_status(state)) == (CycleVerdict.VERIFIED, "SUCCESS")
    assert cycle.called.count("improvement") == 1


def test_an_interrupt_gives_the_state_back_and_resume_goes_on_with_the_step_that_was_running(cycle: Cycle) -> None:
    cycle.answers["review"] = KeyboardInterrupt()
    state = cycle.run()
    assert state.interrupted
    assert get_final_status(state) == "FAILURE"
    assert json.loads(kept(cycle.root, state).read_text())["cycle"]["position"] == "review"
    cycle.called.clear()
    cycle.answers["review"] = lambda present: {"approved": present.proposal == "a better lib.py"}
    again = cycle.make().resume(state.cycle_id)
    assert cycle.called == ["review"]
    assert (again.verdict, get_final_status(again)) == (CycleVerdict.VERIFIED, "SUCCESS")
    assert [record.step for record in again.steps] == list(CYCLE_ORDER)
    assert again.started_at == state.started_at


def test_what_the_cycle_has_used_of_its_time_counts_when_it_is_resumed(cycle: Cycle) -> None:
    now = [0.0]

    def interrupt(_: CycleState) -> Any:
        now[0] += 3000
        raise KeyboardInterrupt

    cycle.answers["review"] = interrupt
    state = cycle.make(clock=lambda: now[0], max_runtime_hours=1).run()
    runner = cycle.make(clock=lambda: 0.0, max_runtime_hours=1)
    cycle.answers["review"] = {"approved": True}
    assert get_final_status(runner.resume(state.cycle_id)) == "SUCCESS"
    assert runner.seconds_left == 600


@pytest.mark.parametrize("proposal", [f"token {SECRET}", {1: "a key that is not text"}, object()])
def test_a_proposal_that_cannot_be_kept_is_made_again_on_resume(cycle: Cycle, proposal: Any) -> None:
    cycle.answers["improvement"] = {"proposal": proposal}
    cycle.answers["review"] = KeyboardInterrupt()
    state = cycle.run()
    assert SECRET not in kept(cycle.root, state).read_text()
    cycle.answers["review"] = {"approved": True}
    again = cycle.make().resume(state.cycle_id)
    assert cycle.called.count("improvement") == 2
    assert again.improvements_approved == 1


def test_a_cycle_that_has_ended_is_not_taken_up_again(cycle: Cycle) -> None:
    state = cycle.run()
    with pytest.raises(GoldenError, match="has ended"):
        cycle.make().resume(state.cycle_id)


def test_a_listener_that_raises_breaks_nothing_and_every_step_is_told(cycle: Cycle) -> None:
    def listen(event: object) -> None:
        raise RuntimeError(str(event))

    told: dict[str, Any] = {"golden_projects": "etl:etl.py"}
    config = CycleConfig(cycle.root, max_improvements=1, **told)
    state = CycleRunner(config, on_event=listen, gateway=cycle.gateway, store="none").run()
    assert get_final_status(state) == "SUCCESS"
    cycle.answers["review"] = Missing
    cycle.run()
    kinds = [event.event_type for event in cycle.events]
    assert kinds[0] is CycleEventType.STARTED
    assert kinds[-1] is CycleEventType.FINISHED
    assert CycleEventType.WARNING in kinds
    ended = {event.step for event in cycle.events if event.event_type is not CycleEventType.STEP_STARTED}
    assert ended == set(CYCLE_ORDER)
    by_step = {event.step: str(event.agent_role) for event in cycle.events}
    assert [by_step[step] for step in CYCLE_ORDER] == [
        *("environment", "project", "user", "observer", "improvement", "reviewer", "regression_guard"),
        *("curriculum", "convergence", "convergence"),
    ]
    assert cycle.events[0].to_dict()["message"] == "Scheduled maintenance cycle"


def test_steps_that_are_none_and_roots_that_are_none_are_refused(cycle: Cycle, tmp_path: Path) -> None:
    config = CycleConfig(tmp_path)
    with pytest.raises(ValueError, match="there is no step 'reviews'; the steps are env_validation"):
        CycleRunner(config, steps={"reviews": lambda _: None})
    with pytest.raises(ValueError, match="review must be a callable"):
        CycleRunner(config, steps={"review": "true"})  # type: ignore[dict-item]
    cycle.answers["user_execution"] = "text"
    assert "must return a mapping" in reasons(cycle.run())[CycleStep.USER_EXECUTION][1]


def test_a_root_that_is_gone_fails_before_anything_is_called(cycle: Cycle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(cycle.root))
    cycle.root = cycle.root / "gone"
    cycle.root.mkdir()
    runner = cycle.make()
    cycle.root.rmdir()
    state = runner.run()
    assert "is not a folder" in reasons(state)[CycleStep.ENV_VALIDATION][1]
    assert get_final_status(state) == "FAILURE"
    assert cycle.called == []


def test_the_cycle_is_an_entry_with_an_expectation_for_each_project(cycle: Cycle, gateway: InstantGateway) -> None:
    gateway.codes["broken"] = 1
    state = cycle.run(store=None, golden_projects="etl:etl.py, broken:b.py", task_description=f"use {SECRET}")
    database = cycle.root / ".golden" / "golden.db"
    with Journal.open(database) as journal:
        (entry,) = journal.review_journal("all", "cycle", agent_id="golden")
        assert entry.session_key == state.cycle_id
        assert SECRET not in entry.intent
        met = {one.description: str(one.status) for one in journal.get(entry.id).expectations}
    assert met == {
        "an improvement is approved": "met",
        "the floor holds": "met",
        "etl passes": "met",
        "broken passes": "unmet",
    }
    assert (entry.assessment, str(entry.immediate_result)) == (Assessment.FAILURE, "partial")
    assert entry.actions[0]["verdict"] == "flagged"
    with MemoryStore.open(database) as memories:
        (key,) = memories.list_keys(("outcomes", "golden"))
        memory = memories.get(("outcomes", "golden"), key)
    assert memory is not None
    assert memory.value["context"]["cycle_id"] == state.cycle_id
    assert memory.value["success"] is False


def test_a_cycle_without_a_proposal_closes_its_entry_too(cycle: Cycle) -> None:
    cycle.answers["improvement"] = None
    cycle.run(store=None)
    with Journal.open(cycle.root / ".golden" / "golden.db") as journal:
        (entry,) = journal.review_journal("success", "cycle", agent_id="golden")
    assert entry.closed_at is not None


def test_a_store_that_takes_nothing_changes_no_verdict(cycle: Cycle) -> None:
    (cycle.root / "store").mkdir()
    state = cycle.run(store=str(cycle.root / "store"))
    assert state.verdict is CycleVerdict.VERIFIED
    assert reasons(state)[CycleStep.MEMORY_PERSISTENCE][0] == "skipped"
    assert len(state.warnings) == 2
    assert get_final_status(state) == "SUCCESS"


def test_a_memory_step_that_is_given_as_none_keeps_nothing(cycle: Cycle) -> None:
    cycle.answers["memory_persistence"] = Missing
    assert reasons(cycle.run(store=None))[CycleStep.MEMORY_PERSISTENCE] == ("skipped", "No such step is given")


def test_our_own_guard_runs_the_projects_of_the_root(tmp_path: Path) -> None:
    (tmp_path / "etl.py").write_text("print('fine')\n")
    steps: Any = {CycleStep.IMPROVEMENT: lambda _: {"proposal": 1}, CycleStep.REVIEW: lambda _: {"approved": True}}
    told: dict[str, Any] = {"golden_projects": [{"name": "etl", "path": "etl.py"}]}
    config = CycleConfig(tmp_path, max_improvements=1, **told)
    state = CycleRunner(config, steps=steps, store="none").run()
    assert state.verdict is CycleVerdict.VERIFIED
    assert state.regression_check is not None
    assert state.regression_check.results[0].log_path is not None
