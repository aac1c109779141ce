"""Recorded gate runs, results and projects for the faces: lists in pages, and one of each. Read-only."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_golden.errors import JournalError
from pytest_golden.gate.known import find_known_lessons
from pytest_golden.history import recorded_store
from pytest_golden.history.past_store import list_projects
from pytest_golden.history.recorded_model import FailureExplanation, ListedProject, ProjectDetails
from pytest_golden.learning.learned_pages import list_of_project
from pytest_golden.storage.columns import storable
from pytest_golden.storage.paging import DEFAULT_ITEMS, Listing, Page, check_page_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import Connection

    from pytest_golden.history.recorded_model import ListedResult, ListedRun, RecordedResult
    from pytest_golden.manifest.model import GoldenProjectConfig, Manifest
    from pytest_golden.storage.store import Store

_Found = TypeVar("_Found")
_RECENT, _HISTORY, _MOST_HISTORY = 12, 50, 1_000
_MOST_LESSONS = 10
_MOST_NAMED = 10_000
# Most of these names are declared, and are skipped.
_NAMES_AT_ONCE = 1_000


class RecordedGates:
    """What is recorded of gate runs in a store that stays the caller's. Safe between threads.

    A list takes `limit` (1 to 200) and the `cursor` of the page before. Every method raises `StorageError` when the store
    cannot be read, and `ValueError` for an argument that is not allowed, or a cursor of another list or other filters.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def list_runs(
        self, limit: int = DEFAULT_ITEMS, cursor: str | None = None, *, own_only: bool = False
    ) -> Page[ListedRun]:
        """Return gate runs, the newest first; with `own_only` those alone that people ran in their own folders."""
        limit, listing = check_page_limit(limit), Listing("runs", own_only, kinds=(int,))
        (before,) = listing.read_cursor(cursor) or (None,)
        with self._store.read() as connection:
            rows = recorded_store.list_runs(connection, before=before, limit=limit + 1, own_only=own_only)
        return listing.cut(rows, limit, lambda row: (row[0],), lambda row: row[1])

    def get_run(self, entry: str | None = None, *, has_steps: bool = False) -> recorded_store.RecordedRun:
        """Get the run with this entry, or with a result of this entry; people's own last run where none is named.

        The beginning of an entry's id is enough where it names one run. With `has_steps` each result has its steps, as a
        report wants it.

        Raises:
            JournalError: there is no such run.
        """
        with self._store.read() as connection:
            found = recorded_store.read_run(connection, entry, has_steps=has_steps)
        if found is None:
            told = "no gate run is recorded yet" if entry is None else f"there is no gate run {entry!r:.100}"
            raise JournalError(told)
        return found

    def get_listed_run(self, run_id: str) -> ListedRun:
        """Get the run with exactly this entry as a list has it.

        Raises:
            JournalError: there is no such run.
        """
        return self._get(recorded_store.find_listed_run, "gate run", run_id)

    def get_run_facts(self, run_id: str) -> recorded_store.RunFacts:
        """Get the facts and the weakened floor of the run with exactly this entry, without its results.

        Raises:
            JournalError: there is no such run.
        """
        return self._get(recorded_store.read_run_facts, "gate run", run_id)

    def list_results(self, run_id: str, limit: int = DEFAULT_ITEMS, cursor: str | None = None) -> Page[ListedResult]:
        """Return the results of the run with exactly this entry, those that fail the gate first, then as they came."""
        limit, run_id = check_page_limit(limit), storable(run_id)
        listing = Listing("results", run_id, kinds=(int, int))
        fails, number = listing.read_cursor(cursor) or (None, None)
        after = None if number is None else (bool(fails), number)
        with self._store.read() as connection:
            rows = recorded_store.list_results_of(connection, run_id, after=after, limit=limit + 1)
        return listing.cut(rows, limit, lambda row: (int(row[1].is_regression), row[0]), lambda row: row[1])

    def get_result(self, entry_id: str) -> RecordedResult:
        """Get the result of this entry with all that is kept of it.

        Raises:
            JournalError: there is no such result.
        """
        found = self._get(recorded_store.find_result, "result", entry_id)
        return replace(found, has_log=_is_there(found.result.log_path))

    def _get(self, find: Callable[[Connection, str], _Found | None], kind: str, entry_id: str) -> _Found:
        with self._store.read() as connection:
            found = find(connection, storable(entry_id))
        if found is None:
            raise JournalError(f"there is no {kind} {entry_id!r:.100}")
        return found

    def list_projects(
        self,
        manifest: Manifest | None = None,
        limit: int = DEFAULT_ITEMS,
        cursor: str | None = None,
        *,
        recent: int = _RECENT,
    ) -> Page[ListedProject]:
        """Return the declared projects in their order, then by name those that have a result and are declared no more.

        Each has its last `recent` results in people's own runs.
        """
        limit, recent = check_page_limit(limit), check_page_limit(recent)
        declared = _index(manifest)
        listing = Listing("projects", kinds=(str,))
        (after,) = listing.read_cursor(cursor) or (None,)
        with self._store.read() as connection:
            names = _choose_names(connection, list(declared), after, limit + 1)
            found = recorded_store.list_recent_results(connection, names[:limit], recent)
        return listing.cut(
            names,
            limit,
            lambda name: (name,),
            lambda name: ListedProject(name, declared.get(name), found.get(name, ())),
        )

    def get_project(self, name: str, manifest: Manifest | None = None, limit: int = _HISTORY) -> ProjectDetails:
        """Get a project's last `limit` results (1 to 1,000) in people's own runs with all figures about them.

        Raises:
            JournalError: it is neither declared nor has a result.
        """
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _MOST_HISTORY:
            raise ValueError(f"limit must be a whole number from 1 to {_MOST_HISTORY:,}, not {limit!r:.40}")
        declared, name = _index(manifest), storable(name)
        with self._store.read() as connection:
            history = recorded_store.read_history(connection, name, limit)
            if not history.runs:
                _refuse_unknown(connection, name, declared)
            history = replace(history, trend=recorded_store.read_trend(connection, name, declared.get(name)))
            differing = recorded_store.find_last_difference(connection, name)
            lessons = list_of_project(connection, name, _MOST_LESSONS)
        return ProjectDetails(history, declared.get(name), differing, lessons)

    def explain_failure(self, project: str, manifest: Manifest | None = None) -> FailureExplanation:
        """Explain the last result of a project in people's own runs: why, where, since what, and what is known of it.

        Raises:
            JournalError: it is neither declared nor has a result.
        """
        name = storable(project)
        with self._store.read() as connection:
            entry_id = recorded_store.find_last_entry(connection, name)
            if entry_id is None:
                _refuse_unknown(connection, name, _index(manifest))
            found = None if entry_id is None else recorded_store.find_result(connection, entry_id)
        if found is None:
            return FailureExplanation(project=name)
        has_failed = found.result.status.is_failure
        lessons = find_known_lessons(self._store, found.result, found.entry_id, keeps=False) if has_failed else ()
        return FailureExplanation.of(found, lessons)


