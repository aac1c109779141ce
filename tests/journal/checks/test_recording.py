from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_golden.journal.checks.heartbeat import record_answer
from pytest_golden.journal.checks.rules import Answer, unable
from pytest_golden.journal.checks.store import claim_check, list_due
from pytest_golden.journal.model import SignalType
from pytest_golden.journal.service import Journal
from pytest_golden.storage.columns import to_ms
from tests.journal.checks.conftest import expect
from tests.journal.conftest import Clock

if TYPE_CHECKING:
    from pytest_golden.journal.checks.store import Claim
    from pytest_golden.journal.store import SweptStore
    from pytest_golden.storage.store import Store

GOOD = Answer(SignalType.POSITIVE, "it is there")
BAD = Answer(SignalType.NEGATIVE, "it is not there")
COMMAND = {"command": "true"}


def claim(swept: SweptStore, seconds: float = 60) -> Claim:
    now = to_ms(swept.now())
    with swept.store.write() as connection:
        first, *_ = list_due(connection, now, 10)
        taken = claim_check(connection, first.expectation_id, now, now + round(seconds * 1000))
    assert taken is not None
    return taken


def test_an_answer_goes_to_its_own_expectation_whatever_else_fits(journal: Journal, clock: Clock) -> None:
    entry = expect(journal, COMMAND)
    other = expect(journal, COMMAND, match_hint={"source": "check"}, expires_minutes=5)
    clock.move(minutes=1)
    kept = record_answer(journal.swept_store, claim(journal.swept_store), GOOD).signal
    assert kept is not None
    assert (kept.source, kept.routed_by, kept.entry_id) == ("check", "entry", entry.id)
    assert kept.expectation_id == entry.expectations[0].id
    assert kept.external_id == f"{entry.expectations[0].id}:answer"
    assert kept.data == {"try": 1}
    after = journal.get(entry.id)
    assert (after.expectations[0].status, after.expectations[0].resolved_by) == ("met", kept.id)
    assert (after.assessment, after.history[-1].who) == ("success", "check")
    assert journal.get(other.id).assessment == "open"
    [candidate] = journal.explain_routing(kept.id).candidates
    assert (candidate.taken, candidate.reason) == (True, "the check belongs to this expectation")


def test_a_check_that_could_not_be_run_leaves_the_question_open(journal: Journal, clock: Clock) -> None:
    entry = expect(journal, COMMAND)
    clock.move(minutes=1)
    kept = record_answer(journal.swept_store, claim(journal.swept_store), unable("no\0 network"))
    assert kept.signal is not None
    assert (kept.signal.signal_type, kept.signal.external_id) == ("neutral", f"{entry.expectations[0].id}:try-1")
    assert kept.next_at is not None
    assert (kept.next_at - clock.now).total_seconds() == 60
    after = journal.get(entry.id)
    assert (after.assessment, after.expectations[0].status) == ("open", "open")


def test_who_has_lost_the_claim_records_nothing(journal: Journal, clock: Clock) -> None:
    entry = expect(journal, COMMAND)
    clock.move(minutes=1)
    late = claim(journal.swept_store)
    clock.move(minutes=1)
    assert record_answer(journal.swept_store, claim(journal.swept_store), GOOD).signal is not None
    assert record_answer(journal.swept_store, late, BAD) == (None, None)
    assert [signal.signal_type for signal in journal.get(entry.id).signals] == ["positive"]
    assert journal.get(entry.id).assessment == "success"


def test_an_answer_that_is_known_already_is_not_heard_again(journal: Journal, clock: Clock) -> None:
    entry = expect(journal, COMMAND)
    asked = entry.expectations[0].id
    clock.move(minutes=1)
    # As an import may bring it.
    known = journal.add_signal("check", "neutral", "from elsewhere", external_id=f"{asked}:try-1", entry_id=entry.id)
    kept = record_answer(journal.swept_store, claim(journal.swept_store), unable("x"))
    assert kept.signal == known
    assert kept.next_at is not None


def test_an_answer_after_the_expiry_decides_nothing(journal: Journal, clock: Clock) -> None:
    entry = expect(journal, COMMAND, expires_minutes=2)
    clock.move(minutes=1)
    taken = claim(journal.swept_store, seconds=600)
    clock.move(minutes=1)
    kept = record_answer(journal.swept_store, taken, BAD).signal
    assert kept is not None
    assert (kept.entry_id, kept.expectation_id) == (entry.id, None)
    assert journal.get(entry.id).assessment == "expired"


def test_bad_news_on_what_was_met_meanwhile_is_news_against_the_entry(journal: Journal, clock: Clock) -> None:
    entry = expect(journal, COMMAND, match_hint={"pr": 1})
    clock.move(minutes=1)
    taken = claim(journal.swept_store)
    journal.add_signal("ci", "positive", "green", data={"pr": 1}, agent_id="builder")
    record_answer(journal.swept_store, taken, BAD)
    assert journal.get(entry.id).assessment == "failure"


@pytest.mark.parametrize(("answer", "assessment"), [(GOOD, "open"), (BAD, "failure"), (unable("x"), "open")])
def test_where_nothing_is_expected_to_happen_only_bad_news_counts(
    journal: Journal, clock: Clock, answer: Answer, assessment: str
) -> None:
    entry = expect(journal, COMMAND, polarity="negative", expires_minutes=60)
    clock.move(minutes=1)
    kept = record_answer(journal.swept_store, claim(journal.swept_store), answer)
    assert journal.get(entry.id).assessment == assessment
    assert (kept.next_at is None) == answer.is_final


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from([GOOD, BAD, unable("x")]), st.booleans(), st.integers(0, 90)), max_size=12))
def test_a_check_answers_once_whoever_comes_late_or_twice(store: Store, plan: list[tuple[Answer, bool, int]]) -> None:
    clock = Clock()
    journal = Journal(store, clock=clock)
    entry = expect(journal, COMMAND)
    finals: list[str] = []
    lost: list[Claim] = []
    for answer, dies, minutes in plan:
        clock.move(minutes=minutes)
        now = to_ms(clock.now)
        with store.write() as connection:
            taken = claim_check(connection, entry.expectations[0].id, now, now + 60_000)
        for late in lost:
            clock.move(seconds=61 if taken is None else 0)
            if taken is not None:
                assert record_answer(journal.swept_store, late, BAD).signal is None
        if taken is None:
            continue
        if dies:
            lost.append(taken)
            continue
        kept = record_answer(journal.swept_store, taken, answer)
        finals += [kept.signal.id] if kept.signal is not None and answer.is_final else []
    signals = journal.get(entry.id).signals
    assert len(finals) <= 1
    assert [signal.id for signal in signals if signal.signal_type != "neutral"] == finals
    assert len({signal.external_id for signal in signals}) == len(signals)
