"""The tools that read. They go on while the store is locked; only that a lesson was shown is kept, as far as the store takes it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import GoldenError, JournalError, ManifestError, SettingsError
from pytest_golden.learning.lessons.model import Recalled
from pytest_golden.learning.lessons.recalling import recall_lessons
from pytest_golden.manifest import load_manifest
from pytest_golden.report import gate_report
from pytest_golden.storage.paging import MOST_ITEMS

if TYPE_CHECKING:
    from pytest_golden.gate.recorded.projects.model import ListedProject
    from pytest_golden.manifest.model import Manifest
    from pytest_golden.mcp.arguments import (
        ExplainFailure,
        GoldenStatus,
        ListGoldenProjects,
        Recall,
        ReviewJournal,
        SearchLessons,
    )
    from pytest_golden.mcp.model import Caller
    from pytest_golden.mcp.workplace import Workplace

# What explains one project is told by `explain_failure`; colours are for eyes.
_NOT_IN_STATUS = frozenset({"steps", "trajectory", "output_colours"})
# An entry of a list has none of them.
_NOT_LISTED = frozenset({"signals", "history"})


def review_journal(place: Workplace, caller: Caller, given: ReviewJournal) -> dict[str, Any]:
    """Give the caller's newest entries."""
    page = place.services().pages.list_entries(caller.agent, given.filter, given.intent_type, given.limit)
    return {"entries": [_without(_NOT_LISTED, entry.to_dict()) for entry in page.items]}


def search_lessons(place: Workplace, _: Caller, given: SearchLessons) -> dict[str, Any]:
    """Find lessons by words; those that wait for approval are among them."""
    _refuse_blank("query", given.query)
    page = place.services().lesson_pages.list_lessons(given.query, limit=given.limit)
    return {"lessons": [lesson.to_dict() for lesson in page.items]}


def recall(place: Workplace, _: Caller, given: Recall) -> dict[str, Any]:
    """Find the lessons that bear on a failure; a server that only reads does not keep that they were shown."""
    _refuse_blank("text", given.text)
    services = place.services()
    if place.is_read_only:
        with services.store.read() as connection:
            lessons = recall_lessons(connection, given.text, project=given.project, limit=given.limit)
        found = tuple(Recalled(skill, score, why, "") for skill, score, why in lessons)
    else:
        found = services.lessons.recall(given.text, project=given.project, limit=given.limit)
    recall_id = (found[0].recall_id or None) if found else None
    return {"recall_id": recall_id, "recalled": [one.to_dict() for one in found]}


def list_golden_projects(place: Workplace, _: Caller, __: ListGoldenProjects) -> dict[str, Any]:
    """List what is declared, in its order; the statuses are not known where nothing is recorded yet."""
    manifest = load_manifest(place.manifest)
    try:
        statuses = _find_statuses(place, manifest)
    except SettingsError:
        statuses = {}
    return {
        "projects": [
            {
                "name": project.name,
                "path": project.path,
                "description": project.description,
                "expected_outcome": project.expected_outcome,
                "last_status": statuses.get(project.name),
            }
            for project in manifest.projects
        ]
    }


def _find_statuses(place: Workplace, manifest: Manifest) -> dict[str, str]:
    found: list[ListedProject] = []
    cursor: str | None = None
    while len(found) < len(manifest.projects):
        page = place.services().gates.list_projects(manifest, MOST_ITEMS, cursor, recent=1)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    return {one.name: one.last_status.value for one in found if one.last_status is not None}


def golden_status(place: Workplace, _: Caller, __: GoldenStatus) -> dict[str, Any]:
    """Tell the last gate run, each result without its steps."""
    services = place.services()
    try:
        run = services.gates.get_run()
    except JournalError as error:
        raise GoldenError(f"{error}: run `pytest --golden` (the store is {services.store.where})") from None
    report = gate_report(run.check, gate=run.gate, weakened_floor=run.weakened_floor)
    results = [
        {"entry_id": entry_id, **_without(_NOT_IN_STATUS, result)}
        for entry_id, result in zip(run.entry_ids, report["results"], strict=True)
    ]
    return {**report, "results": results}


def explain_failure(place: Workplace, _: Caller, given: ExplainFailure) -> dict[str, Any]:
    """Tell why a project failed; what a manifest declares that cannot be read is not known."""
    _refuse_blank("project", given.project)
    manifest: Manifest | None = None
    with suppress(ManifestError):
        manifest = load_manifest(place.manifest)
    return place.services().gates.explain_failure(given.project, manifest).to_dict()


def _without(names: frozenset[str], plain: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in plain.items() if key not in names}


def _refuse_blank(name: str, text: str) -> None:
    if not text.strip():
        raise ValueError(f"{name} is blank: say what you look for")
