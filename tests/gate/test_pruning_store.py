from __future__ import annotations

from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import delete, func, select

from pytest_golden.errors import SettingsError
from pytest_golden.gate.pruning_store import (
    Limit,
    Member,
    PruneOrder,
    PruneReport,
    delete_documents,
    delete_entries,
    find_unused_documents,
    may_go,
    prune_store,
)
from pytest_golden.gate.store import record_event
from pytest_golden.history.inputs import IgnoredThen
from pytest_golden.history.past_store import find_last_pass, list_results, read_last_results
from pytest_golden.history.run_environment import IGNORED
from pytest_golden.journal.agent_rules import parse_rules
from pytest_golden.journal.service import Journal
from pytest_golden.learning.gate_learning import learn_from_results
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.slowdown import MOST_PASSES
from pytest_golden.storage.integrity import check_store
from pytest_golden.storage.schema import documents, entries, gate_results, gate_runs, memories, signals, trajectories
from pytest_golden.storage.shared_documents import keep_document
from pytest_golden.storage.store import Store
from tests.gate.gate_events import START, begin, end, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlalchemy import Connection, Table


FAILED, PASSED, SKIPPED = ResultStatus.FAILED, ResultStatus.PASSED, ResultStatus.SKIPPED
NOW = START + timedelta(days=100)


@pytest.fixture
def store(location: str | Path) -> Iterator[Store]:
    with Store.open(location) as store:
        yield store


def gate(
    store: Store,
    day: int,
    *,
    ends: bool = True,
    commit: str = "c",
    inputs: Any = None,
    ignored: Any = None,
    **results: ResultStatus,
) -> str:
    facts = {} if ignored is None else {IGNORED: {"names": ignored, "is_all": True}}
    begun = begin(*results, minute=day * 24 * 60, surroundings={"day": str(day)}, facts=facts)
    judged = (judge(begun, project, status) for project, status in results.items())
    events: list[Any] = [begun, *(replace(one, inputs=inputs or {}) for one in judged)]
    for event in [*events, end(begun)] if ends else events[:-1]:
        with store.write() as connection:
            record_event(connection, event)
    return begun.run_id


def prune(store: Store, closed_after: datetime | None = None, *, rules: Any = None, **more: Any) -> PruneReport:
    told: list[int] = []
    order = PruneOrder(closed_after=closed_after, **more)
    return prune_store(store, order, parse_rules(rules), NOW, progress=told.append)


def older_than(days: float) -> datetime:
    return NOW - timedelta(days=days)


def interrupted(store: Store, meanwhile: Callable[[Store], object], at: str = "write") -> Store:
    """Return the same store, where something else happens before each write, or after each read."""
    other = copy(store)

    @contextmanager
    def write() -> Iterator[Connection]:
        meanwhile(store)
        with store.write() as connection:
            yield connection

    @contextmanager
    def read() -> Iterator[Connection]:
        with store.read() as connection:
            yield connection
        meanwhile(store)

    setattr(other, at, {"write": write, "read": read}[at])
    return other


def count(store: Store, table: Table) -> int:
    with store.read() as connection:
        return connection.scalar(select(func.count()).select_from(table)) or 0


def runs(store: Store) -> set[str]:
    return {entry.id for entry in Journal(store).review_journal(intent_type="regression_check", limit=1000)}


def assert_whole(store: Store) -> None:
    # On a server its tests look at the whole database.
    if store.path is not None:
        assert check_store(store.path).problems == ()


def test_old_runs_go_with_all_that_belongs_to_them(store: Store) -> None:
    old = [gate(store, day, p=PASSED, q=FAILED) for day in range(5)]
    young = gate(store, 50, p=PASSED, q=PASSED)
    kept_documents = count(store, documents)
    learn_from_results(store)
    learned = count(store, memories)
    report = prune(store, older_than(60))
    assert (report.entries, report.trajectories, report.documents) == (15, 10, 5)
    assert runs(store) == {young}
    assert (count(store, trajectories), count(store, documents)) == (2, kept_documents - 5)
    assert count(store, memories) == learned
    assert not runs(store) & set(old)
    with store.read() as connection:
        assert list_results(connection, "p", 9)[0].pass_streak == 6
    assert prune(store, older_than(60)) == PruneReport()
    assert_whole(store)


