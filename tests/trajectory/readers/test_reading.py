from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.trajectory.readers.engine_reports import DEFAULT_READERS, read_all
from pytest_golden.trajectory.readers.model import StepDraft, StepReading
from tests.trajectory.readers.views import Folder, Run

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.trajectory.readers.model import RunFacts, ViewFiles


class Giving:
    name = "giving"

    def __init__(self, given: Any) -> None:
        self._given = given

    def read(self, view: ViewFiles, outcome: RunFacts) -> StepReading:
        if isinstance(self._given, Exception):
            raise self._given
        reading: StepReading = self._given
        return reading


def test_a_reader_that_fails_costs_its_steps_and_a_warning(tmp_path: Path) -> None:
    good = StepReading((StepDraft("a"),))
    readers = [Giving(ValueError("boom")), Giving(good), Giving(None), *DEFAULT_READERS]
    failed, fine, wrong, *others = read_all(readers, Folder(tmp_path), Run())
    assert failed.warnings == ("step reader giving failed, its steps are lost: ValueError: boom",)
    assert fine is good
    assert wrong.warnings == ("step reader giving gave NoneType instead of a StepReading",)
    assert others == [StepReading(), StepReading()]
    assert [reader.name for reader in DEFAULT_READERS] == ["odibi", "dbt"]


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
