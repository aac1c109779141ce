"""Closed trees of entries: which of them may be pruned, and how they are found and deleted.

Each function that takes a connection works inside the caller's transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sqlalchemy import Connection, Select, and_, delete, exists, func, or_, select

from pytest_golden.storage.schema import entries, entry_history, expectations, signals

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


_CHUNK = 500
_PARENT = entries.alias("parent")
_MEMBER = (entries.c.id, entries.c.number, entries.c.agent_id, entries.c.closed_at)
# An entry whose parent is not in the store begins a tree too.
_IS_ROOT = or_(entries.c.parent_id.is_(None), ~exists(select(_PARENT.c.id).where(_PARENT.c.id == entries.c.parent_id)))


class Member(NamedTuple):
    """One entry of a tree; timestamps are in milliseconds since the epoch, and a `closed_at` of None means open."""

    id: str
    number: int
    agent_id: str
    closed_at: int | None


#: An entry and all that are below it, the entry first.
Tree: TypeAlias = tuple[Member, ...]


class Limit(NamedTuple):
    """What may be pruned of one agent: entries closed by a timestamp, and entries up to a number; None: no such limit."""

    closed_by: int | None = None
    last_number: int | None = None


def may_go(tree: Tree, limit: Limit, kept: Collection[str]) -> bool:
    """Tell whether a tree may be pruned: all of it is beyond a limit, of one agent, closed, and not needed."""
    if len({member.agent_id for member in tree}) > 1 or any(member.id in kept for member in tree):
        return False
    closed = [member.closed_at for member in tree if member.closed_at is not None]
    if len(closed) < len(tree):
        return False
    is_old = limit.closed_by is not None and max(closed) <= limit.closed_by
    is_too_many = limit.last_number is not None and max(member.number for member in tree) <= limit.last_number
    return is_old or is_too_many


def list_roots(connection: Connection, agent_id: str, after: Member | None, limit: int) -> tuple[Member, ...]:
    """Return the next roots of an agent's closed trees, the oldest first."""
    query = select(*_MEMBER).where(entries.c.agent_id == agent_id, _IS_ROOT)
    query = query.where(entries.c.closed_at.is_not(None)).order_by(entries.c.number).limit(limit)
    if after is not None:
        query = query.where(entries.c.number > after.number)
    return tuple(Member(*row) for row in connection.execute(query))


def read_trees(connection: Connection, roots: Sequence[Member]) -> tuple[Tree, ...]:
    """Return each of some entries with all that are below it."""
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
    """Return those of some entries that still exist, as they are now."""
    queries = (select(*_MEMBER).where(entries.c.id.in_(part)) for part in _divide(ids))
    return tuple(Member(*row) for query in queries for row in connection.execute(query))


def find_last_beyond(connection: Connection, agent_id: str, kept: int) -> int | None:
    """Return the number of an agent's newest closed entry that is not among the newest `kept` of them."""
    closed = and_(entries.c.agent_id == agent_id, entries.c.closed_at.is_not(None))
    query = select(entries.c.number).where(closed).order_by(entries.c.number.desc()).offset(kept).limit(1)
    number: int | None = connection.scalar(query)
    return number


def list_agents(connection: Connection) -> tuple[str, ...]:
    """Return the agents that have an entry, sorted."""
    # The index is sorted: each step skips to the next agent, however many entries an agent has.
    names: list[str] = []
    while True:
        query = select(func.min(entries.c.agent_id))
        name = connection.scalar(query.where(entries.c.agent_id > names[-1]) if names else query)
        if name is None:
            return tuple(names)
        names.append(name)


def delete_entries(connection: Connection, ids: Sequence[str]) -> None:
    """Delete entries with all that belongs to them; nothing else may refer to them any more."""
    for part in _divide(ids):
        for table in (expectations, signals, entry_history):
            connection.execute(delete(table).where(table.c.entry_id.in_(part)))
        connection.execute(delete(entries).where(entries.c.id.in_(part)))


def _below(ids: Sequence[str]) -> Select[Any]:
    return select(*_MEMBER, entries.c.parent_id).where(entries.c.parent_id.in_(ids))


def _divide(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), _CHUNK):
        yield ids[start : start + _CHUNK]