def test_inputs_go_with_the_last_result_that_had_them(store: Store) -> None:
    gate(store, 0, inputs={"files": {"a": [1, "w1"]}}, p=PASSED)
    gate(store, 1, inputs={"files": {"a": [2, "w2"]}}, p=PASSED)
    gate(store, 50, inputs={"files": {"a": [2, "w2"]}}, p=PASSED)
    # What two runs were installed with, and the inputs of the first alone.
    assert prune(store, older_than(60)).documents == 3
    with store.read() as connection:
        past = find_last_pass(connection, "p")
    assert past is not None
    assert past.inputs.found == {"files": {"a": [2, "w2"]}}


def test_names_of_ignored_files_go_with_the_last_run_that_noted_them(store: Store) -> None:
    for day, ignored in ((0, ["a.csv"]), (1, ["b.csv"]), (50, ["b.csv"])):
        gate(store, day, ignored=ignored, p=PASSED)
    # What two runs were installed with, and the names of the first alone.
    assert prune(store, older_than(60)).documents == 3
    with store.read() as connection:
        assert read_last_results(connection, ["p"])["p"].ignored == IgnoredThen(("b.csv",))


def test_what_results_teach_is_learned_before_they_go(store: Store) -> None:
    gate(store, 0, p=FAILED)
    gate(store, 1, p=PASSED)
    prune(store, older_than(1))
    with store.read() as connection:
        query = select(func.count()).where(memories.c.namespace == "signatures/golden/")
        assert connection.scalar(query) == 1


def test_what_the_next_run_is_judged_by_stays(store: Store) -> None:
    passed = gate(store, 0, p=PASSED)
    failed = gate(store, 1, p=FAILED)
    gone = gate(store, 2, p=FAILED)
    last = gate(store, 3, p=FAILED)
    skipped = gate(store, 4, p=SKIPPED)
    newest = gate(store, 5, other=PASSED)
    with store.read() as connection:
        before = find_last_pass(connection, "p")
    assert prune(store, older_than(1)).entries == 2
    assert runs(store) == {passed, failed, last, skipped, newest}
    assert gone not in runs(store)
    with store.read() as connection:
        assert find_last_pass(connection, "p") == before


def test_passes_that_durations_are_judged_by_stay(store: Store) -> None:
    def run(day: int) -> str:
        begun = begin("slow", "other", minute=day * 24 * 60)
        slow = judge(begun, "slow")
        slow = replace(slow, declaration={**slow.declaration, "max_slowdown": 2.0})
        events: list[Any] = [begun, slow, judge(begun, "other"), end(begun)]
        for event in events:
            with store.write() as connection:
                record_event(connection, event)
        return begun.run_id

    done = [run(day) for day in range(MOST_PASSES + 2)]
    prune(store, older_than(1))
    assert runs(store) == set(done[2:])


def test_a_running_gate_stays(store: Store) -> None:
    running = gate(store, 0, ends=False, p=PASSED, q=PASSED)
    gate(store, 1, p=PASSED, q=PASSED)
    prune(store, older_than(1))
    assert running in runs(store)


def moved(store: Store, days: float) -> Journal:
    moment = START + timedelta(days=days)

    def clock() -> datetime:
        return moment

    return Journal(store, clock=clock)


def log(store: Store, days: float, result: str = "success", **more: Any) -> str:
    journal = moved(store, days)
    entry = journal.log_intent("x", agent_id=more.pop("agent_id", "a"), **more)
    journal.log_outcome(entry.id, result)
    return entry.id


