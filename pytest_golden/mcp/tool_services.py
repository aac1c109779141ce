"""The services that the tools call, on one store. Whoever only connects needs none of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_golden.gate.recorded import RecordedGates
from pytest_golden.journal.review import JournalPages
from pytest_golden.journal.service import Journal
from pytest_golden.learning.lessons.lesson_pages import LessonPages
from pytest_golden.learning.lessons.service import Lessons

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from pytest_golden.storage.store import Store


@dataclass(frozen=True, slots=True)
class Services:
    """What the tools call."""

    store: Store
    journal: Journal
    pages: JournalPages
    lessons: Lessons
    lesson_pages: LessonPages
    gates: RecordedGates

    @classmethod
    def on(cls, store: Store, rules: Mapping[str, Mapping[str, Any]] | None) -> Services:
        """Return the services of a store."""
        return cls(
            store,
            Journal(store, rules=rules),
            JournalPages(store),
            Lessons(store),
            LessonPages(store),
            RecordedGates(store),
        )
