"""Many processes at one journal, and processes that are killed in the middle of it, on each database."""

from __future__ import annotations

import sqlite3
import subprocess
from collections import Counter
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from pytest_golden.errors import JournalError
from pytest_golden.journal.assessment_store import close_expectations, read_counts
from pytest_golden.journal.model import (
    Assessment,
    Expectation,
    ExpectationStatus,
    ImmediateResult,
    JournalEntry,
    Polarity,
    RoutedBy,
    Signal,
    SignalType,
)
from pytest_golden.journal.review_store import list_numbered_entries
from pytest_golden.journal.rules import Counts, Rules
from pytest_golden.journal.service import Journal
from pytest_golden.journal.store import (
    Outcome,
    Received,
    get_entry,
    has_entry,
    insert_entry,
    insert_expectations,
    record_outcome,
    take_signal,
)
from pytest_golden.storage.schema import entries, expectations, signals
from pytest_golden.storage.store import Store
from tests.journal.conftest import BEGIN

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

_NUMBERS = count()


def make_entry(store: Store, **fields: Any) -> JournalEntry:
    told = {"id": f"entry_{next(_NUMBERS)}", "agent_id": "golden", "intent": "check", **fields}
    entry = JournalEntry(**{"created_at": BEGIN, "updated_at": BEGIN, **told})
    with store.write() as connection:
        insert_entry(connection, entry)
    return entry


def expect(store: Store, entry: JournalEntry, *wishes: dict[str, Any]) -> list[str]:
    plain: dict[str, Any] = {"entry_id": entry.id, "description": "x", "created_at": BEGIN}
    expected = [Expectation(**{**plain, "id": f"expectation_{next(_NUMBERS)}", **wish}) for wish in wishes]
    with store.write() as connection:
        insert_expectations(connection, expected)
    return [expectation.id for expectation in expected]


def signal(
    store: Store,
    entry: JournalEntry,
    signal_type: SignalType,
    expectation_id: str | None = None,
    moment: datetime = BEGIN,
    **fields: Any,
) -> Assessment:
    news = Signal(
        id=f"signal_{next(_NUMBERS)}",
        entry_id=entry.id,
        source="ci",
        signal_type=signal_type,
        summary=f"it is {signal_type}",
        created_at=moment,
        **fields,
    )
    with store.write() as connection:
        take_signal(connection, news, expectation_id, Received(RoutedBy.MATCH_HINT))
        return get_entry(connection, entry.id).assessment


def read(store: Store, entry: JournalEntry) -> JournalEntry:
    with store.read() as connection:
        return get_entry(connection, entry.id)


def read_counters(store: Store, entry: JournalEntry) -> Counts:
    with store.read() as connection:
        return read_counts(connection.execute(select(entries).where(entries.c.id == entry.id)).one())


def test_an_entry_comes_back_as_it_was_kept(store: Store) -> None:
    entry = make_entry(
        store,
        job_id="job",
        session_key="s",
        intent_type="golden_run",
        actions=("read", {"tool": "write", "rows": 3}),
        immediate_result=ImmediateResult.FAILURE,
        immediate_notes="exit code 1",
        assessment=Assessment.FAILURE,
        assessment_notes="by hand",
        closed_at=BEGIN,
        parent_id="entry_0",
    )
    assert read(store, entry) == entry
    with store.read() as connection:
        assert has_entry(connection, entry.id)
        assert not has_entry(connection, "entry_none")


def test_what_was_read_cannot_be_written(store: Store) -> None:
    entry = read(store, make_entry(store, actions=({"rows": [1]},)))
    with pytest.raises(TypeError, match="cannot be written"):
        entry.actions[0]["rows"].append(2)


def test_texts_that_no_database_takes_are_kept_escaped(store: Store) -> None:
    entry = make_entry(store, intent="a\0b", immediate_notes="half \udc80")
    signal(store, entry, SignalType.NEUTRAL)
    kept = read(store, entry)
    assert (kept.intent, kept.immediate_notes) == (r"a\x00b", r"half \udc80")