def ids(store: Store) -> set[str]:
    with store.read() as connection:
        return set(connection.scalars(select(entries.c.id)))


def test_an_open_entry_keeps_what_is_above_and_below_it(store: Store) -> None:
    root = log(store, 0)
    child = log(store, 0, parent_id=root)
    leaf = log(store, 0, "unknown", parent_id=child)
    lonely = log(store, 0)
    orphaned = log(store, 0)
    prune(store, older_than(10))
    assert ids(store) == {root, child, leaf}
    assert {lonely, orphaned}.isdisjoint(ids(store))
    moved(store, 1).assess(leaf, "failure", by="ada")
    assert prune(store, older_than(99.5)).entries == 0
    assert prune(store, older_than(10)).entries == 3
    assert_whole(store)


def test_the_newest_entries_of_each_agent_stay(store: Store) -> None:
    mine = [log(store, day) for day in range(5)]
    yours = [log(store, day, agent_id="b") for day in range(3)]
    waiting = log(store, 0, "unknown")
    prune(store, kept_entries=2)
    assert ids(store) == {*mine[3:], *yours[1:], waiting}


def test_one_agent_alone_can_be_pruned(store: Store) -> None:
    log(store, 0)
    yours = log(store, 0, agent_id="b")
    below = log(store, 0)
    log(store, 0, agent_id="b", parent_id=below)
    prune(store, older_than(10), agent_id="a")
    assert {yours, below} <= ids(store)
    assert len(ids(store)) == 3


def test_the_rules_say_what_is_kept(store: Store) -> None:
    old, young = log(store, 0), log(store, 95)
    other = log(store, 0, agent_id="b")
    rules = {"a": {"retention": {"days": 30}}, "b": {"all_expired": "success"}}
    assert prune(store, rules=rules).entries == 1
    assert ids(store) == {young, other}
    assert old not in ids(store)


def test_nothing_goes_when_nothing_says_how_much_is_kept(store: Store) -> None:
    log(store, 0)
    with pytest.raises(SettingsError, match="say how much to keep"):
        prune(store, rules={"b": {"retention": {"days": 1}}})
    with pytest.raises(SettingsError, match="say how much to keep"):
        prune(store, agent_id="a")


def test_a_trial_changes_nothing(store: Store) -> None:
    for day in range(3):
        gate(store, day, p=PASSED)
    before = ids(store)
    report = prune(store, older_than(1), is_trial=True)
    assert (report.entries, report.trajectories, report.documents) == (4, 2, 0)
    assert ids(store) == before
    assert prune(store, older_than(1)).entries == 4


def test_document_that_is_used_again_after_the_look_stays(store: Store) -> None:
    gate(store, 0, inputs={"read": "old"}, ignored=["old"], p=PASSED)
    with store.write() as connection:
        connection.execute(delete(gate_results))
        connection.execute(delete(gate_runs))
        unused = find_unused_documents(connection)
    assert len(unused.digests) == count(store, documents) == 4
    gate(store, 0, inputs={"read": "old"}, ignored=["old"], p=PASSED)
    with store.write() as connection:
        keep_document(connection, "of nobody")
        delete_documents(connection, unused, unused.digests)
    assert count(store, documents) == 5
    assert prune(store, older_than(1)).documents == 1
    assert_whole(store)


def test_many_trees_go_in_many_transactions(store: Store) -> None:
    journal = moved(store, 0)
    for _ in range(120):
        journal.log_outcome(journal.log_intent("x", agent_id="a").id, "success")
    journal.add_signal("ci", "neutral", "x", entry_id=journal.review_journal()[0].id)
    told: list[int] = []
    report = prune_store(store, PruneOrder(closed_after=older_than(1)), {}, NOW, progress=told.append)
    assert (report.entries, told) == (120, [50, 100])
    assert (count(store, entries), count(store, signals)) == (0, 0)
    assert Journal(store).summary().n == 0


