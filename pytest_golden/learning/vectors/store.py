"""Store the vectors of memories as rows. A memory whose words change loses its vector, see `storage.search`.

So a memory with a vector can also be found by words, and when the numbers of both are equal, no vector is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, func, insert, select

from pytest_golden.clock import utc_now
from pytest_golden.storage.schema import memories, memory_vectors
from pytest_golden.storage.search import count_indexed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Connection, Select

    Span = tuple[str, str]

_AT_ONCE = 500
_OF_MODEL = memory_vectors.c.model == bindparam("of_model", type_=memory_vectors.c.model.type)
_NEWEST_STAMP = select(func.coalesce(func.max(memory_vectors.c.stamp), 0).label("stamp")).where(_OF_MODEL)
_STATE = select(
    select(func.count()).select_from(memory_vectors).scalar_subquery().label("amount"),
    _NEWEST_STAMP.scalar_subquery().label("stamp"),
)
_AMOUNT = select(func.count()).where(_OF_MODEL)
_SINCE = (
    select(memory_vectors.c.number, memory_vectors.c.stamp, memories.c.namespace, memory_vectors.c.vector)
    .join_from(memory_vectors, memories, memories.c.number == memory_vectors.c.number)
    .where(_OF_MODEL, memory_vectors.c.stamp > bindparam("last_stamp", type_=memory_vectors.c.stamp.type))
)
_HAS_VECTOR = select(memory_vectors.c.number).where(memory_vectors.c.number == memories.c.number, _OF_MODEL).exists()


def read_state(connection: Connection, model: str) -> tuple[int, int]:
    """Return the number of vectors of all models, and the newest stamp of one; a change of the vectors changes one of them."""
    amount, stamp = connection.execute(_STATE, {"of_model": model}).one()
    return amount, stamp


def count_vectors(connection: Connection, model: str) -> int:
    """Count the vectors of this model."""
    return connection.scalar(_AMOUNT, {"of_model": model}) or 0


def read_since(connection: Connection, model: str, stamp: int) -> Iterable[Any]:
    """Return rows of `number, stamp, namespace, vector` with a later stamp, in any order."""
    options = {"yield_per": _AT_ONCE}
    return connection.execute(_SINCE, {"of_model": model, "last_stamp": stamp}, execution_options=options)


def count_searchable(connection: Connection, span: Span | None, most: int) -> int:
    """Return the number of newest versions in these namespaces; beyond `most` it is not exact."""
    everywhere = count_indexed(connection)
    if everywhere <= most or span is None:
        return everywhere
    found = _newest_in(span).limit(most + 1).subquery()
    return int(connection.scalar(select(func.count()).select_from(found)) or 0)


def list_missing(connection: Connection, model: str, span: Span | None) -> list[int]:
    """Return the numbers of the memories in these namespaces without a vector of this model, the newest first."""
    query = _newest_in(span).where(~_HAS_VECTOR).order_by(memories.c.number.desc())
    return list(connection.scalars(query, {"of_model": model}))


def read_words(connection: Connection, numbers: Sequence[int]) -> dict[int, str]:
    """Return the words of these memories, as far as they are newest versions."""
    query = select(memories.c.number, memories.c.words).where(memories.c.number.in_(numbers), memories.c.is_newest)
    return {row.number: row.words or "" for row in connection.execute(query)}


def put_vectors(connection: Connection, model: str, vectors: Mapping[int, str], words: Mapping[int, str]) -> None:
    """Store the vectors of memories in place of older ones, unless their words have changed meanwhile."""
    now = read_words(connection, list(vectors))
    # From the clock: the highest stamp may be gone, and a process that saw it would not notice a lower one.
    stamp = max((connection.scalar(_NEWEST_STAMP, {"of_model": model}) or 0) + 1, int(utc_now().timestamp() * 1e6))
    rows = [
        {"number": number, "model": model, "vector": vector, "stamp": stamp}
        for number, vector in vectors.items()
        if now.get(number) == words[number]
    ]
    if rows:
        numbers = [row["number"] for row in rows]
        connection.execute(delete(memory_vectors).where(memory_vectors.c.number.in_(numbers)))
        connection.execute(insert(memory_vectors), rows)


def _newest_in(span: Span | None) -> Select[Any]:
    query = select(memories.c.number).where(memories.c.is_newest)
    return query if span is None else query.where(memories.c.namespace >= span[0], memories.c.namespace < span[1])
