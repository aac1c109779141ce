from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import JournalError
from pytest_golden.gate import recorded as pages
from pytest_golden.gate.events import FailureExplained
from pytest_golden.gate.recorded import RecordedGates
from pytest_golden.gate.store import close_interrupted, record_event
from pytest_golden.learning.lessons.model import LessonKind, SkillMemory
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.manifest.model import GoldenProjectConfig, Manifest
from pytest_golden.regression.model import AcceptedOutput, OutputChange, Reason, ReasonKind, ResultStatus
from pytest_golden.regression.verdict import judge_run
from pytest_golden.report.gate_report import recorded_report
from pytest_golden.storage.columns import from_ms
from pytest_golden.storage.folder import PRIVATE_PREFIX
from pytest_golden.storage.schema import trajectories
from pytest_golden.storage.store import Store
from tests.gate.gate_events import begin, end, judge, moment
from tests.journal.test_review import read_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.gate.events import GateEvent, ResultJudged, RunBegun

PASSED, FAILED, ERROR, SKIPPED = ResultStatus.PASSED, ResultStatus.FAILED, ResultStatus.ERROR, ResultStatus.SKIPPED
DIFFERS = Reason(ReasonKind.OUTPUT_DIFFERS, "out.csv differs from its baseline\n-1\n+2", "out.csv")


@pytest.fixture
def store(location: str | Path) -> Iterator[Store]:
    with Store.open(location) as opened:
        yield opened


@pytest.fixture
def gates(store: Store) -> RecordedGates:
    return RecordedGates(store)


def record(store: Store, *events: GateEvent) -> None:
    with store.write() as connection:
        for event in events:
            record_event(connection, event)


def run(store: Store, minute: int, **statuses: ResultStatus) -> tuple[RunBegun, list[ResultJudged]]:
    """Record a whole run with these statuses."""
    begun = begin(*statuses, minute=minute)
    results = [judge(begun, name, status) for name, status in statuses.items()]
    verdict = judge_run(judged.result for judged in results).to_dict()
    record(store, begun, *results, end(begun, verdict=verdict))
    return begun, results


def changed(judged: ResultJudged, **fields: Any) -> ResultJudged:
    return replace(judged, result=replace(judged.result, **fields))


def declare(*names: str, **fields: Any) -> Manifest:
    projects = tuple(GoldenProjectConfig(name=name, path=f"{name}.py", **fields) for name in names)
    return Manifest(projects=projects, workspace_root=Path("/work"))


def test_runs_come_newest_first_with_their_counts(store: Store, gates: RecordedGates) -> None:
    first, _ = run(store, 0, one=PASSED)
    second, _ = run(store, 1, one=PASSED, two=FAILED, three=SKIPPED, four=ERROR, five=PASSED)
    third, _ = run(store, 2, one=PASSED)
    assert [one["entry_id"] for one in read_all(gates.list_runs)] == [third.run_id, second.run_id, first.run_id]
    listed = gates.list_runs().items[1]
    assert listed.verdict.sentence == "FAILED: 2 passed, 2 failed, 1 skipped"
    assert (listed.commit, listed.branch, listed.dirty) == ("c" * 40, "main", False)
    assert (listed.started_at, listed.finished_at) == (from_ms(moment(1)), from_ms(moment(2)))
    assert (listed.verdict.status, listed.is_running, listed.is_interrupted) == ("failed", False, False)
    assert (listed.is_own, listed.selected_count, listed.verdict.total) == (True, 5, 5)
    assert gates.get_listed_run(second.run_id) == listed
    told = listed.to_dict()
    assert (told["id"], told["started_at"]) == (second.run_id, "2026-03-01T08:01:00.000000Z")
    assert (told["final_status"], told["is_partial"], told["verdict"]) == ("failed", False, listed.verdict.sentence)
    counts = [told[f"{name}_count"] for name in ("total", "passed", "failed", "error", "skipped")]
    assert counts == [5, 2, 2, 1, 1]


