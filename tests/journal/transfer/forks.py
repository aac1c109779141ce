"""Journals that come from a common ancestor and then go their own ways, by any sequence of calls."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from pytest_golden.journal.service import Journal
from pytest_golden.journal.transfer.service import export_journal, import_journal
from pytest_golden.storage.store import Store
from tests.journal.conftest import Clock
from tests.journal.test_machine import DATA, TYPES, WISHES

_NUMBER = st.integers(0, 7)
_RESULTS = st.sampled_from(["success", "failure", "partial", "unknown"])
_EXTERNAL = st.sampled_from([None, "1", "2"])
_AGENT = st.sampled_from(["a", "b"])
_SESSION = st.sampled_from([None, "s"])
CALL = st.one_of(
    st.tuples(st.just("begin"), _AGENT, _SESSION),
    st.tuples(st.just("end"), _NUMBER, _RESULTS, st.lists(WISHES, max_size=2)),
    st.tuples(st.just("hear"), TYPES, DATA, st.sampled_from(["ci", "human"]), st.none() | _AGENT, _SESSION, _EXTERNAL),
    st.tuples(st.just("hear_of"), _NUMBER, TYPES, DATA, _EXTERNAL),
    st.tuples(st.just("assess"), _NUMBER, st.sampled_from(["success", "failure", "partial"])),
    st.tuples(st.just("move"), st.sampled_from([1, 3, -2])),
    st.tuples(st.just("sweep")),
    st.tuples(st.just("route_again")),
)
CALLS = st.lists(CALL, max_size=8)


class Fork:
    """One journal, and the entries that it knows by their order."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.store = Store.open("sqlite://")
        self.journal = Journal(self.store, clock=clock)

    def entries(self) -> list[str]:
        return [entry.id for entry in reversed(self.journal.review_journal(limit=1000))]

    def call(self, name: str, *given: Any) -> None:
        getattr(self, f"_{name}")(*given)

    def export(self) -> bytes:
        buffer = io.BytesIO()
        export_journal(self.store, buffer)
        return buffer.getvalue()

    def take_in(self, exported: bytes) -> Fork:
        import_journal(self.store, io.BytesIO(exported), {})
        return self

    def fork(self) -> Fork:
        clock = Clock()
        clock.now = self.clock.now
        return Fork(clock).take_in(self.export())

    def _begin(self, agent: str, session: str | None) -> None:
        self.journal.log_intent("x", agent_id=agent, session_key=session)

    def _end(self, number: int, result: str, wishes: list[dict[str, Any]]) -> None:
        for entry in self._choose(number):
            self.journal.log_outcome(entry, result, f"{result} here", expectations=wishes)

    def _hear(
        self, kind: str, data: Any, source: str, agent: str | None, session: str | None, external_id: str | None
    ) -> None:
        names: dict[str, Any] = {"agent_id": agent, "session_key": session, "external_id": external_id}
        self.journal.add_signal(source, kind, "news", data=data, **names)

    def _hear_of(self, number: int, kind: str, data: Any, external_id: str | None) -> None:
        for entry in self._choose(number):
            self.journal.add_signal("ci", kind, "named", data=data, external_id=external_id, entry_id=entry)

    def _assess(self, number: int, word: str) -> None:
        for entry in self._choose(number):
            self.journal.assess(entry, word, by="ada")

    def _move(self, minutes: int) -> None:
        self.clock.now += timedelta(minutes=minutes)

    def _sweep(self) -> None:
        self.journal.sweep()

    def _route_again(self) -> None:
        self.journal.reroute_orphans()

    def _choose(self, number: int) -> list[str]:
        entries = self.entries()
        return [entries[number % len(entries)]] if entries else []


def make_forks(calls: list[list[tuple[Any, ...]]]) -> list[Fork]:
    """Make forks of one ancestor, which is made by the first calls."""
    ancestor = Fork(Clock())
    for call in calls[0]:
        ancestor.call(*call)
    forks = [ancestor.fork() for _ in calls[1:]]
    for fork, made in zip(forks, calls[1:], strict=True):
        for call in made:
            fork.call(*call)
    ancestor.store.close()
    return forks


def merged(*exported: bytes) -> bytes:
    """Return what a new journal has that takes them in, one after another."""
    fork = Fork(Clock())
    for one in exported:
        fork.take_in(one)
    told = fork.export()
    fork.store.close()
    return told
