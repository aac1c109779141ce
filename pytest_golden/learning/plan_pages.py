"""Plans in pages, found by words, and one with the outcome that it was read out of. Nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.errors import GoldenError
from pytest_golden.learning.memories import thaw
from pytest_golden.learning.outcomes import EVERYBODY, OUTCOMES, PLANS
from pytest_golden.learning.store import find_everywhere, list_newest_keys, search
from pytest_golden.storage.columns import storable
from pytest_golden.storage.paging import DEFAULT_ITEMS, Listing, Page, check_page_limit
from pytest_golden.values.checking import check_text

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from pytest_golden.learning.model import Memory
    from pytest_golden.storage.store import Store

_MOST_FOUND = 400


@dataclass(frozen=True, slots=True)
class ListedPlan:
    """A plan as the memory that it is kept as: `memory.value` has the fields of `ExtractedPlan`."""

    memory: Memory

    def to_dict(self) -> dict[str, Any]:
        """Return `id`, the plan's fields, and `created_at`, JSON-safe."""
        return {"id": self.memory.key, **thaw(self.memory.value), "created_at": iso_utc(self.memory.created_at)}


@dataclass(frozen=True, slots=True)
class PlanDetails:
    """A plan, whose it is, and the outcome that it was read out of: the fields of `ProductionOutcome`, None when it is gone."""

    memory: Memory
    agents: tuple[str, ...]
    outcome: Memory | None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of `ListedPlan`, `agents` and `outcome`, JSON-safe."""
        outcome = None if self.outcome is None else thaw(self.outcome.value)
        return {**ListedPlan(self.memory).to_dict(), "agents": list(self.agents), "outcome": outcome}


class PlanPages:
    """The lists of plans in a store that stays the caller's. Safe between threads.

    Every method raises `StorageError` when the store cannot be read, and `ValueError` for an argument that is not allowed,
    or a cursor of another list or other filters.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def list_plans(
        self, q: str | None = None, agent: str | None = None, limit: int = DEFAULT_ITEMS, cursor: str | None = None
    ) -> Page[ListedPlan]:
        """Return everybody's plans or an agent's, the newest first, or those in which any word of `q` stands, best first.

        Of what a search finds, the best 400 are looked at.
        """
        limit, words = check_page_limit(limit), (q or "").strip()
        place = (PLANS, EVERYBODY if agent is None else storable(agent))
        with self._store.read() as connection:
            if words:
                return _search(connection, place, words, limit, cursor)
            listing = Listing("plans", agent, kinds=(str,))
            (before,) = listing.read_cursor(cursor) or (None,)
            found = list_newest_keys(connection, place, before=before, limit=limit + 1)
        return listing.cut(found, limit, lambda memory: (memory.key,), ListedPlan)

    def get_plan(self, plan_id: str) -> PlanDetails:
        """Get the plan of an id.

        Raises:
            GoldenError: there is none.
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


def _search(
    connection: Connection, place: tuple[str, str], words: str, limit: int, cursor: str | None
) -> Page[ListedPlan]:
    listing = Listing("found plans", words, place[1], kinds=(int,))
    (shown_count,) = listing.read_cursor(cursor) or (0,)
    start = max(shown_count, 0)
    found = search(connection, place, words, min(start + limit + 1, _MOST_FOUND))[start:]
    more = listing.write_cursor((start + limit,)) if len(found) > limit else None
    return Page(tuple(ListedPlan(hit.memory) for hit in found[:limit]), more)
