"""Training examples as rows, page by page. Each function works on an open connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from pytest_golden.learning.logger.memory_form import TRAINING
from pytest_golden.storage.namespaces import namespace_range, write_namespace
from pytest_golden.storage.schema import memories

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy import Connection

# A value may have 1 MiB, so not many are in memory at once.
_AT_ONCE = 50


def iter_training_examples(connection: Connection, agent: str | None) -> Iterator[Mapping[str, Any]]:
    """Give the values of all training examples, or of one agent's, oldest first."""
    low, high = namespace_range((TRAINING,)) or ("", "")
    place = memories.c.namespace
    wanted = (place >= low) & (place < high) if agent is None else place == write_namespace((TRAINING, agent))
    page = (
        select(memories.c.number, memories.c.value)
        .where(wanted, memories.c.is_newest.is_(True))
        .order_by(memories.c.number)
        .limit(_AT_ONCE)
    )
    last = -1
    while rows := connection.execute(page.where(memories.c.number > last)).all():
        yield from (row.value for row in rows)
        last = rows[-1].number
