"""The services that the tools call, on one store that is opened when it is first needed."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pytest_golden.errors import StorageTrouble
from pytest_golden.gate.recorded.pages import RecordedGates
from pytest_golden.journal.reading.paging import JournalPages
from pytest_golden.journal.service import Journal
from pytest_golden.learning.lessons.paging import LessonPages
from pytest_golden.learning.lessons.service import Lessons

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any

    from pytest_golden.errors import StorageError
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
        """Give the services of a store."""
        return cls(
            store,
            Journal(store, rules=rules),
            JournalPages(store),
            Lessons(store),
            LessonPages(store),
            RecordedGates(store),
        )


class Workplace:
    """Where the tools work: a store and a manifest. Threads may share it.

    `open_store` opens the store or tells why there is none; where there is none yet it is asked again by the next call.
    """

    def __init__(
        self,
        open_store: Callable[[], Store],
        manifest: Path,
        rules: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        is_read_only: bool = False,
    ) -> None:
        self.manifest = manifest
        self.is_read_only = is_read_only
        self._open_store = open_store
        self._rules = rules
        self._turn = threading.Lock()
        self._services: Services | None = None

    def services(self) -> Services:
        """Give the services.

        Raises:
            GoldenError: there is no store, or it cannot be opened.
        """
        with self._turn:
            if self._services is None:
                self._services = Services.on(self._open_store(), self._rules)
            return self._services

    def notice(self, error: StorageError) -> None:
        """Let go of a store whose file was moved or replaced: the next call opens what is there now."""
        if error.trouble is StorageTrouble.GONE:
            self.close()

    def close(self) -> None:
        """Close the store, if it was opened."""
        with self._turn:
            services, self._services = self._services, None
        if services is not None:
            services.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
