from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gate.rewording import WORDINGS, apply_fix_wording, reword_lessons, write_fix_prompt
from pytest_golden.learning.lessons.lesson_wording import Wording
from pytest_golden.learning.lessons.model import LessonKind, LessonSource, SkillMemory
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.learning.store import find_memory
from pytest_golden.storage.store import Store
from tests.patience import without_hanging

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
SAID = {"lesson": "Cast both sides of a join key to the same type before `merge`.", "why": "one side was read as text"}


def fix(number: int = 1, **fields: Any) -> SkillMemory:
    told = ("Python code", "SQL", "a notebook", "a shell script", "configuration", "input data")[number % 6]
    plain: dict[str, Any] = {
        "lesson": f"the fix changed {told}, after: cannot merge on <value> and <value> columns ({'x' * number})",
        "what_failed": f"ValueError: cannot merge on <value> and <value> columns {'x' * number}",
        "what_worked": f"the fix changed {told}",
        "why": "it failed until this changed, and passed at once with it",
        "kind": LessonKind.PROJECT_FIX,
        "evidence": {
            "error": f"ValueError: You are trying to merge on object and int64 columns {'x' * number}",
            "project": f"sales{number}",
            "commits": [
                {
                    "commit": "a" * 40,
                    "subject": "Cast the key before merge, token=ghp_Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j",
                }
            ],
            "files": ["etl/sales.py"],
        },
        "created_at": NOW + timedelta(hours=number),
    }
    return SkillMemory(**{**plain, **fields})


class Scripted:
    """A model that gives one reply after another, the last one for all further calls."""

    def __init__(self, *replies: Any, seconds: float = 0.0) -> None:
        self.prompts: list[str] = []
        self._replies = replies
        self._seconds = seconds

    async def complete(self, prompt: str, schema: Any) -> Any:
        self.prompts.append(prompt)
        await asyncio.sleep(self._seconds)
        return self._replies[min(len(self.prompts), len(self._replies)) - 1]


@pytest.fixture
def store(location: str | Path) -> Iterator[Store]:
    with Store.open(location) as opened:
        yield opened


def mark_of(store: Store, skill: SkillMemory) -> Any:
    with store.read() as connection:
        memory = find_memory(connection, WORDINGS, skill.id)
    return None if memory is None else dict(memory.value)


def test_lesson_of_a_model_waits_for_approval_beside_that_of_the_rules(store: Store) -> None:
    lessons = Lessons(store)
    by_rules = lessons.add(fix(), "golden").skill
    done = reword_lessons(store, Scripted(SAID))
    [worded] = done.kept
    assert (done.refused, done.left) == (0, 0)
    assert (worded.lesson, worded.why) == (SAID["lesson"], SAID["why"])
    assert (worded.source, worded.approved, worded.support) == (LessonSource.MODEL, False, 1)
    assert worded.evidence["worded_from"] == by_rules.id
    assert worded.evidence["project"] == "sales1"
    assert {one.id for one in lessons.list_lessons("golden")} == {by_rules.id, worded.id}
    assert lessons.get(by_rules.id) == by_rules
    shown = lessons.recall(str(by_rules.evidence["error"]), project="sales1")
    assert [one.lesson.id for one in shown] == [by_rules.id]


def test_approved_wording_takes_the_place_of_that_of_the_rules(store: Store) -> None:
    lessons = Lessons(store)
    by_rules = lessons.add(fix(), "golden").skill
    [worded] = reword_lessons(store, Scripted(SAID)).kept
    lessons.approve(worded.id, "ada")
    assert lessons.get(by_rules.id).superseded_by == worded.id
    shown = lessons.recall(str(by_rules.evidence["error"]), project="sales1")
    assert [one.lesson.id for one in shown] == [worded.id]


def test_lesson_is_worded_once(store: Store) -> None:
    lessons = Lessons(store)
    skill = lessons.add(fix(), "golden").skill
    model = Scripted(SAID)
    reword_lessons(store, model)
    assert reword_lessons(store, model) == type(reword_lessons(store, model))()
    assert len(model.prompts) == 1
    assert mark_of(store, skill) == {"ended": "kept", "tries": 1}


