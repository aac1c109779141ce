from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_golden.storage.integrity import check_store
from pytest_golden.storage.store import Store
from tests.journal.transfer.forks import CALLS, Fork, make_forks, merged

SLOW = settings(max_examples=6, suppress_health_check=list(HealthCheck))
Calls = list[tuple[Any, ...]]


@SLOW
@given(st.tuples(CALLS, CALLS, CALLS, CALLS))
def test_the_order_in_which_journals_are_merged_changes_nothing(calls: tuple[Calls, ...]) -> None:
    forks = make_forks(list(calls))
    a, b, c = (fork.export() for fork in forks)
    assert merged(a, b) == merged(b, a)
    everything = merged(a, b, c)
    assert merged(merged(a, b), c) == everything
    assert merged(a, merged(b, c)) == everything
    assert merged(c, b, a) == everything
    assert merged(b, merged(c, a)) == everything
    for fork in forks:
        fork.store.close()


@SLOW
@given(CALLS, CALLS, CALLS)
def test_what_was_merged_changes_nothing_when_it_is_merged_again(first: Calls, one: Calls, other: Calls) -> None:
    left, right = make_forks([first, one, other])
    both = left.take_in(right.export()).export()
    assert left.take_in(right.export()).export() == both
    assert left.take_in(both).export() == both
    assert right.take_in(both).export() == both
    left.store.close()
    right.store.close()


@SLOW
@given(CALLS, CALLS, CALLS, CALLS)
def test_a_merged_journal_goes_on_and_is_merged_again(first: Calls, one: Calls, other: Calls, later: Calls) -> None:
    left, right = make_forks([first, one, other])
    left.take_in(right.export())
    for call in later:
        left.call(*call)
    for call in later:
        right.call(*call)
    a, b = left.export(), right.export()
    assert merged(a, b) == merged(b, a) == left.take_in(b).export()
    assert_in_the_table(left)
    left.store.close()
    right.store.close()


@SLOW
@given(CALLS)
def test_an_import_gives_what_was_exported(calls: Calls) -> None:
    (fork,) = make_forks([[], calls])
    exported = fork.export()
    other = Fork(fork.clock).take_in(exported)
    assert other.export() == exported
    assert {entry: other.journal.get(entry) for entry in other.entries()} == {
        entry: fork.journal.get(entry) for entry in fork.entries()
    }
    assert other.journal.orphans() == tuple(
        sorted(fork.journal.orphans(), key=lambda one: (one.created_at, one.id))[::-1]
    )
    fork.store.close()
    other.store.close()


@settings(max_examples=3, suppress_health_check=list(HealthCheck))
@given(CALLS, CALLS, CALLS)
def test_a_merged_store_is_whole(first: Calls, one: Calls, other: Calls) -> None:
    left, right = make_forks([first, one, other])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "golden.db")
        with Store.open(path) as store:
            whole = Fork(left.clock)
            whole.store.close()
            whole.store = store
            whole.take_in(left.export()).take_in(right.export())
        assert check_store(path).problems == ()
    left.store.close()
    right.store.close()


def assert_in_the_table(fork: Fork) -> None:
    for entry_id in fork.entries():
        entry = fork.journal.get(entry_id)
        assert (entry.assessment == "open") == (entry.closed_at is None)
        for asked in entry.expectations:
            assert (asked.status == "open") == (asked.resolved_by is None) == (asked.resolved_at is None)
