"""Lessons and plans in pages, found by words or by their state, and one of them with all its details. Nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pytest_golden.clock import iso_utc
from pytest_golden.errors import GoldenError
from pytest_golden.learning.lessons import store as rows
from pytest_golden.learning.lessons.recalling import SHOWN, STATES, describe_state
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.learning.outcomes import EVERYBODY, OUTCOMES, PLANS
from pytest_golden.learning.store import find_by_keys, find_everywhere, iterate_search, list_newest_keys
from pytest_golden.storage.columns import storable
from pytest_golden.storage.paging import DEFAULT_ITEMS, Listed, Listing, Page, check_page_limit
from pytest_golden.values.checking import check_text
from pytest_golden.values.shape import Shape, form, in_form, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy import Connection

    from pytest_golden.learning.model import Memory
    from pytest_golden.storage.store import Store

CURRENT, ALL = "current", "all"
#: The filters of a list of lessons. A lesson is current unless it was rejected or superseded.
LESSON_FILTERS = (CURRENT, ALL, *STATES)
_PAST = frozenset({"superseded", "rejected"})
# A lesson's state depends on its content: at most so many are read for a page, which may then be short.
_AT_ONCE, _MOST_READ = 100, 300
_MOST_FOUND = 400
_MOST_RECALLS = 20
_Item = TypeVar("_Item", bound=Listed)


@dataclass(frozen=True, slots=True)
class ListedLesson(Shape):
    """A lesson with its agent and its state."""

    kept: rows.KeptLesson = field(metadata=form(merged=True))

    @property
    @in_form()
    def state(self) -> str:
        """Return one of `STATES`."""
        return describe_state(self.kept.skill)


def _write_versions(history: tuple[rows.KeptLesson, ...]) -> list[Any]:
    return [{"version": one.version, **plain(one.provenance or {})} for one in history]


@dataclass(frozen=True, slots=True)
class LessonDetails(ListedLesson):
    """A lesson with its evidence, all its versions, oldest first, and the latest times that it was shown, newest first."""

    history: tuple[rows.KeptLesson, ...] = field(
        metadata=form(write=_write_versions, as_type=tuple[Mapping[str, Any], ...])
    )
    recalls: tuple[rows.RecallRow, ...]


class ListedPlan(NamedTuple):
    """A plan as it is stored: `memory.value` has the fields of `ExtractedPlan`."""

    memory: Memory

    def to_dict(self) -> dict[str, Any]:
        """Return `id`, the plan's fields, and `created_at`, JSON-safe."""
        return {"id": self.memory.key, **plain(self.memory.value), "created_at": iso_utc(self.memory.created_at)}


