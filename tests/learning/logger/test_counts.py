from __future__ import annotations

import os
import threading
import time

import pytest

from pytest_golden.learning import outcome_logger as shared_logger
from pytest_golden.learning import outcome_writer as counting
from pytest_golden.learning.outcome_writer import LoggerCounts


def test_what_is_kept_twice_is_one_and_what_is_lost_is_apart() -> None:
    counts = LoggerCounts()
    for _ in range(2):
        counts.count("plans", "plan_1", is_kept=True)
        counts.count("plans", "plan_2", is_kept=False)
    counts.count("outcomes", "plan_1", is_kept=True)
    assert counts.read() == {
        "outcomes_logged": 1,
        "plans_extracted": 1,
        "training_examples_stored": 0,
        "outcomes_failed": 0,
        "plans_failed": 2,
        "training_examples_failed": 0,
    }


def test_only_so_many_ids_are_remembered() -> None:
    counts = LoggerCounts()
    for number in range(10_001):
        counts.count("outcomes", str(number), is_kept=True)
    counts.count("outcomes", "10000", is_kept=True)
    assert counts.read()["outcomes_logged"] == 10_001
    counts.count("outcomes", "0", is_kept=True)
    assert counts.read()["outcomes_logged"] == 10_002


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("lock", [counting._lock, shared_logger._lock])
def test_fork_waits_for_who_holds_the_lock(lock: threading.Lock) -> None:
    is_held = threading.Event()

    def hold() -> None:
        with lock:
            is_held.set()
            time.sleep(0.2)

    holder = threading.Thread(target=hold)
    holder.start()
    is_held.wait(60)
    child = os.fork()
    if child == 0:  # pragma: no cover - the child ends here
        os._exit(0 if lock.acquire(timeout=60) else 1)
    holder.join()
    assert os.waitpid(child, 0)[1] == 0
    assert not lock.locked()
