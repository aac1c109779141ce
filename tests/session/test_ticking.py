from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from pytest_golden.session.live_line import Ticker
from tests.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "golden-test-ticker"


class Work:
    def __init__(self) -> None:
        self.done = 0

    def __call__(self) -> None:
        self.done += 1
        raise ZeroDivisionError


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def ticker(work: Work) -> Iterator[Ticker]:
    ticker = Ticker(work, name=NAME)
    yield ticker
    ticker.stop()


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == NAME]


def test_work_is_done_again_and_again_whatever_it_raises(ticker: Ticker, work: Work) -> None:
    ticker.start()
    ticker.start()
    assert len(threads()) == 1
    wait_until(lambda: work.done == 2)
    ticker.stop()
    assert ticker.missed_count == work.done
    assert threads() == []
    ticker.stop()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_fork_finds_no_thread_and_the_next_start_goes_on(ticker: Ticker, work: Work) -> None:
    ticker.start()
    child = os.fork()
    if child == 0:  # pragma: no cover - the child ends here
        ticker.stop()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert threads() == []
    before = work.done
    ticker.start()
    wait_until(lambda: work.done > before)