def test_each_signal_settles_its_expectation_and_the_last_one_closes_the_entry(store: Store) -> None:
    entry = make_entry(store)
    first, second = expect(store, entry, {"match_hint": {"project": "a"}}, {"check": {"after": 1, "command": ["x"]}})
    assert signal(store, entry, SignalType.POSITIVE, first, data={"project": "a"}, external_id="e1") == "open"
    assert read(store, entry).closed_at is None
    later = BEGIN + timedelta(seconds=2)
    assert signal(store, entry, SignalType.POSITIVE, second, later) == "success"
    kept = read(store, entry)
    assert (kept.assessment, kept.closed_at, kept.updated_at) == ("success", later, later)
    assert [asked.status for asked in kept.expectations] == ["met", "met"]
    assert [asked.resolved_by for asked in kept.expectations] == [news.id for news in kept.signals]
    assert [asked.resolved_at for asked in kept.expectations] == [BEGIN, later]
    assert [asked.match_hint for asked in kept.expectations] == [{"project": "a"}, None]
    assert [asked.check for asked in kept.expectations] == [None, {"after": 1, "command": ["x"]}]
    assert [news.expectation_id for news in kept.signals] == [first, second]
    assert [news.routed_by for news in kept.signals] == ["match_hint", "match_hint"]
    assert (kept.signals[0].data, kept.signals[0].external_id) == ({"project": "a"}, "e1")
    [change] = kept.history
    assert (change.what, change.who, change.when, change.why) == ("assessment", "ci", later, "it is positive")
    notes = "2 met; the last: met: x: it is positive"
    assert change.details == {"from": "open", "to": "success", "signal": kept.signals[1].id, "notes": notes}
    assert kept.assessment_notes == notes


def test_a_failure_stands_and_keeps_the_moment_at_which_it_was_known(store: Store) -> None:
    entry = make_entry(store)
    first, second = expect(store, entry, {}, {})
    assert signal(store, entry, SignalType.NEGATIVE, first) == "failure"
    assert signal(store, entry, SignalType.POSITIVE, second, BEGIN + timedelta(hours=1)) == "failure"
    kept = read(store, entry)
    assert kept.closed_at == BEGIN
    assert len(kept.history) == 1


def test_news_against_an_expectation_already_met_is_kept_on_the_entry_and_makes_it_a_failure(store: Store) -> None:
    entry = make_entry(store)
    [asked] = expect(store, entry, {})
    assert signal(store, entry, SignalType.POSITIVE, asked) == "success"
    assert signal(store, entry, SignalType.NEGATIVE, asked) == "failure"
    kept = read(store, entry)
    assert kept.expectations[0].status == "met"
    assert kept.signals[1].expectation_id is None
    assert [change.details["to"] for change in kept.history] == ["success", "failure"]


@pytest.mark.parametrize("late_ms", [0, 1, 86_400_000])
def test_a_signal_at_or_after_the_expiry_is_kept_and_decides_nothing(store: Store, late_ms: int) -> None:
    expiry = BEGIN + timedelta(minutes=5)
    entry = make_entry(store)
    [asked] = expect(store, entry, {"expires_at": expiry})
    assert signal(store, entry, SignalType.NEGATIVE, asked, expiry + timedelta(milliseconds=late_ms)) == "open"
    kept = read(store, entry)
    assert kept.expectations[0].status == "open"
    assert kept.signals[0].expectation_id is None
    assert signal(store, entry, SignalType.POSITIVE, asked, expiry - timedelta(milliseconds=1)) == "success"


def test_a_neutral_signal_stays_with_its_expectation_and_leaves_it_open(store: Store) -> None:
    entry = make_entry(store)
    [asked] = expect(store, entry, {"polarity": Polarity.NEGATIVE, "expires_at": BEGIN + timedelta(minutes=5)})
    assert signal(store, entry, SignalType.NEUTRAL, asked) == "open"
    assert signal(store, entry, SignalType.POSITIVE, asked) == "open"
    kept = read(store, entry)
    assert [news.expectation_id for news in kept.signals] == [asked, asked]
    assert read_counters(store, entry) == Counts(open=1)


