from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_golden.learning.gate_learning import learn_from_results
from pytest_golden.learning.known_failures import Recollection, recall_memories
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.seen_before import find_seen_before
from tests.learning.conftest import BOTH

if TYPE_CHECKING:
    from pytest_golden.storage.store import Store
    from tests.learning.conftest import GateHistory

A, B, C = "a" * 40, "b" * 40, "c" * 40
BOOM = "exit code 1, expected 0: load: no such column 'amount' in row 17"


@BOTH
def test_same_failure_is_counted_and_its_fix_is_named(store: Store, history: GateHistory) -> None:
    for commit, status in ((A, "PASSED"), (B, "FAILED"), (B, "FAILED"), (C, "PASSED")):
        history.result(history.run(commit), "sales", status, message=BOOM if status == "FAILED" else None)
    learn_from_results(store)
    (seen,) = recall_memories(store, "load: no such column 'total' in row 3").seen
    assert (seen.why, seen.project, seen.count, seen.is_fixed) == ("signature", "sales", 2, True)
    assert (seen.last.commit, seen.fixed and seen.fixed.commit) == (B, C)
    assert str(seen) == "seen before 2 times in sales, last on 2026-03-01 at bbbbbbb; last fixed by ccccccc"
    plain = json.loads(json.dumps(seen.to_dict()))
    assert plain["text"] == str(seen)
    assert plain["last_fixed"]["commit"] == C
    assert plain["last_seen"]["at"].endswith("Z")


def test_failure_that_lasts_tells_the_fix_before(store: Store, history: GateHistory) -> None:
    for commit, status in ((A, "FAILED"), (B, "PASSED"), (C, "FAILED")):
        history.result(history.run(commit), "sales", status, message=BOOM if status == "FAILED" else None)
        learn_from_results(store)
    (seen,) = recall_memories(store, BOOM).seen
    assert (seen.count, seen.is_fixed) == (2, False)
    assert str(seen).endswith("at ccccccc; last fixed by bbbbbbb, but it broke again")


def test_fixes_within_one_batch_are_found_too(store: Store, history: GateHistory) -> None:
    for commit, status in ((A, "FAILED"), (B, "PASSED"), (C, "FAILED"), (C, "FAILED")):
        history.result(history.run(commit), "sales", status, message=BOOM if status == "FAILED" else None)
    learn_from_results(store)
    (seen,) = recall_memories(store, BOOM).seen
    assert (seen.count, seen.fixed and seen.fixed.commit) == (3, B)


def test_other_projects_passes_and_earlier_passes_are_no_fix(store: Store, history: GateHistory) -> None:
    history.result(history.run(A), "sales", "PASSED")
    run = history.run(B)
    history.result(run, "sales", "FAILED", message=BOOM)
    history.result(run, "other", "PASSED")
    learn_from_results(store)
    (seen,) = recall_memories(store, BOOM).seen
    assert seen.fixed is None
    assert str(seen) == "seen before once in sales, last on 2026-03-01 at bbbbbbb; it has not passed since"


def test_flaky_failure_passed_again_at_the_same_commit(store: Store, history: GateHistory) -> None:
    history.result(history.run(A), "sales", "FAILED", message=BOOM)
    history.result(history.run(A), "sales", "PASSED")
    learn_from_results(store)
    assert str(recall_memories(store, BOOM).seen[0]).endswith("passed again at the same commit")
    history.result(history.run(A), "sales", "FAILED", message=BOOM)
    learn_from_results(store)
    told = "seen before 2 times in sales, last on 2026-03-01 at aaaaaaa; passed before at the same commit"
    assert str(recall_memories(store, BOOM).seen[0]) == f"{told}, but it broke again"


def test_pass_with_edits_says_that_there_were_edits(store: Store, history: GateHistory) -> None:
    history.result(history.run(A, dirty=True), "sales", "FAILED", message=BOOM)
    history.result(history.run(A, dirty=True), "sales", "PASSED")
    learn_from_results(store)
    told = str(recall_memories(store, BOOM).seen[0])
    assert told.endswith("; passed again at the same commit with uncommitted changes")


def test_without_commits_days_are_told(store: Store, history: GateHistory) -> None:
    history.result(history.run(None), "sales", "FAILED", message=BOOM)
    history.result(history.run(None), "sales", "PASSED")
    history.result(history.run(A, dirty=True), "other", "FAILED", message=BOOM)
    learn_from_results(store)
    told = {seen.project: str(seen) for seen in recall_memories(store, BOOM).seen}
    assert told["sales"] == "seen before once in sales, last on 2026-03-01; last fixed on 2026-03-01"
    assert "at aaaaaaa with uncommitted changes;" in told["other"]


@BOTH
def test_projects_that_fail_alike_are_told_beside_each_other(store: Store, history: GateHistory) -> None:
    for project, times in (("a", 1), ("b", 3), ("c", 2)):
        for _ in range(times):
            history.result(history.run(), project, "FAILED", message=BOOM)
    learn_from_results(store)
    assert [seen.project for seen in recall_memories(store, BOOM).seen] == ["b", "c", "a"]
    assert [seen.project for seen in recall_memories(store, BOOM, limit=1).seen] == ["b"]
    assert [seen.project for seen in recall_memories(store, BOOM, project="c").seen] == ["c"]
    assert recall_memories(store, BOOM, project="none").seen == ()
    with store.read() as connection:
        assert [seen.project for seen in find_seen_before(connection, BOOM, project="a")] == ["a"]
        assert [seen.project for seen in find_seen_before(connection, BOOM, prefer="c")] == ["c", "b", "a"]


