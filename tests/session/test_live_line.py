from __future__ import annotations

import os
import shutil
import threading
from typing import TYPE_CHECKING

import pytest

from pytest_golden.regression.model import ResultStatus
from pytest_golden.session.live_line import RunBoard, RunningNames, Ticker
from tests.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def test_naming_that_is_late_writes_into_no_other_file(tmp_path: Path) -> None:
    looking, go_on = threading.Event(), threading.Event()

    def list_running() -> list[tuple[str, float]]:
        looking.set()
        go_on.wait()
        return [("slow", 2.0)]

    with (tmp_path / "log").open("w") as log:
        names = RunningNames(log, list_running, lambda: False)
        names.start()
        assert looking.wait(60)
        threads = threading.enumerate()
        names.stop()
        with (tmp_path / "other").open("w") as other:
            go_on.set()
            for thread in threads:
                if thread.name == "golden-running":
                    thread.join()
            other.flush()
        assert (tmp_path / "other").read_text() == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_naming_goes_on_after_a_fork(tmp_path: Path) -> None:
    running: list[tuple[str, float]] = []
    with (tmp_path / "log").open("w") as log:
        names = RunningNames(log, lambda: running, lambda: False)
        names.start()
        if (child := os.fork()) == 0:  # pragma: no cover - the child ends here
            os._exit(0)
        os.waitpid(child, 0)
        running.append(("slow", 2.0))
        names.erase()
        wait_until(lambda: (tmp_path / "log").read_text() == "running slow\n")
        names.stop()


NAMES = ("one", "Two", "two")


@pytest.mark.parametrize("shared", [True, False])
def test_notes_are_read_back(tmp_path: Path, shared: bool) -> None:
    board = RunBoard(NAMES, tmp_path if shared else None)
    board.note_running("Two")
    board.note_running("two")
    board.note_ended("two", ResultStatus.FAILED)
    assert board.statuses(NAMES) == {"Two": None, "two": ResultStatus.FAILED}
    ((name, seconds),) = board.running()
    assert name == "Two"
    assert 0 <= seconds < 60


def test_another_process_reads_what_was_noted(tmp_path: Path) -> None:
    RunBoard(NAMES, tmp_path).note_running("one")
    other = RunBoard(NAMES, tmp_path)
    assert other.statuses(["one", "two"]) == {"one": None}
    assert [name for name, _ in other.running()] == ["one"]


def test_folder_that_went_with_the_controller_does_no_harm(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    board = RunBoard(NAMES, folder)
    shutil.rmtree(folder)
    board.note_running("one")
    assert board.running() == ()
    assert board.statuses(["one", "two"]) == {"one": None}


@pytest.mark.parametrize("shared", [True, False])
def test_steps_are_told_with_what_runs(tmp_path: Path, shared: bool) -> None:
    board = RunBoard(NAMES, tmp_path if shared else None)
    seen = RunBoard(NAMES, tmp_path) if shared else board
    assert board.find_own() is None
    board.note_running("Two")
    assert [one.step for one in seen.list_running()] == [None]
    board.note_step("Two", "löad \udc80")
    ((name, since, step),) = seen.list_running()
    assert (name, step) == ("Two", "löad \udc80")
    assert since > 0
    assert board.find_own() == "Two"
    board.note_ended("Two", ResultStatus.PASSED)
    assert seen.list_running() == ()
    assert board.find_own() is None
    assert seen.find_own() is None


def test_what_other_machines_run_is_told_until_its_own_turn_has_come() -> None:
    board = RunBoard(NAMES)
    board.note_running("Two")
    board.note_elsewhere({"two": 5.0, "one": 7.0})
    assert [(one.name, one.since) for one in board.list_running() if one.name != "Two"] == [("one", 7.0), ("two", 5.0)]
    assert [name for name, _ in board.running()] == list(NAMES)
    board.note_ended("Two", ResultStatus.PASSED)
    board.note_running("two")
    board.note_elsewhere({"two": 5.0})
    (running,) = board.list_running()
    assert running.name == "two"
    assert running.since == 5.0


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
