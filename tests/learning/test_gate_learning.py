from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import func, select, text, update

from pytest_golden.learning.gate_learning import _BATCH, is_turn, learn_from_results, list_turns, take_turn
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.model import ExtractedPlan, Occasion, ProductionOutcome, RecordedResult
from pytest_golden.learning.seen_before import TALLIES
from pytest_golden.storage.schema import gate_results, memories, trajectories
from pytest_golden.storage.store import Store
from tests.learning.conftest import BOTH, GateHistory

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.learning.model import Memory
    from tests.learning.conftest import Clock

OUTCOMES, TRAINING = ("outcomes", "golden"), ("training", "golden")
PASSED, FAILED, SKIPPED = "PASSED", "FAILED", "SKIPPED"


def get(store: Store, namespace: tuple[str, ...], key: str) -> Memory:
    found = MemoryStore(store).get(namespace, key)
    assert found is not None
    return found


def outcome_of(store: Store, entry: str) -> ProductionOutcome:
    return ProductionOutcome.from_dict(get(store, OUTCOMES, f"outcome_{entry.removeprefix('entry_')}").value)


def count_unmarked(store: Store) -> int:
    with store.read() as connection:
        return connection.scalar(select(func.count()).where(gate_results.c.learned_at.is_(None))) or 0


@BOTH
def test_pass_and_failure_become_outcome_and_training_example(store: Store, history: GateHistory) -> None:
    run = history.run("c" * 40)
    good = history.result(run)
    bad = history.result(run, "bad", "FAILED", message="exit code 1, expected 0: no such column: amount")
    report = learn_from_results(store)
    assert (report.learned, report.left, report.unreadable, report.passed_over) == (2, 0, 0, 0)
    assert report.seconds > 0

    outcome = outcome_of(store, good)
    assert (outcome.agent_name, outcome.success, outcome.error_message) == ("golden", True, None)
    assert outcome.task_description == "Run golden project sales"
    assert outcome.execution_path == ("extract", "load")
    assert outcome.result == {
        "status": "PASSED",
        "exit_code": 0,
        "written": {"created": 1, "changed": 0, "removed": 0},
    }
    assert outcome.execution_time == 1.5
    assert outcome.context["project"] == "sales"
    assert (outcome.context["run"], outcome.context["commit"]) == (run, "c" * 40)

    failed = outcome_of(store, bad)
    assert (failed.success, failed.result["status"]) == (False, "FAILED")
    assert failed.error_message == "exit code 1, expected 0: no such column: amount"
    assert failed.context["reasons"] == [{"kind": "exit_code", "message": failed.error_message}]

    training = get(store, TRAINING, f"training_plan_{outcome.outcome_id}")
    assert ProductionOutcome.from_dict(training.value["outcome"]) == outcome
    plan = ExtractedPlan.from_dict(training.value["plan"])
    assert plan.strategy_description == "Sequential execution: extract → load"
    assert training.tags == ("se_darwin", "training", "production_learning")
    assert get(store, OUTCOMES, outcome.outcome_id).tags == ("production", "outcome", "success")
    kept = get(store, OUTCOMES, failed.outcome_id)
    assert kept.tags == ("production", "outcome", "failure")
    assert kept.provenance is not None
    assert (kept.provenance["run"], kept.provenance["commit"]) == (run, "c" * 40)


def test_provenance_names_the_steps_with_an_error(store: Store, history: GateHistory) -> None:
    failed = {"id": "step_9", "type": "action", "content": "load", "metadata": {"error": "boom"}}
    entry = history.result(history.run(), "p", "FAILED", message="boom", steps=("extract", failed))
    learn_from_results(store)
    provenance = get(store, OUTCOMES, outcome_of(store, entry).outcome_id).provenance
    assert provenance is not None
    assert provenance["steps"] == ["step_9"]


@BOTH
def test_learning_again_changes_nothing(store: Store, history: GateHistory) -> None:
    run = history.run()
    entry = history.result(run, "p", "FAILED", message="boom")
    learn_from_results(store)
    assert learn_from_results(store).learned == 0
    with store.write() as connection:
        connection.execute(update(gate_results).values(learned_at=None))
    assert learn_from_results(store).learned == 1
    assert len(MemoryStore(store).history(OUTCOMES, outcome_of(store, entry).outcome_id)) == 1
    (key,) = MemoryStore(store).list_keys(TALLIES)
    assert get(store, TALLIES, key).value["count"] == 1


@BOTH
def test_outcomes_are_found_by_words(store: Store, history: GateHistory) -> None:
    history.result(history.run(), "p", "FAILED", message="no such column: amount")
    history.result(history.run())
    learn_from_results(store)
    hits = MemoryStore(store).search_memories(("outcomes",), "amount")
    assert [hit.memory.value["context"]["project"] for hit in hits] == ["p"]
    assert len(MemoryStore(store).search_memories(TRAINING, "extract")) == 2


def test_what_was_not_run_is_passed_over(store: Store, history: GateHistory) -> None:
    history.result(history.run(), "p", "SKIPPED", kind="skip_if_missing", message="dbt is not here")
    report = learn_from_results(store)
    assert (report.learned, report.passed_over, report.left) == (0, 1, 0)
    assert MemoryStore(store).list_namespaces() == ()


