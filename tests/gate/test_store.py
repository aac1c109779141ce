from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import func, select

from pytest_golden.clock import new_id
from pytest_golden.errors import JournalError, StorageError
from pytest_golden.gate.store import InterruptedRun, close_interrupted, record_event
from pytest_golden.history.checkout import Checkout
from pytest_golden.history.past_store import find_last_pass, list_projects, list_results
from pytest_golden.journal.model import Assessment, ExpectationStatus, ImmediateResult, JournalEntry, RoutedBy
from pytest_golden.journal.store import get_entry
from pytest_golden.regression.model import Reason, ReasonKind, ResultStatus
from pytest_golden.storage.columns import from_ms
from pytest_golden.storage.schema import gate_runs, metadata, trajectories
from pytest_golden.storage.store import Store
from pytest_golden.trajectory.store import find_trajectory
from tests.gate.gate_events import begin, end, judge, moment

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.gate.events import ResultJudged, RunBegun

PASSED, FAILED, ERROR, SKIPPED = ResultStatus.PASSED, ResultStatus.FAILED, ResultStatus.ERROR, ResultStatus.SKIPPED


@pytest.fixture
def store(location: str | Path):  # type: ignore[no-untyped-def]
    with Store.open(location) as opened:
        yield opened


def record(store: Store, *events):  # type: ignore[no-untyped-def]
    entries = []
    for event in events:
        with store.write() as connection:
            entries.append(record_event(connection, event))
    return entries


def read_entry(store: Store, entry_id: str) -> JournalEntry:
    with store.read() as connection:
        return get_entry(connection, entry_id)


def count_rows(store: Store) -> dict[str, int]:
    with store.read() as connection:
        return {
            table.name: connection.scalar(select(func.count()).select_from(table)) or 0
            for table in metadata.sorted_tables
        }


def test_run_is_an_entry_with_an_expectation_for_each_project(store: Store) -> None:
    begun = begin("one", "two")
    record(store, begun)

    entry = read_entry(store, begun.run_id)

    assert (entry.agent_id, entry.intent_type, entry.assessment) == ("golden", "regression_check", Assessment.OPEN)
    assert entry.intent == "check 2 golden projects of golden_projects.yaml"
    assert [one.description for one in entry.expectations] == ["one passes", "two passes"]
    hint = {"source": "golden", "run": begun.run_id, "project": "one"}
    assert entry.expectations[0].match_hint == hint
    assert {one.status for one in entry.expectations} == {ExpectationStatus.OPEN}


def test_run_whose_projects_all_pass_is_a_success(store: Store) -> None:
    begun = begin("one", "two")
    record(store, begun, judge(begun, "one"))
    assert read_entry(store, begun.run_id).assessment is Assessment.OPEN

    record(store, judge(begun, "two"), end(begun))

    entry = read_entry(store, begun.run_id)
    assert entry.assessment is Assessment.SUCCESS
    assert (entry.immediate_result, entry.immediate_notes) == (ImmediateResult.SUCCESS, "all passed")
    assert {one.status for one in entry.expectations} == {ExpectationStatus.MET}
    assert {signal.routed_by for signal in entry.signals} == {RoutedBy.MATCH_HINT}


@pytest.mark.parametrize("status", [FAILED, ERROR])
def test_regression_makes_the_run_a_failure_at_once(store: Store, status: ResultStatus) -> None:
    begun = begin("one", "two")
    record(store, begun, judge(begun, "one", status))

    entry = read_entry(store, begun.run_id)

    assert entry.assessment is Assessment.FAILURE
    assert entry.closed_at == from_ms(begun.moment + 1000)
    assert entry.signals[0].summary == f"one: {status}: it ended with exit code 3"


def test_later_passes_do_not_hide_a_failure(store: Store) -> None:
    begun = begin("one", "two")
    record(store, begun, judge(begun, "one", FAILED), judge(begun, "two"), end(begun, "failure"))

    assert read_entry(store, begun.run_id).assessment is Assessment.FAILURE


def test_project_that_did_not_run_leaves_the_run_partial(store: Store) -> None:
    begun = begin("one", "two")
    record(store, begun, judge(begun, "one"), judge(begun, "two", SKIPPED), end(begun))

    entry = read_entry(store, begun.run_id)

    assert entry.assessment is Assessment.PARTIAL
    assert [one.status for one in entry.expectations] == [ExpectationStatus.MET, ExpectationStatus.EXPIRED]


def test_skipped_project_that_fails_the_gate_makes_the_run_a_failure(store: Store) -> None:
    begun = begin("one")
    record(store, begun, judge(begun, "one", SKIPPED, fails=True))

    assert read_entry(store, begun.run_id).assessment is Assessment.FAILURE


def test_quarantined_failure_is_kept_and_decides_nothing(store: Store) -> None:
    begun = begin("one", "two")
    record(store, begun, judge(begun, "one"), judge(begun, "two", FAILED, fails=False), end(begun))

    assert read_entry(store, begun.run_id).assessment is Assessment.PARTIAL


