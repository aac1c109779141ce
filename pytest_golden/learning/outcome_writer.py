"""Write for all callers in one thread, which saves everything that waits in one transaction: that costs one flush.

The thread lives only while something waits. It is not a daemon, so the interpreter waits for it at exit and loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pytest_golden.clock import monotonic_seconds
from pytest_golden.errors import StorageError
from pytest_golden.learning.outcomes import make_outcome, write_outcome
from pytest_golden.redaction.redactor import redact
from pytest_golden.trajectory.step import error_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_golden.learning.model import ProductionOutcome
    from pytest_golden.learning.outcomes import Report

_log = logging.getLogger(__name__)
# The most parcels in a transaction; a larger one would keep other writers of the store waiting.
_MOST_AT_ONCE = 500
# Parcels that no caller waits for are written in smaller batches, after up to eight batches that callers wait for; then both
# are written together, so that the former do not pile up.
_MOST_FOLLOWING_AT_ONCE = 25
_MOST_BATCHES_FIRST = 8
# Agents that end together report together: to wait for more reports costs less than another flush.
_PAUSE_SECONDS, _MOST_SECONDS = 0.0005, 0.01
_COMMITS: WeakSet[GroupCommit] = WeakSet()
# Older outcomes are forgotten: nobody asks for their plan again.
_MOST_REMEMBERED = 10_000
_KEPT_NAMES = {
    "outcomes": "outcomes_logged",
    "plans": "plans_extracted",
    "training_examples": "training_examples_stored",
}
# One for all counts and the table of loggers.
LOCK = threading.Lock()


class GroupCommit:
    """Take parcels from any thread without making it wait. A save that fails costs a warning.

    `save` saves many memories in one transaction; without it, all that is put counts as saved at once.
    """

    def __init__(self, save: Callable[[list[Mapping[str, Any]]], object] | None) -> None:
        self._save = save
        self.forget()
        _COMMITS.add(self)

    def forget(self) -> None:
        """Start empty, also in a fork: the parent writes what waited, and may have held the lock."""
        self._lock = threading.Lock()
        self._waiting: deque[Parcel] = deque()
        self._following: deque[Parcel] = deque()
        self._batches_first = 0
        self._thread: threading.Thread | None = None

    def put(self, parcel: Parcel) -> None:
        """Save it as soon as possible."""
        self._add(parcel, self._waiting)

    def put_following(self, parcel: Parcel) -> None:
        """Save it after everything else, or beside it."""
        self._add(parcel, self._following)

    def flush(self) -> Future[bool]:
        """Return a future that is done when everything put so far, and what follows from it, is saved or has failed."""
        last = Parcel(tuple, lambda _: None)
        # A parcel's followers are put while it is settled, so before `last`.
        first = Parcel(tuple, lambda _: self.put_following(last))
        with self._lock:
            if self._thread is None:
                last.kept.set_result(True)
                return last.kept
            self._waiting.append(first)
        return last.kept

    def _add(self, parcel: Parcel, queue: deque[Parcel]) -> None:
        """Add a parcel to a queue, and start the writing thread unless it runs."""
        if self._save is None:
            end([parcel], is_kept=True)
            return
        with self._lock:
            queue.append(parcel)
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_all, name="golden-outcomes")
                try:
                    self._thread.start()
                except RuntimeError:
                    # The interpreter is about to end, or the system has no more threads.
                    self._thread = None
            is_writing = self._thread is not None
        if not is_writing:
            _log.warning("what an agent did cannot be kept: no thread can be started")
            while batch := self._take():
                end(batch, is_kept=False)

    def _write_all(self) -> None:
        self._gather()
        while batch := self._take():
            self._write(batch)
            self._gather()

    def _gather(self) -> None:
        """Wait until no more parcels come, for up to 10 ms: the threads that hand over need the processor."""
        if not (self._waiting or self._following):
            return
        deadline, known = monotonic_seconds() + _MOST_SECONDS, -1
        while known < len(self._waiting) < _MOST_AT_ONCE and monotonic_seconds() < deadline:
            known = len(self._waiting)
            time.sleep(_PAUSE_SECONDS)

    def _take(self) -> list[Parcel]:
        """Take the next batch; when there is none, the thread ends."""
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
            # A parcel that cannot be saved must not cost another one.
            for parcel, memories in made:
                self._end([parcel], self._try_to_save(memories))
        else:
            self._end([parcel for parcel, _ in made], error)

    def _make(self, parcel: Parcel) -> Sequence[Mapping[str, Any]] | None:
        try:
            return parcel.make()
        except Exception as error:  # it must not end the thread
            self._end([parcel], error)
            return None

    def _try_to_save(self, memories: Sequence[Mapping[str, Any]]) -> Exception | None:
        try:
            if memories and self._save is not None:
                self._save(list(memories))
        except Exception as error:  # a store of another kind may raise anything
            return error
        return None

    def _end(self, parcels: list[Parcel], error: Exception | None) -> None:
        if error is not None:
            reason = str(error) if isinstance(error, (StorageError, ValueError)) else error_text(error)
            _log.warning("what agents did cannot be kept: %s", redact(reason), extra={"lost": len(parcels)})
        end(parcels, is_kept=error is None)


class Parcel:
    """Memories to save together. The future `kept` gives True when they are on the disk, False when they are lost.

    `make` returns the arguments of `MemoryStore.save_memories`. `settle` is called with the value of `kept` before it is set.
    Both run in the writing thread.
    """

    __slots__ = ("kept", "make", "settle")

    def __init__(self, make: Callable[[], Sequence[Mapping[str, Any]]], settle: Callable[[bool], None]) -> None:
        self.make = make
        self.settle = settle
        self.kept: Future[bool] = Future()
        # A caller that waits may be cancelled; its parcel is saved all the same.
        self.kept.set_running_or_notify_cancel()


class HandedOver(Parcel):
    """A report on its way to the disk. The writing thread makes a large outcome; a small one is made at once."""

    __slots__ = ("_lock", "_outcome", "_report")

    def __init__(self, report: Report, settle: Callable[[bool], None]) -> None:
        super().__init__(lambda: write_outcome(self.outcome()), settle)
        self._report = report
        self._lock = threading.Lock()
        self._outcome: ProductionOutcome | None = None
        if report.is_small:
            self.outcome()

    def outcome(self) -> ProductionOutcome:
        """Return the outcome; only the first call makes it."""
        with self._lock:
            if self._outcome is None:
                self._outcome = make_outcome(self._report)
            return self._outcome

    async def wait(self) -> ProductionOutcome:
        """Wait until it is stored or lost, and return the outcome."""
        await wait_for(self.kept)
        return self.outcome()


class LoggerCounts:
    """The numbers of outcomes, plans and training examples that a logger stored and lost. Safe between threads."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys((*_KEPT_NAMES.values(), *(f"{kind}_failed" for kind in _KEPT_NAMES)), 0)
        self._known: dict[tuple[str, str], None] = {}

    def count(self, kind: str, key: str, is_kept: bool) -> None:
        """Count one as stored or lost; `kind` is a key of `_KEPT_NAMES`. One id counts as stored only once."""
        with LOCK:
            if not is_kept:
                self._counts[f"{kind}_failed"] += 1
            elif (kind, key) not in self._known:
                self._counts[_KEPT_NAMES[kind]] += 1
                self._known[kind, key] = None
                if len(self._known) > _MOST_REMEMBERED:
                    del self._known[next(iter(self._known))]

    def read(self) -> dict[str, int]:
        """Return all six by name."""
        with LOCK:
            return dict(self._counts)


def is_in_loop() -> bool:
    """Tell whether the caller runs in an event loop, which it must not hold."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def wait_for(future: Future[bool]) -> None:
    """Wait for another thread's future, which is marked as running, so that to cancel this wait does not cancel it."""
    await asyncio.wrap_future(future)


def end(parcels: Sequence[Parcel], *, is_kept: bool) -> None:
    """Report that parcels are stored or lost. First all are settled, since a woken caller would take the processor."""
    for parcel in parcels:
        try:
            parcel.settle(is_kept)
        except Exception:  # it must not end the thread
            _log.exception("what was kept cannot be counted")
    for parcel in parcels:
        parcel.kept.set_result(is_kept)


def _forget_all() -> None:
    for commit in list(_COMMITS):
        commit.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
    # Held while the process forks: otherwise the child could inherit a lock that no thread releases.
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)
