"""A store of the fourth version: what was remembered stays, and lessons have a place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from alembic import command
from sqlalchemy import create_engine, insert, inspect, select

from pytest_golden.storage.schema import lesson_recalls, lesson_signatures, memories, memory_vectors
from pytest_golden.storage.store import Store
from pytest_golden.storage.version import make_config

if TYPE_CHECKING:
    from pathlib import Path

MEMORY: dict[str, Any] = {
    "namespace": "lessons/etl/",
    "key": "lesson_1",
    "version": 1,
    "is_newest": True,
    "value": {"lesson": "x"},
    "tags": [],
    "words": "x",
    "created_at": 1,
    "updated_at": 1,
}
RECALL: dict[str, Any] = {"lesson_id": "lesson_1", "agent": "etl", "why": "words", "score": 0.5, "created_at": 1}


def test_what_was_remembered_stays_and_lessons_have_a_place(path: Path) -> None:
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        command.upgrade(make_config(connection), "0004")
        connection.execute(insert(memories), MEMORY)
        assert not inspect(connection).has_table("lesson_signatures")
    engine.dispose()
    with Store.open(path) as store, store.write() as connection:
        assert connection.scalars(select(memories.c.key)).all() == ["lesson_1"]
        for table in (memory_vectors, lesson_signatures, lesson_recalls):
            assert connection.execute(select(table)).all() == []


def test_recalls_that_wait_are_found_by_an_index_of_their_own(store: Store) -> None:
    settled = {"settled_at": 2, "passed": True}
    with store.write() as connection:
        connection.execute(insert(lesson_recalls), [{**RECALL, "id": "r1"}, {**RECALL, "id": "r2"}])
        connection.execute(insert(lesson_recalls), {**RECALL, **settled, "id": "r3"})
        query = select(lesson_recalls.c.id).where(lesson_recalls.c.settled_at.is_(None))
        assert connection.scalars(query.order_by(lesson_recalls.c.number)).all() == ["r1", "r2"]
        names = {index["name"] for index in inspect(connection).get_indexes("lesson_recalls")}
        assert names >= {"ix_lesson_recalls_unsettled", "ix_lesson_recalls_lesson_id_number"}
