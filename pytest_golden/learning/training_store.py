"""Recorded outcomes, what the gate recorded beside them, and training examples, page by page. Works on an open connection."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, cast, select

from pytest_golden.learning.outcomes import TRAINING
from pytest_golden.learning.store import find_by_keys
from pytest_golden.storage.columns import namespace_range, read_namespace, write_namespace
from pytest_golden.storage.schema import gate_results, memories

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import Connection

    from pytest_golden.learning.model import Memory

OUTCOMES = "outcomes"
_OUTCOMES_AT_ONCE = 200
# A value may have 1 MiB, so only a few are in memory at once.
_EXAMPLES_AT_ONCE = 50


def list_latest_outcomes(connection: Connection, agent: str | None = None) -> Iterator[Memory]:
    """Yield the outcomes of one agent or of all, newest first."""
    first, after = namespace_range((OUTCOMES,)) or ("", "")
    query = select(memories.c.number, memories.c.namespace, memories.c.key).where(memories.c.is_newest.is_(True))
    if agent is None:
        query = query.where(memories.c.namespace >= first, memories.c.namespace < after)
    else:
        query = query.where(memories.c.namespace == write_namespace((OUTCOMES, agent)))
    page = query.order_by(memories.c.number.desc()).limit(_OUTCOMES_AT_ONCE)
    rows = connection.execute(page).all()
    while rows:
        found = {
            (memory.namespace, memory.key): memory
            for place in dict.fromkeys(row.namespace for row in rows)
            for memory in find_by_keys(
                connection, read_namespace(place), [row.key for row in rows if row.namespace == place]
            )
        }
        places = ((read_namespace(row.namespace), row.key) for row in rows)
        yield from (found[place] for place in places if place in found)
        rows = connection.execute(page.where(memories.c.number < rows[-1].number)).all()


def read_results(connection: Connection, entries: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return the gate's results under these entries, as far as they are there and can be read."""
    query = select(gate_results.c.entry_id, cast(gate_results.c.result, Text).label("result"))
    rows = connection.execute(query.where(gate_results.c.entry_id.in_(entries)))
    read = ((row.entry_id, _read(row.result)) for row in rows)
    return {entry: result for entry, result in read if result is not None}


def _read(text: str) -> Mapping[str, Any] | None:
    try:
        result = json.loads(text)
    except ValueError:
        return None
    return result if isinstance(result, dict) else None


def iter_training_examples(connection: Connection, agent: str | None) -> Iterator[Mapping[str, Any]]:
    """Yield the values of all training examples, or of one agent's, oldest first."""
    low, high = namespace_range((TRAINING,)) or ("", "")
    place = memories.c.namespace
    wanted = (place >= low) & (place < high) if agent is None else place == write_namespace((TRAINING, agent))
    page = (
        select(memories.c.number, memories.c.value)
        .where(wanted, memories.c.is_newest.is_(True))
        .order_by(memories.c.number)
        .limit(_EXAMPLES_AT_ONCE)
    )
    last = -1
    while rows := connection.execute(page.where(memories.c.number > last)).all():
        yield from (row.value for row in rows)
        last = rows[-1].number
