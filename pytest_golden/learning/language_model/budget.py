"""Keeps what a model costs within a budget of seconds, also when neither the model nor the machine plays along."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_golden.clock import monotonic_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from pytest_golden.learning.language_model.client import CompletesPrompts

_T = TypeVar("_T")


class BudgetedModel:
    """A model with one budget of seconds for all calls, from the first call on; after that each returns None at once.

    `monotonic` gives the seconds that the budget is measured by.
    """

    def __init__(
        self, model: CompletesPrompts, seconds: float, *, monotonic: Callable[[], float] = monotonic_seconds
    ) -> None:
        self._model = model
        self._seconds = seconds
        self._monotonic = monotonic
        self._ends: float | None = None
        self.was_cut_short = False

    async def complete(self, prompt: str, schema: Any) -> Any:
        """Return what the model gives, or None when the budget ends before that; `was_cut_short` says so."""
        now = self._monotonic()
        if self._ends is None:
            self._ends = now + self._seconds
        if now >= self._ends:
            self.was_cut_short = True
            return None
        try:
            async with asyncio.timeout(self._ends - now):
                return await self._model.complete(prompt, schema)
        except TimeoutError:
            self.was_cut_short = True
            return None


def ask_within(seconds: float, ask: Callable[[], Coroutine[Any, Any, _T]]) -> _T | None:
    """Run a coroutine for at most `seconds`, and return its result; None when it is not done by then.

    It runs on a loop of its own in a thread that ends with the process: a look-up of a host name cannot be stopped, and
    nobody is to wait for it. So it must only ask; what is done with the result is done by the caller.

    Raises:
        Exception: whatever the coroutine raises, TimeoutError included.
    """
    done: Future[_T | None] = Future()
    Thread(target=_run, args=(seconds, ask, done), name="golden-language-model", daemon=True).start()
    try:
        return done.result(seconds)
    except TimeoutError:
        return done.result() if done.done() else None


def _run(seconds: float, ask: Callable[[], Coroutine[Any, Any, _T]], done: Future[_T | None]) -> None:
    async def ask_in_time() -> _T | None:
        asyncio.get_running_loop().set_default_executor(_AbandonedThreads())
        try:
            async with asyncio.timeout(seconds) as limit:
                return await ask()
        except TimeoutError:
            if limit.expired():
                return None
            raise

    try:
        result = asyncio.run(ask_in_time())
    except BaseException as error:
        done.set_exception(error)
    else:
        done.set_result(result)


class _AbandonedThreads(ThreadPoolExecutor):
    """Runs each call in a thread that neither the loop's end nor the process's waits for."""

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Begin the call at once."""
        future: Future[_T] = Future()
        # From here on nobody can cancel it, so the thread may always set its end.
        future.set_running_or_notify_cancel()

        def run() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        Thread(target=run, name="golden-language-model-call", daemon=True).start()
        return future
