from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from pytest_golden.regression.model import ResultStatus
from pytest_golden.session.live_line import RunBoard

if TYPE_CHECKING:
    from pathlib import Path

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