@pytest.mark.parametrize(
    ("status", "assessment"),
    [
        (PASSED, Assessment.SUCCESS),
        (FAILED, Assessment.FAILURE),
        (ERROR, Assessment.FAILURE),
        (SKIPPED, Assessment.EXPIRED),
    ],
)
def test_result_is_a_closed_child_entry(store: Store, status: ResultStatus, assessment: Assessment) -> None:
    begun = begin("one")
    judged = judge(begun, "one", status)

    given = record(store, begun, judged)[1]

    kept = read_entry(store, judged.entry_id)
    assert (kept.parent_id, kept.intent_type, kept.assessment) == (begun.run_id, "golden_run", assessment)
    assert kept.closed_at is not None
    assert given is not None
    assert given.id == kept.id


@pytest.mark.parametrize(
    ("accepted", "assessment"), [(True, Assessment.SUCCESS), (False, Assessment.FAILURE)], ids=["accepted", "not"]
)
def test_weakened_floor_is_journalled_and_fails_unless_accepted(
    store: Store, accepted: bool, assessment: Assessment
) -> None:
    begun = begin("one")
    news = {
        "id": new_id("signal"),
        "signal_type": "neutral" if accepted else "negative",
        "summary": "weakened floor: one: timeout raised",
        "data": {"accepted": accepted},
    }
    record(store, begun, judge(begun, "one"), end(begun, news=(news,)))

    entry = read_entry(store, begun.run_id)

    assert entry.assessment is assessment
    assert entry.signals[-1].data == {"run": begun.run_id, "accepted": accepted}


def test_recording_everything_twice_changes_nothing(store: Store) -> None:
    begun = begin("one", "two")
    events = [begun, judge(begun, "one"), judge(begun, "two", FAILED), end(begun, "failure")]
    record(store, *events)
    before = count_rows(store), read_entry(store, begun.run_id)

    again = record(store, *events)

    assert again == [None] * len(events)
    assert (count_rows(store), read_entry(store, begun.run_id)) == before


@pytest.mark.parametrize("event", ["result", "end"])
def test_event_of_a_run_that_never_began_here_is_refused_whole(store: Store, event: str) -> None:
    begun = begin("one")
    before = count_rows(store)

    with pytest.raises((StorageError, JournalError), match=begun.run_id):
        record(store, judge(begun, "one") if event == "result" else end(begun))

    assert count_rows(store) == before


def test_trajectory_is_kept_whole(store: Store) -> None:
    begun = begin("one")
    judged = judge(begun, "one")
    record(store, begun, judged)

    with store.read() as connection:
        assert judged.result.trajectory_id is not None
        kept = find_trajectory(connection, judged.result.trajectory_id)

    assert kept is not None
    assert [step.content for step in kept.steps] == ["load"]
    assert kept.outcome == "success"


def test_result_without_a_trajectory_is_kept_too(store: Store) -> None:
    begun = begin("one")
    plain = judge(begun, "one")
    record(store, begun, replace(plain, result=replace(plain.result, trajectory=None, steps=())))

    with store.read() as connection:
        assert connection.scalar(select(func.count()).select_from(trajectories)) == 0
        assert list_results(connection, "one", 5)[0].trajectory_id is None


def test_history_counts_passes_in_a_row_and_starts_again_after_a_failure(store: Store) -> None:
    for number, status in enumerate([PASSED, PASSED, FAILED, PASSED, SKIPPED, PASSED]):
        begun = begin("one", minute=number)
        record(store, begun, judge(begun, "one", status), end(begun))

    with store.read() as connection:
        results = list_results(connection, "one", 10)

    assert [result.pass_streak for result in results] == [2, 1, 1, 0, 2, 1]
    assert [result.status for result in results] == [PASSED, SKIPPED, PASSED, FAILED, PASSED, PASSED]
    assert results[3].message == "it ended with exit code 3"
    assert results[0].commit == "c" * 40


def interrupt(begun: RunBegun, project: str) -> ResultJudged:
    judged = judge(begun, project, ERROR)
    reasons = (Reason(ReasonKind.INTERRUPTED, "interrupted before it ended"),)
    return replace(judged, result=replace(judged.result, reasons=reasons))


def test_interrupted_result_breaks_no_streak(store: Store) -> None:
    for number in range(3):
        begun = begin("one", minute=number)
        record(store, begun, interrupt(begun, "one") if number == 1 else judge(begun, "one"), end(begun))

    with store.read() as connection:
        results = list_results(connection, "one", 10)

    assert [result.pass_streak for result in results] == [2, 1, 1]
    assert [result.is_interrupted for result in results] == [False, True, False]
    assert [result.counts for result in results] == [True, False, True]


def test_first_failure_after_the_last_pass_is_found(store: Store) -> None:
    words: dict[str, ResultStatus | None] = {"a": FAILED, "b": PASSED, "c": None, "d": SKIPPED, "e": ERROR, "f": FAILED}
    for number, (sign, status) in enumerate(words.items()):
        checkout = {"commit": sign * 40, "branch": "main", "dirty": False, "dirty_files": {}}
        begun = begin("one", minute=number, checkout=checkout)
        record(store, begun, interrupt(begun, "one") if status is None else judge(begun, "one", status), end(begun))

    with store.read() as connection:
        past = find_last_pass(connection, "one")

    assert past is not None
    assert past.result.commit == "b" * 40
    assert past.first_failure == Checkout("e" * 40, "main", False, {})


