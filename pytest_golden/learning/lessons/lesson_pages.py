"""Lessons in pages, found by words or by their state, and one lesson with its evidence and history. Nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from pytest_golden.learning.lessons.recalling import STATES, describe_state
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.learning.lessons.store import (
    find_lessons,
    iterate_by_words,
    list_newest_ids,
    list_recalls,
)
from pytest_golden.storage.columns import storable
from pytest_golden.storage.paging import DEFAULT_ITEMS, Listing, Page, check_page_limit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection

    from pytest_golden.learning.lessons.store import KeptLesson, RecallRow
    from pytest_golden.storage.store import Store

CURRENT, ALL = "current", "all"
#: What lessons can be narrowed to. What is current was neither rejected nor superseded.
LESSON_FILTERS = (CURRENT, ALL, *STATES)
_PAST = frozenset({"superseded", "rejected"})
# A lesson's state depends on its content: at most so many are read for a page, which may then be short.
_AT_ONCE, _MOST_READ = 100, 300
_MOST_FOUND = 400
_MOST_RECALLS = 20


@dataclass(frozen=True, slots=True)
class ListedLesson:
    """A lesson with its agent and its state."""

    kept: KeptLesson

    @property
    def state(self) -> str:
        """One of `STATES`."""
        return describe_state(self.kept.skill)

    def to_dict(self) -> dict[str, Any]:
        """Return `agent`, `state` and the lesson's fields, JSON-safe."""
        return {"agent": self.kept.agent, "state": self.state, **self.kept.skill.to_dict()}


@dataclass(frozen=True, slots=True)
class LessonDetails:
    """A lesson with its evidence, all its versions, oldest first, and the newest times that it was shown, newest first."""

    kept: KeptLesson
    history: tuple[KeptLesson, ...]
    recalls: tuple[RecallRow, ...]

    @property
    def state(self) -> str:
        """One of `STATES`."""
        return describe_state(self.kept.skill)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of `ListedLesson`, `history: [{version, why, by, ...}]` and `recalls`, JSON-safe."""
        history = [{"version": one.version, **(one.provenance or {})} for one in self.history]
        return {
            **ListedLesson(self.kept).to_dict(),
            "history": history,
            "recalls": [one.to_dict() for one in self.recalls],
        }


class LessonPages:
    """The lists of lessons in a store that stays the caller's. Safe between threads.

    Every method raises `StorageError` when the store cannot be read, and `ValueError` for an argument that is not allowed,
    or a cursor of another list or other filters.
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
        """Return lessons, the newest first, or those in which any word of `q` stands, best first.

        `filter` is one of `LESSON_FILTERS`. A page may have fewer than `limit` although more follow. Of what a search
        finds, the best 400 are looked at.
        """
        limit, words = check_page_limit(limit), (q or "").strip()
        if filter not in LESSON_FILTERS:
            raise ValueError(f"filter {filter!r:.40} is unknown: give one of {', '.join(LESSON_FILTERS)}")
        agent = None if agent is None else storable(agent)
        with self._store.read() as connection:
            if words:
                return _search(connection, words, (agent, filter), limit, cursor)
            return _list(connection, (agent, filter), limit, cursor)

    def get_lesson(self, lesson_id: str) -> LessonDetails:
        """Get the lesson of an id, or of the one id that begins so.

        Raises:
            GoldenError: there is none, or there are several; the message names them.
        """
        lessons = Lessons(self._store)
        kept = lessons.get_kept(lesson_id)
        history = lessons.history(kept.skill.id)
        with self._store.read() as connection:
            return LessonDetails(kept, history, list_recalls(connection, kept.skill.id, _MOST_RECALLS))


def list_of_project(connection: Connection, project: str, limit: int) -> tuple[ListedLesson, ...]:
    """Return the newest current lessons that a golden project has taught, newest first."""
    places = list_newest_ids(connection, project=storable(project), limit=limit)
    return tuple(one for one in _read(connection, places) if one.state not in _PAST)


def _list(connection: Connection, chosen: tuple[str | None, str], limit: int, cursor: str | None) -> Page[ListedLesson]:
    agent, wanted = chosen
    listing = Listing("lessons", *chosen, kinds=(str,))
    (before,) = listing.read_cursor(cursor) or (None,)
    found: list[ListedLesson] = []
    is_over = False
    for _ in range(_MOST_READ // _AT_ONCE):
        places = list_newest_ids(connection, before=before, agent=agent, limit=min(limit + 1, _AT_ONCE))
        found += (one for one in _read(connection, places) if _fits(one, wanted))
        is_over = len(places) < min(limit + 1, _AT_ONCE)
        if is_over or len(found) > limit:
            break
        before = places[-1][1]
    shown = tuple(found[:limit])
    if len(found) > limit:
        before = shown[-1].kept.skill.id
    elif is_over:
        return Page(shown)
    return Page(shown, listing.write_cursor((str(before),)))


def _search(
    connection: Connection, words: str, chosen: tuple[str | None, str], limit: int, cursor: str | None
) -> Page[ListedLesson]:
    agent, wanted = chosen
    listing = Listing("found lessons", words, *chosen, kinds=(int,))
    (shown_count,) = listing.read_cursor(cursor) or (0,)
    read = iterate_by_words(connection, words, agent, _MOST_FOUND, at_once=_AT_ONCE)
    fitting = (one for one in map(ListedLesson, read) if _fits(one, wanted))
    start = min(max(shown_count, 0), _MOST_FOUND)
    found = tuple(islice(fitting, start, start + limit + 1))
    more = listing.write_cursor((start + limit,)) if len(found) > limit else None
    return Page(found[:limit], more)


def _read(connection: Connection, places: Sequence[tuple[str, str]]) -> Iterator[ListedLesson]:
    kept = {one.skill.id: one for one in find_lessons(connection, places)}
    return (ListedLesson(kept[lesson_id]) for _, lesson_id in places if lesson_id in kept)


def _fits(lesson: ListedLesson, wanted: str) -> bool:
    if wanted == CURRENT:
        return lesson.state not in _PAST
    return wanted in (ALL, lesson.state)