def test_run_that_never_started_has_no_duration(store: Store, history: GateHistory) -> None:
    entry = history.result(
        history.run(), "p", "ERROR", message="gone", exit_code=None, execution_time_seconds=0.0, trajectory_id=None
    )
    learn_from_results(store)
    outcome = outcome_of(store, entry)
    assert (outcome.execution_time, outcome.execution_path) == (None, ())


def test_observation_of_the_harness_is_no_step(store: Store, history: GateHistory) -> None:
    said = {"id": "s", "type": "observation", "content": "timed out", "metadata": {"error": "timed out"}}
    seen = {"id": "t", "type": "observation", "content": "rows: 3"}
    run = history.run()
    first = history.result(run, "p", "ERROR", message="timed out", steps=(said,))
    second = history.result(run, "q", steps=("load", seen))
    learn_from_results(store)
    assert outcome_of(store, first).execution_path == ()
    assert outcome_of(store, second).execution_path == ("load", "rows: 3")


def test_big_runs_leave_small_outcomes_that_say_what_was_cut(store: Store, history: GateHistory) -> None:
    steps = tuple(f"step {number}\n" + "x" * 300 for number in range(3000))
    entry = history.result(history.run(), "p", "FAILED", message="boom " * 10_000, steps=steps)
    learn_from_results(store)
    outcome = outcome_of(store, entry)
    assert len(outcome.execution_path) == 100
    assert outcome.execution_path[0].startswith("step 0 x")
    assert outcome.execution_path[-1].startswith("step 2999 x")
    assert outcome.execution_path[-1].endswith(" ...")
    assert outcome.context["steps_total"] == 3000
    assert str(outcome.error_message).endswith(" ...")
    assert len(json.dumps(outcome.to_dict())) < 32_000


def test_usual_outcome_is_small(store: Store, history: GateHistory) -> None:
    entry = history.result(history.run(), steps=tuple(f"step_{number}" for number in range(20)))
    learn_from_results(store)
    assert len(json.dumps(outcome_of(store, entry).to_dict())) < 4096


@BOTH
def test_trajectory_beyond_all_measure_is_not_read(store: Store, history: GateHistory) -> None:
    entry = history.result(history.run(), steps=("x" * 5_000_000,))
    learn_from_results(store)
    assert outcome_of(store, entry).execution_path == ()


@BOTH
@pytest.mark.parametrize("broken", ["null", "[]", '{"reasons": [{"kind": "x"}]}', '{"reasons": 3}'])
def test_broken_row_is_counted_and_the_others_are_learned(store: Store, history: GateHistory, broken: str) -> None:
    learn_beside_a_broken_row(store, history, broken)


@pytest.mark.parametrize("broken", ["{", "[" * 100_000])
def test_row_of_a_file_that_is_no_json_is_counted(tmp_path: Path, broken: str) -> None:
    with Store.open(tmp_path / "golden.db") as store:
        learn_beside_a_broken_row(store, GateHistory(store), broken)


def learn_beside_a_broken_row(store: Store, history: GateHistory, broken: str) -> None:
    entries = history.results(history.run(), [("a", "PASSED", None), ("b", "FAILED", "x"), ("c", "PASSED", None)])
    with store.write() as connection:
        connection.execute(text("UPDATE gate_results SET result = :r WHERE project = 'b'"), {"r": broken})
    report = learn_from_results(store)
    assert (report.learned, report.unreadable, report.left) == (2, 1, 0)
    assert outcome_of(store, entries[2]).success
    assert learn_from_results(store).unreadable == 0


def test_broken_trajectory_is_counted(store: Store, history: GateHistory) -> None:
    history.result(history.run())
    with store.write() as connection:
        connection.execute(text("UPDATE trajectories SET body = '{\"steps\": 3}'"))
    assert learn_from_results(store).unreadable == 1


@pytest.mark.parametrize("body", ["null", "{}", '{"steps": null}', '{"steps": [3]}'])
def test_trajectory_without_steps_is_an_empty_path(store: Store, history: GateHistory, body: str) -> None:
    entry = history.result(history.run())
    with store.write() as connection:
        connection.execute(text("UPDATE trajectories SET body = :body"), {"body": body})
    if body == "null":
        assert learn_from_results(store).unreadable == 1
    else:
        learn_from_results(store)
        assert outcome_of(store, entry).execution_path == ()


def test_no_result_is_begun_after_the_budget(store: Store, history: GateHistory) -> None:
    history.results(history.run(), [(f"p{number}", "PASSED", None) for number in range(7)])
    seconds = iter(range(100))
    report = learn_from_results(store, budget_seconds=4, monotonic=lambda: float(next(seconds)))
    assert 0 < report.learned < 7
    assert report.left == 7 - report.learned
    assert learn_from_results(store, budget_seconds=0).learned == 0
    rest = learn_from_results(store)
    assert (rest.learned, rest.left) == (report.left, 0)
    assert len(MemoryStore(store).list_keys(OUTCOMES)) == 7