@BOTH
def test_words_find_what_reads_alike(store: Store, history: GateHistory) -> None:
    history.result(history.run(), "sales", "FAILED", message=BOOM)
    history.result(history.run(), "sales", "FAILED", message="exit code 1, expected 0: connection refused")
    learn_from_results(store)
    (seen,) = recall_memories(store, "what about amount").seen
    assert (seen.why, seen.message) == ("words", "load: no such column 'amount' in row 17")
    assert recall_memories(store, "amount", project="other").seen == ()
    both = recall_memories(store, BOOM + "\nconnection refused").seen
    assert [one.why for one in both] == ["signature", "signature"]


@BOTH
def test_words_of_every_form_of_a_failure_find_it(store: Store, history: GateHistory) -> None:
    for column in ("amount", "price"):
        history.result(history.run(), "sales", "FAILED", message=f"KeyError: '{column}'")
        learn_from_results(store)
    for column in ("amount", "price"):
        (seen,) = recall_memories(store, column).seen
        assert seen.count == 2


def test_a_pasted_traceback_is_known_by_its_last_line(store: Store, history: GateHistory) -> None:
    history.result(history.run(), "sales", "FAILED", message="exit code 1, expected 0: KeyError: 'amount'")
    learn_from_results(store)
    pasted = "Traceback (most recent call last):\n  File \"/x/etl.py\", line 3\n\nKeyError: 'price'\n"
    assert recall_memories(store, pasted).seen[0].why == "signature"


def test_what_a_person_did_is_no_failure_of_a_project(store: Store, history: GateHistory) -> None:
    history.result(history.run(), "sales", "ERROR", message="interrupted before it ended", kind="interrupted")
    history.result(history.run(), "sales", "FAILED", message=" ")
    learn_from_results(store)
    assert recall_memories(store, "interrupted before it ended").seen == ()


def test_result_without_reasons_is_known_by_its_message(store: Store, history: GateHistory) -> None:
    result = {"error_message": "boom 3", "reasons": []}
    history.result(history.run(), "sales", "ERROR", result=result)
    learn_from_results(store)
    assert recall_memories(store, "boom 4").seen[0].count == 1


@BOTH
def test_memories_of_others_are_found_and_told_once(store: Store, history: GateHistory) -> None:
    history.result(history.run(), "sales", "FAILED", message=BOOM)
    history.result(history.run(), "column_stats")
    learn_from_results(store)
    memories = MemoryStore(store)
    memories.save_memory(("lessons", "etl"), "l1", {"lesson": "a column was renamed", "evidence": {"project": "sales"}})
    memories.save_memory(("plans", "etl"), "p1", {"text": "column", "project": "other"})
    found = recall_memories(store, "column")
    assert {hit.memory.key for hit in found.memories} >= {"l1", "p1"}
    assert all(hit.memory.namespace[0] in {"lessons", "plans", "outcomes"} for hit in found.memories)
    assert all(hit.memory.value.get("success") is not False for hit in found.memories)
    assert [hit.memory.key for hit in recall_memories(store, "column", project="sales").memories] == ["l1"]
    assert len(recall_memories(store, "column", limit=1).memories) == 1
    json.dumps(found.to_dict())


@pytest.mark.parametrize("text", ["", " \n", "'", "*"])
def test_nothing_is_known_of_nothing(store: Store, history: GateHistory, text: str) -> None:
    history.result(history.run(), "sales", "FAILED", message=BOOM)
    learn_from_results(store)
    found = recall_memories(store, text)
    assert (found.seen, found.memories) == ((), ())


def test_lessons_are_told_and_not_again_among_the_memories(store: Store) -> None:
    lessons = Lessons(store)
    error = "BinderException: Binder Error: Referenced column 'amount' not found in FROM clause!"
    lesson = "Recreate the view after each migration of its base table."
    skill = lessons.add(SkillMemory(lesson=lesson, evidence={"error": error, "project": "sales"}), "etl").skill
    waiting = "Recreate the database after each migration of its base table."
    lessons.add(SkillMemory(lesson=waiting, source="model", approved=False), "etl")
    found = recall_memories(store, error.replace("amount", "price"), project="sales")
    assert [(one.lesson.id, one.why) for one in found.lessons] == [(skill.id, "signature")]
    assert found.to_dict()["recall_id"] == found.lessons[0].recall_id
    assert found.memories == ()
    assert recall_memories(store, "recreate migration").memories[0].memory.key == skill.id
    assert len(recall_memories(store, "recreate migration").memories) == 1
    json.dumps(found.to_dict())


def test_a_failure_that_shares_a_few_words_is_not_told(store: Store, history: GateHistory) -> None:
    history.result(
        history.run(), "sales", "FAILED", message="exit code 1: duckdb.IOException: cannot open the file of the lake"
    )
    learn_from_results(store)
    memories = MemoryStore(store)
    memories.save_memory(("plans", "etl"), "p1", {"text": "open the file"})
    text = (
        "pandas.errors.ParserError: the file of the lake has an open quote in line 17 and more columns than its header"
    )
    assert recall_memories(store, text) == Recollection()
    alike = "duckdb.IOException: cannot open the file of the lake: it is held by another process"
    assert [one.why for one in recall_memories(store, alike).seen] == ["words"]


def test_limit_is_one_or_more(store: Store) -> None:
    with pytest.raises(ValueError, match="limit must be a whole number, 1 or more"):
        recall_memories(store, "x", limit=0)
