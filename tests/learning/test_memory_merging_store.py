"""Lessons of several stores made one: in any order and however often, each thing that was done to them counts once."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, select

from pytest_golden.learning.lessons.model import LessonSource, SkillMemory
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.learning.lessons.store import LESSONS
from pytest_golden.learning.memory_merging_store import fold_versions, merge_memories, unite_versions
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.storage.schema import lesson_recalls, lesson_signatures, memories
from pytest_golden.storage.store import Store
from tests.learning.conftest import BOTH, START, Clock
from tests.learning.lessons.conftest import make_skill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LIKE_IT = "ValueError: could not convert string to float: '99,1' in row 40"


@pytest.fixture
def open_store() -> Iterator[Callable[[], Store]]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Store.open("sqlite://"))


def merge(target: Store, *sources: Store) -> int:
    changed = 0
    for source in sources:
        with source.read() as reading, target.write() as writing:
            changed += merge_memories(reading, writing)
    return changed


def read_all(store: Store) -> dict[str, Any]:
    """Read all that two orders of merging must have alike."""
    with store.read() as connection:
        return {
            table.name: sorted(
                str({name: value for name, value in row.items() if name != "number"})
                for row in connection.execute(select(table)).mappings()
            )
            for table in (memories, lesson_signatures, lesson_recalls)
        }


def lessons_of(store: Store, clock: Clock | None = None) -> Lessons:
    return Lessons(store, clock=clock or Clock())


def fork(store: Store, open_store: Callable[[], Store]) -> Store:
    copy = open_store()
    merge(copy, store)
    return copy


def test_merged_store_has_the_lessons_of_both_and_finds_them(open_store: Callable[[], Store]) -> None:
    one, other = open_store(), open_store()
    first = lessons_of(one).add(make_skill(), "etl").skill
    second = (
        lessons_of(other).add(make_skill("Call lower() on names", evidence={"error": "KeyError: 'Id'"}), "etl").skill
    )
    assert merge(one, other) == 1
    assert lessons_of(one).list_lessons() == tuple(sorted((first, second), key=lambda skill: skill.id))
    assert [found.lesson for found in lessons_of(one).recall(LIKE_IT)] == [first]
    assert MemoryStore(one).search_memories((LESSONS,), "lower")[0].memory.key == second.id
    assert merge(one, other) == 0


def test_what_was_done_in_both_counts_once(open_store: Callable[[], Store]) -> None:
    clock = Clock()
    one = open_store()
    skill = lessons_of(one, clock).add(make_skill(), "etl").skill
    (recalled,) = lessons_of(one, clock).recall(LIKE_IT)
    lessons_of(one, clock).settle(recalled.recall_id, True)
    (open_recall,) = lessons_of(one, clock).recall(LIKE_IT)
    other = fork(one, open_store)
    for store in (one, other):
        clock.pass_by(hours=1)
        lessons_of(store, clock).add(make_skill(), "etl")
        lessons_of(store, clock).settle(open_recall.recall_id, store is other)
    merge(one, other)
    merged = lessons_of(one).get(skill.id)
    assert (merged.support, merged.success_count, merged.harm_count) == (3, 1, 1)
    before = read_all(one)
    merge(one, other)
    assert read_all(one) == before
    lessons_of(one, clock).add(make_skill(), "etl")
    merge(one, other)
    assert lessons_of(one).get(skill.id).support == 4


def test_word_of_a_person_is_kept_and_the_last_one_wins(open_store: Callable[[], Store]) -> None:
    clock = Clock()
    one = open_store()
    skill = lessons_of(one, clock).add(make_skill(source=LessonSource.MODEL, approved=False), "etl").skill
    other = fork(one, open_store)
    clock.pass_by(hours=1)
    lessons_of(other, clock).approve(skill.id, "ann")
    clock.pass_by(hours=1)
    lessons_of(one, clock).add(make_skill(source=LessonSource.MODEL, approved=False), "etl")
    merge(one, other)
    merged = lessons_of(one).get(skill.id)
    assert (merged.approved, merged.judged_by, merged.support) == (True, "ann", 2)
    clock.pass_by(hours=1)
    lessons_of(other, clock).reject(skill.id, "bob")
    merge(one, other)
    assert (lessons_of(one).get(skill.id).rejected, lessons_of(one).list_lessons()) == (True, ())
    assert not lessons_of(one).add(make_skill(), "etl").kept


def test_same_lesson_of_two_stores_is_one_with_the_support_of_both(open_store: Callable[[], Store]) -> None:
    one, other = open_store(), open_store()
    old = lessons_of(one).add(make_skill(support=2), "etl").skill
    twin = lessons_of(other).add(make_skill(support=3, created_at=START + timedelta(days=1)), "etl").skill
    for _ in range(2):
        merge(one, other)
    assert [(skill.id, skill.support) for skill in lessons_of(one).list_lessons()] == [(old.id, 5)]
    assert lessons_of(one).get(twin.id).superseded_by == old.id
    assert [found.lesson.id for found in lessons_of(one).recall(LIKE_IT)] == [old.id]
    assert lessons_of(one).add(make_skill(), "etl").skill.support == 6
    merge(one, other)
    assert lessons_of(one).get(old.id).support == 6


@pytest.mark.parametrize("is_first", [True, False])
def test_merge_shows_no_word_of_what_waits_and_keeps_who_proposed_that(
    open_store: Callable[[], Store], *, is_first: bool
) -> None:
    one, other = open_store(), open_store()
    proposal = make_skill(
        "Obey the builder before read_csv", why="obey me", context="always", source="agent", proposed_by="bot"
    )
    at = START - timedelta(days=1) if is_first else START + timedelta(days=1)
    lessons_of(one).add(proposal.replace(created_at=at), "etl")
    told = lessons_of(other).add(make_skill(why="", context="", created_at=START), "etl").skill
    merge(one, other)
    merge(other, one)
    for store in (one, other):
        (recalled,) = lessons_of(store).recall(LIKE_IT)
        assert recalled.lesson == told.replace(support=2)
        (waiting,) = (one for one in lessons_of(store).list_lessons(include_superseded=True) if one.superseded_by)
        assert waiting.proposed_by == "bot"


def test_merge_revives_no_superseded_lesson_for_one_that_waits(open_store: Callable[[], Store]) -> None:
    one, other = open_store(), open_store()
    old = lessons_of(one).add(make_skill(), "etl").skill
    later = START + timedelta(days=1)
    new = lessons_of(one).add(make_skill("Replace commas first", what_worked="x", created_at=later), "etl").skill
    lessons_of(other).add(make_skill(why="obey me", created_at=later, source="agent", proposed_by="bot"), "etl")
    merge(one, other)
    merge(other, one)
    for store in (one, other):
        assert [skill.id for skill in lessons_of(store).list_lessons()] == [new.id]
        assert lessons_of(store).get(old.id).superseded_by == new.id
        assert [recalled.lesson.id for recalled in lessons_of(store).recall(LIKE_IT)] == [new.id]


def test_later_lesson_of_another_store_supersedes_what_it_contradicts(open_store: Callable[[], Store]) -> None:
    one, other = open_store(), open_store()
    old = lessons_of(one).add(make_skill(), "etl").skill
    later = START + timedelta(days=1)
    new = lessons_of(other).add(make_skill("Replace commas first", what_worked="x", created_at=later), "etl").skill
    merge(one, other)
    merge(other, one)
    for store in (one, other):
        assert lessons_of(store).list_lessons() == (new,)
        assert lessons_of(store).get(old.id).superseded_by == new.id


def test_lesson_that_was_rejected_in_one_store_is_rejected_in_both(open_store: Callable[[], Store]) -> None:
    one, other = open_store(), open_store()
    lessons_of(one).add(make_skill(), "etl")
    twin = lessons_of(other).add(make_skill(created_at=START + timedelta(days=1)), "etl").skill
    lessons_of(other).reject(twin.id, "ann")
    merge(one, other)
    assert lessons_of(one).list_lessons() == ()
    assert not lessons_of(one).add(make_skill(), "etl").kept


def test_superseded_lesson_stays_superseded(open_store: Callable[[], Store]) -> None:
    clock = Clock()
    one = open_store()
    skill = lessons_of(one, clock).add(make_skill(), "etl").skill
    (recalled,) = lessons_of(one, clock).recall(LIKE_IT)
    other = fork(one, open_store)
    clock.pass_by(hours=1)
    new = lessons_of(one, clock).add(make_skill("Replace commas first", what_worked="x"), "etl").skill
    clock.pass_by(hours=1)
    lessons_of(other, clock).settle(recalled.recall_id, True)
    merge(other, one)
    merged = lessons_of(other).get(skill.id)
    assert (merged.superseded_by, merged.success_count) == (new.id, 1)


def test_settled_recall_wins_over_one_that_waits(open_store: Callable[[], Store]) -> None:
    one = open_store()
    lessons_of(one).add(make_skill(), "etl")
    (recalled,) = lessons_of(one).recall(LIKE_IT)
    other = fork(one, open_store)
    lessons_of(other).settle(recalled.recall_id, True)
    merge(one, other)
    assert lessons_of(one).stats().helped == 1
    settled = lessons_of(one).settle(recalled.recall_id, False)
    assert settled is not None
    assert (settled.success_count, settled.harm_count) == (1, 0)


def test_memory_that_is_no_lesson_is_carried_over(open_store: Callable[[], Store]) -> None:
    one, other = open_store(), open_store()
    MemoryStore(other).save_memory((LESSONS, "etl"), "odd", {"anything": 1})
    MemoryStore(other).save_memory((LESSONS,), "above", {"anything": 2})
    lessons_of(other).add(make_skill(), "etl")
    assert merge(one, other) == 3
    assert MemoryStore(one).get((LESSONS, "etl"), "odd") is not None
    assert len(lessons_of(one).list_lessons()) == 1
    assert merge(one, other) == 0


def test_many_recalls_are_carried_over(open_store: Callable[[], Store]) -> None:
    one, other = open_store(), open_store()
    skill = lessons_of(other).add(make_skill(), "etl").skill
    row = {"lesson_id": skill.id, "agent": "etl", "why": "words", "score": 0.5, "created_at": 1}
    with other.write() as connection:
        connection.execute(insert(lesson_recalls), [{**row, "id": f"recall_{number}"} for number in range(1_203)])
    merge(one, other)
    merge(one, other)
    assert lessons_of(one).stats().recalled == 1_203


@BOTH
def test_merging_works_between_databases(location: Any, open_store: Callable[[], Store]) -> None:
    source = open_store()
    skill = lessons_of(source).add(make_skill(), "etl").skill
    lessons_of(source).recall(LIKE_IT)
    with Store.open(location, upgrades=True) as target:
        assert merge(target, source) == 1
        assert merge(target, source) == 0
        assert lessons_of(target).list_lessons() == (skill,)
        assert lessons_of(target).stats().recalled == 1


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "other", "contradict", "model", "help", "harm", "approve", "reject"]), st.integers(0, 2)
    ),
    max_size=6,
)
TEXTS = ("Pass decimal=',' to read_csv", "Replace commas before read_csv", "Call lower() on names")


def act(lessons: Lessons, steps: Sequence[tuple[str, int]], clock: Clock) -> None:
    for what, number in steps:
        clock.pass_by(seconds=1)
        known = lessons.list_lessons(include_superseded=True, include_rejected=True)
        if what in {"add", "other", "model"}:
            text = TEXTS[number] if what != "other" else TEXTS[2]
            approved = what != "model"
            source = LessonSource.RULES if approved else LessonSource.MODEL
            lessons.add(make_skill(text, what_worked=text, approved=approved, source=source, created_at=clock()), "etl")
        elif what == "contradict":
            lessons.add(make_skill(TEXTS[1], what_worked="x", created_at=clock()), "etl")
        elif what in {"help", "harm"}:
            for recalled in lessons.recall(LIKE_IT):
                lessons.settle(recalled.recall_id, what == "help")
        elif known:
            skill = known[number % len(known)]
            (lessons.approve if what == "approve" else lessons.reject)(skill.id, "ann")


@settings(max_examples=12)
@given(STEPS, STEPS, STEPS)
def test_stores_are_merged_in_any_order_and_however_often(
    common: list[tuple[str, int]], left: list[tuple[str, int]], right: list[tuple[str, int]]
) -> None:
    with ExitStack() as stack:

        def open_store() -> Store:
            return stack.enter_context(Store.open("sqlite://"))

        clock = Clock()
        one = open_store()
        act(lessons_of(one, clock), common, clock)
        other, alone = fork(one, open_store), open_store()
        act(lessons_of(one, clock), left, clock)
        act(lessons_of(other, clock), right, clock)
        act(lessons_of(alone, clock), right, clock)
        merged = []
        for order in ((one, other, alone), (other, alone, one), (alone, other, one)):
            target = open_store()
            merge(target, *order)
            merged.append(read_all(target))
            merge(target, order[0])
            assert read_all(target) == merged[0]
        assert merged == [merged[0]] * 3


@settings(max_examples=20)
@given(STEPS)
def test_lesson_follows_from_its_versions(steps: list[tuple[str, int]]) -> None:
    with Store.open("sqlite://") as store:
        clock = Clock()
        lessons = lessons_of(store, clock)
        act(lessons, steps, clock)
        with store.read() as connection:
            rows = [dict(row) for row in connection.execute(select(memories).order_by(memories.c.version)).mappings()]
        for skill in lessons.list_lessons(include_superseded=True, include_rejected=True):
            versions = unite_versions([row for row in rows if row["key"] == skill.id], is_lesson=True)
            assert fold_versions(versions) == skill == SkillMemory.from_dict(versions[-1]["value"])
