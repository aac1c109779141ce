"""Trees of entries as rows, found and removed. Each function works on an open connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, exists, func, or_, select

from pytest_golden.journal.pruning.rules import Member
from pytest_golden.storage.schema import entries, entry_history, expectations, signals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection, Select

_CHUNK = 500
_PARENT = entries.alias("parent")
_MEMBER = (entries.c.id, entries.c.number, entries.c.agent_id, entries.c.closed_at)
# One whose parent was never here, or is no longer, begins a tree too.
_IS_ROOT = or_(entries.c.parent_id.is_(None), ~exists(select(_PARENT.c.id).where(_PARENT.c.id == entries.c.parent_id)))


def list_roots(connection: Connection, agent_id: str, after: Member | None, limit: int) -> tuple[Member, ...]:
    """Give the next roots of an agent's closed trees, the oldest first."""
    query = select(*_MEMBER).where(entries.c.agent_id == agent_id, _IS_ROOT)
    query = query.where(entries.c.closed_at.is_not(None)).order_by(entries.c.number).limit(limit)
    if after is not None:
        query = query.where(entries.c.number > after.number)
    return tuple(Member(*row) for row in connection.execute(query))


def read_tree(connection: Connection, root: Member) -> tuple[Member, ...]:
    """Give an entry and all that are below it."""
    tree: dict[str, Member] = {root.id: root}
    level = [root.id]
    while level:
        below = [Member(*row) for part in _divide(level) for row in connection.execute(_below(part))]
        level = [member.id for member in below if member.id not in tree]
        tree |= {member.id: member for member in below}
    return tuple(tree.values())


def find_last_beyond(connection: Connection, agent_id: str, kept: int) -> int | None:
    """Give the number of an agent's newest closed entry that is not among the newest `kept` of them."""
    closed = and_(entries.c.agent_id == agent_id, entries.c.closed_at.is_not(None))
    query = select(entries.c.number).where(closed).order_by(entries.c.number.desc()).offset(kept).limit(1)
    number: int | None = connection.scalar(query)
    return number


def list_agents(connection: Connection) -> tuple[str, ...]:
    """Give the agents that have an entry, sorted."""
    # The index holds them in order: each look skips to the next one, however many entries an agent has.
    names: list[str] = []
    while True:
        query = select(func.min(entries.c.agent_id))
        name = connection.scalar(query.where(entries.c.agent_id > names[-1]) if names else query)
        if name is None:
            return tuple(names)
        names.append(name)


def delete_entries(connection: Connection, ids: Sequence[str]) -> None:
    """Remove entries with all that belongs to them; nothing else may refer to them any more."""
    for part in _divide(ids):
        for table in (expectations, signals, entry_history):
            connection.execute(delete(table).where(table.c.entry_id.in_(part)))
        connection.execute(delete(entries).where(entries.c.id.in_(part)))


def _below(ids: Sequence[str]) -> Select[Any]:
    return select(*_MEMBER).where(entries.c.parent_id.in_(ids))


def _divide(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), _CHUNK):
        yield ids[start : start + _CHUNK]