def test_a_run_without_an_end_says_so_until_it_is_closed(store: Store, gates: RecordedGates) -> None:
    begun = begin("one", "two")
    record(store, begun, judge(begun, "one"))
    (listed,) = gates.list_runs().items
    assert (listed.is_running, listed.finished_at, listed.verdict.status) == (True, None, None)
    assert (listed.verdict.total, listed.selected_count) == (1, 2)
    with store.write() as connection:
        close_interrupted(connection, begin(run_id="entry_x", minute=5), is_own_store=True)
    (listed,) = gates.list_runs().items
    assert (listed.is_running, listed.is_interrupted, listed.verdict.status) == (False, True, "interrupted")
    assert listed.verdict.sentence == "INTERRUPTED (partial: 1 not run): 1 passed"


def test_a_skip_counts_as_failed_in_a_run_that_goes_on_where_it_must_not_be(store: Store, gates: RecordedGates) -> None:
    begun = begin("one", "two", facts={"require": True})
    record(store, begun, judge(begun, "one", SKIPPED))
    (listed,) = gates.list_runs().items
    shown = gates.get_run(begun.run_id)
    assert listed.verdict.sentence == shown.verdict.sentence == "NOT FINISHED: 1 failed"


def test_a_run_that_was_broken_off_by_hand_is_interrupted(store: Store, gates: RecordedGates) -> None:
    begun = begin("one")
    record(store, begun, end(begun, verdict=judge_run((), is_interrupted=True).to_dict()))
    assert gates.list_runs().items[0].is_interrupted


def test_runs_of_a_verification_can_be_left_out(store: Store, gates: RecordedGates) -> None:
    own, _ = run(store, 0, one=PASSED)
    base = begin("one", minute=1, workspace_root=f"/tmp/{PRIVATE_PREFIX}x/base")
    record(store, base, judge(base, "one", FAILED), end(base))
    assert [one.is_own for one in gates.list_runs().items] == [False, True]
    assert [one.entry_id for one in gates.list_runs(own_only=True).items] == [own.run_id]
    with pytest.raises(ValueError, match="cursor"):
        gates.list_runs(1, gates.list_runs(1).next_cursor, own_only=True)
    assert gates.get_run().gate["entry_id"] == own.run_id
    assert gates.list_projects().items[0].last_status is PASSED
    assert gates.explain_failure("one").status is PASSED
    assert gates.explain_failure("one").explanation == "one is PASSED"


def test_results_of_a_run_come_failing_first(store: Store, gates: RecordedGates) -> None:
    begun, results = run(store, 0, a=PASSED, b=FAILED, c=SKIPPED, d=ERROR, e=PASSED)
    for limit in (1, 2, 3, 50):
        found = read_all(lambda **more: gates.list_results(begun.run_id, **more), limit)
        assert [one["name"] for one in found] == ["b", "d", "a", "c", "e"]
    assert [one["entry_id"] for one in found] == [results[place].entry_id for place in (1, 3, 0, 2, 4)]
    assert found[0]["message"] == "it ended with exit code 3"
    assert (found[0]["status"], found[0]["is_regression"], found[2]["pass_streak"]) == ("FAILED", True, 1)
    assert gates.list_results("entry_no").items == ()


def test_run_is_got_with_or_without_steps(store: Store, gates: RecordedGates) -> None:
    begun, results = run(store, 0, one=FAILED, two=PASSED)
    light = gates.get_run(begun.run_id)
    assert light.entry_ids == tuple(one.entry_id for one in results)
    assert [(one.name, one.steps, one.steps_total) for one in light.check.results] == [("one", (), 1), ("two", (), 1)]
    whole = gates.get_run(results[0].entry_id, has_steps=True)
    assert [len(one.steps) for one in whole.check.results] == [1, 1]
    report = recorded_report(whole)
    assert [one["entry_id"] for one in report["results"]] == list(whole.entry_ids)
    facts = gates.get_run_facts(begun.run_id)
    assert (facts.gate, facts.weakened_floor) == (whole.gate, ())


