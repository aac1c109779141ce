"""One thread that writes for all callers: it saves everything that waits in one transaction, which costs one flush.

The thread lives only while something waits. It is not a daemon, so the interpreter waits for it at exit and loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
import weakref
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pytest_golden.clock import monotonic_seconds
from pytest_golden.errors import GoldenError, StorageError
from pytest_golden.learning.outcomes import make_outcome
from pytest_golden.redaction.redactor import redact
from pytest_golden.trajectory.step import error_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_golden.learning.model import ProductionOutcome
    from pytest_golden.learning.outcomes import Report

_log = logging.getLogger(__name__)
# The most parcels of one transaction; a larger one would keep other writers of the store waiting.
_MOST_AT_ONCE = 500
# Parcels that nobody waits for are written in smaller batches. Up to eight batches that somebody waits for go first, and
# then both are written together, so that the others do not pile up.
_MOST_FOLLOWING_AT_ONCE = 25
_MOST_BATCHES_FIRST = 8
# Agents that end together report together: waiting while more of them come costs less than another flush.
_PAUSE_SECONDS, _MOST_SECONDS = 0.0005, 0.01
_COMMITS: WeakSet[GroupCommit] = WeakSet()
_SLEEPERS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Sleepers] = weakref.WeakKeyDictionary()
# Nobody asks again for the plan of an outcome that is this old.
_MOST_REMEMBERED = 10_000
# One for all counts.
_lock = threading.Lock()


class HandedOver:
    """A report on its way to the disk. `kept` becomes True when it is there, False when it is lost; None without a store.

    A large outcome is made by the thread that writes it, a small one at once.
    """

    def __init__(self, report: Report) -> None:
        self.kept: Future[bool] | None = None
        self._report = report
        self._lock = threading.Lock()
        self._outcome: ProductionOutcome | None = None
        if report.is_small:
            self.make()

    def make(self) -> ProductionOutcome:
        """Return the outcome, which is made only once."""
        with self._lock:
            if self._outcome is None:
                self._outcome = make_outcome(self._report)
            return self._outcome

    async def wait(self) -> ProductionOutcome:
        """Wait until it is kept or lost, and return the outcome."""
        await wait_for(self.kept)
        return self.make()


class GroupCommit:
    """Takes parcels from any thread and never makes the caller wait. A save that fails costs a warning.

    `save` saves many memories in one transaction.
    """

    def __init__(self, save: Callable[[list[Mapping[str, Any]]], object]) -> None:
        self._save = save
        self._is_closed = False
        self.forget()
        _COMMITS.add(self)

    def forget(self) -> None:
        """Begin with nothing waiting: in a fork, whose parent writes what waited, and held the lock perhaps."""
        self._lock = threading.Lock()
        self._waiting: deque[Parcel] = deque()
        self._following: deque[Parcel] = deque()
        self._batches_first = 0
        self._thread: threading.Thread | None = None

    def put(self, parcel: Parcel) -> None:
        """Have it saved at once.

        Raises:
            GoldenError: it was closed.
        """
        with self._lock:
            if self._is_closed:
                raise GoldenError("this logger is closed; make another one")
            self._waiting.append(parcel)
            is_writing = self._start()
        if not is_writing:
            self._give_up()

    def put_following(self, parcel: Parcel) -> None:
        """Have it saved when nothing else waits, or beside that; also after closing, as part of what was put before."""
        with self._lock:
            self._following.append(parcel)
            is_writing = self._start()
        if not is_writing:
            self._give_up()

    def flush(self) -> Future[bool]:
        """Return what is done as soon as everything put so far, and what followed from it, is saved or has failed."""
        last = Parcel(_no_memories, _ignore)
        # What follows is put while that which it follows is settled, so before this.
        first = Parcel(_no_memories, lambda _: self.put_following(last))
        with self._lock:
            if self._thread is None:
                last.kept.set_result(True)
                return last.kept
            self._waiting.append(first)
        return last.kept

    def close(self) -> None:
        """Take no more; what was put is still saved."""
        with self._lock:
            self._is_closed = True

    def _start(self) -> bool:
        """Make sure that a thread writes."""
        if self._thread is not None:
            return True
        thread = threading.Thread(target=self._write_all, name="golden-outcomes")
        self._thread = thread
        try:
            thread.start()
        except RuntimeError:
            # The interpreter is about to end, or the system has no more threads.
            self._thread = None
            return False
        return True

    def _give_up(self) -> None:
        _log.warning("what an agent did cannot be kept: no thread can be started")
        while batch := self._take():
            end(batch, is_kept=False)

    def _write_all(self) -> None:
        self._gather()
        while batch := self._take():
            self._write(batch)
            self._gather()

    def _gather(self) -> None:
        """Wait until no more come, or long enough; the threads that hand over, or were woken, need the processor."""
        if not (self._waiting or self._following):
            return
        deadline, known = monotonic_seconds() + _MOST_SECONDS, -1
        while known < len(self._waiting) < _MOST_AT_ONCE and monotonic_seconds() < deadline:
            known = len(self._waiting)
            time.sleep(_PAUSE_SECONDS)

    def _take(self) -> list[Parcel]:
        """Take what is written next; when there is nothing, the thread that asks is the last one."""
        with self._lock:
            batch = [self._waiting.popleft() for _ in range(min(_MOST_AT_ONCE, len(self._waiting)))]
            self._batches_first = self._batches_first + 1 if batch else 0
            most = len(batch) or _MOST_FOLLOWING_AT_ONCE
            if not 0 < self._batches_first <= _MOST_BATCHES_FIRST:
                batch += [self._following.popleft() for _ in range(min(most, len(self._following)))]
            if not batch:
                self._thread = None
        return batch

    def _write(self, batch: list[Parcel]) -> None:
        made = [(parcel, memories) for parcel in batch if (memories := self._make(parcel)) is not None]
        error = self._try_to_save([memory for _, memories in made for memory in memories])
        if isinstance(error, ValueError) and len(made) > 1:
            # One that cannot be kept costs no other.
            for parcel, memories in made:
                self._end([parcel], self._try_to_save(memories))
        else:
            self._end([parcel for parcel, _ in made], error)

    def _make(self, parcel: Parcel) -> Sequence[Mapping[str, Any]] | None:
        try:
            return parcel.make()
        except Exception as error:  # whatever it is, it must not end the thread
            self._end([parcel], error)
            return None

    def _try_to_save(self, memories: Sequence[Mapping[str, Any]]) -> Exception | None:
        try:
            if memories:
                self._save(list(memories))
        except Exception as error:  # a store of another kind may raise anything
            return error
        return None

    def _end(self, parcels: list[Parcel], error: Exception | None) -> None:
        if error is not None:
            told = str(error) if isinstance(error, (StorageError, ValueError)) else error_text(error)
            _log.warning("what agents did cannot be kept: %s", redact(told), extra={"lost": len(parcels)})
        end(parcels, is_kept=error is None)


class Parcel:
    """Memories to be saved together. `kept` becomes True when they are on the disk, False when they could not be saved.

    `make` gives the arguments of `MemoryStore.save_memories`. `settle` is called with the same, before `kept` is set.
    Both run in the writing thread.
    """

    __slots__ = ("kept", "make", "settle")

    def __init__(self, make: Callable[[], Sequence[Mapping[str, Any]]], settle: Callable[[bool], None]) -> None:
        self.make = make
        self.settle = settle
        self.kept: Future[bool] = Future()
        # Whoever waits for it may be cancelled; what was handed over is saved all the same.
        self.kept.set_running_or_notify_cancel()


class LoggerCounts:
    """Counts what a logger has kept and lost. Safe between threads. What is kept twice under one id counts once."""

    def __init__(self) -> None:
        self._kept = dict.fromkeys(Counted, 0)
        self._failed = dict.fromkeys(Counted, 0)
        self._known: dict[tuple[Counted, str], None] = {}

    def count(self, what: Counted, key: str, *, is_kept: bool) -> None:
        """Count one that was kept, or lost, under this id."""
        with _lock:
            if not is_kept:
                self._failed[what] += 1
                return
            if (what, key) in self._known:
                return
            self._known[what, key] = None
            if len(self._known) > _MOST_REMEMBERED:
                del self._known[next(iter(self._known))]
            self._kept[what] += 1

    def read(self) -> dict[str, int]:
        """Return all six by name."""
        with _lock:
            kept = {_KEPT_NAMES[what]: count for what, count in self._kept.items()}
            return kept | {f"{what}_failed": count for what, count in self._failed.items()}


class Counted(StrEnum):
    """What is counted; kept and lost are counted separately."""

    OUTCOMES = "outcomes"
    PLANS = "plans"
    TRAINING_EXAMPLES = "training_examples"


async def wait_for(future: Future[Any] | None) -> None:
    """Wait for another thread's future; cancelling this wait does not cancel it."""
    if future is None or future.done():
        return
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()
    sleepers = _SLEEPERS.setdefault(loop, _Sleepers(loop))
    future.add_done_callback(lambda _: sleepers.wake(waiter))
    await waiter


