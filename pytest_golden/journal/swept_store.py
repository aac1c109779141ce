"""A store in which what is due is resolved first, with the time and the rules of agents that this goes by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_golden.journal.expiry.store import ask_for_soonest, is_any_due, resolve_due
from pytest_golden.storage.moments import from_ms, to_ms
from pytest_golden.storage.prepared import ask
from pytest_golden.trajectory.vocabulary import check_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from pytest_golden.journal.rules import Rules
    from pytest_golden.storage.prepared import Question
    from pytest_golden.storage.store import Store

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class SweptStore:
    """A store, a clock that gives an aware UTC datetime, and the rules by agent: what use cases of the journal need."""

    store: Store
    clock: Callable[[], datetime]
    rules: Mapping[str, Rules]

    def now(self) -> datetime:
        """Give the moment as it is kept: an entry just made equals the same one read back.

        Raises:
            ValueError: the clock gives something else than an aware datetime.
        """
        return from_ms(to_ms(check_time("the clock's time", self.clock())))

    def sweep(self) -> int:
        """Resolve every expectation whose time is over, some at once, and give how many there were.

        Raises:
            StorageError: it cannot be written.
        """
        moment = self.now()
        count, is_more = 0, True
        while is_more:
            with self.store.write() as connection:
                resolved, is_more = resolve_due(connection, moment, self.rules)
            count += resolved
        return count

    def after_sweep(self, moment: datetime, work: Callable[[Connection], _T]) -> _T:
        """Do some work in the transaction that resolves the last of what is due.

        Raises:
            StorageError: it cannot be written.
        """
        return self.answered_after_sweep(moment, (), lambda connection, _: work(connection))

    def answered_after_sweep(
        self, moment: datetime, questions: Sequence[Question], work: Callable[[Connection, list[Iterator[Any]]], _T]
    ) -> _T:
        """Do the same with the answers to questions, which are asked together with what is due.

        Raises:
            StorageError: it cannot be written.
        """
        while True:
            with self.store.write_asking(ask_for_soonest(), *questions) as (connection, (soonest, *answers)):
                if not is_any_due(soonest, moment):
                    return work(connection, answers)
                _, is_more = resolve_due(connection, moment, self.rules)
                if not is_more:
                    return work(connection, ask(connection, *questions))