def test_result_is_got_with_all_that_is_kept_of_it(store: Store, gates: RecordedGates, tmp_path: Path) -> None:
    before, _ = run(store, 0, one=PASSED)
    log = tmp_path / "one.log"
    log.write_text("all of it")
    begun = begin("one", minute=1, surroundings={"python": "3.11.2", "distributions": {"pandas": "2.2.3"}})
    failing = changed(
        judge(begun, "one", FAILED), reasons=(DIFFERS,), output_summary="head\ntail", log_path=str(log), steps=()
    )
    record(store, begun, failing, end(begun))
    _, (after,) = run(store, 2, one=PASSED)
    found = gates.get_result(failing.entry_id)
    assert (found.result.name, found.run_id, found.is_own, found.pass_streak) == ("one", begun.run_id, True, 0)
    assert found.result.output_summary == "head\ntail"
    assert found.gate["commit"] == "c" * 40
    assert (found.environment["python"], found.environment["host"]) == ("3.11.2", "here")
    assert found.distributions == {"pandas": "2.2.3"}
    assert found.declaration == {"name": "one", "timeout": 600.0}
    (difference,) = found.differences
    assert (difference.path, difference.message) == ("out.csv", "out.csv differs from its baseline")
    assert difference.difference == "-1\n+2"
    assert found.next_entry_id == after.entry_id
    assert found.previous_entry_id == gates.list_results(before.run_id).items[0].entry_id
    assert gates.get_result(str(found.previous_entry_id)).previous_entry_id is None
    told = found.to_dict()
    assert (told["entry_id"], told["has_log"], told["write_set"]["created"]) == (failing.entry_id, True, [])
    assert told["differences"] == [difference.to_dict()]
    log.unlink()
    assert gates.get_result(failing.entry_id).has_log is False


def test_steps_that_cannot_be_read_cost_the_steps_alone(store: Store, gates: RecordedGates) -> None:
    _, (judged,) = run(store, 0, one=PASSED)
    assert len(gates.get_result(judged.entry_id).result.steps) == 1
    with store.write() as connection:
        connection.execute(trajectories.update().values(body={"id": "traj_x", "steps": [{"type": "action"}]}))
    result = gates.get_result(judged.entry_id).result
    assert result.steps == ()
    assert "its steps cannot be read" in result.warnings[0]


def test_projects_come_as_they_are_declared_and_then_those_that_are_gone(store: Store, gates: RecordedGates) -> None:
    run(store, 0, old=PASSED, beta=PASSED, gone=FAILED, alpha=PASSED)
    run(store, 1, beta=FAILED, alpha=PASSED)
    manifest = declare("beta", "new", "alpha", description="loads")
    for limit in (1, 2, 50):
        found = read_all(lambda **more: gates.list_projects(manifest, **more), limit)
        assert [one["name"] for one in found] == ["beta", "new", "alpha", "gone", "old"]
    assert [one["last_status"] for one in found] == ["FAILED", None, "PASSED", "FAILED", "PASSED"]
    assert (found[0]["path"], found[0]["description"], found[0]["expected_outcome"]) == ("beta.py", "loads", "success")
    assert (found[3]["path"], found[3]["is_declared"]) == (None, False)
    assert found[0]["streak"] == "first failure after 1 pass"
    assert [one["status"] for one in found[0]["recent"]] == ["FAILED", "PASSED"]
    assert (found[0]["flakiness"], found[2]["flakiness"], found[1]["flakiness"]) == (1.0, 0.0, None)
    assert found[2]["median_seconds"] == 1.5
    assert [one["name"] for one in read_all(gates.list_projects)] == ["alpha", "beta", "gone", "old"]


def test_list_of_projects_goes_on_where_the_manifest_has_changed(store: Store, gates: RecordedGates) -> None:
    run(store, 0, gone=PASSED, old=PASSED)
    cursor = gates.list_projects(declare("one", "two"), limit=1).next_cursor
    assert [one.name for one in gates.list_projects(declare("two"), cursor=cursor).items] == []
    cursor = gates.list_projects(declare("gone", "two"), limit=1).next_cursor
    assert [one.name for one in gates.list_projects(declare("two"), cursor=cursor).items] == ["old"]