def test_news_about_the_entry_alone_settles_one_without_expectations(store: Store) -> None:
    entry = make_entry(store)
    assert signal(store, entry, SignalType.NEUTRAL) == "open"
    assert signal(store, entry, SignalType.POSITIVE) == "success"
    assert signal(store, entry, SignalType.CORRECTION) == "failure"


def test_an_unknown_entry_or_expectation_is_refused_and_nothing_is_kept(store: Store) -> None:
    entry, other = make_entry(store), make_entry(store)
    [asked] = expect(store, other, {})
    with pytest.raises(JournalError, match=f"entry {entry.id} has no expectation '{asked}'"):
        signal(store, entry, SignalType.POSITIVE, asked)
    unknown = JournalEntry(id="entry_none", agent_id="a", intent="i", created_at=BEGIN, updated_at=BEGIN)
    with pytest.raises(JournalError, match="the journal has no entry 'entry_none'"):
        signal(store, unknown, SignalType.POSITIVE)
    with store.write() as connection, pytest.raises(JournalError, match="no entry 'entry_none'"):
        close_expectations(connection, "entry_none", BEGIN, who="golden", why="x")
    with pytest.raises(JournalError, match="no entry 'entry_none'"):
        expect(store, unknown, {})
    assert read(store, entry).signals == ()


def test_closing_resolves_what_is_open_by_its_polarity_and_assesses(store: Store) -> None:
    entry = make_entry(store)
    met, *_ = expect(store, entry, {}, {}, {}, {"polarity": Polarity.NEGATIVE, "expires_at": BEGIN + timedelta(days=1)})
    signal(store, entry, SignalType.POSITIVE, met)
    later = BEGIN + timedelta(minutes=1)
    with store.write() as connection:
        assert close_expectations(connection, entry.id, later, who="golden", why="interrupted") == "partial"
    kept = read(store, entry)
    assert [asked.status for asked in kept.expectations] == ["met", "expired", "expired", "met"]
    assert [asked.resolved_by for asked in kept.expectations[1:]] == ["golden"] * 3
    assert [asked.resolved_at for asked in kept.expectations] == [BEGIN, later, later, later]
    assert kept.history[0].why == "interrupted"
    notes = "2 met, 2 expired without news; the last: expired: x and 1 more (interrupted)"
    assert kept.history[0].details == {"from": "open", "to": "partial", "closed_expectations": 3, "notes": notes}
    assert kept.assessment_notes == notes
    assert read_counters(store, entry) == Counts(met=2, expired=2, positive=1)


def test_closing_what_has_nothing_open_changes_nothing(store: Store) -> None:
    entry = make_entry(store)
    with store.write() as connection:
        assert close_expectations(connection, entry.id, BEGIN, who="golden", why="x") == "open"
    assert read(store, entry) == entry


def test_a_critical_expectation_that_is_closed_makes_a_failure(store: Store) -> None:
    entry = make_entry(store)
    expect(store, entry, {"critical": True})
    rules = Rules(all_expired=Assessment.SUCCESS)
    with store.write() as connection:
        assert close_expectations(connection, entry.id, BEGIN, who="golden", why="x", rules=rules) == "failure"


def test_rules_of_an_agent_hold_when_its_expectations_are_closed(store: Store) -> None:
    entry = make_entry(store)
    expect(store, entry, {})
    rules = Rules(all_expired=Assessment.SUCCESS)
    with store.write() as connection:
        assert close_expectations(connection, entry.id, BEGIN, who="golden", why="x", rules=rules) == "success"


