"""A report on its way to the disk, as whoever handed it over sees it."""

from __future__ import annotations

import asyncio
import threading
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pytest_golden.learning.logger.outcome_making import make_outcome

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pytest_golden.learning.logger.outcome_making import Report
    from pytest_golden.learning.model import ProductionOutcome


class HandedOver:
    """`kept` becomes True when the outcome is on the disk and False when it could not be kept; None without a store.

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
        """Give the outcome, which is made only once."""
        with self._lock:
            if self._outcome is None:
                self._outcome = make_outcome(self._report)
            return self._outcome

    async def wait(self) -> ProductionOutcome:
        """Wait until it is kept or lost, and give the outcome."""
        await wait_for(self.kept)
        return self.make()


async def wait_for(future: Future[Any] | None) -> None:
    """Wait for what another thread does; being cancelled cancels nothing there."""
    if future is None or future.done():
        return
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()
    sleepers = _SLEEPERS.setdefault(loop, _Sleepers(loop))
    future.add_done_callback(lambda _: sleepers.wake(waiter))
    await waiter


class _Sleepers:
    """Those of one event loop who are to be woken. A thread that ends a hundred waits calls the loop once or twice."""

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


_SLEEPERS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Sleepers] = weakref.WeakKeyDictionary()