def test_declared_names_are_passed_over_some_at_once(
    store: Store, gates: RecordedGates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_NAMES_AT_ONCE", 2)
    run(store, 0, **dict.fromkeys("abcdefg", PASSED))
    for limit in (1, 3, 50):
        found = read_all(lambda **more: gates.list_projects(declare("c", "a", "b", "e"), **more), limit)
        assert [one["name"] for one in found] == ["c", "a", "b", "e", "d", "f", "g"]


def test_recent_results_tell_what_was_accepted_and_interrupted(store: Store, gates: RecordedGates) -> None:
    run(store, 0, one=FAILED)
    begun = begin("one", minute=1)
    accepted = (AcceptedOutput("out.csv", OutputChange.NEW),)
    record(store, begun, changed(judge(begun, "one"), accepted=accepted), end(begun))
    begun = begin("one", minute=2)
    reasons = (Reason(ReasonKind.INTERRUPTED, "interrupted"),)
    record(store, begun, changed(judge(begun, "one", ERROR), reasons=reasons), end(begun))
    (project,) = gates.list_projects().items
    assert [one.is_interrupted for one in project.recent] == [True, False, False]
    assert [one.is_accepted for one in project.recent] == [False, True, False]
    assert len(gates.list_projects(recent=1).items[0].recent) == 1
    past = gates.get_project("one").history.runs
    assert [replace(one, message=None) for one in past] == list(project.recent)


def test_project_is_got_with_its_history_last_difference_and_lessons(store: Store, gates: RecordedGates) -> None:
    run(store, 0, one=PASSED)
    begun = begin("one", minute=1)
    differing = changed(judge(begun, "one", FAILED), reasons=(DIFFERS,))
    record(store, begun, differing, end(begun))
    run(store, 2, one=FAILED)
    run(store, 3, one=PASSED)
    skill = Lessons(store).add(
        SkillMemory(
            lesson="Sort the rows before they are written",
            what_failed="out.csv differs",
            what_worked="ORDER BY id",
            kind=LessonKind.CORRECTION,
            evidence={"error": "AssertionError: rows out of order", "project": "one"},
        ),
        "golden",
    )
    assert skill.kept
    found = gates.get_project("one", declare("one"))
    assert [one.status for one in found.history.runs] == [PASSED, FAILED, FAILED, PASSED]
    assert found.last_difference is not None
    assert found.last_difference.entry_id == differing.entry_id
    assert [one.kept.skill.id for one in found.lessons] == [skill.skill.id]
    told = found.to_dict()
    assert (told["name"], told["path"], told["last_status"]) == ("one", "one.py", "PASSED")
    assert told["last_difference"]["differences"][0]["difference"] == "-1\n+2"
    assert {"runs", "streak", "flakiness", "median_seconds", "mad_seconds", "trend"} <= told.keys()
    assert len(gates.get_project("one", limit=2).history.runs) == 2
    Lessons(store).reject(skill.skill.id, "ann")
    assert gates.get_project("one").lessons == ()


def test_declared_project_without_a_run_is_got_empty(gates: RecordedGates) -> None:
    manifest = declare("one")
    found = gates.get_project("one", manifest)
    assert (found.history.runs, found.last_status, found.last_difference) == ((), None, None)
    assert found.to_dict()["last_status"] is None
    explained = gates.explain_failure("one", manifest)
    assert (explained.status, explained.to_dict()["status"]) == (None, None)
    assert explained.explanation == "one has no result yet"


def test_failure_is_explained_by_what_was_known_when_it_happened(store: Store, gates: RecordedGates) -> None:
    run(store, 0, one=PASSED)
    begun = begin("one", minute=1)
    steps = ({"type": "action", "content": "load", "metadata": {"error": "no table"}},)
    judged = judge(begun, "one", FAILED)
    judged = changed(judged, output_summary="".join(f"line {number}\n" for number in range(30)))
    judged = replace(judged, result=replace(judged.result, steps=steps, trajectory=None))
    known = ({"kind": "changed_since_pass", "lines": ["files: one.py"]}, {"kind": "seen_before", "lines": ["seen"]})
    explained = FailureExplained(begun.run_id, judged.entry_id, known)
    record(store, begun, judged, explained, explained, end(begun))
    found = gates.explain_failure("one")
    assert (found.status, found.entry_id, found.run_id) == (FAILED, judged.entry_id, begun.run_id)
    assert [one.message for one in found.reasons] == ["it ended with exit code 3"]
    assert found.output_tail.splitlines() == [f"line {number}" for number in range(15, 30)]
    assert found.explanation.splitlines() == [
        "one is FAILED",
        "it ended with exit code 3",
        "files: one.py",
        "seen",
    ]
    told = found.to_dict()
    assert told["changed_since_last_pass"]["lines"] == ["files: one.py"]
    assert told["known"] == [{"kind": "seen_before", "lines": ["seen"]}]
    assert (told["status"], told["reasons"][0]["kind"]) == ("FAILED", "exit_code")
    run(store, 2, one=PASSED)
    passed = gates.explain_failure("one")
    assert (passed.status, passed.reasons, passed.changed_since_last_pass, passed.known) == (PASSED, (), None, ())


def test_failing_step_is_told(store: Store, gates: RecordedGates) -> None:
    begun = begin("one")
    judged = judge(begun, "one", FAILED)
    step = {**judged.result.steps[0], "metadata": {"error": "no table"}}
    record(store, begun, changed(judged, steps=(step,)), end(begun))
    explained = gates.explain_failure("one").to_dict()
    assert explained["failing_step"]["metadata"] == {"error": "no table"}
    assert gates.get_result(judged.entry_id).to_dict()["failing_step"] == explained["failing_step"]


def test_lessons_that_were_learned_since_are_known_too_and_nothing_counts_as_shown(
    store: Store, gates: RecordedGates
) -> None:
    message = "ValueError: could not convert string to float: '7,5' in row 12"
    begun = begin("one")
    failing = changed(judge(begun, "one", FAILED), error_message=message)
    record(store, begun, failing, end(begun))
    assert gates.explain_failure("one").known == ()
    lesson = SkillMemory(
        lesson="Pass decimal=',' to read_csv",
        what_failed="read_csv failed",
        what_worked="decimal=','",
        evidence={"error": message},
    )
    verdict = Lessons(store).add(lesson, "etl")
    (known,) = gates.explain_failure("one").known
    assert (known["kind"], known["lesson"]["id"], known["recall_id"]) == ("lesson", verdict.skill.id, "")
    assert Lessons(store).stats().recalled == 0
    record(store, FailureExplained(begun.run_id, failing.entry_id, (known,)))
    assert len(gates.explain_failure("one").known) == 1


def test_what_was_known_is_kept_short(store: Store, gates: RecordedGates) -> None:
    begun = begin("one")
    judged = judge(begun, "one", FAILED)
    record(store, begun, judged)
    known = {"kind": "lesson", "lines": ["short"], "lesson": {"lesson": "x" * 40_000}}
    record(store, FailureExplained(begun.run_id, judged.entry_id, (known,)))
    assert gates.get_result(judged.entry_id).result.known == ({"kind": "lesson", "lines": ["short"]},)
    record(store, FailureExplained(begun.run_id, judged.entry_id, ({"kind": "x", "lines": ["y" * 40_000]},)))
    assert gates.get_result(judged.entry_id).result.known == ({"kind": "lesson", "lines": ["short"]},)
    record(store, FailureExplained(begun.run_id, "entry_no", (known,)))


def test_empty_store_gives_empty_lists(gates: RecordedGates) -> None:
    assert gates.list_runs().to_dict() == gates.list_projects().to_dict() == {"items": [], "next_cursor": None}


def test_what_is_not_there_is_said(store: Store, gates: RecordedGates) -> None:
    with pytest.raises(JournalError, match="no gate run is recorded yet"):
        gates.get_run()
    _, (judged,) = run(store, 0, sales=PASSED)
    for ask in (gates.get_run, gates.get_listed_run, gates.get_run_facts):
        with pytest.raises(JournalError, match="there is no gate run 'entry_no"):
            ask("entry_no\0\udc80")
    for entry_id in ("entry_no", "\0\udc80", judged.run_id):
        with pytest.raises(JournalError, match="there is no result"):
            gates.get_result(entry_id)
    for look in (gates.get_project, gates.explain_failure):
        with pytest.raises(JournalError, match=r"no golden project called 'sale' .*; did you mean 'sales'"):
            look("sale")
        with pytest.raises(JournalError, match=r"no golden project called 'zzz' is declared or has a result$"):
            look("zzz")


def test_limits_are_checked(gates: RecordedGates) -> None:
    for ask in (
        lambda: gates.list_runs(0),
        lambda: gates.list_results("x", 201),
        lambda: gates.list_projects(recent=0),
        lambda: gates.get_project("x", limit=1_001),
    ):
        with pytest.raises(ValueError, match="limit must be a whole number"):
            ask()
