"""A gate run and its store: the usual life, stores that take nothing, and clocks that go back."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from pytest_golden.gate.events import Spool
from pytest_golden.gate.store import record_event
from pytest_golden.history.past_store import list_results
from pytest_golden.journal.model import Assessment
from pytest_golden.regression.model import ResultStatus
from pytest_golden.storage.integrity import check_store
from pytest_golden.storage.store import Store
from tests.gate.gate_events import begin, end, judge
from tests.gate.record_place import PATIENCE, Place, locked, tell, whole
from tests.patience import PATIENCE_SECONDS, without_hanging
from tests.permissions import without_powers

FAILED = ResultStatus.FAILED
# To wait for a locked store at each of so many results would take as long as what hangs.
MANY = round(1.5 * PATIENCE_SECONDS / PATIENCE)


def test_usual_run_is_in_the_store_and_says_nothing(place: Place) -> None:
    begun = begin("one", "two")
    record = place.open()
    record.begin(begun)
    entry = record.record(judge(begun, "one"))
    record.record(judge(begun, "two"))
    record.end(end(begun))
    record.close()

    assert entry is not None
    assert (entry.intent, entry.parent_id) == ("run golden project one", begun.run_id)
    place.assert_whole(begun)
    assert (place.said, place.warned, place.spool.files()) == ([], [], ())
    assert record.store is None


def test_each_result_is_on_the_disk_when_recording_it_returns(place: Place) -> None:
    begun = begin("one", "two")
    record = place.open()
    record.begin(begun)
    record.record(judge(begun, "one"))

    assert place.streak("one") == [1]

    record.close()


def test_same_result_twice_is_one(place: Place) -> None:
    begun = begin("one")
    judged = judge(begun, "one")
    tell(place.open(), begun, judged, judged, end(begun))

    place.assert_whole(begun)
    assert place.warned == []


def test_project_that_is_judged_twice_in_a_run_has_both_results(place: Place) -> None:
    """As a plug-in that runs a failed test again makes it."""
    begun = begin("one")
    tell(place.open(), begun, judge(begun, "one", FAILED), judge(begun, "one"), end(begun))

    entry = place.entry(begun.run_id)
    assert place.streak("one") == [1, 0]
    assert entry.assessment is Assessment.FAILURE
    assert len(entry.signals) == 2
    assert check_store(place.path).problems == ()


def test_result_of_a_project_that_nobody_expected_is_kept(place: Place) -> None:
    begun = begin("one")
    tell(place.open(), begun, judge(begun, "one"), judge(begun, "two"), end(begun))

    assert place.streak("two") == [1]
    assert place.warned == []


def test_interrupted_run_is_closed_and_said_by_the_next(place: Place) -> None:
    killed = begin("one", "two")
    record = place.open()
    record.begin(killed)
    record.record(judge(killed, "one"))
    record.close()

    place.run(begin("one", minute=5))
    place.run(begin("one", minute=6))

    assert place.said == ["the gate of 08:00 UTC was cut off after 1 of 2 projects"]
    assert place.entry(killed.run_id).assessment is Assessment.PARTIAL


def test_store_that_is_locked_when_the_gate_begins_is_waited_for_once(place: Place) -> None:
    place.run(begin("one"))
    begun = begin("one", *(f"p{number}" for number in range(MANY)))
    with locked(place.path), without_hanging():
        place.run(begun)

    assert "another process has locked it" in place.warned[0]
    assert place.warned[0].endswith("; results are kept in the spool, and the gate continues")
    assert (
        place.warned[-1] == f"what the store did not accept waits in {place.folder / 'spool'}; the next gate imports it"
    )
    assert [path.stem for path in place.spool.files()] == [begun.run_id]


def test_store_that_is_locked_in_the_middle_is_waited_for_once(place: Place) -> None:
    begun = begin(*(f"p{number}" for number in range(MANY)))
    _, first, *others, ended = whole(begun)
    record = place.open()
    record.begin(begun)
    record.record(first)  # type: ignore[arg-type]
    with locked(place.path) as let_go:
        with without_hanging():
            for judged in others:
                assert record.record(judged) is None  # type: ignore[arg-type]
        let_go()
    record.end(ended)  # type: ignore[arg-type]
    record.close()

    assert len(place.warned) == 1
    assert place.said == []
    assert place.spool.files() == ()
    place.assert_whole(begun)


def test_several_spool_files_do_not_each_wait_for_a_locked_store(place: Place) -> None:
    place.run(begin("one"))
    with locked(place.path):
        for number in range(59):
            place.run(begin("one", minute=number), patience_seconds=0.001)
        with without_hanging():
            place.run(begin("one", minute=59), patience_seconds=1.5)
    assert len(place.spool.files()) == 60


@pytest.mark.parametrize("what", ["file", "folder"])
@without_powers
def test_store_that_may_not_be_written_costs_the_gate_nothing(place: Place, what: str) -> None:
    place.run(begin("one"))
    spool = Spool(place.folder.parent / f"spool-{place.folder.name}")
    place.path.chmod(0o400)
    if what == "folder":
        place.folder.chmod(0o500)
    try:
        begun = begin("one", minute=1)
        place.run(begun, spool=spool)
    finally:
        place.folder.chmod(0o700)
        # SQLite gives the files beside it the permissions that it has itself.
        for file in place.folder.glob("golden.db*"):
            file.chmod(0o600)
    assert "cannot be written" in place.warned[0]
    assert begun.run_id in {file.stem for file in spool.files()}
    place.warned.clear()
    place.run(begin("one", minute=2), spool=spool)
    assert place.streak("one") == [3, 2, 1]
    assert place.warned == []


def test_store_that_can_be_read_only_is_read_while_results_are_spooled(place: Place) -> None:
    place.run(begin("one"))
    with sqlite3.connect(place.path) as connection:
        connection.execute("CREATE TRIGGER no BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'no'); END")
    connection.close()
    record = place.open()
    begun = begin("one", minute=1)
    record.begin(begun)

    assert not record.takes
    assert record.store is not None
    with record.store.read() as reading:
        assert len(list_results(reading, "one", 5)) == 1
    record.close()


def test_newer_store_is_refused_and_left_where_it_is(place: Place) -> None:
    place.run(begin("one"))
    with sqlite3.connect(place.path) as connection:
        connection.execute("UPDATE golden_version SET version_num = '9999'")
    connection.close()
    before = place.path.read_bytes()
    begun = begin("one", minute=1)
    place.run(begun)

    assert "newer" in place.warned[0]
    assert place.warned[0].endswith("; results are kept in the spool, and the gate continues")
    assert place.aside() == []
    assert place.path.read_bytes() == before
    assert begun.run_id in {file.stem for file in place.spool.files()}


def test_place_where_no_store_can_be_goes_to_the_spool(place: Place) -> None:
    (place.folder / "file").write_text("")
    begun = begin("one")
    place.run(begun, location=place.folder / "file" / "golden.db")

    assert "is not a folder" in place.warned[0]
    assert begun.run_id in {file.stem for file in place.spool.files()}


def test_without_a_spool_either_it_is_said_once_and_the_gate_goes_on_quickly(place: Place) -> None:
    place.run(begin("one"))
    (place.folder / "spool").write_text("a file stands in the way")
    begun = begin(*(f"p{number}" for number in range(MANY)))
    with locked(place.path), without_hanging():
        place.run(begun)

    assert [text for text in place.warned if "cannot be written" in text] == [
        f"the spool file {place.folder / 'spool' / begun.run_id}.jsonl cannot be written: File exists; "
        "unless the store accepts this run at its end, it is not recorded"
    ]
    assert place.warned[-1] == "this run is not recorded"


def test_without_a_spool_a_store_that_is_free_again_at_the_end_has_the_whole_run(place: Place) -> None:
    place.run(begin("one"))
    (place.folder / "spool").write_text("a file stands in the way")
    begun = begin("one", "two")
    _, *judged, ended = whole(begun)
    record = place.open()
    with locked(place.path) as let_go:
        record.begin(begun)
        let_go()
    for one in judged:
        record.record(one)  # type: ignore[arg-type]
    record.end(ended)  # type: ignore[arg-type]
    record.close()

    place.assert_whole(begun)


def test_event_that_cannot_be_recorded_keeps_no_other_from_the_store(place: Place) -> None:
    begun = begin("one", "two")
    bad, good = judge(begun, "one"), judge(begun, "two")
    bad = replace(bad, expectation_id="expectation_of_another_run")
    tell(place.open(), begun, bad, good, end(begun))

    assert place.warned == [
        f"the result of one is not recorded: entry {begun.run_id} has no expectation 'expectation_of_another_run'"
    ]
    assert place.streak("two") == [1]
    assert place.entry(begun.run_id).assessment is Assessment.PARTIAL
    assert begun.run_id in {file.stem for file in place.spool.files()}


def test_clock_that_goes_back_between_runs_and_within_one_changes_no_order(place: Place) -> None:
    first, second = begin("one", "two", minute=60), begin("one", "two", minute=10)
    place.run(first)
    late = replace(judge(second, "one", FAILED), moment=second.moment - 3_600_000)
    last = replace(end(second, "failure"), moment=second.moment - 7_200_000)
    tell(place.open(), second, late, judge(second, "two"), last)

    assert place.warned == []
    assert place.streak("one") == [0, 1]
    assert place.streak("two") == [2, 1]
    entry = place.entry(second.run_id)
    assert entry.assessment is Assessment.FAILURE
    assert entry.closed_at is not None
    assert entry.created_at <= entry.closed_at <= entry.updated_at
    assert all(one.resolved_at is None or one.resolved_at >= one.created_at for one in entry.expectations)
    assert check_store(place.path).problems == ()


def test_ids_that_go_back_with_the_clock_are_no_younger_runs(place: Place) -> None:
    place.run(begin("one", run_id="entry_02", minute=60))
    killed = begin("one", "two", run_id="entry_01", minute=30)
    record = place.open()
    record.begin(killed)
    record.close()
    place.run(begin("one", run_id="entry_00", minute=0))

    assert place.said == ["the gate of 08:30 UTC was cut off after 0 of 2 projects"]
    assert place.streak("one") == [2, 1]
    assert check_store(place.path).problems == ()


def test_event_recorded_by_hand_beside_a_gate_is_seen_by_it(place: Place) -> None:
    begun, beside = begin("one"), begin("one", minute=1)
    record = place.open(is_own_store=False)
    record.begin(begun)
    with Store.open(place.path) as store:
        for event in whole(beside):
            with store.write() as connection:
                record_event(connection, event)
    record.record(judge(begun, "one"))
    record.end(end(begun))
    record.close()

    assert place.streak("one") == [2, 1]
    assert place.warned == []
