"""Trees of entries as rows, found and removed. Each function works on an open connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, exists, func, or_, select

from pytest_golden.journal.pruning.rules import Member
from pytest_golden.storage.schema import entries, entry_history, expectations, signals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection, Select

    from pytest_golden.journal.pruning.rules import Tree

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


def read_trees(connection: Connection, roots: Sequence[Member]) -> tuple[Tree, ...]:
    """Give each of some entries with all that are below it."""
    trees: dict[str, dict[str, Member]] = {root.id: {root.id: root} for root in roots}
    above = {root.id: root.id for root in roots}
    level = list(above)
    while level:
        below = [row for part in _divide(level) for row in connection.execute(_below(part))]
        level = []
        for *values, parent_id in below:
            member, root_id = Member(*values), above[parent_id]
            if member.id not in trees[root_id]:
                trees[root_id][member.id] = member
                above[member.id] = root_id
                level.append(member.id)
    return tuple(tuple(tree.values()) for tree in trees.values())


def read_members(connection: Connection, ids: Sequence[str]) -> tuple[Member, ...]:
    """Give those of some entries that are there, as they are now."""
    queries = (select(*_MEMBER).where(entries.c.id.in_(part)) for part in _divide(ids))
    return tuple(Member(*row) for query in queries for row in connection.execute(query))


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
    return select(*_MEMBER, entries.c.parent_id).where(entries.c.parent_id.in_(ids))


def _divide(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), _CHUNK):
        yield ids[start : start + _CHUNK]