def test_history_keeps_the_order_of_recording_when_the_clock_goes_back(store: Store) -> None:
    for number, status in ((9, FAILED), (3, PASSED)):
        begun = begin("one", minute=number)
        record(store, begun, judge(begun, "one", status), end(begun))

    with store.read() as connection:
        assert [result.status for result in list_results(connection, "one", 10)] == [PASSED, FAILED]


def test_last_pass_brings_what_it_ran_in(store: Store) -> None:
    good = begin("one", checkout={"commit": "a" * 40, "branch": "main", "dirty": True, "dirty_files": {"x": "1"}})
    bad = begin("one", minute=1)
    record(store, good, judge(good, "one"), end(good), bad, judge(bad, "one", FAILED), end(bad, "failure"))

    with store.read() as connection:
        past = find_last_pass(connection, "one")
        assert find_last_pass(connection, "two") is None

    assert past is not None
    assert past.result.run_id == good.run_id
    assert past.first_failure is not None
    assert (past.result.commit, past.dirty_files) == ("a" * 40, {"x": "1"})
    assert past.declaration == {"name": "one", "timeout": 600.0}
    assert past.surroundings == {"python": "3.11.2"}


def test_projects_are_listed_once_each_and_sorted(store: Store) -> None:
    for number in range(3):
        begun = begin("b", "a", "c", minute=number)
        record(store, begun, *(judge(begun, name) for name in ("b", "a", "c")))

    with store.read() as connection:
        assert list_projects(connection) == ("a", "b", "c")


def close(store: Store, run_id: str, *, is_own_store=False, **more):  # type: ignore[no-untyped-def]
    begun = begin(**{"run_id": run_id, "minute": 30, **more})
    with store.write() as connection:
        return close_interrupted(connection, begun, is_own_store=is_own_store)


def test_interrupted_run_is_closed_and_told_once(store: Store) -> None:
    killed, present = begin("one", "two"), begin("one", minute=20)
    record(store, killed, judge(killed, "one"), present)

    closed = close(store, present.run_id)

    assert closed == (InterruptedRun(killed.run_id, from_ms(killed.moment), recorded_count=1, expected_count=2),)
    entry = read_entry(store, killed.run_id)
    assert entry.assessment is Assessment.PARTIAL
    assert entry.immediate_notes == "INTERRUPTED (partial: 1 not run): 1 passed"
    assert [one.status for one in entry.expectations] == [ExpectationStatus.MET, ExpectationStatus.EXPIRED]
    assert close(store, present.run_id) == ()


def test_run_that_nothing_is_known_of_expires_when_interrupted(store: Store) -> None:
    killed = begin("one")
    record(store, killed)

    close(store, "entry_other")

    assert read_entry(store, killed.run_id).assessment is Assessment.EXPIRED


@pytest.mark.parametrize(
    ("more", "is_closed"),
    [
        ({}, True),
        ({"host": "there"}, False),
        ({"workspace_root": "/elsewhere"}, False),
        ({"host": "there", "is_own_store": True}, True),
        ({"host": "there", "moment": moment(24 * 60 + 1)}, True),
    ],
    ids=["same place", "other machine", "other folder", "own store", "a day old"],
)
def test_run_of_a_living_gate_elsewhere_is_left_alone(store: Store, more: dict[str, object], is_closed: bool) -> None:
    begun = begin("one")
    record(store, begun)

    assert bool(close(store, "entry_other", **more)) is is_closed


def test_finished_run_is_never_closed_as_interrupted(store: Store) -> None:
    begun = begin("one")
    record(store, begun, judge(begun, "one"), end(begun))

    assert close(store, "entry_other", is_own_store=True) == ()


def test_gate_that_was_taken_for_killed_and_ends_all_the_same_has_ended(store: Store) -> None:
    begun = begin("one", "two")
    record(store, begun, judge(begun, "one"), judge(begun, "two"))
    assert len(close(store, "entry_other", is_own_store=True)) == 1

    record(store, end(begun), end(begun))

    with store.read() as connection:
        assert connection.scalar(select(gate_runs.c.final_status)) == "passed"
    entry = read_entry(store, begun.run_id)
    assert (entry.immediate_notes, entry.assessment) == ("all passed", Assessment.SUCCESS)
    assert [one.what for one in entry.history].count("outcome") == 2


def test_folder_and_branch_whose_names_are_no_unicode_are_kept_as_escapes(store: Store) -> None:
    killed = begin("one", workspace_root="/w\udcff", manifest="w\udcff/m.yaml", checkout={"branch": "b\udcff"})
    record(store, killed)
    with store.read() as connection:
        row = connection.execute(select(gate_runs)).one()
    assert (row.workspace_root, row.branch) == (r"/w\udcff", r"b\udcff")
    assert len(close(store, "none", workspace_root="/w\udcff")) == 1
