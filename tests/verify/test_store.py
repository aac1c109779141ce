from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select

from pytest_golden.clock import utc_now
from pytest_golden.gate.events import Spool
from pytest_golden.gate.run_record import RunRecord
from pytest_golden.gate.state_folder import StorePlace, find_spool_folder, prepare_state_folder
from pytest_golden.history.past_store import list_results
from pytest_golden.journal.service import Journal
from pytest_golden.manifest.reader import parse_manifest
from pytest_golden.regression.comparison import Comparison, ProjectRuns, SideRuns, Tally, Verdict
from pytest_golden.regression.model import GoldenProjectResult, Reason, ResultStatus
from pytest_golden.storage.folder import PRIVATE_PREFIX
from pytest_golden.storage.schema import gate_results
from pytest_golden.storage.shared_documents import digest_document
from pytest_golden.storage.store import Store
from pytest_golden.verify.gates import HeadCommit
from pytest_golden.verify.model import BaseFacts, BaseKey, Verification
from pytest_golden.verify.store import VerificationRecord, digest_environment, keep_spooled
from tests.gate.gate_events import begin, end, judge
from tests.gate.record_place import Place, tell, whole

if TYPE_CHECKING:
    from pathlib import Path

BASE, HEAD = "c" * 40, "d" * 40
SURROUNDINGS = {"python": "3.11.2"}
KEY = BaseKey(BASE, "golden_projects.yaml", digest_document(SURROUNDINGS), None)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def record(place: Place) -> VerificationRecord:
    return VerificationRecord(place.path, place.warned.append)


def tallies(found: dict[str, SideRuns] | None) -> dict[str, Tally] | None:
    return None if found is None else {name: runs.tally for name, runs in found.items()}


def test_clean_runs_of_the_base_stand_for_new_ones(place: Place, record: VerificationRecord) -> None:
    first, second = begin("a", "b"), begin("a", "b", minute=1)
    place.run(first)
    tell(place.open(), second, judge(second, "a", ResultStatus.FAILED), judge(second, "b"), end(second, "failure"))
    found = record.find_base(KEY, ["a", "b"])
    assert tallies(found) == {"a": Tally(1, 1), "b": Tally(2, 0)}
    assert found is not None
    assert found["a"].status is ResultStatus.FAILED
    assert place.warned == []


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"checkout": {"commit": BASE, "branch": "main", "dirty": True, "dirty_files": {"x": "1"}}}, KEY),
        ({"checkout": {"commit": BASE, "branch": None, "dirty": None, "dirty_files": None}}, KEY),
        ({"checkout": {"commit": HEAD, "branch": "main", "dirty": False, "dirty_files": {}}}, KEY),
        ({"surroundings": {"python": "3.12.1"}}, KEY),
        ({"manifest": "other.yaml"}, KEY),
        # A worktree of a verification, which may have lacked something.
        ({"workspace_root": f"/tmp/{PRIVATE_PREFIX}x/tree"}, KEY),
        ({}, replace(KEY, manifest="sub/golden_projects.yml")),
    ],
)
def test_runs_on_edits_elsewhere_or_in_another_environment_do_not(
    place: Place, record: VerificationRecord, more: dict[str, Any], key: BaseKey
) -> None:
    place.run(begin("a", **more))
    assert record.find_base(key, ["a"]) is None


def test_manifest_may_be_named_from_below_the_checkouts_root(place: Place, record: VerificationRecord) -> None:
    place.run(begin("a"))
    assert record.find_base(replace(KEY, manifest="sub/golden_projects.yaml"), ["a"]) is not None


def test_runs_that_leave_a_project_out_do_not_stand_for_the_base(place: Place, record: VerificationRecord) -> None:
    place.run(begin("a"))
    assert record.find_base(KEY, ["a", "b"]) is None
    place.run(begin("b", minute=1))
    assert tallies(record.find_base(KEY, ["a", "b"])) == {"a": Tally(1, 0), "b": Tally(1, 0)}


