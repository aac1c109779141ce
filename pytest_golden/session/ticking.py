"""Some work done again about once a second by a thread of its own. What it does not know is what the work is."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING
from weakref import WeakSet

from pytest_golden.clock import monotonic_seconds, thread_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

_SECONDS_BEFORE = 0.2
_SECONDS_BETWEEN = 1.0
# Where the work is more than usual it is done less often: beyond what is loaded at first, it takes no more than a hundredth
# of a processor.
_LEAST_REST = 100
_LOADING_SECONDS = 0.3
_MOST_JOINED_SECONDS = 1.0


class Ticker:
    """Does `work` again and again between start and stop; what it raises is counted in `missed_count` and costs nothing else.

    A fork of the process stops it, so that no thread of ours is in its way; the next `start` goes on.
    """

    def __init__(self, work: Callable[[], None], *, name: str) -> None:
        self.missed_count = 0
        self._work = work
        self._name = name
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        _ALL.add(self)

    def start(self) -> None:
        """Begin, unless it has begun."""
        if self._thread is None:
            self._ended = threading.Event()
            self._thread = threading.Thread(target=self._tick, args=(self._ended,), name=self._name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End; work that is being done is waited for a moment only."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._ended.set()
            thread.join(_MOST_JOINED_SECONDS)

    def _tick(self, ended: threading.Event) -> None:
        began, pause = monotonic_seconds(), _SECONDS_BEFORE
        while not ended.wait(pause):
            try:
                self._work()
            except Exception:
                self.missed_count += 1
            owed = _LEAST_REST * (thread_seconds() - _LOADING_SECONDS)
            pause = max(_SECONDS_BETWEEN, owed - (monotonic_seconds() - began))


_ALL: WeakSet[Ticker] = WeakSet()


def _stop_all() -> None:
    for ticker in list(_ALL):
        ticker.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_stop_all)
