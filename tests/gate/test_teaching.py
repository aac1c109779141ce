"""What is learned from recorded runs over a real repository, on both databases."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import insert, select, update

from pytest_golden.gate.known import find_known_lessons, foresee
from pytest_golden.gate.store import record_event
from pytest_golden.gate.teaching import GateLearner, GateLearning, find_budget
from pytest_golden.history.checkout import read_checkout
from pytest_golden.journal.service import Journal
from pytest_golden.learning.gate_learning import list_turns
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.learning.lessons.store import put_lesson
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.store import list_keys
from pytest_golden.regression.model import (
    AcceptedOutput,
    GoldenProjectResult,
    OutputChange,
    Reason,
    ReasonKind,
    ResultStatus,
)
from pytest_golden.storage.columns import from_ms
from pytest_golden.storage.schema import documents, entries, gate_results, lesson_recalls, memories
from pytest_golden.storage.store import Store
from tests.gate.gate_events import begin, judge, moment
from tests.patience import wait_for_git
from tests.repository import git

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_golden.gate.events import ResultJudged
    from pytest_golden.learning.lessons.model import SkillMemory

BOOM = "exit code 1, expected 0: KeyError: 'amount'"
BOOM_ALIKE = "exit code 1, expected 0: KeyError: 'price'"


@pytest.fixture(autouse=True)
def git_of_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_git(monkeypatch)


class Recorded:
    """A repository, and runs in it that are recorded without being run."""

    def __init__(self, store: Store, path: Path) -> None:
        self.store = store
        self.path = path
        self.minute = 0
        git(path, "init", "-q", "-b", "main")
        (path / "etl").mkdir()
        self.commit("it works")

    def commit(self, subject: str, file: str = "etl/load.py") -> str:
        self.minute += 1
        (self.path / file).write_text(f"{subject} {self.minute}")
        git(self.path, "add", "-A")
        git(self.path, "commit", "-q", "-m", subject)
        return git(self.path, "rev-parse", "HEAD")

    def run(
        self, status: str = "PASSED", message: str = BOOM, kind: str = "exit_code", inputs: Any = None, **more: Any
    ) -> str:
        self.minute += 1
        accepted = more.pop("accepted", None)
        begun = begin(
            "sales",
            minute=self.minute,
            workspace_root=str(self.path),
            checkout=more.pop("checkout", read_checkout(self.path).to_dict()),
            **more,
        )
        judged = replace(self._judge(judge(begun, "sales", ResultStatus(status)), message, kind), inputs=inputs or {})
        judged = replace(judged, result=replace(judged.result, accepted=accepted))
        with self.store.write() as connection:
            record_event(connection, begun)
            record_event(connection, judged)
        return judged.entry_id

    def _judge(self, judged: ResultJudged, message: str, kind: str) -> ResultJudged:
        declaration = {"name": "sales", "path": "etl/load.py"}
        result = judged.result
        if result.status is not ResultStatus.PASSED:
            result = replace(result, reasons=(Reason(kind, message),), error_message=message)
        return replace(judged, result=result, declaration=declaration)

    def learner(self, **more: Any) -> GateLearner:
        clock = more.pop("clock", lambda: from_ms(moment(self.minute)))
        return GateLearner(self.store, self.path, self.path / "golden_projects.yaml", clock=clock, **more)

    def learn(self, **more: Any) -> GateLearning:
        return self.learner(**more).learn(60)

    def lessons(self) -> tuple[SkillMemory, ...]:
        return Lessons(self.store).list_lessons(include_superseded=True)

    def turns(self) -> tuple[str, ...]:
        with self.store.read() as connection:
            return list_turns(connection)

    def recall(self, entry_id: str) -> str:
        (recalled,) = Lessons(self.store).recall(BOOM_ALIKE, project="sales", entry_id=entry_id)
        return recalled.recall_id

    def settled(self) -> list[bool | None]:
        with self.store.read() as connection:
            return list(connection.scalars(select(lesson_recalls.c.passed).order_by(lesson_recalls.c.number)))

    def break_and_fix(self) -> None:
        self.run()
        self.commit("prices now")
        self.run("FAILED")
        self.commit("read the total column")
        self.run()
        self.learn()


@pytest.fixture
def recorded(location: str | Path, tmp_path: Path) -> Iterator[Recorded]:
    path = tmp_path / "repository"
    path.mkdir()
    with Store.open(location) as store:
        yield Recorded(store, path)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Recorded]:
    path = tmp_path / "repository"
    path.mkdir()
    with Store.open(tmp_path / "golden.db") as store:
        yield Recorded(store, path)


def test_break_and_fix_are_learned_once(recorded: Recorded) -> None:
    recorded.run()
    bad = recorded.commit("prices now")
    recorded.run("FAILED")
    good = recorded.commit("read the total column")
    recorded.run()
    done = recorded.learn()
    assert [verdict.skill.lesson for verdict in done.verdicts] == [
        'the fix changed Python code: "read the total column"'
    ]
    assert (done.results.learned, done.breaks, done.left) == (3, 1, 0)
    assert done.verdicts[0].skill.evidence["commits"][0]["commit"] == good
    assert done.verdicts[0].skill.evidence["failed_commit"] == bad
    again = recorded.learn()
    assert (again.results.learned, again.verdicts, again.breaks, again.is_all) == (0, [], 0, True)
    assert recorded.turns() == ()


def test_one_commit_among_many_that_touches_the_project_is_the_one(local: Recorded) -> None:
    local.run()
    local.commit("prices now")
    local.run("FAILED")
    local.commit("elsewhere", "other.py")
    good = local.commit("read the total column")
    local.commit("elsewhere again", "another.py")
    local.run()
    (verdict,) = local.learn().verdicts
    assert [one["commit"] for one in verdict.skill.evidence["commits"]] == [good]
    assert verdict.skill.evidence["commit_count"] == 3


def test_merged_fix_is_no_second_one(local: Recorded) -> None:
    local.run()
    local.commit("prices now")
    local.run("FAILED")
    git(local.path, "checkout", "-q", "-b", "fix")
    local.commit("read the total column")
    local.run()
    git(local.path, "checkout", "-q", "main")
    git(local.path, "merge", "-q", "--no-ff", "-m", "Merge the fix", "fix")
    local.run()
    local.learn()
    assert [(skill.support, skill.lesson.count("total")) for skill in local.lessons()] == [(1, 1)]


def test_failure_that_had_passed_on_the_same_commit_teaches_nothing(local: Recorded) -> None:
    local.run()
    local.run("FAILED")
    local.commit("something else")
    local.run()
    assert local.learn().verdicts == []


@pytest.mark.parametrize("learning", ["recall", "off"])
def test_runs_that_nothing_may_be_learned_from_are_as_if_they_were_not(local: Recorded, learning: str) -> None:
    local.run()
    local.commit("prices now")
    local.run("FAILED", facts={"learning": learning})
    local.commit("read the total column")
    local.run()
    done = local.learn()
    assert (done.verdicts, done.breaks) == ([], 0)


@pytest.mark.parametrize(
    "unknown",
    [
        {"commit": None, "branch": None, "dirty": None, "dirty_files": None},
        {"dirty": None, "dirty_files": None},
    ],
)
def test_nothing_is_learned_where_the_state_of_the_checkout_is_not_known(
    local: Recorded, unknown: dict[str, Any]
) -> None:
    local.run()
    local.commit("prices now")
    local.run("FAILED", checkout={**read_checkout(local.path).to_dict(), **unknown})
    local.commit("read the total column")
    local.run()
    assert local.learn().verdicts == []
    assert local.turns() == ()


def test_commits_that_only_another_clone_has_are_left_to_it_for_a_week(local: Recorded) -> None:
    local.run()
    local.run("FAILED", checkout={"commit": "f" * 40, "branch": "main", "dirty": False, "dirty_files": {}})
    learner = local.learner()
    first, second = learner.learn(60), learner.learn(60)
    assert (first.left, second.left, second.is_all) == (1, 1, True)
    late = from_ms(moment(local.minute)) + timedelta(days=8)
    assert local.learn(clock=lambda: late).left == 0
    assert local.lessons() == ()


def data(name: str) -> dict[str, Any]:
    return {"holds": True, "folder": "etl/", "is_all": True, "files": {"etl/data/orders.csv": [12, name]}}


def test_data_outside_git_that_was_mended_is_a_lesson(recorded: Recorded) -> None:
    recorded.run(inputs=data("w1"))
    recorded.run("FAILED", inputs=data("w2"))
    recorded.run(inputs=data("w3"))
    recorded.learn()
    (skill,) = recorded.lessons()
    assert skill.lesson.startswith("input data that git does not hold was changed, after: KeyError")
    assert list(skill.evidence["inputs"]) == ["etl/data/orders.csv changed (12B, other content)"]


def test_same_data_on_the_same_commit_is_chance(recorded: Recorded) -> None:
    for status in ("PASSED", "FAILED", "PASSED"):
        recorded.run(status, inputs=data("w1"))
    recorded.learn()
    assert recorded.lessons() == ()


def test_without_time_one_change_is_looked_at_and_nothing_is_lost(local: Recorded) -> None:
    local.run()
    local.commit("prices now")
    local.run("FAILED")
    local.commit("read the total column")
    local.run()
    seconds = iter(range(1000))
    # The clock goes on by a second at each look: the results are learned from, and then the time is over.
    done = local.learner(monotonic=lambda: float(next(seconds))).learn(7)
    assert (done.results.learned, done.breaks, done.left, done.is_cut_short) == (3, 1, 1, True)
    assert local.learner(monotonic=lambda: float(next(seconds))).learn(0).left == 1
    done = local.learner(monotonic=lambda: float(next(seconds))).learn(1)
    assert (len(done.verdicts), done.left) == (1, 0)


def test_change_that_waits_for_another_clone_holds_up_no_other(local: Recorded) -> None:
    local.run()
    local.run("FAILED", checkout={"commit": "f" * 40, "branch": "main", "dirty": False, "dirty_files": {}})
    local.learn()
    local.commit("prices now")
    local.run()
    local.run("FAILED")
    seconds = iter(range(1000))
    done = local.learner(monotonic=lambda: float(next(seconds))).learn(8)
    assert done.is_cut_short
    assert (done.results.learned, done.left) == (2, 2)
    assert len(local.turns()) == 2


@pytest.mark.parametrize(
    ("run_seconds", "budget"), [(0, 0.05), (1, 0.05), (5, 0.05), (10, 0.1), (100, 1), (200, 2), (86_400, 2)]
)
def test_gate_learns_for_a_hundredth_of_its_time(run_seconds: float, budget: float) -> None:
    assert find_budget(run_seconds) == pytest.approx(budget)


def test_first_pass_credits_the_lesson_that_was_shown_and_approves_nothing(recorded: Recorded) -> None:
    recorded.break_and_fix()
    recorded.commit("other prices")
    recorded.recall(recorded.run("FAILED", BOOM_ALIKE))
    (skill,) = recorded.lessons()
    with recorded.store.write() as connection:
        put_lesson(connection, skill.replace(approved=False, source="model"), "golden", moment(recorded.minute))
    assert recorded.learn().settled == 0
    recorded.commit("something about prices")
    recorded.run()
    assert recorded.learn().settled == 1
    first = min(recorded.lessons(), key=lambda one: one.created_at)
    assert (first.success_count, first.harm_count, first.approved) == (1, 0, False)
    assert recorded.settled() == [True]


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        ("ERROR", "interrupted", ReasonKind.INTERRUPTED.value),
        ("ERROR", "no bwrap here", ReasonKind.SANDBOX_UNAVAILABLE.value),
        ("ERROR", "a bug of ours", ReasonKind.HARNESS.value),
        ("SKIPPED", "dbt is not there", ReasonKind.SKIP_IF_MISSING.value),
        ("FAILED", "exit code 1, expected 0: disk on fire", "exit_code"),
    ],
)
def test_what_says_nothing_of_the_failure_settles_nothing(
    local: Recorded, status: str, message: str, kind: str
) -> None:
    local.break_and_fix()
    local.commit("other prices")
    local.recall(local.run("FAILED", BOOM_ALIKE))
    local.commit("try something")
    local.run(status, message, kind)
    assert local.learn().settled == 0
    assert local.settled() == [None]
    local.commit("try more")
    local.run("FAILED", BOOM_ALIKE)
    assert local.learn().settled == 1
    assert [(one.success_count, one.harm_count) for one in local.lessons()] == [(0, 1)]


def test_twice_counts_once_also_when_two_settle_at_once(recorded: Recorded, location: str | Path) -> None:
    recorded.break_and_fix()
    recorded.commit("other prices")
    failed = recorded.run("FAILED", BOOM_ALIKE)
    recorded.recall(failed)
    recorded.recall(failed)
    recorded.commit("read the total column, again and again")
    recorded.run()

    def learn() -> GateLearning:
        with Store.open(location) as store:
            return GateLearner(store, recorded.path, None).learn(60)

    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(learn) for _ in range(2)]
    assert sum(one.result().results.learned for one in both) == 2
    first = min(recorded.lessons(), key=lambda one: one.created_at)
    assert first.success_count == 1
    assert recorded.settled() == [True, True]


def test_correction_becomes_a_candidate_of_the_agent_that_was_corrected(recorded: Recorded) -> None:
    journal = Journal(recorded.store)
    entry = journal.log_intent("load the orders", agent_id="etl")
    journal.add_signal("human", "correction", "amounts are in cents, not in euros", entry_id=entry.id)
    journal.add_signal("human", "correction", "never run it by hand", agent_id="nobody")
    (verdict,) = recorded.learn().verdicts
    assert verdict.kept
    (skill,) = Lessons(recorded.store).list_lessons("etl")
    assert (skill.kind, skill.source, skill.approved) == ("correction", "person", False)
    assert (skill.lesson, skill.context) == ("amounts are in cents, not in euros", "load the orders")
    assert recorded.learn().verdicts == []
    # What was rejected stays so, and what says nothing is refused.
    Lessons(recorded.store).reject(skill.id, "me")
    journal.add_signal("human", "correction", "amounts are in cents, not in euros", entry_id=entry.id, external_id="2")
    journal.add_signal("human", "correction", "no", entry_id=entry.id)
    assert [one.kept for one in recorded.learn().verdicts] == [False, False]
    assert recorded.learn().is_all


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ("human", ("person", None, "a person corrected it")),
        ("github", ("person", None, "a person corrected it")),
        ("etl", ("agent", "etl", "corrected by etl")),
        ("ci", ("agent", "ci for etl", "corrected by ci for etl")),
    ],
)
def test_correction_that_no_person_sent_carries_the_name_of_its_sender(
    local: Recorded, source: str, made: tuple[str, str | None, str]
) -> None:
    journal, lessons = Journal(local.store), Lessons(local.store)
    entry = journal.log_intent("load the orders", agent_id="etl")
    journal.add_signal(source, "correction", "amounts are in cents, not in euros", entry_id=entry.id)
    (verdict,) = local.learn().verdicts
    for skill in (verdict.skill, lessons.approve(verdict.skill.id, "ann")):
        assert (skill.source, skill.proposed_by, skill.why) == made
    assert not verdict.skill.approved


def test_corrections_are_found_behind_any_number_of_other_signals(
    local: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_OVERLAP", "_WORTH_KEEPING"):
        monkeypatch.setattr(f"pytest_golden.gate.teaching.{name}", 10)
    journal = Journal(local.store)
    entry = journal.log_intent("load the orders", agent_id="etl")
    for number in range(12):
        journal.add_signal("cron", "neutral", f"tick {number}", entry_id=entry.id)
    assert local.learn().verdicts == []
    with local.store.read() as connection:
        assert list_keys(connection, ("learning", "progress")) == ("corrections",)
    journal.add_signal("human", "correction", "amounts are in cents, not in euros", entry_id=entry.id)
    assert len(local.learn().verdicts) == 1
    assert local.learn().verdicts == []


def test_row_that_cannot_be_read_harms_no_other(local: Recorded) -> None:
    local.run()
    local.commit("prices now")
    failed = local.run("FAILED")
    local.commit("read the total column")
    local.run()
    with local.store.write() as connection:
        connection.execute(
            update(gate_results).where(gate_results.c.entry_id == failed).values(declaration_digest="list")
        )
        connection.execute(insert(documents).values(digest="list", body=["no", "declaration"]))
    done = local.learn()
    assert (done.verdicts, done.breaks, done.left) == ([], 0, 0)
    local.commit("prices again")
    local.run("FAILED")
    assert local.learn().breaks == 1


def test_correction_that_cannot_be_kept_harms_no_other(local: Recorded) -> None:
    journal = Journal(local.store)
    for agent in ("foreign", "etl"):
        entry = journal.log_intent("load the orders", agent_id=agent)
        journal.add_signal("human", "correction", "amounts are in cents, not in euros", entry_id=entry.id)
    with local.store.write() as connection:
        connection.execute(update(entries).where(entries.c.agent_id == "foreign").values(agent_id=" "))
    assert [one.kept for one in local.learn().verdicts] == [True]


def test_lesson_shown_for_what_the_gate_was_to_blame_for_is_not_settled(local: Recorded) -> None:
    local.break_and_fix()
    local.recall(local.run("ERROR", "exit code 1: a bug", ReasonKind.HARNESS.value))
    local.run()
    assert (local.learn().settled, local.settled()) == (0, [None])


def test_what_broke_before_is_told_for_the_header_of_a_gate(recorded: Recorded) -> None:
    recorded.break_and_fix()
    assert foresee(recorded.store, recorded.path, "HEAD").tell() == ()
    (recorded.path / "etl" / "load.py").write_text("an edit")
    told = foresee(recorded.store, recorded.path, "HEAD").tell()
    assert told[0].startswith("sales: broke once when etl/load.py changed, last on ")
    assert told[1:3] == ("  KeyError: 'amount'", "  lesson: the fix changed Python code")
    assert foresee(recorded.store, recorded.path, "HEAD").tell(0) == (
        "1 more broke before: `golden recall --diff HEAD`",
    )
    assert foresee(recorded.store, recorded.path, "HEAD", projects=["other"]).projects == ()


def test_break_that_cannot_be_read_is_passed_over(local: Recorded) -> None:
    local.break_and_fix()
    MemoryStore(local.store).save_memory(("breaks", "golden"), "entry_0", {"project": "sales"})
    (local.path / "etl" / "load.py").write_text("an edit")
    assert len(foresee(local.store, local.path, "HEAD").projects) == 1


def test_secrets_of_projects_in_the_words_of_a_commit_are_hidden(recorded: Recorded) -> None:
    def hide(plain: dict[str, Any]) -> dict[str, Any]:
        hidden: dict[str, Any] = json.loads(json.dumps(plain).replace("hunter2", "[REDACTED]"))
        return hidden

    recorded.run()
    recorded.commit("let hunter2 in")
    recorded.run("FAILED")
    recorded.commit("let hunter2 out")
    recorded.run()
    done = recorded.learn(hide=hide)
    assert (len(done.kept), done.breaks) == (1, 1)
    with recorded.store.read() as connection:
        kept = str(connection.execute(select(memories.c.value, memories.c.words)).all())
    assert "let [REDACTED] out" in kept
    assert "let [REDACTED] in" in kept
    assert "hunter2" not in kept


def test_what_cannot_be_hidden_is_not_kept(recorded: Recorded) -> None:
    recorded.run()
    recorded.commit("prices now")
    recorded.run("FAILED")
    recorded.commit("read the total column")
    recorded.run()
    done = recorded.learn(hide=lambda _: None)
    assert (done.kept, done.breaks, recorded.turns()) == ([], 0, ())


def test_output_is_asked_where_no_lesson_knows_the_message(local: Recorded) -> None:
    local.break_and_fix()
    frame = '  File "a.py", line 3, in <module>'
    output = f"Traceback (most recent call last):\n{frame}\n    total += row[wanted]\nKeyError: 'rate'\n"
    result = GoldenProjectResult(
        "sales", "a.py", ResultStatus.FAILED, error_message="exit code 1, expected 0: stopped", output_summary=output
    )
    (known,) = find_known_lessons(local.store, result, "entry_1", keeps=True)
    assert known["why"] == "signature"
    silent = replace(result, output_summary="loading\nstopped")
    assert find_known_lessons(local.store, silent, "entry_1", keeps=True) == ()


def test_store_that_takes_nothing_still_tells_its_lessons(local: Recorded, tmp_path: Path) -> None:
    local.break_and_fix()
    result = GoldenProjectResult("sales", "a.py", ResultStatus.FAILED, error_message=BOOM_ALIKE)
    with Store.open(tmp_path / "golden.db", busy_seconds=0.1) as store:
        with local.store.write():
            (known,) = find_known_lessons(store, result, "entry_1", keeps=True)
        assert (known["recall_id"], known["kind"]) == ("", "lesson")
        (known,) = find_known_lessons(store, result, "entry_1", keeps=True)
        assert known["recall_id"]
        blank = GoldenProjectResult("sales", "a.py", ResultStatus.FAILED, error_message=" ")
        assert find_known_lessons(store, blank, "entry_1", keeps=True) == ()


@pytest.mark.parametrize(
    ("accepted", "count"), [(None, 1), ((), 0), ((AcceptedOutput("a.txt", OutputChange.CHANGED),), 0)]
)
def test_pass_by_accepting_what_was_produced_teaches_no_fix(
    recorded: Recorded, accepted: tuple[AcceptedOutput, ...] | None, count: int
) -> None:
    recorded.run()
    recorded.commit("prices now")
    recorded.run("FAILED")
    recorded.commit("read the total column")
    recorded.run(accepted=accepted)
    recorded.learn()
    assert len(recorded.lessons()) == count