@BOTH
def test_more_than_a_batch_is_learned_oldest_first(store: Store, history: GateHistory, clock: Clock) -> None:
    history.results(history.run(), [(f"p{number}", "PASSED", None) for number in range(_BATCH * 2)])
    report = learn_from_results(store, clock=clock)
    assert (report.learned, report.left) == (_BATCH * 2, 0)
    with store.read() as connection:
        learned = connection.scalars(
            select(memories.c.key).where(memories.c.namespace == "outcomes/golden/").order_by(memories.c.number)
        ).all()
    assert learned == sorted(learned)
    assert get(store, OUTCOMES, learned[0]).created_at == clock.now


@BOTH
def test_what_ends_the_process_between_batches_loses_and_doubles_nothing(store: Store, history: GateHistory) -> None:
    told = [
        (f"p{number}", "FAILED" if number % 3 == 0 else "PASSED", "boom" if number % 3 == 0 else None)
        for number in range(_BATCH * 6)
    ]
    history.results(history.run(), told)
    script = (
        "import sys\n"
        "from pytest_golden.learning.gate_learning import learn_from_results\n"
        "from pytest_golden.storage.store import Store\n"
        "with Store.open(sys.argv[1]) as store:\n"
        "    print('go', flush=True)\n"
        "    learn_from_results(store, budget_seconds=60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, store.where], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    assert process.stdout is not None
    process.stdout.readline()
    deadline = time.monotonic() + 60
    while count_unmarked(store) == len(told) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    done = len(told) - count_unmarked(store)
    assert len(MemoryStore(store).list_keys(OUTCOMES)) == done
    learn_from_results(store, budget_seconds=60)
    outcomes = MemoryStore(store).list_keys(OUTCOMES)
    assert len(outcomes) == len(MemoryStore(store).list_keys(TRAINING)) == len(told)
    tallies = [get(store, TALLIES, key).value["count"] for key in MemoryStore(store).list_keys(TALLIES)]
    assert tallies == [1] * (len(told) // 3)


@BOTH
def test_steps_beyond_the_short_form_are_read_too(store: Store, history: GateHistory) -> None:
    entry = history.result(history.run(), steps=("load", "x" * 100_000))
    learn_from_results(store)
    assert outcome_of(store, entry).execution_path[0] == "load"


def test_result_whose_trajectory_is_gone_is_learned(store: Store, history: GateHistory) -> None:
    entry = history.result(history.run())
    with store.write() as connection:
        connection.execute(trajectories.delete())
    learn_from_results(store)
    assert outcome_of(store, entry).execution_path == ()


@BOTH
def test_hundreds_of_results_are_learned_at_once(store: Store, history: GateHistory) -> None:
    told: list[Any] = [(f"p{number}", "PASSED", None) for number in range(300)]
    history.results(history.run(), told)
    learn_from_results(store, budget_seconds=600)
    assert count_unmarked(store) == 0


def result(status: str, branch: str | None = "main") -> RecordedResult:
    fields: dict[str, Any] = {
        "number": 9,
        "project": "sales",
        "status": status,
        "exit_code": 0,
        "execution_time_seconds": 1.0,
        "attempts": 1,
        "is_flaky": False,
        "trajectory_id": None,
        "occasion": Occasion(0, "run", "entry"),
        "branch": branch,
        "result": "{}",
        "learning": "on",
    }
    return RecordedResult(**fields)


@pytest.mark.parametrize(
    ("status", "earlier", "expected"),
    [
        (PASSED, [(FAILED, "main")], True),
        (FAILED, [(PASSED, "main")], True),
        ("ERROR", [(PASSED, "main")], True),
        (PASSED, [(PASSED, "main"), (FAILED, "main")], False),
        (FAILED, [("ERROR", "main")], False),
        (PASSED, [(SKIPPED, "main"), (FAILED, "main")], True),
        (PASSED, [(PASSED, "other"), (FAILED, "main")], True),
        (PASSED, [(FAILED, "other")], True),
        (PASSED, [(FAILED, "other"), (PASSED, "main")], False),
        (PASSED, [(SKIPPED, "main")], False),
        (PASSED, [], False),
    ],
)
def test_turn_ends_otherwise_than_the_last_of_its_branch(
    status: str, earlier: list[tuple[str, str]], expected: bool
) -> None:
    assert is_turn(result(status), earlier) is expected


@BOTH
def test_turns_are_noted_with_what_is_learned_and_taken_once(store: Store, history: GateHistory) -> None:
    history.result(history.run(), "sales")
    broken = history.result(history.run(), "sales", FAILED, message="boom")
    history.result(history.run(), "sales", FAILED, message="boom")
    fixed = history.result(history.run(), "sales")
    history.result(history.run(), "sales", SKIPPED)
    history.result(history.run(), "stock", FAILED, message="boom")
    learn_from_results(store)
    with store.write() as connection:
        assert list_turns(connection) == (broken, fixed)
        assert take_turn(connection, broken)
        assert not take_turn(connection, broken)
    learn_from_results(store)
    with store.read() as connection:
        assert list_turns(connection) == (fixed,)
