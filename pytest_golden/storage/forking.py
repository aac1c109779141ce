"""What becomes of open connections when the process forks: none is used on both sides, which would damage the store.

SQLite keeps in a process's memory which locks it holds, so a fork that inherits open connections believes to hold locks that
it does not hold; two processes on one connection to a server talk over each other. Connections are closed before, therefore,
and both sides make new ones.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

from sqlalchemy.pool import QueuePool

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


#: How long a fork waits for what other threads do with a store at that moment.
MOST_SECONDS = 1.0
_SHORT_WHILE = 0.002


class HasConnections(Protocol):
    """What is told of forks."""

    def before_fork(self) -> None:
        """Let nobody write, and close the connections."""
        ...

    def after_fork_in_parent(self) -> None:
        """Go on."""
        ...

    def after_fork_in_child(self) -> None:
        """Begin anew."""
        ...


_OPEN: WeakSet[HasConnections] = WeakSet()
# What was in use by other threads when the process forked. To close it here, as to forget it does, would harm the parent.
_LEFT: list[object] = []


def watch_forks(one: HasConnections) -> None:
    """Tell it of each fork of this process, as long as it is there."""
    _OPEN.add(one)


def wait_for_readers(engine: Engine) -> bool:
    """Wait a moment until no connection is in use, and tell whether none is."""
    pool = engine.pool
    assert isinstance(pool, QueuePool)
    deadline = time.monotonic() + MOST_SECONDS
    while pool.checkedout() and time.monotonic() < deadline:
        time.sleep(_SHORT_WHILE)
    return not pool.checkedout()


def leave_to_parent(engine: Engine, writer: Connection | None) -> None:
    """Let go, in the child, of connections that the parent still uses."""
    _LEFT.extend((engine.pool, writer))
    engine.dispose(close=False)


def _before() -> None:
    for one in list(_OPEN):
        one.before_fork()


def _after_in_parent() -> None:
    for one in list(_OPEN):
        one.after_fork_in_parent()


def _after_in_child() -> None:
    for one in list(_OPEN):
        one.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