def test_an_outcome_said_twice_stands_as_said_last_and_never_opens_what_is_closed(store: Store) -> None:
    entry = make_entry(store)
    asked = Expectation(id="expectation_new", entry_id=entry.id, description="x", created_at=BEGIN)
    said = [
        Outcome(ImmediateResult.SUCCESS, "done", ("read", "write")),
        Outcome(ImmediateResult.FAILURE),
        Outcome(ImmediateResult.UNKNOWN, "not sure", ("read",), (asked,)),
    ]
    with store.write() as connection:
        given = [record_outcome(connection, entry.id, one, BEGIN, who="builder") for one in said]
    assert given == ["success", "failure", "failure"]
    kept = read(store, entry)
    assert (kept.immediate_result, kept.immediate_notes, kept.actions) == ("unknown", "not sure", ("read",))
    assert (kept.assessment, kept.closed_at) == ("failure", BEGIN)
    outcomes = [change for change in kept.history if change.what == "outcome"]
    assert [(change.why, dict(change.details)) for change in outcomes] == [
        ("done", {"result": "success", "expectations": 0}),
        (None, {"result": "failure", "expectations": 0}),
        ("not sure", {"result": "unknown", "expectations": 1}),
    ]
    assert signal(store, entry, SignalType.POSITIVE, asked.id) == "success"


def test_times_never_go_back_behind_the_clock(store: Store) -> None:
    entry = make_entry(store)
    first, _ = expect(store, entry, {}, {})
    before = BEGIN - timedelta(hours=1)
    signal(store, entry, SignalType.POSITIVE, first, before)
    with store.write() as connection:
        record_outcome(connection, entry.id, Outcome(ImmediateResult.SUCCESS), before, who="golden")
        close_expectations(connection, entry.id, before, who="golden", why="interrupted")
    kept = read(store, entry)
    moments = [kept.closed_at, kept.updated_at, *(change.when for change in kept.history)]
    assert moments == [BEGIN] * 4
    assert [asked.resolved_at for asked in kept.expectations] == [BEGIN] * 2


def test_entries_are_listed_newest_first_by_their_recording(store: Store) -> None:
    old = make_entry(store, created_at=BEGIN + timedelta(days=1), updated_at=BEGIN + timedelta(days=1))
    asked = expect(store, old, {}, {})
    new = make_entry(store, intent_type="etl")
    foreign = make_entry(store, agent_id="builder", assessment=Assessment.SUCCESS, closed_at=BEGIN)

    def listed(limit: int = 10, **wanted: Any) -> list[str]:
        with store.read() as connection:
            return [entry.id for _, entry, _ in list_numbered_entries(connection, limit, **wanted)]

    assert listed() == [foreign.id, new.id, old.id]
    assert listed(agent_id="golden") == [new.id, old.id]
    assert listed(agent_id="golden", limit=1) == [new.id]
    assert listed(intent_type="etl") == [new.id]
    assert listed(assessment=Assessment.SUCCESS) == [foreign.id]
    assert listed(assessment=Assessment.OPEN) == [new.id, old.id]
    assert listed(agent_id="nobody") == []
    with store.read() as connection:
        kept = list_numbered_entries(connection, 10)[-1][1]
    assert [one.id for one in kept.expectations] == asked


STEPS = st.lists(
    st.tuples(st.sampled_from(SignalType), st.sampled_from([None, 0, 1, 2, 3]), st.booleans()), min_size=1, max_size=8
)
WISHES = st.lists(st.tuples(st.sampled_from(Polarity), st.booleans()), min_size=4, max_size=4)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(WISHES, STEPS)
def test_kept_counts_are_those_of_the_expectations_and_signals(
    store: Store, wishes: list[tuple[Polarity, bool]], steps: list[tuple[SignalType, int | None, bool]]
) -> None:
    entry = make_entry(store)
    expiry = BEGIN + timedelta(minutes=5)
    asked = expect(
        store,
        entry,
        *({"polarity": polarity, "critical": critical, "expires_at": expiry} for polarity, critical in wishes),
    )
    for signal_type, number, is_late in steps:
        moment = expiry if is_late and number is not None else BEGIN
        signal(store, entry, signal_type, None if number is None else asked[number], moment)
    counts, kept = read_counters(store, entry), read(store, entry)
    statuses = Counter(one.status for one in kept.expectations)
    assert {status: getattr(counts, status) for status in ExpectationStatus} == {
        status: statuses[status] for status in ExpectationStatus
    }
    lost = [one for one in kept.expectations if one.critical and one.status in {"unmet", "expired"}]
    assert counts.critical_lost == len(lost)
    assert len(kept.signals) == len(steps)