def test_rejected_wording_does_not_come_back(store: Store) -> None:
    lessons = Lessons(store)
    lessons.add(fix(1), "golden")
    [worded] = reword_lessons(store, Scripted(SAID)).kept
    lessons.reject(worded.id, "ada")
    lessons.add(fix(2), "golden")
    done = reword_lessons(store, Scripted(SAID))
    assert (done.kept, done.refused, done.left) == ((), 1, 0)


@pytest.mark.parametrize(
    "said",
    [
        {"lesson": "", "why": ""},
        {"lesson": "Be careful and test more."},
        {"lesson": "Change etl/sales.py line 17 as in commit 0123456789abcdef0123456789abcdef01234567."},
        {"lesson": "Call `pandas.read_magic` before joining the frames by their keys."},
    ],
)
def test_wording_that_is_no_good_is_refused_and_not_asked_again(store: Store, said: Any) -> None:
    skill = Lessons(store).add(fix(), "golden").skill
    model = Scripted(said)
    done = reword_lessons(store, model)
    assert (done.kept, done.refused, done.left) == ((), 1, 0)
    assert mark_of(store, skill)["ended"] == "refused"
    assert reword_lessons(store, model).left == 0
    assert len(model.prompts) == 1


def test_lesson_without_an_answer_is_asked_for_again_up_to_five_times(store: Store) -> None:
    skill = Lessons(store).add(fix(), "golden").skill
    model = Scripted(None)
    for tries in range(1, 6):
        done = reword_lessons(store, model)
        assert (done.kept, done.refused, done.left) == ((), 0, 1)
        assert mark_of(store, skill) == {"ended": "unanswered", "tries": tries}
    assert reword_lessons(store, model).left == 0
    assert len(model.prompts) == 5


def test_lesson_that_was_not_answered_at_first_is_worded_later(store: Store) -> None:
    Lessons(store).add(fix(), "golden")
    assert reword_lessons(store, Scripted(None)).kept == ()
    assert len(reword_lessons(store, Scripted(SAID)).kept) == 1


def test_the_newest_four_are_asked_for_at_once_and_the_others_next_time(store: Store) -> None:
    lessons = Lessons(store)
    kept = [lessons.add(fix(number), "golden").skill for number in range(1, 6)]
    model = Scripted(None, seconds=0.2)
    with without_hanging():
        assert reword_lessons(store, model).left == 5
    assert len(model.prompts) == 4
    assert mark_of(store, kept[0]) is None
    assert all(mark_of(store, skill) for skill in kept[1:])


def test_model_that_hangs_costs_no_more_than_the_budget(store: Store) -> None:
    Lessons(store).add(fix(), "golden")
    with without_hanging():
        assert reword_lessons(store, Scripted(SAID, seconds=600), budget_seconds=0.3).left == 1


def test_nothing_is_asked_without_a_lesson_or_without_time(store: Store) -> None:
    model = Scripted(SAID)
    assert reword_lessons(store, model).left == 0
    lessons = Lessons(store)
    lessons.add(fix(1), "golden")
    assert reword_lessons(store, model, budget_seconds=0).left == 1
    assert model.prompts == []


def test_lessons_of_others_and_of_other_kinds_are_left_alone(store: Store) -> None:
    lessons = Lessons(store)
    lessons.add(fix(1), "etl")
    lessons.add(fix(2, kind=LessonKind.CORRECTION, source=LessonSource.PERSON), "golden")
    lessons.reject(lessons.add(fix(3), "golden").skill.id, "ada")
    model = Scripted(SAID)
    assert reword_lessons(store, model).left == 0
    assert model.prompts == []


def test_prompt_holds_the_case_as_data_and_no_secret() -> None:
    prompt = write_fix_prompt(fix())
    assert "You are trying to merge on object and int64 columns" in prompt
    assert "Cast the key before merge" in prompt
    assert "ghp_" not in prompt
    assert prompt.index("BEGIN DATA") < prompt.index("You are trying to merge")


def test_secret_in_a_reply_is_not_kept() -> None:
    said = Wording(
        lesson="Cast the join keys, and set password=hunter22x for the warehouse.",
        why="token=ghp_Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j",
    )
    worded = apply_fix_wording(fix(), said, NOW)
    assert worded is None or ("hunter22x" not in worded.lesson and "ghp_" not in worded.why)


def test_reply_without_a_reason_keeps_that_of_the_rules() -> None:
    worded = apply_fix_wording(fix(), Wording(lesson=str(SAID["lesson"])), NOW)
    assert worded is not None
    assert worded.why == fix().why
