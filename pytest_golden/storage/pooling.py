"""The pool of connections to a store: none stays open once the pool was let go of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy.pool import QueuePool

if TYPE_CHECKING:
    from sqlalchemy.pool import ConnectionPoolEntry


class ClosingPool(QueuePool):
    """Closes also what another thread was using when the pool was disposed of, once that thread gives it back.

    `Engine.dispose` forgets such connections, and a server would keep each until the garbage collector finds it here.
    """

    _is_disposed = False

    def dispose(self) -> None:
        """Close what waits to be used, and all that comes back later."""
        # First of all, or what comes back meanwhile would stay.
        self._is_disposed = True
        super().dispose()

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        super()._do_return_conn(record)
        if self._is_disposed:
            super().dispose()