def test_interrupted_run_counts_for_nothing(place: Place, record: VerificationRecord) -> None:
    left = begin("a", "b")
    opened = place.open()
    opened.begin(left)
    opened.record(judge(left, "a", ResultStatus.FAILED))
    opened.close()
    assert record.find_base(KEY, ["a"]) is None
    place.run(begin("a", minute=5))
    assert tallies(record.find_base(KEY, ["a"])) == {"a": Tally(1, 0)}


def test_result_that_was_interrupted_counts_for_nothing(place: Place, record: VerificationRecord) -> None:
    begun = begin("a")
    judged = judge(begun, "a", ResultStatus.ERROR)
    interrupted = replace(judged.result, reasons=(Reason("interrupted", "Ctrl-C"),))
    tell(place.open(), begun, replace(judged, result=interrupted), end(begun, "failure"))
    assert record.find_base(KEY, ["a"]) is None


def test_skipped_result_stands_only_where_there_is_no_other(place: Place, record: VerificationRecord) -> None:
    place.run(begin("a"))
    later = begin("a", "b", minute=1)
    skipped = [judge(later, name, ResultStatus.SKIPPED) for name in ("a", "b")]
    tell(place.open(), later, *skipped, end(later))
    found = record.find_base(KEY, ["a", "b"])
    assert found is not None
    assert (found["a"].status, found["b"].status) == (ResultStatus.PASSED, ResultStatus.SKIPPED)


def test_result_of_the_machine_stands_only_where_there_is_no_other(place: Place, record: VerificationRecord) -> None:
    place.run(begin("a"))
    later = begin("a", "b", minute=1)
    for_want_of_room = (Reason("scratch_full", "no space left"),)
    judged = [judge(later, name, ResultStatus.ERROR) for name in ("a", "b")]
    full = [replace(one, result=replace(one.result, reasons=for_want_of_room)) for one in judged]
    tell(place.open(), later, *full, end(later, "failure"))
    place.run(begin("a", minute=2))
    found = record.find_base(KEY, ["a", "b"])
    assert tallies(found) == {"a": Tally(2, 0), "b": Tally(0, 1)}


def test_store_that_is_not_there_is_not_made(place: Place, record: VerificationRecord) -> None:
    assert record.find_base(KEY, ["a"]) is None
    assert not place.path.exists()
    assert VerificationRecord(None, place.warned.append).find_base(KEY, ["a"]) is None
    assert place.warned == []


def test_store_that_cannot_be_read_costs_a_warning(place: Place, record: VerificationRecord) -> None:
    place.path.write_bytes(b"no database" * 1000)
    assert record.find_base(KEY, ["a"]) is None
    record.keep(verification(), KEY, ())
    assert [text.partition(":")[0] for text in place.warned] == [
        "earlier runs of the base cannot be asked",
        "this verification is not recorded",
    ]


def verification(*comparisons: Comparison, **more: Any) -> Verification:
    fields: dict[str, Any] = {
        "base": BaseFacts("main", BASE, BASE, available=True),
        "head": HeadCommit(HEAD, dirty=True),
        "comparisons": comparisons,
    }
    return Verification(**{**fields, **more})


def compared(name: str, verdict: Verdict) -> Comparison:
    return Comparison(
        ProjectRuns(name, head=SideRuns.begin(GoldenProjectResult(name, "", ResultStatus.FAILED), None)), verdict
    )


