"""Counts what a logger has kept and what it has lost. Safe between threads."""

from __future__ import annotations

import os
import threading
from enum import StrEnum


class Counted(StrEnum):
    """What is counted, kept and lost apart."""

    OUTCOMES = "outcomes"
    PLANS = "plans"
    TRAINING_EXAMPLES = "training_examples"


_KEPT_NAMES = {
    Counted.OUTCOMES: "outcomes_logged",
    Counted.PLANS: "plans_extracted",
    Counted.TRAINING_EXAMPLES: "training_examples_stored",
}
# Of an outcome that is long gone nobody asks for the plan again.
_MOST_REMEMBERED = 10_000
# One for all, held while the process forks: a fork in which it was held would wait for ever.
_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


class LoggerCounts:
    """Six counters. What is kept twice under one id is one."""

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
        """Give all six by name."""
        with _lock:
            kept = {_KEPT_NAMES[what]: count for what, count in self._kept.items()}
            return kept | {f"{what}_failed": count for what, count in self._failed.items()}
