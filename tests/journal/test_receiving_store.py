"""Signals as callers give them: where they go, what they do, and what does nothing again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import delete, update

from pytest_golden.errors import JournalError
from pytest_golden.journal import receiving_store as rerouting
from pytest_golden.journal.checks.heartbeat import Heartbeat
from pytest_golden.journal.model import Expectation, JournalEntry, RoutedBy, Signal, SignalType
from pytest_golden.journal.service import Journal
from pytest_golden.journal.store import Received, insert_expectations, take_signal
from pytest_golden.storage.schema import signals
from tests.journal.conftest import BEGIN, Clock

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.storage.store import Store

SECRET = "ghp_" + "a1B2" * 9
GREEN = {"description": "CI is green", "match_hint": {"source": "ci", "pr": 42}}


def begin(
    journal: Journal, *wishes: dict[str, Any], agent: str = "builder", session: str | None = None
) -> JournalEntry:
    entry = journal.log_intent("deploy", "deploy", agent_id=agent, session_key=session)
    return journal.log_outcome(entry.id, "success" if wishes else "unknown", expectations=wishes)


def stand(journal: Journal, entry: JournalEntry) -> str:
    return journal.get(entry.id).assessment


def test_news_answers_the_expectation_that_its_hint_fits(journal: Journal, clock: Clock) -> None:
    entry = begin(journal, GREEN)
    clock.move(minutes=5)
    signal = journal.add_signal(
        "ci", "positive", "build 7 is green", data={"pr": "42", "sha": "abc"}, agent_id="builder"
    )
    kept = journal.get(entry.id)
    assert kept.signals == (signal,)
    assert (signal.entry_id, signal.expectation_id) == (entry.id, entry.expectations[0].id)
    assert (signal.routed_by, signal.created_at, signal.data) == ("match_hint", clock.now, {"pr": "42", "sha": "abc"})
    assert (kept.assessment, kept.closed_at) == ("success", clock.now)
    assert kept.expectations[0].resolved_by == signal.id
    assert (kept.history[-1].who, kept.history[-1].why) == ("ci", "build 7 is green")


def test_an_orphan_is_attached_to_an_entry_once_and_never_to_another_agents(journal: Journal) -> None:
    entry, other = begin(journal), begin(journal, agent="critic")
    orphan = journal.add_signal("mars", "negative", "the numbers are wrong", data={"url": "https://mars.example/1"})
    named = journal.add_signal("mars", "negative", "late", agent_id="nobody")
    assert (orphan.routed_by, named.routed_by) == ("orphan", "orphan")
    with pytest.raises(JournalError, match="is for agent 'nobody', and the entry is of 'builder'"):
        journal.attach(named.id, entry.id)
    with pytest.raises(JournalError, match="no entry 'entry_none'"):
        journal.attach(orphan.id, "entry_none")
    attached = journal.attach(orphan.id, entry.id)
    assert (attached.entry_id, attached.expectation_id, attached.routed_by) == (entry.id, None, "entry")
    kept = journal.get(entry.id)
    assert (kept.signals, kept.assessment) == ((attached,), "failure")
    assert kept.assessment_notes == "mars: the numbers are wrong, https://mars.example/1"
    assert [one.id for one in journal.orphans()] == [named.id]
    for signal_id, entry_id in ((orphan.id, other.id), ("signal_none", entry.id)):
        with pytest.raises(JournalError, match="waits as an orphan; `golden journal orphans`"):
            journal.attach(signal_id, entry_id)
    assert stand(journal, other) == "open"


def test_good_news_that_came_early_is_no_success_of_what_then_failed(journal: Journal) -> None:
    entry = journal.log_intent("deploy", agent_id="builder")
    journal.add_signal("pager", "positive", "all quiet", entry_id=entry.id)
    assert stand(journal, entry) == "success"
    failed = journal.log_outcome(entry.id, "failure", "rolled back", expectations=[GREEN])
    assert (failed.assessment, failed.assessment_notes) == ("failure", "the agent reported failure: rolled back")
    # What is expected then may still be met.
    journal.add_signal("ci", "positive", "green", data={"pr": 42}, agent_id="builder")
    assert stand(journal, entry) == "success"


def test_one_signal_answers_all_attempts_that_wait_for_the_same_and_says_so(journal: Journal, clock: Clock) -> None:
    entries = []
    for intent, session in (
        ("open #7", None),
        ("open #7", None),
        ("open #7 again", "s"),
        ("go on", "s"),
        ("other", None),
    ):
        begun = journal.log_intent(intent, agent_id="builder", session_key=session)
        entries.append(journal.log_outcome(begun.id, "success", expectations=[GREEN]))
        clock.move(seconds=1)
    begin(journal, GREEN, agent="other")
    signal = journal.add_signal("ci", "negative", "it is red", data={"pr": 42}, agent_id="builder")
    # The oldest question decides who is asked: its attempts are the entries with the same intent.
    assert signal.entry_id == entries[1].id
    assert [stand(journal, entry) for entry in entries] == ["failure", "failure", "open", "open", "open"]
    first, second = journal.explain_routing(signal.id).candidates[:2]
    assert (first.taken, first.reason.endswith("it is of the newest attempt")) == (True, True)
    assert (second.taken, second.reason.endswith("an earlier attempt waits for the same")) == (True, True)
    (expected,) = journal.get(entries[0].id).expectations
    assert (expected.status, expected.resolved_by) == ("unmet", signal.id)
    assert journal.get(entries[0].id).assessment_notes == "unmet: CI is green: it is red"
    # The same session makes attempts of entries with other intents.
    again = journal.add_signal("ci", "positive", "green again", data={"pr": 42}, agent_id="builder")
    assert again.entry_id == entries[3].id
    assert [stand(journal, entry) for entry in entries[2:]] == ["success", "success", "open"]


def test_what_an_attempt_expects_twice_is_heard_twice(journal: Journal) -> None:
    wish = {"description": "it is green", "match_hint": {"pr": 7}}
    for _ in range(2):
        entry = journal.log_intent("open #7", agent_id="builder")
        journal.log_outcome(entry.id, "success", expectations=[wish, wish])
    for left in (2, 0):
        journal.add_signal("ci", "positive", f"{left} are left", data={"pr": 7}, agent_id="builder")
        assert len(journal.open_expectations()) == left
    over = journal.log_intent("open #7", agent_id="builder")
    journal.log_outcome(over.id, "success", expectations=[wish])
    journal.add_signal("ci", "neutral", "skipped", data={"pr": 7}, agent_id="builder")
    assert len(journal.open_expectations()) == 1


def test_webhooks_need_no_agent(journal: Journal) -> None:
    entry = begin(journal, GREEN, agent="critic")
    assert journal.add_signal("ci", "negative", "red", data={"pr": 42}).entry_id == entry.id
    assert stand(journal, entry) == "failure"
    assert journal.add_signal("ci", "negative", "red", data={"pr": 43}).routed_by == "orphan"


def test_the_ladder_of_rules(journal: Journal) -> None:
    hinted = begin(journal, GREEN)
    in_session = begin(journal, {"description": "somebody is happy"}, session="chat")
    in_window = begin(journal, {"description": "it is read", "expires_minutes": 5})
    plain = begin(journal)
    told: dict[str, Any] = {"data": {"pr": 42}, "agent_id": "builder", "session_key": "chat"}
    found = [journal.add_signal("ci", "positive", f"news {number}", **told) for number in range(4)]
    found.append(journal.add_signal("ci", "positive", "news 4", data={"pr": 42}, agent_id="builder"))
    assert [one.entry_id for one in found] == [hinted.id, in_session.id, in_window.id, in_session.id, None]
    rules = ["match_hint", "session_key", "time_window", "session_key", "orphan"]
    assert [one.routed_by for one in found] == rules
    assert found[3].expectation_id is None
    named = journal.add_signal("ci", "positive", "named", entry_id=plain.id)
    assert (named.routed_by, named.entry_id, named.expectation_id) == ("entry", plain.id, None)
    assert [stand(journal, one) for one in (hinted, in_session, in_window, plain)] == ["success"] * 4


def test_a_named_entry_is_not_passed_over_by_a_guess(journal: Journal) -> None:
    other = begin(journal, {"description": "it is read", "expires_minutes": 5})
    plain = begin(journal)
    assert journal.add_signal("ci", "negative", "it broke", entry_id=plain.id).entry_id == plain.id
    assert (stand(journal, plain), stand(journal, other)) == ("failure", "open")


@pytest.mark.parametrize("signal_type", ["positive", "negative"])
def test_the_same_external_id_from_one_source_has_one_effect(journal: Journal, signal_type: str) -> None:
    entry = begin(journal, GREEN, GREEN)
    first = journal.add_signal("ci", signal_type, "build 7", data={"pr": 42}, external_id="7")
    again = journal.add_signal("ci", "negative", "another text", data={"pr": 42, "x": 1}, external_id="7")
    assert again == first
    assert journal.add_signal("other", "neutral", "build 7", external_id="7").id != first.id
    assert [one.status == "open" for one in journal.get(entry.id).expectations].count(True) == 1


def test_the_same_content_has_one_effect_while_no_younger_expectation_fits(journal: Journal) -> None:
    entry = begin(journal, GREEN, GREEN)
    told: dict[str, Any] = {"data": {"pr": 42}, "agent_id": "builder"}
    first = journal.add_signal("ci", "positive", "green", **told)
    assert journal.add_signal("ci", "positive", "green", **told) == first
    assert [one.status for one in journal.get(entry.id).expectations] == ["met", "open"]
    younger = begin(journal, GREEN)
    new = journal.add_signal("ci", "positive", "green", **told)
    assert (new.id != first.id, new.entry_id) == (True, younger.id)
    assert journal.add_signal("ci", "positive", "green", **told) == new
    assert journal.add_signal("ci", "positive", "green again", **told).entry_id == entry.id


def test_the_first_expectation_of_all_is_younger_than_what_was_said_before(journal: Journal, clock: Clock) -> None:
    first = journal.add_signal("ci", "positive", "green", data={"pr": 42})
    clock.move(minutes=1)
    entry = begin(journal, GREEN)
    new = journal.add_signal("ci", "positive", "green", data={"pr": 42})
    assert (new.id != first.id, new.entry_id) == (True, entry.id)


def test_orphans_and_neutral_news_are_known_again_too(journal: Journal) -> None:
    begin(journal, GREEN)
    for source, data in (("ci", {"pr": 42}), ("lost", {})):
        first = journal.add_signal(source, "neutral", "looking", data=data)
        assert journal.add_signal(source, "neutral", "looking", data=data) == first
    assert journal.add_signal("ci", "neutral", "looking", data={"pr": 42}, agent_id="builder") != first


def test_an_orphan_finds_a_new_expectation_by_hint_when_it_is_not_older_than_the_entry(
    journal: Journal, clock: Clock
) -> None:
    too_old = journal.add_signal("ci", "positive", "long ago", data={"pr": 42})
    clock.move(minutes=1)
    entry = journal.log_intent("deploy", agent_id="builder", session_key="s")
    foreign = journal.add_signal("ci", "positive", "of another", data={"pr": 42}, agent_id="critic")
    fitting = journal.add_signal("ci", "positive", "green", data={"pr": 42})
    later = journal.add_signal("ci", "negative", "red", data={"pr": 42})
    guess = journal.add_signal("chat", "positive", "nice", agent_id="builder", session_key="s")
    assert {one.id for one in journal.orphans()} == {too_old.id, foreign.id, fitting.id, later.id, guess.id}
    clock.move(minutes=1)
    told = journal.log_outcome(entry.id, "success", expectations=[GREEN, {"description": "liked"}])
    assert [one.id for one in told.signals] == [fitting.id, later.id, guess.id]
    assert [one.expectation_id for one in told.signals] == [told.expectations[0].id, None, None]
    assert (told.expectations[0].status, told.expectations[0].resolved_by) == ("met", fitting.id)
    assert told.assessment == "failure"
    assert [one.id for one in journal.orphans()] == [foreign.id, too_old.id]
    assert journal.explain_routing(fitting.id).rule == "match_hint"
    assert journal.reroute_orphans() == 0


def test_orphans_are_routed_again_when_they_are_asked_for(journal: Journal, store: Store, clock: Clock) -> None:
    entry = begin(journal, GREEN)
    orphan = journal.add_signal("ci", "positive", "green", data={"pr": 41})
    with store.write() as connection:
        connection.execute(update(signals).where(signals.c.id == orphan.id).values(data={"pr": 42}))
    assert journal.reroute_orphans() == 1
    assert stand(journal, entry) == "success"
    assert journal.orphans() == ()


@pytest.mark.parametrize("swept", [True, False])
@pytest.mark.parametrize("signal_type", ["positive", "negative", "neutral", "correction"])
def test_late_news_goes_to_its_entry_and_decides_nothing(
    journal: Journal, clock: Clock, signal_type: str, swept: bool
) -> None:
    entry = begin(journal, {**GREEN, "expires_minutes": 5})
    clock.move(minutes=5)
    if swept:
        assert journal.sweep() == 1
    late = journal.add_signal("ci", signal_type, "late", data={"pr": 42}, agent_id="builder")
    assert (late.entry_id, late.expectation_id, late.routed_by) == (entry.id, None, "match_hint")
    kept = journal.get(entry.id)
    assert (kept.assessment, kept.expectations[0].status) == ("expired", "expired")
    assert journal.orphans() == ()


def test_news_against_what_was_met_makes_a_failure_by_every_rule(journal: Journal) -> None:
    told: list[dict[str, Any]] = [{"data": {"pr": 42}}, {"session_key": "s"}, {}]
    wishes: list[tuple[dict[str, Any], str | None]] = [
        (GREEN, None),
        ({"description": "liked"}, "s"),
        ({"description": "read", "expires_minutes": 5}, None),
    ]
    for (wish, session), how in zip(wishes, told, strict=True):
        entry = begin(journal, wish, session=session)
        journal.add_signal("ci", "positive", f"fine {how}", agent_id="builder", **how)
        assert stand(journal, entry) == "success"
        against = journal.add_signal("ci", "negative", f"not fine {how}", agent_id="builder", **how)
        assert (against.entry_id, against.expectation_id) == (entry.id, None)
        assert stand(journal, entry) == "failure"


def test_what_is_due_is_resolved_before_a_signal_is_taken_in(journal: Journal, clock: Clock) -> None:
    due = [begin(journal, {"description": "read", "expires_minutes": 1}) for _ in range(3)]
    quiet = begin(journal, {"description": "no incident", "polarity": "negative", "expires_minutes": 1})
    clock.move(minutes=1)
    assert journal.open_expectations() == ()
    journal.add_signal("ci", "neutral", "hello")
    assert [stand(journal, one) for one in due] == ["expired"] * 3
    kept = journal.get(quiet.id)
    assert (kept.assessment, kept.expectations[0].status, kept.expectations[0].resolved_by) == (
        "success",
        "met",
        "sweep",
    )
    assert (kept.history[-1].who, kept.history[-1].why) == ("sweep", "the time is over")
    assert journal.sweep() == 0


def test_a_sweep_resolves_more_than_it_does_at_once(journal: Journal, clock: Clock) -> None:
    wish = {"description": "read", "expires_minutes": 1}
    entries = [begin(journal, *[wish] * 400) for _ in range(3)]
    clock.move(minutes=2)
    assert journal.sweep() == 1200
    assert journal.sweep() == 0
    assert [stand(journal, one) for one in entries] == ["expired"] * 3


def test_an_agent_whose_silence_is_success(store: Store, clock: Clock) -> None:
    journal = Journal(store, clock=clock, rules={"builder": {"all_expired": "success", "intent_types": ["deploy"]}})
    entry = begin(journal, {"description": "read", "expires_minutes": 1})
    other = begin(journal, {"description": "read", "expires_minutes": 1}, agent="critic")
    clock.move(minutes=1)
    journal.sweep()
    assert (stand(journal, entry), stand(journal, other)) == ("success", "expired")
    with pytest.raises(ValueError, match="intent_type 'etl' is not one of agent 'builder': give one of deploy"):
        journal.log_intent("load", "etl", agent_id="builder")


def test_each_rule_of_an_agent_decides_its_case(store: Store, clock: Clock) -> None:
    rules = {"some_expired": "failure", "unmet": "partial", "critical_lost": "expired", "all_expired": "success"}
    journal = Journal(store, clock=clock, rules={"builder": rules})
    soon = {"description": "read", "expires_minutes": 1}
    cases = {
        "failure": (GREEN, soon),
        "expired": (GREEN, {**soon, "critical": True}),
        "partial": ({**GREEN, "match_hint": {"source": "bad"}}, soon),
        "success": (soon,),
    }
    entries = {wanted: begin(journal, *wishes) for wanted, wishes in cases.items()}
    for _ in range(2):
        journal.add_signal("ci", "positive", "green", data={"pr": 42}, agent_id="builder")
    journal.add_signal("bad", "negative", "red", agent_id="builder")
    clock.move(minutes=1)
    journal.sweep()
    assert {wanted: stand(journal, entry) for wanted, entry in entries.items()} == {one: one for one in cases}


def test_the_end_of_a_wait_is_told_beside_other_news(journal: Journal, clock: Clock) -> None:
    quiet = {"description": "no incidents", "polarity": "negative", "expires_minutes": 1}
    entry = begin(journal, {"description": "it is read", "expires_minutes": 1}, quiet)
    clock.move(minutes=1)
    assert (journal.sweep(), journal.sweep()) == (2, 0)
    kept = journal.get(entry.id)
    told = [(one.source, one.signal_type, one.summary, one.expectation_id) for one in kept.signals]
    assert told == [
        ("system", "neutral", "no news in time: it is read", entry.expectations[0].id),
        ("system", "neutral", "nothing was heard against it: no incidents", entry.expectations[1].id),
    ]
    assert kept.assessment == "partial"
    assert journal.explain_routing(kept.signals[0].id).rule == "entry"


def test_an_intent_that_was_left_is_closed_after_the_time_of_its_agent(store: Store, clock: Clock) -> None:
    rules = {"default": {"unfinished_after": "2h"}, "slow": {"unfinished_after": "1d"}, "never": {}}
    journal = Journal(store, clock=clock, rules=rules)
    left = {agent: begin(journal, agent=agent) for agent in ("builder", "slow", "never", "golden")}
    expected = begin(journal, {"description": "read"})
    clock.move(minutes=119)
    journal.sweep()
    assert stand(journal, left["builder"]) == "open"
    clock.move(minutes=1)
    journal.sweep()
    assert {agent: stand(journal, entry) for agent, entry in left.items()} == {
        "builder": "expired",
        "slow": "open",
        "never": "open",
        "golden": "open",
    }
    closed = journal.get(left["builder"].id)
    assert (closed.assessment_notes, closed.closed_at) == ("no outcome came within 2 h", clock.now)
    assert stand(journal, expected) == "open"
    # An outcome that comes after all counts.
    assert journal.log_outcome(closed.id, "success").assessment == "success"
    clock.move(minutes=24 * 60)
    journal.sweep()
    assert stand(journal, left["slow"]) == "expired"
    # More than one batch, behind as many that no rule closes.
    many = [begin(journal, agent=agent) for agent in ("never", "builder") for _ in range(501)]
    clock.move(minutes=120)
    journal.sweep()
    assert [stand(journal, entry) for entry in (many[0], many[500], many[501], many[-1])] == ["open"] * 2 + [
        "expired"
    ] * 2


def test_a_persons_word_stands_above_all_rules_and_the_last_one_wins(journal: Journal, clock: Clock) -> None:
    entry = begin(journal, GREEN)
    journal.add_signal("ci", "negative", "red", data={"pr": 42})
    good = journal.add_signal("human", "positive", "good job", entry_id=entry.id)
    assert (good.routed_by, good.expectation_id) == ("entry", None)
    kept = journal.get(entry.id)
    assert (kept.assessment, kept.assessment_notes) == ("success", "good job")
    assert journal.add_signal("human", "positive", "good job", entry_id=entry.id) == good
    journal.add_signal("human", "correction", "that's wrong", entry_id=entry.id)
    assert stand(journal, entry) == "failure"
    assert journal.add_signal("human", "positive", "good job", entry_id=entry.id) != good
    assert stand(journal, entry) == "success"
    journal.add_signal("ci", "negative", "red again", entry_id=entry.id)
    journal.log_outcome(entry.id, "failure")
    assert stand(journal, entry) == "success"
    told = journal.assess(entry.id, "partial", "half of it", by="ada")
    assert (told.assessment, told.assessment_notes, told.history[-1].who) == ("partial", "half of it", "ada")
    assert told.closed_at == BEGIN
    with pytest.raises(ValueError, match="assessment 'open' is refused"):
        journal.assess(entry.id, "open", by="ada")


def test_a_word_that_changes_nothing_is_in_the_history_too(journal: Journal) -> None:
    entry = begin(journal)
    for who in ("ada", "bob"):
        journal.assess(entry.id, "success", by=who)
    words = [(one.who, one.details["from"], one.details["to"]) for one in journal.get(entry.id).history[1:]]
    assert words == [("ada", "open", "success"), ("bob", "success", "success")]


def test_a_word_in_a_session_is_about_its_latest_entry(journal: Journal) -> None:
    first = begin(journal, {"description": "liked"}, session="chat")
    latest = begin(journal, session="chat")
    word = journal.add_signal("human", "correction", "no, the other file", agent_id="builder", session_key="chat")
    assert (word.entry_id, word.routed_by) == (latest.id, "session_key")
    assert (stand(journal, first), stand(journal, latest)) == ("open", "failure")
    assert journal.add_signal("human", "positive", "fine", agent_id="builder", session_key="none").routed_by == "orphan"
    # A session of one agent names the agent, one of several does not.
    assert journal.add_signal("human", "positive", "fine", session_key="chat").entry_id == latest.id
    assert stand(journal, latest) == "success"
    begin(journal, agent="critic", session="chat")
    assert journal.add_signal("human", "correction", "no", session_key="chat").routed_by == "orphan"


def test_news_of_a_session_goes_to_its_latest_entry_unless_it_is_about_another_thing(journal: Journal) -> None:
    entry = begin(journal, GREEN, session="s")
    told: dict[str, Any] = {"agent_id": "builder", "session_key": "s"}
    other = journal.add_signal("ci", "negative", "red", data={"pr": 43}, **told)
    assert other.routed_by == "orphan"
    news = journal.add_signal("chat", "negative", "somebody complains", **told)
    assert (news.entry_id, news.expectation_id, news.routed_by) == (entry.id, None, "session_key")
    assert stand(journal, entry) == "failure"
    assert journal.get(entry.id).assessment_notes == "chat: somebody complains"
    journal.add_signal("ci", "positive", "green", data={"pr": 42}, agent_id="builder")
    # Before the outcome nobody knows what is expected: it waits, also if it is about another thing in the end.
    begun = journal.log_intent("deploy", agent_id="builder", session_key="t")
    early = {**told, "session_key": "t"}
    bad = journal.add_signal("ci", "negative", "red", data={"pr": 43}, **early)
    assert journal.add_signal("ci", "positive", "green", data={"pr": 42, "job": 1}, **early).routed_by == "orphan"
    assert journal.add_signal("mars", "positive", "nice", **early).routed_by == "orphan"
    told_now = journal.log_outcome(begun.id, "success", expectations=[GREEN])
    assert [one.summary for one in told_now.signals] == ["green", "nice"]
    assert told_now.assessment == "success"
    assert {one.id for one in journal.orphans()} == {other.id, bad.id}


def test_a_word_answers_an_expectation_that_asks_for_it(journal: Journal) -> None:
    entry = begin(journal, {"description": "approved", "match_hint": {"source": "human"}}, GREEN, session="chat")
    word = journal.add_signal("human", "positive", "approved", agent_id="builder", session_key="chat")
    kept = journal.get(entry.id)
    assert (word.routed_by, kept.expectations[0].status, kept.assessment) == ("match_hint", "met", "success")
    asked = begin(journal, {"description": "approved", "match_hint": {"source": "human"}}, GREEN, session="elsewhere")
    journal.add_signal("human", "positive", "fine", agent_id="builder", session_key="chat")
    assert (journal.get(asked.id).expectations[0].status, stand(journal, asked)) == ("met", "open")


def test_the_neutral_and_negative_of_a_person_is_news_like_any_other(journal: Journal) -> None:
    entry = begin(journal, session="chat")
    journal.add_signal("human", "neutral", "hm", entry_id=entry.id)
    assert stand(journal, entry) == "open"
    journal.add_signal("human", "negative", "bad", entry_id=entry.id)
    assert stand(journal, entry) == "failure"


def test_routing_is_explained_from_what_was_kept(journal: Journal) -> None:
    entry = begin(journal, GREEN, {"description": "other", "match_hint": {"source": "ci", "pr": 43}})
    signal = journal.add_signal("ci", "positive", "green", data={"pr": 42}, agent_id="builder")
    told = journal.explain_routing(signal.id)
    assert (told.signal_id, told.rule, told.others) == (signal.id, "match_hint", 0)
    assert [(one.expectation_id, one.taken, one.reason) for one in told.candidates] == [
        (entry.expectations[0].id, True, "every key of its hint fits (source, pr)"),
        (entry.expectations[1].id, False, "pr is '42' in the signal, not '43'"),
    ]
    assert told.to_dict()["candidates"][0]["rule"] == "match_hint"
    with pytest.raises(JournalError, match="no signal 'signal_none'"):
        journal.explain_routing("signal_none")


def test_whoever_named_the_expectation_is_told_as_the_reason(journal: Journal, store: Store) -> None:
    entry = begin(journal, GREEN)
    news = [
        Signal(
            id=f"signal_{name}",
            entry_id=entry.id,
            source="golden",
            signal_type=SignalType.NEUTRAL,
            summary="x",
            created_at=BEGIN,
        )
        for name in ("named", "alone")
    ]
    with store.write() as connection:
        take_signal(connection, news[0], entry.expectations[0].id, Received(RoutedBy.MATCH_HINT))
        take_signal(connection, news[1], None, Received(RoutedBy.ENTRY))
    [named] = journal.explain_routing("signal_named").candidates
    assert (named.expectation_id, named.taken) == (entry.expectations[0].id, True)
    assert journal.explain_routing("signal_alone").candidates == ()


def test_the_gates_expectations_are_found_by_their_hint_alone(journal: Journal, store: Store) -> None:
    entry = begin(journal, session="s")
    asked = [
        Expectation(
            id=f"x{number}",
            entry_id=entry.id,
            description="d",
            match_hint={"source": "golden", "project": number},
            created_at=BEGIN,
        )
        for number in range(3)
    ]
    with store.write() as connection:
        insert_expectations(connection, asked)
    told: dict[str, Any] = {"agent_id": "builder", "session_key": "s"}
    assert journal.add_signal("golden", "positive", "x", **told).expectation_id is None
    assert journal.add_signal("golden", "positive", "x", data={"project": 1}, **told).expectation_id == "x1"
    assert [one.id for one in journal.open_expectations("builder")] == ["x0", "x2"]


def test_the_same_content_from_an_import_is_known_again_by_its_time(
    journal: Journal, store: Store, clock: Clock
) -> None:
    first = journal.add_signal("ci", "neutral", "looking", data={"pr": 42})
    with store.write() as connection:
        connection.exec_driver_sql("UPDATE signals SET expectation_mark = NULL")
    assert journal.add_signal("ci", "neutral", "looking", data={"pr": 42}) == first
    clock.move(minutes=1)
    entry = begin(journal, GREEN)
    assert journal.add_signal("ci", "neutral", "looking", data={"pr": 42}).entry_id == entry.id


def test_what_is_kept_of_a_routing_is_bounded(journal: Journal) -> None:
    begin(journal, *({"description": "d", "match_hint": {"pr": number}} for number in range(60)))
    told = journal.explain_routing(journal.add_signal("ci", "neutral", "x", data={"pr": 7}, agent_id="builder").id)
    assert (len(told.candidates), told.others) == (10, 50)
    assert [one.taken for one in told.candidates].count(True) == 1
    orphan = journal.explain_routing(journal.add_signal("ci", "neutral", "x", data={"pr": -1}).id)
    assert (orphan.rule, len(orphan.candidates), orphan.others) == ("orphan", 10, 50)


def test_a_signal_with_many_keys_finds_its_expectation(journal: Journal) -> None:
    begin(journal, *({"description": "d", "match_hint": {"nobody": number}} for number in range(3)))
    entry = begin(journal, {"description": "d", "match_hint": {"k1999": 1999}})
    data = {f"k{number}": number for number in range(2000)}
    assert journal.add_signal("ci", "positive", "wide", data=data).entry_id == entry.id


def test_guesses_walk_through_every_shape_of_hint(journal: Journal) -> None:
    for wish in ({"pr": 1}, {"source": "ci", "pr": 2}, {"source": "else", "sha": "x"}, {"branch": "b"}):
        begin(journal, {"description": "d", "match_hint": wish, "expires_minutes": 5}, session="s")
    fitting = begin(
        journal, {"description": "d", "match_hint": {"env": "prod", "job": 7}, "expires_minutes": 9}, session="s"
    )
    told: dict[str, Any] = {"data": {"pr": 9, "branch": "c", "env": "prod"}, "agent_id": "builder"}
    assert journal.add_signal("ci", "neutral", "by time", **told).entry_id == fitting.id
    assert journal.add_signal("ci", "neutral", "by session", **told, session_key="s").routed_by == "session_key"
    assert (
        journal.add_signal("ci", "neutral", "x", data={**told["data"], "env": "dev"}, agent_id="builder").entry_id
        is None
    )


def test_no_guess_answers_for_a_check_however_many_there_are(journal: Journal) -> None:
    check = {"after": "1m", "command": "true"}
    checked = {"description": "it is online", "expires_minutes": 5, "check": check}
    own = begin(journal, *([checked] * 101), {**checked, "match_hint": {"pr": 1, "sha": "x"}}, session="s")
    told: dict[str, Any] = {"data": {"pr": 1}, "agent_id": "builder"}
    assert journal.add_signal("ci", "positive", "nice", **told).routed_by == "orphan"
    in_session = journal.add_signal("ci", "positive", "nice", **told, session_key="s")
    assert (in_session.entry_id, in_session.expectation_id) == (own.id, None)
    assert journal.add_signal("ci", "positive", "named", **told, entry_id=own.id).expectation_id is None
    assert {one.status for one in journal.get(own.id).expectations} == {"open"}
    free = begin(journal, {"description": "it is read", "expires_minutes": 9}, session="s")
    assert journal.add_signal("ci", "positive", "read", **told, session_key="s").entry_id == free.id
    by_hint = journal.add_signal("ci", "positive", "by hint", data={"pr": 1, "sha": "x"}, agent_id="builder")
    assert (by_hint.entry_id, by_hint.routed_by) == (own.id, "match_hint")


def test_late_news_of_a_session_goes_to_what_expired_last(journal: Journal, clock: Clock) -> None:
    begin(journal, {"description": "d", "expires_minutes": 1}, session="s")
    latest = begin(journal, {"description": "d", "expires_minutes": 2}, session="s")
    clock.move(minutes=3)
    late = journal.add_signal("chat", "negative", "hm", agent_id="builder", session_key="s")
    assert (late.routed_by, late.entry_id, late.expectation_id) == ("session_key", latest.id, None)
    assert stand(journal, latest) == "expired"


@pytest.mark.parametrize("how", ["hint", "session"])
def test_news_against_what_was_met_in_time_is_not_late_because_an_older_question_is_over(
    journal: Journal, clock: Clock, how: str
) -> None:
    wish = {**(GREEN if how == "hint" else {"description": "d"}), "expires_minutes": 60}
    told: dict[str, Any] = {"data": {"pr": 42}, "agent_id": "builder", "session_key": "s"}
    first = begin(journal, wish, session="s")
    clock.move(minutes=90)
    second = begin(journal, wish, session="s")
    journal.add_signal("ci", "positive", "green", **told)
    clock.move(minutes=10)
    against = journal.add_signal("ci", "negative", "red again", **told)
    assert (against.entry_id, stand(journal, first), stand(journal, second)) == (second.id, "expired", "failure")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"signal_type": "good"}, "signal_type 'good' is unknown: give one of positive, negative, neutral, correction"),
        ({"source": " "}, "source must be text that is not blank"),
        ({"summary": ""}, "summary must be text that is not blank"),
        ({"summary": "a\0"}, "summary holds a NUL character"),
        ({"data": ["a"]}, "data must be a mapping"),
        ({"data": {"a": "\0"}}, "data holds a NUL character"),
        ({"data": {"a": "x" * (20 << 20)}}, "data has 20,971,521 characters, and more than 1,048,576 are not kept"),
        ({"summary": "x" * (20 << 20)}, "summary has 20,971,520 characters"),
        ({"external_id": ""}, "external_id must be text"),
        ({"session_key": "\udc80"}, "session_key '\\\\udc80' holds half a character"),
        ({"agent_id": 3}, "agent_id must be text"),
    ],
)
def test_a_signal_that_cannot_be_used_is_refused_and_nothing_is_kept(
    journal: Journal, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        journal.add_signal(**{"source": "ci", "signal_type": "positive", "summary": "green", **arguments})
    assert journal.orphans() == ()


def test_unknown_ids_and_other_agents_entries_are_refused(journal: Journal) -> None:
    entry = begin(journal)
    with pytest.raises(JournalError, match="the journal has no entry 'entry_none'"):
        journal.add_signal("ci", "positive", "green", entry_id="entry_none")
    with pytest.raises(JournalError, match="is another agent's, not of 'critic'"):
        journal.add_signal("ci", "positive", "green", entry_id=entry.id, agent_id="critic")
    with pytest.raises(JournalError, match="no entry 'entry_none'"):
        journal.assess("entry_none", "success", by="ada")
    for bad in ({"assessment": "good"}, {"by": " "}, {"notes": "\0"}):
        with pytest.raises(ValueError, match=r"assessment|by|notes"):
            journal.assess(entry.id, **{"assessment": "success", "by": "ada", **bad})
    assert journal.get(entry.id) == entry


@pytest.mark.parametrize(
    "text", ["'; DROP TABLE entries; --", "<script>alert(1)</script>", 'a"b', "100%", "\u202e", "ünï ☃"]
)
def test_sql_and_html_are_text_in_every_field(journal: Journal, text: str) -> None:
    entry = journal.log_intent(text, text, agent_id=text, session_key=text, job_id=text)
    journal.log_outcome(
        entry.id, "success", text, actions=[text], expectations=[{"description": text, "match_hint": {text: text}}]
    )
    signal = journal.add_signal(
        text, "positive", text, data={text: text}, external_id=text, agent_id=text, session_key=text
    )
    kept = journal.get(entry.id)
    assert (signal.routed_by, kept.assessment, kept.signals) == ("match_hint", "success", (signal,))
    assert (signal.source, signal.summary, signal.data) == (text, text, {text: text})
    assert journal.assess(entry.id, "failure", text, by=text).assessment_notes == text
    assert list(journal.summary(text).by_intent_type) == [text]


def test_half_characters_and_deep_data_are_kept(journal: Journal) -> None:
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"a": deep}
    signal = journal.add_signal("ci", "neutral", "half \udc80", data={"half": "\udc80", "deep": deep})
    assert signal.summary == "half \\udc80"
    assert journal.orphans()[0].data["half"] == signal.data["half"]


def test_a_clock_that_goes_back_breaks_nothing(journal: Journal, clock: Clock) -> None:
    entry = begin(journal, {**GREEN, "expires_minutes": 5})
    clock.move(hours=-3)
    signal = journal.add_signal("ci", "positive", "green", data={"pr": 42}, agent_id="builder")
    kept = journal.get(entry.id)
    assert (signal.entry_id, kept.assessment, kept.closed_at, kept.updated_at) == (entry.id, "success", BEGIN, BEGIN)
    assert journal.sweep() == 0


def test_nothing_secret_of_a_signal_is_kept(journal: Journal, store: Store, tmp_path: Path) -> None:
    begin(journal, {"description": "d", "match_hint": {"url": "x"}})
    journal.add_signal("ci", "neutral", f"with {SECRET}", data={"token": SECRET, "url": f"https://ada:{SECRET}@x/y"})
    store.close()
    assert not [path for path in tmp_path.iterdir() if SECRET.encode() in path.read_bytes()]


def test_open_expectations_are_told_the_soonest_first(journal: Journal, clock: Clock) -> None:
    begin(journal, {"description": "never"}, {"description": "late", "expires_minutes": 9})
    begin(journal, {"description": "soon", "expires_minutes": 1}, agent="critic")
    begin(journal, {"description": "met", "match_hint": {"pr": 1}, "expires_minutes": 1})
    journal.add_signal("ci", "positive", "x", data={"pr": 1})
    assert [one.description for one in journal.open_expectations()] == ["soon", "late", "never"]
    assert [one.description for one in journal.open_expectations("builder")] == ["late", "never"]
    assert [one.description for one in journal.open_expectations(limit=1)] == ["soon"]
    assert journal.open_expectations("nobody") == ()
    assert journal.open_expectations()[0].expires_at == BEGIN + timedelta(minutes=1)
    with pytest.raises(ValueError, match="limit must be a whole number"):
        journal.open_expectations(limit=0)


def expect_pull_requests(journal: Journal, count: int) -> None:
    for number in range(count):
        entry = journal.log_intent(f"merge {number}", agent_id="builder")
        asked = [{"description": "merged", "match_hint": {"pr": number}}]
        journal.log_outcome(entry.id, "success", expectations=asked)


def let_fit(store: Store, ids: list[str]) -> None:
    """Let orphans carry what would have found them a place, as those do that came by an import."""
    with store.write() as connection:
        for number, signal_id in enumerate(ids):
            connection.execute(update(signals).where(signals.c.id == signal_id).values(data={"pr": number}))


def test_very_many_orphans_find_their_places_some_at_once(
    journal: Journal, store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rerouting, "_READ_AT_ONCE", 3)
    monkeypatch.setattr(rerouting, "_TAKEN_AT_ONCE", 2)
    expect_pull_requests(journal, 5)
    clock.move(minutes=1)
    lost = [journal.add_signal("ci", "positive", f"news {number}", data={"x": number}).id for number in range(12)]
    let_fit(store, lost[4:9])
    assert journal.reroute_orphans() == 5
    assert {one.id for one in journal.orphans()} == {*lost[:4], *lost[9:]}
    assert journal.reroute_orphans() == 0


def test_heartbeat_routes_again_when_something_is_new(journal: Journal, store: Store, clock: Clock) -> None:
    expect_pull_requests(journal, 2)
    clock.move(minutes=1)
    lost = [journal.add_signal("ci", "positive", f"news {number}", data={"x": number}).id for number in range(2)]
    heart = Heartbeat(journal)
    assert heart.beat().rerouted == 0
    let_fit(store, lost)
    assert heart.beat().rerouted == 0
    journal.log_outcome(journal.log_intent("more", agent_id="builder").id, "success")
    assert heart.beat().rerouted == 0
    clock.move(minutes=59)
    journal.add_signal("ci", "positive", "other news", data={"x": 9})
    # What was there at the last look is not looked at again each time that something comes.
    assert heart.beat().rerouted == 0
    clock.move(minutes=1)
    assert heart.beat().rerouted == 0
    journal.add_signal("ci", "positive", "more news", data={"x": 10})
    assert heart.beat().rerouted == 2


def test_heartbeat_finds_a_place_for_an_orphan_that_has_come(journal: Journal, store: Store, clock: Clock) -> None:
    heart = Heartbeat(journal)
    expect_pull_requests(journal, 2)
    assert heart.beat().rerouted == 0
    clock.move(minutes=1)
    let_fit(store, [journal.add_signal("ci", "positive", f"news {n}", data={"x": n}).id for n in range(2)])
    assert heart.beat().rerouted == 2


def test_heartbeat_gives_an_expectation_that_has_come_what_was_there(
    journal: Journal, store: Store, clock: Clock
) -> None:
    """As with an entry that comes by an import, and began before its orphan was heard here."""
    clock.move(minutes=-10)
    begun = [journal.log_intent(f"merge {number}", agent_id="builder") for number in range(3)]
    clock.move(minutes=10)
    lost = [journal.add_signal("ci", "positive", f"news {n}", data={"x": n}).id for n in range(3)]
    heart = Heartbeat(journal)
    assert heart.beat().rerouted == 0
    for number, entry in enumerate(begun):
        asked = [{"description": "merged", "match_hint": {"pr": number}}]
        journal.log_outcome(entry.id, "success", expectations=asked)
    let_fit(store, lost[:2])
    assert heart.beat().rerouted == 2
    assert {one.id for one in journal.orphans()} == {lost[2]}


def test_heartbeat_looks_at_everything_in_a_store_that_has_less(journal: Journal, store: Store, clock: Clock) -> None:
    heart = Heartbeat(journal)
    expect_pull_requests(journal, 2)
    clock.move(minutes=1)
    lost = [journal.add_signal("ci", "positive", f"news {number}", data={"x": number}).id for number in range(3)]
    assert heart.beat().rerouted == 0
    with store.write() as connection:
        connection.execute(delete(signals).where(signals.c.id == lost.pop()))
    let_fit(store, lost)
    assert heart.beat().rerouted == 2