def count_statements(store: Store, entry: JournalEntry, expectation_id: str) -> int:
    """Count what one signal says to the database."""
    said: list[str] = []
    news = Signal(
        id=f"signal_{next(_NUMBERS)}",
        entry_id=entry.id,
        source="ci",
        signal_type=SignalType.POSITIVE,
        summary="x",
        created_at=BEGIN,
    )
    with store.write() as connection:
        database = connection.connection.driver_connection
        assert isinstance(database, sqlite3.Connection)  # The only one that tells what it is told.
        database.set_trace_callback(said.append)
        take_signal(connection, news, expectation_id, Received(RoutedBy.MATCH_HINT))
        database.set_trace_callback(None)
    return len(said)


def test_a_signal_says_the_same_to_the_database_however_many_expectations_there_are(tmp_path: Path) -> None:
    with Store.open(tmp_path / "golden.db") as store:
        small, large = make_entry(store), make_entry(store)
        few, many = expect(store, small, *([{}] * 10)), expect(store, large, *([{}] * 3000))
        assert count_statements(store, small, few[5]) == count_statements(store, large, many[2000]) == 4
        assert read_counters(store, large) == Counts(open=2999, met=1, positive=1)


PROCESSES, ROUNDS = 8, 6
# Each process answers its own question and, with the others, one that all of them have.
WRITE = """
import sys, warnings
warnings.simplefilter("error")
from pytest_golden.journal.service import Journal
location, who, rounds = sys.argv[1:]
with Journal.open(location) as journal:
    for number in range(int(rounds)):
        entry = journal.log_intent(f"load {number}", agent_id=who)
        asked = [{"description": "green", "match_hint": {"pr": f"{who}-{number}"}}]
        journal.log_outcome(entry.id, "success", expectations=asked)
        journal.add_signal("ci", "positive", "green", data={"pr": f"{who}-{number}"}, external_id=f"{who}-{number}")
        journal.add_signal("ci", "positive", "green", data={"pr": "all"}, external_id=f"all-{number}")
        print(entry.id, flush=True)
"""


def test_nothing_is_lost_and_news_said_by_many_has_one_effect(location: str | Path, warm_starts: Path) -> None:
    with Journal.open(location) as journal:
        shared = journal.log_intent("watch", agent_id="watcher")
        journal.log_outcome(
            shared.id, "success", expectations=[{"description": "all green", "match_hint": {"pr": "all"}}]
        )
        command = [str(warm_starts / "python"), "-u", "-c", WRITE, str(location)]
        writers = [
            subprocess.Popen([*command, f"agent{number}", str(ROUNDS)], stdout=subprocess.PIPE, encoding="utf-8")
            for number in range(PROCESSES)
        ]
        told = [writer.communicate(timeout=120)[0].split() for writer in writers]
        assert [writer.returncode for writer in writers] == [0] * PROCESSES
        for ids in told:
            assert len(ids) == ROUNDS
            assert all(journal.get(one).assessment == "success" for one in ids)
        assert journal.get(shared.id).assessment == "success"
        assert journal.summary().n == PROCESSES * ROUNDS + 1
    with Store.open(location) as store, store.read() as connection:
        counted = [
            connection.scalar(select(func.count()).select_from(table)) for table in (entries, expectations, signals)
        ]
        assert counted == [PROCESSES * ROUNDS + 1, PROCESSES * ROUNDS + 1, PROCESSES * ROUNDS + ROUNDS]
        began = connection.execute(select(entries.c.number, entries.c.id).order_by(entries.c.number)).all()
        assert len({row.number for row in began}) == len(began)
