"""A report on its way to the disk, as whoever handed it over sees it."""

from __future__ import annotations

import asyncio
import threading
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
    if future is not None and not future.done():
        await asyncio.wrap_future(future)