def test_one_write_removes_no_more_than_some_and_others_write_between(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_golden.gate.pruning_store._ENTRIES_AT_ONCE", 20)
    journal = moved(store, 0)
    for _ in range(5):
        root = log(store, 0)
        for _ in range(6):
            log(store, 0, parent_id=root)
    left: list[int] = []

    def look(store: Store) -> None:
        left.append(count(store, entries))
        journal.log_intent("between", agent_id="other")

    report = prune(interrupted(store, look), older_than(1))
    assert report.entries == 35
    # What is learned first of all; then two trees of 7 each time, since three would be too many.
    assert left == [35, 36, 23, 10]
    assert count(store, entries) == len(left)


def test_tree_that_changes_between_the_look_and_the_write_is_judged_anew(store: Store) -> None:
    grown, gone, lonely = log(store, 0), log(store, 0), log(store, 0)
    writes: list[str] = []

    def change(store: Store) -> None:
        # The first write is that of what is learned, before the look.
        writes.append("")
        if len(writes) == 2:
            writes.append(moved(store, 1).log_intent("below", agent_id="a", parent_id=grown).id)
            with store.write() as connection:
                delete_entries(connection, [gone])

    report = prune(interrupted(store, change), older_than(10))
    assert report.entries == 1
    assert ids(store) == {grown, writes[-1]}
    assert lonely not in ids(store)
    assert_whole(store)


def test_gate_that_runs_while_the_limits_are_looked_for_is_not_among_those_beyond_them(store: Store) -> None:
    gate(store, 0, p=PASSED)
    late: list[str] = []

    def run_gate(store: Store) -> None:
        if not late:
            late.append(gate(store, 1, p=FAILED))

    prune(interrupted(store, run_gate, at="read"), kept_entries=0)
    prune(interrupted(store, run_gate), kept_entries=0)
    assert set(late) <= runs(store)


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
def test_room_is_given_back_when_it_is_asked_for(store: Store) -> None:
    journal = moved(store, 0)
    for _ in range(30):
        journal.log_outcome(journal.log_intent("x" * 50_000, agent_id="a").id, "success")
    assert prune(store, kept_entries=10).freed_bytes is None
    freed = prune(store, kept_entries=1, gives_back=True).freed_bytes
    assert freed is not None
    assert freed > 1_000_000
    log(store, 1)
    assert_whole(store)


def test_a_store_in_memory_has_no_file_to_make_smaller() -> None:
    with Store.open("sqlite://") as store:
        log(store, 0)
        assert prune(store, kept_entries=1, gives_back=True).freed_bytes is None


OLD, YOUNG = Member("old", 1, "a", 100), Member("young", 9, "a", 900)
OPEN, FOREIGN = Member("open", 2, "a", None), Member("foreign", 2, "b", 100)

CASES = {
    "old": ((OLD,), Limit(500), True),
    "at the limit": ((OLD,), Limit(100), True),
    "young": ((YOUNG,), Limit(500), False),
    "too many": ((OLD,), Limit(last_number=1), True),
    "among the newest": ((YOUNG,), Limit(last_number=8), False),
    "either limit": ((OLD,), Limit(50, 1), True),
    "young below old": ((OLD, YOUNG), Limit(500, 8), False),
    "open below old": ((OLD, OPEN), Limit(500, 8), False),
    "another's below": ((OLD, FOREIGN), Limit(500, 8), False),
    "no limit": ((OLD,), Limit(), False),
}


@pytest.mark.parametrize(("tree", "limit", "goes"), CASES.values(), ids=CASES)
def test_a_tree_goes_as_a_whole_or_stays(tree: tuple[Member, ...], limit: Limit, goes: bool) -> None:
    assert may_go(tree, limit, ()) is goes


def test_what_is_needed_stays() -> None:
    assert not may_go((OLD,), Limit(500), {"old"})
