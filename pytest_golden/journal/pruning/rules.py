"""Which trees of entries may leave the journal. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection


class Member(NamedTuple):
    """One entry of a tree; moments are milliseconds since the epoch, and None says that it is open."""

    id: str
    number: int
    agent_id: str
    closed_at: int | None


#: An entry and all that are below it, the entry first.
Tree: TypeAlias = tuple[Member, ...]


class Limit(NamedTuple):
    """What may go of one agent: what was closed at a moment or before, and entries up to a number; None: no such limit."""

    closed_by: int | None = None
    last_number: int | None = None


def may_go(tree: Tree, limit: Limit, kept: Collection[str]) -> bool:
    """Tell whether a tree may leave: it is beyond a limit as a whole, of one agent, closed, and not needed."""
    if len({member.agent_id for member in tree}) > 1 or any(member.id in kept for member in tree):
        return False
    closed = [member.closed_at for member in tree if member.closed_at is not None]
    if len(closed) < len(tree):
        return False
    is_old = limit.closed_by is not None and max(closed) <= limit.closed_by
    is_too_many = limit.last_number is not None and max(member.number for member in tree) <= limit.last_number
    return is_old or is_too_many
