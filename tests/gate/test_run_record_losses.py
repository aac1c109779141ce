"""A gate run whose store is damaged or vanishes meanwhile, and what a spool brings to the next one."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gate.events import FailureExplained, read_spool
from pytest_golden.journal.model import Assessment
from pytest_golden.regression.model import ResultStatus
from pytest_golden.storage.store import Store
from tests.gate.gate_events import begin, end, judge
from tests.gate.record_place import Place, damage, fold_log, locked, whole
from tests.second_version import add_second_version

if TYPE_CHECKING:
    from pathlib import Path

FAILED = ResultStatus.FAILED


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    return tmp_path / "backup.db"


def copy(source: Path, target: Path) -> None:
    """Put a store's content into another file by SQLite's own way, in which programs may have it open."""
    with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(target)) as written:
        read.backup(written)


def test_store_that_is_no_store_is_kept_aside_when_the_gate_begins(place: Place) -> None:
    place.path.write_bytes(b"this was a database once" * 1000)
    before = place.path.read_bytes()
    begun = begin("one")
    place.run(begun)

    place.assert_whole(begun)
    assert [path.read_bytes() for path in place.aside()] == [before]
    assert len(place.warned) == 1
    assert f"it is kept as {place.aside()[0]}, and a new store is created" in place.warned[0]


def test_store_that_is_damaged_in_the_middle_is_kept_aside_and_the_new_one_has_the_whole_run(place: Place) -> None:
    place.run(begin("zero"))
    begun = begin("one", "two", "three")
    _, first, *others, ended = whole(begun)
    record = place.open()
    record.begin(begun)
    record.record(first)  # type: ignore[arg-type]
    fold_log(place.path)
    damaged = damage(place.path)
    entries = [record.record(judged) for judged in others]  # type: ignore[arg-type]
    record.end(ended)  # type: ignore[arg-type]
    record.close()

    assert [entry is not None for entry in entries] == [True, True]
    place.assert_whole(begun)
    assert [path.read_bytes() for path in place.aside()] == [damaged]
    assert len(place.warned) == 1


def test_damaged_store_of_several_workspaces_is_left_to_people(place: Place) -> None:
    place.path.write_bytes(b"this was a database once" * 1000)
    begun = begin("one")
    place.run(begun, is_own_store=False)

    assert place.aside() == []
    assert "damaged" in place.warned[0]
    assert begun.run_id in {file.stem for file in place.spool.files()}


def test_disk_that_damages_each_new_store_is_given_up(place: Place) -> None:
    begun = begin("one", "two", "three", "four")
    _, *judged, ended = whole(begun)
    record = place.open()
    record.begin(begun)
    for one in judged:
        if record.takes:
            fold_log(place.path)
            damage(place.path)
        record.record(one)  # type: ignore[arg-type]
    record.end(ended)  # type: ignore[arg-type]
    record.close()

    assert len(place.aside()) == 2
    assert begun.run_id in {file.stem for file in place.spool.files()}
    place.path.unlink()
    place.warned.clear()
    place.run(begin("five", minute=1))
    assert place.warned == []
    place.assert_whole(begun)


def test_damaged_store_that_cannot_be_renamed_goes_to_the_spool(place: Place) -> None:
    sealed = place.folder / "sealed"
    sealed.mkdir()
    place.path = sealed / "golden.db"
    place.path.mkdir()
    begun = begin("one")
    place.run(begun)

    assert begun.run_id in {file.stem for file in place.spool.files()}


def test_store_that_is_deleted_while_the_gate_runs_is_made_again_with_the_whole_run(place: Place) -> None:
    place.run(begin("zero"))
    begun = begin("one", "two")
    _, first, second, ended = whole(begun)
    record = place.open()
    record.begin(begun)
    record.record(first)  # type: ignore[arg-type]
    place.path.unlink()
    assert record.record(second) is not None  # type: ignore[arg-type]
    record.end(ended)  # type: ignore[arg-type]
    record.close()

    place.assert_whole(begun)
    assert len(place.warned) == 1
    assert "removed or replaced while it was open" in place.warned[0]


def test_folder_that_is_deleted_while_the_gate_runs_is_made_again(place: Place) -> None:
    place.path = place.folder / "state" / "golden.db"
    begun = begin("one", "two")
    _, first, second, ended = whole(begun)
    record = place.open()
    record.begin(begun)
    record.record(first)  # type: ignore[arg-type]
    shutil.rmtree(place.path.parent)
    record.record(second)  # type: ignore[arg-type]
    record.end(ended)  # type: ignore[arg-type]
    record.close()

    place.assert_whole(begun)


def test_store_that_is_replaced_while_the_gate_runs_takes_the_whole_run_and_loses_nothing_itself(place: Place) -> None:
    """The log of the vanished store must not be read into the one that stands in its place."""
    other = place.folder / "other.db"
    before = begin(*(f"old{number}" for number in range(30)))
    place.run(before, location=other)
    begun = begin(*(f"new{number}" for number in range(30)), minute=1)
    events = whole(begun)
    record = place.open()
    record.begin(begun)
    for judged in events[1:20]:
        record.record(judged)  # type: ignore[arg-type]
    other.replace(place.path)
    for judged in events[20:-1]:
        record.record(judged)  # type: ignore[arg-type]
    record.end(events[-1])  # type: ignore[arg-type]
    record.close()

    place.assert_whole(begun)
    place.assert_whole(before)
    assert len(place.warned) == 1


def test_store_that_is_restored_from_before_the_run_is_told_all_of_it(place: Place, backup: Path) -> None:
    place.run(begin("zero"))
    copy(place.path, backup)
    place.run(begin("lost", minute=1))
    begun = begin("one", "two", minute=2)
    _, first, second, ended = whole(begun)
    record = place.open()
    record.begin(begun)
    record.record(first)  # type: ignore[arg-type]
    copy(backup, place.path)
    entry = record.record(second)  # type: ignore[arg-type]
    record.end(ended)  # type: ignore[arg-type]
    record.close()

    assert entry is not None
    place.assert_whole(begun)
    assert (place.count("gate_runs"), place.streak("lost")) == (2, [])
    assert len(place.warned) == 1
    assert f"{place.path} has lost its record of this run" in place.warned[0]
    assert record.has_recovered is False
    assert place.spool.files() == ()


def test_store_that_is_restored_from_within_the_run_is_told_what_it_lacks(place: Place, backup: Path) -> None:
    begun = begin("one", "two", "three")
    _, first, second, third, ended = whole(begun)
    explained = FailureExplained(begun.run_id, second.entry_id, ({"kind": "seen", "lines": ["before"]},))  # type: ignore[union-attr]
    record = place.open()
    record.begin(begun)
    record.record(first)  # type: ignore[arg-type]
    copy(place.path, backup)
    record.record(second)  # type: ignore[arg-type]
    record.record(explained)
    copy(backup, place.path)
    record.record(third)  # type: ignore[arg-type]
    record.end(ended)  # type: ignore[arg-type]
    assert record.has_recovered
    record.close()

    place.assert_whole(begun)
    assert [place.streak(name) for name in ("one", "two", "three")] == [[1], [1], [1]]
    assert place.known(second.entry_id) == [{"kind": "seen", "lines": ["before"]}]  # type: ignore[union-attr]
    assert len(place.warned) == 1


def test_store_that_is_restored_at_the_very_end_has_the_whole_run(place: Place, backup: Path) -> None:
    place.run(begin("zero"))
    copy(place.path, backup)
    begun = begin("one", "two", minute=1)
    *before, ended = whole(begun)
    record = place.open()
    record.begin(begun)
    for judged in before[1:]:
        record.record(judged)  # type: ignore[arg-type]
    copy(backup, place.path)
    record.end(ended)  # type: ignore[arg-type]
    record.close()

    place.assert_whole(begun)
    assert len(place.warned) == 1


def test_store_of_an_older_version_that_is_restored_is_said_and_has_the_whole_run(
    place: Place, backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store.open(backup).close()
    add_second_version(monkeypatch, tmp_path / "migrations")
    begun = begin("one", "two")
    _, first, second, ended = whole(begun)
    record = place.open()
    record.begin(begun)
    record.record(first)  # type: ignore[arg-type]
    copy(backup, place.path)
    record.record(second)  # type: ignore[arg-type]
    record.end(ended)  # type: ignore[arg-type]
    record.close()

    assert "of an older version (0001); a backup of that time was restored" in place.warned[0]
    place.assert_whole(begun)
    assert place.spool.files() == ()


def test_spool_of_a_run_that_the_restored_store_never_knew_is_taken_in(place: Place, backup: Path) -> None:
    place.run(begin("zero"))
    copy(place.path, backup)
    begun = begin("one", "two", minute=1)
    _, first, second, ended = whole(begun)
    record = place.open()
    record.begin(begun)
    record.record(first)  # type: ignore[arg-type]
    with locked(place.path):
        record.record(second)  # type: ignore[arg-type]
        record.end(ended)  # type: ignore[arg-type]
    record.close()
    copy(backup, place.path)
    place.run(begin("one", minute=2))

    place.assert_whole(begun)
    assert place.said == ["1 earlier run is in the history now"]
    assert place.spool.files() == ()


def test_results_whose_run_no_store_knows_are_said_and_left(place: Place) -> None:
    begun = begin("one")
    path = place.spool.append(*whole(begun)[1:])
    place.run(begin("two", minute=1))

    assert place.warned == [
        f"the results in {path} were not imported: the store does not know their run, as after restoring an older "
        "backup; move the file away"
    ]
    assert place.spool.files() == (path,)


def test_event_that_no_store_takes_is_set_aside_once(place: Place) -> None:
    """Its run goes with it, and what comes after it goes on into the store."""
    begun = begin("one", "two", "three")
    _, first, second, third, ended = whole(begun)
    record = place.open()
    record.begin(begun)
    record.record(first)  # type: ignore[arg-type]
    second = replace(second, expectation_id="expectation_of_nobody")  # type: ignore[arg-type]
    assert record.record(second) is None  # type: ignore[arg-type]
    assert record.record(third) is not None  # type: ignore[arg-type]
    record.end(ended)  # type: ignore[arg-type]
    record.close()

    (path,) = place.spool.files()
    assert list(read_spool(path)) == [begun, first, second]
    assert place.streak("three") == [1]


def test_spool_is_taken_in_next_time_and_said(place: Place) -> None:
    begun = begin("one", "two")
    for event in whole(begun):
        place.spool.append(event)
    place.run(begin("one", minute=1))

    place.assert_whole(begun)
    assert place.said == ["1 earlier run is in the history now"]
    assert place.spool.files() == ()
    assert place.streak("one") == [2, 1]


def test_spool_of_a_run_that_began_in_the_store_completes_it(place: Place) -> None:
    begun = begin("one", "two")
    first, second = judge(begun, "one"), judge(begun, "two")
    record = place.open()
    record.begin(begun)
    record.record(first)
    record.close()
    # One of them is in both: a kill may come between the store's commit and the file's removal.
    for event in (first, second, end(begun)):
        place.spool.append(event)
    place.run(begin("one", minute=1))

    place.assert_whole(begun)
    assert place.said == ["1 earlier run is in the history now"]


def test_spool_of_an_interrupted_run_is_taken_in_before_the_run_is_closed(place: Place) -> None:
    begun = begin("one", "two", "three")
    for event in (begun, judge(begun, "one"), judge(begun, "two")):
        place.spool.append(event)
    place.run(begin("one", minute=1))

    assert place.said[1].endswith("was cut off after 2 of 3 projects")
    assert place.entry(begun.run_id).assessment is Assessment.PARTIAL


def test_spool_of_two_runs_in_one_file_is_taken_in_whole(place: Place) -> None:
    one, two = begin("one"), begin("one", minute=1)
    path = place.spool.append(one)
    for event in whole(two):
        place.spool.append(event)
    with path.open("ab") as file:
        file.write((place.folder / "spool" / f"{two.run_id}.jsonl").read_bytes())
    place.run(begin("one", minute=2))

    assert place.entry(two.run_id).assessment is Assessment.SUCCESS
    assert place.streak("one") == [2, 1]
    assert place.warned == []


def test_torn_spool_is_taken_in_as_far_as_it_goes(place: Place) -> None:
    begun = begin("one", "two")
    for event in whole(begun)[:-1]:
        path = place.spool.append(event)
    path.write_bytes(path.read_bytes()[:-30])
    place.run(begin("three", minute=1))

    assert place.streak("one") == [1]
    assert place.streak("two") == []
    assert place.spool.files() == ()


@pytest.mark.parametrize(
    "poison",
    [
        b"no json\n",
        b"\xff\xfe\n",
        b"[]\n",
        b'{"event": "born"}\n',
        b'{"event": "judged", "result": {}}\n',
        b'{"event": "ended", "run_id": 3, "moment": "late", "immediate_result": "good", "notes": "", '
        b'"verdict": {}, "facts": {}}\n',
        b"[" * 100_000 + b"\n",
    ],
    ids=["text", "bytes", "list", "kind", "keys", "values", "deep"],
)
def test_poisoned_spool_file_is_said_and_left_and_blocks_nothing(place: Place, poison: bytes) -> None:
    first, second = begin("one", run_id="entry_01"), begin("two", run_id="entry_02")
    path = place.spool.append(first)
    with path.open("ab") as file:
        file.write(poison)
    for event in whole(second):
        place.spool.append(event)
    present = begin("three", minute=1)
    place.run(present)

    assert len(place.warned) == 1
    assert place.warned[0].startswith(f"the results in {path} were not imported: ")
    assert place.spool.files() == (path,)
    assert place.said == ["1 earlier run is in the history now"]
    place.assert_whole(second)
    place.assert_whole(present)


def test_line_of_a_newer_form_is_said_and_left(place: Place) -> None:
    begun = begin("one")
    path = place.spool.append(begun)
    line = {**json.loads(path.read_text()), "mood": "good"}
    path.write_text(json.dumps(line) + "\n")
    place.run(begin("two", minute=1))

    assert "mood" in place.warned[0]
    assert place.spool.files() == (path,)
