"""Any sequence of calls, beside a model that knows nothing of indexes, counters and sweeps."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from pytest_golden.journal.model import Assessment, JournalEntry, Signal
from pytest_golden.journal.rules import Counts, assess
from pytest_golden.journal.service import Journal
from pytest_golden.storage.integrity import check_store
from pytest_golden.storage.store import Store
from tests.journal.conftest import BEGIN, Clock

AGENTS, SESSIONS = ("a", "b"), (None, "s")
HINTS = ({"pr": 1}, {"pr": 2}, {"pr": 1, "source": "ci"}, {"sha": "x"}, None)
WISHES = st.builds(
    lambda hint, minutes, is_negative, critical: {
        "description": "d",
        "match_hint": hint,
        "expires_minutes": 3 if is_negative else minutes,
        "polarity": "negative" if is_negative else "positive",
        "critical": critical,
    },
    st.sampled_from(HINTS),
    st.sampled_from([None, 2, 5]),
    st.booleans(),
    st.booleans(),
)
DATA = st.sampled_from([{}, {"pr": 1}, {"pr": 2}, {"pr": 3}, {"pr": 1, "sha": "x"}, {"sha": "x"}])
TYPES = st.sampled_from(["positive", "negative", "neutral", "correction"])
CLOSED = {word.value for word in Assessment} - {"open"}


@dataclass
class Known:
    """What the model knows of an entry."""

    agent: str
    was_closed_at: datetime | None = None
    human_word: str | None = None
    signals: set[str] = field(default_factory=set)


class JournalMachine(RuleBasedStateMachine):
    entries = Bundle("entries")

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name, "golden.db")
        self.clock = Clock()
        self.store = Store.open(self._path)
        self.journal = Journal(self.store, clock=self.clock)
        self.known: dict[str, Known] = {}
        self.numbers = count()

    def teardown(self) -> None:
        summary = self.journal.summary()
        words = Counter(entry.assessment.value for entry in self._read())
        assert (summary.open, summary.expired) == (words["open"], words["expired"])
        assert summary.n == words["success"] + words["failure"] + words["partial"]
        self.store.close()
        assert check_store(self._path).problems == ()
        self._folder.cleanup()

    @rule(target=entries, agent=st.sampled_from(AGENTS), session=st.sampled_from(SESSIONS))
    def begin(self, agent: str, session: str | None) -> str:
        entry = self.journal.log_intent("x", agent_id=agent, session_key=session)
        self.known[entry.id] = Known(agent)
        return entry.id

    @rule(
        entry=entries,
        result=st.sampled_from(["success", "failure", "partial", "unknown"]),
        wishes=st.lists(WISHES, max_size=3),
    )
    def end(self, entry: str, result: str, wishes: list[dict[str, Any]]) -> None:
        self.journal.log_outcome(entry, result, expectations=wishes)

    @rule(
        signal_type=TYPES,
        data=DATA,
        source=st.sampled_from(["ci", "chat", "human"]),
        agent=st.sampled_from([None, *AGENTS]),
        session=st.sampled_from(SESSIONS),
        is_new=st.booleans(),
    )
    def hear(
        self, signal_type: str, data: dict[str, Any], source: str, agent: str | None, session: str | None, is_new: bool
    ) -> None:
        summary = f"news {next(self.numbers)}" if is_new else "the same"
        signal = self.journal.add_signal(source, signal_type, summary, data=data, agent_id=agent, session_key=session)
        self._check(signal, agent)
        latest = self._find_latest(agent, session)
        if source == "human" and signal_type in {"positive", "correction"} and signal.entry_id == latest is not None:
            self.known[latest].human_word = "success" if signal_type == "positive" else "failure"

    def _find_latest(self, agent: str | None, session: str | None) -> str | None:
        if agent is None or session is None:
            return None
        return next(
            (one.id for one in self.journal.review_journal(limit=1000, agent_id=agent) if one.session_key == session),
            None,
        )

    @rule(entry=entries, signal_type=TYPES, data=DATA, external_id=st.sampled_from([None, "1", "2"]))
    def hear_of(self, entry: str, signal_type: str, data: dict[str, Any], external_id: str | None) -> None:
        told: dict[str, Any] = {"data": data, "external_id": external_id, "entry_id": entry}
        first = self.journal.add_signal("ci", signal_type, "named", **told)
        assert self.journal.add_signal("ci", signal_type, "named", **told) == first
        if external_id is None:
            self._check(first, self.known[entry].agent)

    def _check(self, signal: Signal, agent: str | None) -> None:
        if signal.entry_id is not None:
            assert agent in {None, self.known[signal.entry_id].agent}
            self.known[signal.entry_id].signals.add(signal.id)
        assert (signal.entry_id is None) == (signal.routed_by == "orphan")

    @rule(entry=entries, word=st.sampled_from(sorted(CLOSED)))
    def assess(self, entry: str, word: str) -> None:
        assert self.journal.assess(entry, word, by="ada").assessment == word
        self.known[entry].human_word = word

    @rule(minutes=st.sampled_from([1, 3, -2]))
    def move_clock(self, minutes: int) -> None:
        self.clock.move(minutes=minutes)

    @rule()
    def sweep(self) -> None:
        self.journal.sweep()
        before = self._read()
        assert self.journal.sweep() == 0
        assert self.journal.reroute_orphans() == 0
        assert self._read() == before

    def _read(self) -> list[JournalEntry]:
        return [self.journal.get(one) for one in self.known]

    @invariant()
    def every_entry_is_in_the_table(self) -> None:
        for entry in self._read():
            known = self.known[entry.id]
            assert known.signals <= {one.id for one in entry.signals}
            assert entry.created_at <= entry.updated_at
            if known.was_closed_at is not None:
                assert entry.closed_at == known.was_closed_at
            known.was_closed_at = entry.closed_at
            assert (entry.assessment == "open") == (entry.closed_at is None)
            assert entry.assessment == self._fold(entry, known)
            for asked in entry.expectations:
                assert (asked.status == "open") == (asked.resolved_by is None) == (asked.resolved_at is None)

    def _fold(self, entry: JournalEntry, known: Known) -> str:
        """Fold again all that the entry has."""
        if known.human_word is not None:
            return known.human_word
        statuses = Counter(one.status.value for one in entry.expectations)
        lost = sum(one.critical and one.status.value in {"unmet", "expired"} for one in entry.expectations)
        by_type = Counter(one.signal_type.value for one in entry.signals if self._decides(entry, one))
        counts = Counts(
            statuses["open"],
            statuses["met"],
            statuses["unmet"],
            statuses["expired"],
            lost,
            by_type["positive"],
            by_type["negative"],
            by_type["correction"],
            immediate_result=entry.immediate_result,
        )
        before = next(
            (Assessment(one.details["to"]) for one in reversed(entry.history) if one.what == "assessment"), None
        )
        return assess(counts, before=before or Assessment.OPEN)

    def _decides(self, entry: JournalEntry, signal: Signal) -> bool:
        with self.store.read() as connection:
            row = connection.exec_driver_sql("SELECT is_late FROM signals WHERE id = ?", (signal.id,)).one()
        answered = next((one for one in entry.expectations if one.id == signal.expectation_id), None)
        turned = answered is not None and answered.polarity == "negative" and signal.signal_type == "positive"
        return not row.is_late and not turned


def test_no_sequence_of_calls_leaves_an_entry_in_a_state_outside_the_table() -> None:
    run_state_machine_as_test(
        JournalMachine,
        settings=settings(max_examples=25, stateful_step_count=25, suppress_health_check=list(HealthCheck)),
    )


NEWS = st.lists(st.tuples(st.integers(0, 4), TYPES), min_size=1, max_size=8)


@settings(max_examples=30)
@given(st.lists(WISHES, min_size=5, max_size=5), NEWS, st.data())
def test_signals_that_each_fit_one_expectation_give_one_assessment_in_any_order(
    wishes: list[dict[str, Any]], news: list[tuple[int, str]], data: st.DataObject
) -> None:
    assessments = {assess_all(wishes, order) for order in (news, data.draw(st.permutations(news)))}
    assert len(assessments) == 1


def assess_all(wishes: list[dict[str, Any]], news: list[tuple[int, str]]) -> tuple[str, str]:
    clock = Clock()
    with Store.open("sqlite://") as store:
        journal = Journal(store, clock=clock)
        entry = journal.log_intent("x", agent_id="a")
        asked = [{**wish, "match_hint": {"number": number}} for number, wish in enumerate(wishes)]
        journal.log_outcome(entry.id, "success", expectations=asked)
        for number, signal_type in news:
            journal.add_signal("ci", signal_type, "x", data={"number": number}, agent_id="a")
        at_once = journal.get(entry.id).assessment
        clock.now = BEGIN + timedelta(days=1)
        journal.sweep()
        return at_once, journal.get(entry.id).assessment