def test_failures_of_the_head_are_marked_and_the_verification_is_an_entry(
    place: Place, record: VerificationRecord
) -> None:
    names = {"new": Verdict.NEW_REGRESSION, "known": Verdict.KNOWN, "unstable": Verdict.UNSTABLE}
    head = begin(*names, "passed")
    results = [judge(head, name, ResultStatus.FAILED) for name in names]
    tell(place.open(), head, *results, judge(head, "passed"), end(head, "failure"))
    found = verification(*(compared(name, verdict) for name, verdict in names.items()), compared("passed", Verdict.OK))
    record.keep(found, KEY, (head.run_id,), ("entry_base",))
    with Store.open(place.path) as store:
        with store.read() as connection:
            columns = (gate_results.c.project, gate_results.c.regression_kind, gate_results.c.result)
            marked = {row.project: row for row in connection.execute(select(*columns))}
        (entry,) = Journal(store).review_journal(intent_type="verify", agent_id="golden")
    expected = {"new": "new", "known": "known", "unstable": None, "passed": None}
    assert {name: row.regression_kind for name, row in marked.items()} == expected
    assert {name: row.result["regression_kind"] for name, row in marked.items()} == expected
    assert entry.intent == f"verify {HEAD[:12]} with edits against main ({BASE[:12]})"
    assert (entry.assessment, entry.session_key) == ("failure", head.run_id)
    assert entry.immediate_notes == "1 ok, 1 new_regression, 1 known, 1 unstable"
    (note,) = entry.actions
    assert note["verdicts"]["new"] == "new_regression"
    assert (note["head_runs"], note["base_runs"], note["exit_code"]) == ([head.run_id], ["entry_base"], 1)


def test_verification_without_a_verdict_is_an_entry_too(place: Place, record: VerificationRecord) -> None:
    record.keep(verification(base=BaseFacts("main", BASE, BASE, reason="no disk")), KEY, ())
    record.keep(verification(weakened_floor=({"project": "a", "message": "is gone"},)), KEY, ())
    with Store.open(place.path) as store:
        entries = Journal(store).review_journal(intent_type="verify", agent_id="golden")
    assert [entry.immediate_notes for entry in entries] == ["no project, floor weakened", "base unavailable: no disk"]
    VerificationRecord(None, place.warned.append).keep(verification(), KEY, ())
    assert place.warned == []


def test_base_that_a_verification_ran_in_an_environment_of_its_own_stands_for_later_ones(
    place: Place, record: VerificationRecord
) -> None:
    key = replace(KEY, setup=("make", "install"))
    base = begin("a", surroundings={"python": "3.11.2", "distributions": {"of": "the base"}})
    tell(place.open(), *whole(base))
    record.keep(verification(), key, (), (base.run_id,))
    assert record.find_base(KEY, ["a"]) is None
    assert record.find_base(replace(key, environment="other"), ["a"]) is None
    assert tallies(record.find_base(key, ["a"])) == {"a": Tally(1, 0)}


def test_environment_has_the_digest_that_a_gate_records(tmp_path: Path) -> None:
    manifest = parse_manifest("golden_projects: [{name: a, path: a.sh}]", "m", tmp_path)
    first = digest_environment(manifest, tmp_path, tmp_path)
    assert first == digest_environment(manifest, tmp_path, tmp_path)
    (tmp_path / "thing-1.0.dist-info").mkdir()
    assert first != digest_environment(manifest, tmp_path, tmp_path)


def test_store_of_another_program_is_left_alone(place: Place, record: VerificationRecord) -> None:
    connection = sqlite3.connect(place.path)
    connection.execute("CREATE TABLE theirs (number INTEGER)")
    connection.commit()
    connection.close()
    record.keep(verification(), KEY, ())
    assert len(place.warned) == 1


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
    assert keep_spooled(sides.manifest.parent, None, sides.head) is None
    assert sides.spool.files() == ()
    results = sides.run_head()
    assert len(results) == 2
    assert results[1] == run_id


def test_of_a_proposal_only_its_own_gates_are_kept(sides: Sides) -> None:
    forged, run_id = sides.spool_run(), sides.spool_run()
    assert keep_spooled(sides.manifest.parent, None, sides.head, {run_id}) is None
    assert [path.stem for path in sides.spool.files()] == [forged]
    assert sides.run_head()[1:] == [run_id]


def test_without_a_store_nothing_is_kept_and_what_cannot_be_is_said(sides: Sides) -> None:
    sides.spool_run()
    assert keep_spooled(sides.manifest.parent, "none", sides.head) is None
    (sides.head / ".golden" / "spool").write_text("in the way")
    told = keep_spooled(sides.manifest.parent, None, sides.head)
    assert told is not None
    assert told.startswith("results of a gate in a worktree that the store did not accept are not recorded: ")
    assert len(sides.spool.files()) == 1