class PlanDetails(NamedTuple):
    """A plan, its agents, and the outcome that it was read from: the fields of `ProductionOutcome`, None when it is gone."""

    memory: Memory
    agents: tuple[str, ...]
    outcome: Memory | None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of `ListedPlan`, `agents` and `outcome`, JSON-safe."""
        outcome = None if self.outcome is None else plain(self.outcome.value)
        return {**ListedPlan(self.memory).to_dict(), "agents": list(self.agents), "outcome": outcome}


class LearnedPages:
    """The lists of lessons and of plans in a store that the caller owns. Safe between threads.

    Every method raises `StorageError` when the store cannot be read, and `ValueError` for an invalid argument or for a
    cursor of another list or of other filters.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def list_lessons(
        self,
        q: str | None = None,
        agent: str | None = None,
        filter: str = CURRENT,  # noqa: A002 - as the journal's lists have it
        limit: int = DEFAULT_ITEMS,
        cursor: str | None = None,
    ) -> Page[ListedLesson]:
        """Return lessons, the newest first, or those that contain any word of `q`, best first.

        `filter` is one of `LESSON_FILTERS`. A page may have fewer than `limit` although more follow. A search reads the
        best 400 hits.
        """
        limit, words = check_page_limit(limit), (q or "").strip()
        if filter not in LESSON_FILTERS:
            raise ValueError(f"filter {filter!r:.40} is unknown: give one of {', '.join(LESSON_FILTERS)}")
        agent = None if agent is None else storable(agent)
        with self._store.read() as connection:
            if not words:
                return _list_lessons(connection, agent, filter, limit, cursor)
            listing = Listing("found lessons", words, agent, filter, kinds=(int,))
            hits = map(ListedLesson, rows.iterate_by_words(connection, words, agent, _MOST_FOUND, at_once=_AT_ONCE))
            return _page_hits(listing, (one for one in hits if _fits(one, filter)), limit, cursor)

    def get_lesson(self, lesson_id: str) -> LessonDetails:
        """Get the lesson with this id, or with the only id that begins with it.

        Raises:
            GoldenError: no lesson has such an id, or several have; the message names them.
        """
        kept = Lessons(self._store).get_kept(lesson_id)
        with self._store.read() as connection:
            history = rows.list_lesson_versions(connection, kept.agent, kept.skill.id)
            return LessonDetails(kept, history, rows.list_recalls(connection, kept.skill.id, _MOST_RECALLS))

    def list_plans(
        self, q: str | None = None, agent: str | None = None, limit: int = DEFAULT_ITEMS, cursor: str | None = None
    ) -> Page[ListedPlan]:
        """Return everybody's plans or an agent's, the newest first, or those that contain any word of `q`, best first.

        A search reads the best 400 hits.
        """
        limit, words = check_page_limit(limit), (q or "").strip()
        namespace = (PLANS, EVERYBODY if agent is None else storable(agent))
        with self._store.read() as connection:
            if words:
                hits = iterate_search(connection, namespace, words, _MOST_FOUND, at_once=_AT_ONCE)
                listing = Listing("found plans", words, namespace[1], kinds=(int,))
                return _page_hits(listing, (ListedPlan(hit.memory) for hit in hits), limit, cursor)
            listing = Listing("plans", agent, kinds=(str,))
            (before,) = listing.read_cursor(cursor) or (None,)
            found = list_newest_keys(connection, namespace, before=before, limit=limit + 1)
        return listing.cut(found, limit, lambda memory: (memory.key,), ListedPlan)

    def find_plans(self, plan_ids: Iterable[str]) -> frozenset[str]:
        """Return those of these ids that a plan has."""
        with self._store.read() as connection:
            return frozenset(one.key for one in find_by_keys(connection, (PLANS, EVERYBODY), tuple(plan_ids)))

    def get_plan(self, plan_id: str) -> PlanDetails:
        """Get the plan with this id.

        Raises:
            GoldenError: no plan has it.
        """
        check_text("the id of a plan", plan_id)
        with self._store.read() as connection:
            found = find_everywhere(connection, (PLANS,), storable(plan_id))
            if not found:
                raise GoldenError(f"there is no plan {plan_id!r:.100}")
            outcome_id = found[0].value.get("outcome_id")
            outcomes = find_everywhere(connection, (OUTCOMES,), str(outcome_id)) if outcome_id else ()
        agents = tuple(one.namespace[1] for one in found if len(one.namespace) > 1 and one.namespace[1] != EVERYBODY)
        return PlanDetails(found[0], agents, next(iter(outcomes), None))


def list_of_project(connection: Connection, project: str, limit: int) -> tuple[ListedLesson, ...]:
    """Return the newest lessons that a golden project taught and that are shown, newest first."""
    ids = rows.list_newest_ids(connection, project=storable(project), limit=limit)
    return tuple(one for one in _read_lessons(connection, ids) if one.state == SHOWN)


def _list_lessons(
    connection: Connection, agent: str | None, state: str, limit: int, cursor: str | None
) -> Page[ListedLesson]:
    listing = Listing("lessons", agent, state, kinds=(str,))
    (before,) = listing.read_cursor(cursor) or (None,)
    found: list[ListedLesson] = []
    is_over = False
    for _ in range(_MOST_READ // _AT_ONCE):
        ids = rows.list_newest_ids(connection, before=before, agent=agent, limit=min(limit + 1, _AT_ONCE))
        found += (one for one in _read_lessons(connection, ids) if _fits(one, state))
        is_over = len(ids) < min(limit + 1, _AT_ONCE)
        if is_over or len(found) > limit:
            break
        before = ids[-1][1]
    shown = tuple(found[:limit])
    if len(found) > limit:
        before = shown[-1].kept.skill.id
    elif is_over:
        return Page(shown)
    return Page(shown, listing.write_cursor((str(before),)))


def _read_lessons(connection: Connection, ids: Sequence[tuple[str, str]]) -> Iterator[ListedLesson]:
    kept = {one.skill.id: one for one in rows.find_lessons(connection, ids)}
    return (ListedLesson(kept[lesson_id]) for _, lesson_id in ids if lesson_id in kept)


def _fits(lesson: ListedLesson, state: str) -> bool:
    return lesson.state not in _PAST if state == CURRENT else state in (ALL, lesson.state)


def _page_hits(listing: Listing, hits: Iterable[_Item], limit: int, cursor: str | None) -> Page[_Item]:
    """Return a page of a search's hits, which are read only as far as the page goes; its cursor counts those before it."""
    (start,) = listing.read_cursor(cursor) or (0,)
    start = min(max(start, 0), _MOST_FOUND)
    found = tuple(islice(hits, start, start + limit + 1))
    return Page(found[:limit], listing.write_cursor((start + limit,)) if len(found) > limit else None)
