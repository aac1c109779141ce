from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.trajectory.readers.engine_reports import OutputReader, Tasks, read_all
from pytest_golden.trajectory.readers.model import StepDraft, StepReading
from tests.trajectory.readers.views import Folder, Run

if TYPE_CHECKING:
    from pytest_golden.trajectory.readers.model import ViewFiles

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Giving:
    name = "giving"

    def __init__(self, given: Any) -> None:
        self._given = given

    def read(self, view: ViewFiles, outcome: Any) -> StepReading:
        if isinstance(self._given, Exception):
            raise self._given
        reading: StepReading = self._given
        return reading


def test_a_reader_that_fails_costs_its_steps_and_a_warning(tmp_path: Path) -> None:
    good = StepReading((StepDraft("a"),))
    readers = [Giving(ValueError("boom")), Giving(good), Giving(None)]
    failed, fine, wrong = read_all(readers, Folder(tmp_path), Run())
    assert failed.warnings == ("step reader giving failed, its steps are lost: ValueError: boom",)
    assert fine is good
    assert wrong.warnings == ("step reader giving returned NoneType instead of a StepReading",)


def test_only_steps_can_be_given() -> None:
    with pytest.raises(ValueError, match="steps must hold Step or StepDraft"):
        StepReading(("x",))  # type: ignore[arg-type]


def test_all_that_is_large_in_a_draft_is_cut_and_counted_once() -> None:
    large = "x" * (2 << 20)
    draft = StepDraft("load", metadata={"rows": 5, "truncated_bytes": 7, "sql": large}, context=large)
    assert (draft.metadata["rows"], len(draft.context)) == (5, 1 << 20)
    assert (len(draft.metadata["sql"]), draft.metadata["truncated_bytes"]) == (1 << 20, (2 << 20) + 7)


@pytest.mark.parametrize("fields", [{"id": ""}, {"timestamp": "now"}, {"duration_ms": -1}, {"importance": "urgent"}])
def test_drafts_are_checked_as_steps_are(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(fields))):
        StepDraft("x", **fields)


def test_tasks_are_steps_in_the_order_of_their_beginning() -> None:
    tasks = Tasks("engine")
    tasks.begin("1", "load", NOON, rows=5)
    tasks.begin("2", "sum", NOON)
    tasks.begin("3", "never")
    tasks.end("2", NOON + timedelta(seconds=2), error="no column")
    tasks.end("1", NOON + timedelta(seconds=1))
    tasks.end("2")
    tasks.end("unseen", status="skipped")
    load, failed, never, unseen = tasks.drafts()
    assert (load.content, load.duration_ms, load.timestamp, load.metadata["rows"]) == ("load", 1000, NOON, 5)
    assert (failed.importance, failed.metadata["status"], failed.metadata["error"]) == (
        "critical",
        "failed",
        "no column",
    )
    assert (never.metadata["status"], never.duration_ms) == ("unfinished", None)
    assert (unseen.content, unseen.metadata["status"], unseen.metadata["reader"]) == ("unseen", "skipped", "engine")


def test_a_task_that_is_tried_again_is_told_by_its_last_trial() -> None:
    tasks = Tasks("engine")
    tasks.begin("1", "load")
    tasks.end("1", error="locked")
    tasks.begin("1", "load")
    tasks.end("1")
    (load,) = tasks.drafts()
    assert load.metadata["status"] == "success"


def test_a_reader_of_output_says_that_tasks_are_missing_where_the_middle_is() -> None:
    reader = OutputReader("engine", lambda stdout, _: [StepDraft(line) for line in stdout.split()])
    whole = reader.read(Folder(Path()), Run(stdout="a b", stdout_bytes=3))
    assert ([step.content for step in whole.steps], whole.warnings) == (["a", "b"], ())
    cut = reader.read(Folder(Path()), Run(stdout="a b", stdout_bytes=4))
    assert "tasks in the middle may be missing" in str(cut.warnings)
