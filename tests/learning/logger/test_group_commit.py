from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.learning.outcome_writer import GroupCommit, Parcel

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


def test_what_was_put_before_the_end_is_saved_and_nothing_after() -> None:
    saved = Saved()
    commit = GroupCommit(saved)
    before = parcel("before")
    commit.put(before)
    commit.close()
    with pytest.raises(GoldenError, match="closed"):
        commit.put(parcel("after"))
    saved.may.set()
    assert before.kept.result(30) is True
    commit.flush().result(30)
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
