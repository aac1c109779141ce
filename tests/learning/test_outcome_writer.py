from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.learning.outcome_writer import LOCK, GroupCommit, LoggerCounts, Parcel, wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping


class Saved:
    """Takes what is saved, the first batch not before it may."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.may = threading.Event()

    def __call__(self, memories: list[Mapping[str, Any]]) -> None:
        assert self.may.wait(60)
        self.batches.append([memory["key"] for memory in memories])


def parcel(key: str, settled: list[bool] | None = None) -> Parcel:
    return Parcel(lambda: [{"key": key}], (settled if settled is not None else []).append)


def test_what_waits_is_saved_together_and_what_follows_comes_last() -> None:
    saved = Saved()
    commit = GroupCommit(saved)
    settled: list[bool] = []
    commit.put(parcel("first"))
    for number in range(3):
        commit.put_following(parcel(f"following {number}"))
        commit.put(parcel(f"waiting {number}", settled))
    flushed = commit.flush()
    assert not flushed.done()
    saved.may.set()
    flushed.result(30)
    told = [key for batch in saved.batches for key in batch]
    assert saved.batches[-1] == ["following 0", "following 1", "following 2"]
    assert [key for key in told if key.startswith("waiting")] == ["waiting 0", "waiting 1", "waiting 2"]
    assert len(saved.batches) <= 3
    assert settled == [True] * 3
    assert commit.flush().done()


def test_what_follows_does_not_pile_up_while_something_always_waits() -> None:
    saved = Saved()
    saved.may.set()
    commit = GroupCommit(saved)
    done = threading.Event()
    left = [200]

    def go_on(_: bool) -> None:
        # Settled in the writing thread: so something waits whenever it looks.
        left[0] -= 1
        commit.put_following(parcel(f"following {left[0]}"))
        if left[0]:
            commit.put(Parcel(lambda: [{"key": "waiting"}], go_on))
        else:
            done.set()

    commit.put(Parcel(lambda: [{"key": "waiting"}], go_on))
    assert done.wait(60)
    commit.flush().result(30)
    told = [key for batch in saved.batches for key in batch]
    assert told.index("following 190") < 30
    assert told[-1] == "following 0"


def test_a_flush_waits_for_what_was_put_before_it_alone() -> None:
    saved = Saved()
    commit = GroupCommit(saved)
    before: list[bool] = []
    commit.put(Parcel(lambda: [{"key": "held"}], _ignoring))
    commit.put(Parcel(lambda: [{"key": "first"}], lambda _: commit.put_following(parcel("its own", before))))
    flushed = commit.flush()
    seen: list[bool] = []
    flushed.add_done_callback(lambda _: seen.extend(before))
    saved.may.set()
    flushed.result(30)
    commit.flush().result(30)
    assert seen == before == [True]


def _ignoring(_: bool) -> None:
    return


def test_flush_is_done_when_what_was_put_before_is_saved() -> None:
    saved = Saved()
    commit = GroupCommit(saved)
    before = parcel("before")
    commit.put(before)
    flushed = commit.flush()
    assert not flushed.done()
    saved.may.set()
    flushed.result(30)
    assert before.kept.done()
    assert saved.batches == [["before"]]


def test_one_that_cannot_be_made_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    saved = Saved()
    saved.may.set()
    commit = GroupCommit(saved)

    def fail() -> list[Any]:
        raise RuntimeError("cannot be made")

    settled: list[bool] = []
    commit.put(Parcel(fail, settled.append))
    good = parcel("good")
    commit.put(good)
    assert good.kept.result(30)
    commit.flush().result(30)
    assert settled == [False]
    assert "RuntimeError: cannot be made" in caplog.text


def test_one_that_cannot_be_counted_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    saved = Saved()
    saved.may.set()
    commit = GroupCommit(saved)

    def fail(_: bool) -> None:
        raise RuntimeError("cannot be counted")

    odd = Parcel(lambda: [{"key": "odd"}], fail)
    commit.put(odd)
    assert odd.kept.result(30) is True
    good = parcel("good")
    commit.put(good)
    assert good.kept.result(30) is True
    assert "RuntimeError: cannot be counted" in caplog.text


def test_no_thread_stays_behind() -> None:
    saved = Saved()
    saved.may.set()
    commit = GroupCommit(saved)
    for _ in range(50):
        commit.put(parcel("one"))
        commit.flush().result(30)
    for thread in threading.enumerate():
        if thread.name == "golden-outcomes":
            thread.join(60)
    assert not [thread for thread in threading.enumerate() if thread.name == "golden-outcomes"]
    assert sum(map(len, saved.batches)) == 50


def test_many_threads_lose_nothing() -> None:
    saved = Saved()
    saved.may.set()
    commit = GroupCommit(saved)

    def put(name: int) -> None:
        for number in range(200):
            commit.put(parcel(f"{name} {number}"))

    threads = [threading.Thread(target=put, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    commit.flush().result(30)
    told = [key for batch in saved.batches for key in batch]
    assert len(told) == len(set(told)) == 800
    for name in range(4):
        own = [key for key in told if key.startswith(f"{name} ")]
        assert own == [f"{name} {number}" for number in range(200)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_has_a_thread_of_its_own() -> None:
    saved = Saved()
    commit = GroupCommit(saved)
    commit.put(parcel("held"))
    child = os.fork()
    if child == 0:  # pragma: no cover - the child ends here
        try:
            saved.may = threading.Event()
            saved.may.set()
            mine = parcel("of the fork")
            commit.put(mine)
            os._exit(0 if mine.kept.result(20) else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    saved.may.set()
    commit.flush().result(30)
    assert saved.batches == [["held"]]


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
def test_fork_waits_for_who_holds_the_lock() -> None:
    is_held = threading.Event()

    def hold() -> None:
        with LOCK:
            is_held.set()
            time.sleep(0.2)

    holder = threading.Thread(target=hold)
    holder.start()
    is_held.wait(60)
    child = os.fork()
    if child == 0:  # pragma: no cover - the child ends here
        os._exit(0 if LOCK.acquire(timeout=60) else 1)
    holder.join()
    assert os.waitpid(child, 0)[1] == 0
    assert not LOCK.locked()


def make_running(count: int) -> list[Future[bool]]:
    futures: list[Future[bool]] = [Future() for _ in range(count)]
    for future in futures:
        future.set_running_or_notify_cancel()
    return futures


def end(futures: list[Future[bool]]) -> None:
    for future in futures:
        future.set_result(True)


async def test_all_who_wait_are_woken_by_another_thread() -> None:
    futures = make_running(500)
    waits = [asyncio.create_task(wait_for(future)) for future in futures]
    waits[3].cancel()
    threads = [threading.Thread(target=end, args=(futures[start::2],)) for start in (0, 1)]
    for thread in threads:
        thread.start()
    done = await asyncio.gather(*waits, return_exceptions=True)
    for thread in threads:
        thread.join()
    assert [one for one in done if one is not None] == [done[3]]
    assert isinstance(done[3], asyncio.CancelledError)
    assert not futures[3].cancelled()


async def test_nothing_is_waited_for_that_is_done() -> None:
    future: Future[bool] = Future()
    future.set_result(False)
    await wait_for(future)


def test_end_that_comes_after_the_event_loop_is_closed_troubles_nobody(caplog: pytest.LogCaptureFixture) -> None:
    futures = make_running(2)

    async def give_up() -> None:
        waits = [asyncio.create_task(wait_for(future)) for future in futures]
        await asyncio.sleep(0)
        for wait in waits:
            wait.cancel()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(give_up())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    end(futures)
    del loop
    assert caplog.records == []
