from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.clock import utc_now
from pytest_golden.gate.lock import prepare_state_folder
from pytest_golden.gate.run_record import RunRecord
from pytest_golden.gate.spool import Spool, StorePlace, find_spool_folder
from pytest_golden.history.past_store import list_results
from pytest_golden.storage.store import Store
from pytest_golden.verify.verification_record import keep_spooled
from tests.gate.gate_events import begin, end, judge

if TYPE_CHECKING:
    from pathlib import Path


class Sides:
    """A workspace with a store, and a worktree whose gates write to it by its path."""

    def __init__(self, folder: Path) -> None:
        self.head = folder / "head"
        self.base = folder / "base"
        for root in (self.head, self.base):
            root.mkdir()
            (root / "golden_projects.yaml").write_text("golden_projects: []\n")
        self.store = prepare_state_folder(self.head) / "golden.db"
        self.manifest = self.base / "golden_projects.yaml"
        place = StorePlace(str(self.store), is_own=False)
        self.spool = Spool(find_spool_folder(place, prepare_state_folder(self.base)))

    def spool_run(self) -> str:
        """Let a gate of the base find no store that takes what it says, and give its run's id."""
        begun = begin("p")
        for event in (begun, judge(begun, "p"), end(begun)):
            self.spool.append(event)
        return begun.run_id

    def run_head(self) -> list[str]:
        """Run a gate of the head, and give the runs of which the store has a result then, newest first."""
        folder = find_spool_folder(StorePlace(self.store, is_own=True), prepare_state_folder(self.head))
        record = RunRecord(self.store, Spool(folder), is_own_store=True, clock=utc_now, say=print, warn=pytest.fail)
        begun = begin("p")
        record.begin(begun)
        record.record(judge(begun, "p"))
        record.end(end(begun))
        record.close()
        with Store.open(self.store) as store, store.read() as connection:
            return [result.run_id for result in list_results(connection, "p", 9)]


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    return Sides(tmp_path)


def test_what_the_store_did_not_take_of_a_base_is_taken_in_by_the_heads_gate(sides: Sides) -> None:
    run_id = sides.spool_run()
    assert keep_spooled(sides.manifest, None, sides.head) is None
    assert sides.spool.files() == ()
    results = sides.run_head()
    assert len(results) == 2
    assert results[1] == run_id


def test_of_a_proposal_only_its_own_gates_are_kept(sides: Sides) -> None:
    forged, run_id = sides.spool_run(), sides.spool_run()
    assert keep_spooled(sides.manifest, None, sides.head, {run_id}) is None
    assert [path.stem for path in sides.spool.files()] == [forged]
    assert sides.run_head()[1:] == [run_id]


def test_without_a_store_nothing_is_kept_and_what_cannot_be_is_said(sides: Sides) -> None:
    sides.spool_run()
    assert keep_spooled(sides.manifest, "none", sides.head) is None
    (sides.head / ".golden" / "spool").write_text("in the way")
    told = keep_spooled(sides.manifest, None, sides.head)
    assert told is not None
    assert told.startswith("what the store did not take of a gate in a worktree is lost to history: ")
    assert len(sides.spool.files()) == 1