def _index(manifest: Manifest | None) -> dict[str, GoldenProjectConfig]:
    return {} if manifest is None else {project.name: project for project in manifest.projects}


def _choose_names(connection: Connection, declared: list[str], after: str | None, limit: int) -> list[str]:
    """Return the next names of a list: what follows a declared one in its order, else by name."""
    is_gone = after is not None and after not in declared
    start = len(declared) if is_gone else 0 if after is None else declared.index(after) + 1
    names = declared[start : start + limit]
    known, last = set(declared), after if is_gone else None
    while len(names) < limit:
        more = list_projects(connection, after=last, limit=_NAMES_AT_ONCE)
        names += [name for name in more if name not in known][: limit - len(names)]
        if len(more) < _NAMES_AT_ONCE:
            break
        last = more[-1]
    return names


def _refuse_unknown(connection: Connection, name: str, declared: Mapping[str, Any]) -> None:
    if name in declared:
        return
    known = dict.fromkeys([*declared, *list_projects(connection, limit=_MOST_NAMED)])
    near = get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise JournalError(f"no golden project called {name!r:.100} is declared or has a result{hint}")


def _is_there(log_path: str | None) -> bool:
    try:
        return log_path is not None and Path(log_path).is_file()
    except (OSError, ValueError):
        return False