def end(parcels: Sequence[Parcel], *, is_kept: bool) -> None:
    """Report whether they are kept. All futures are set before anyone is woken, who would take the processor."""
    for parcel in parcels:
        try:
            parcel.settle(is_kept)
        except Exception:  # whatever it is, it must not end the thread
            _log.exception("what was kept cannot be counted")
    for parcel in parcels:
        parcel.kept.set_result(is_kept)


def _forget_all() -> None:
    for commit in list(_COMMITS):
        commit.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
    # Held while the process forks: otherwise the child could inherit a lock that nobody releases.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def _no_memories() -> Sequence[Mapping[str, Any]]:
    return ()


def _ignore(_: bool) -> None:
    return


class _Sleepers:
    """The waiting coroutines of one event loop. A thread that ends a hundred waits calls the loop only once or twice."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)
        self._lock = threading.Lock()
        self._due: list[asyncio.Future[None]] = []

    def wake(self, waiter: asyncio.Future[None]) -> None:
        """Wake one, from any thread."""
        with self._lock:
            self._due.append(waiter)
            is_called = len(self._due) > 1
        loop = self._loop()
        if not is_called and loop is not None:
            with suppress(RuntimeError):  # closed: nobody waits there
                loop.call_soon_threadsafe(self._wake_all)

    def _wake_all(self) -> None:
        with self._lock:
            due, self._due = self._due, []
        for waiter in due:
            if not waiter.done():  # cancelled
                waiter.set_result(None)


_KEPT_NAMES = {
    Counted.OUTCOMES: "outcomes_logged",
    Counted.PLANS: "plans_extracted",
    Counted.TRAINING_EXAMPLES: "training_examples_stored",
}
