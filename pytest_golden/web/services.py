"""What the pages, the JSON API and the webhooks call, on one store for all requests. Threads share it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pytest_golden.gate.live import LiveGates
from pytest_golden.gate.recorded.pages import RecordedGates
from pytest_golden.journal.reading.paging import JournalPages
from pytest_golden.journal.rules_file import find_rules
from pytest_golden.journal.service import Journal
from pytest_golden.learning.lessons.paging import LessonPages
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.learning.plans.paging import PlanPages
from pytest_golden.web.declared import ManifestReader

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.manifest.model import Manifest
    from pytest_golden.storage.store import Store


@dataclass(frozen=True, slots=True)
class Services:
    """The services on one store, which stays the caller's."""

    store: Store
    manifest: ManifestReader
    journal: Journal
    journal_pages: JournalPages
    gates: RecordedGates
    live_gates: LiveGates
    lessons: Lessons
    lesson_pages: LessonPages
    plan_pages: PlanPages

    @classmethod
    def on(cls, store: Store, manifest_path: Path) -> Self:
        """Make them on a store; the manifest need not exist.

        Raises:
            SettingsError: the file of the journal's rules cannot be used.
        """
        return cls(
            store,
            ManifestReader(manifest_path),
            Journal(store, rules=find_rules()),
            JournalPages(store),
            RecordedGates(store),
            LiveGates(store),
            Lessons(store),
            LessonPages(store),
            PlanPages(store),
        )

    def read_manifest(self) -> Manifest | None:
        """Read the manifest as it is now; None where there is none.

        Raises:
            ManifestError: it cannot be used.
        """
        return self.manifest.read()
