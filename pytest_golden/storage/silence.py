"""A connection to a server that is not waited for without end. Loaded only for such a store.

A server that is frozen, or whose disk is, answers nothing, while its machine goes on to acknowledge what it gets: no
time limit of the network ends that, and none of the server's own.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

_T = TypeVar("_T")

#: Beside what a lock may be waited for. No statement takes so long, but those that bring tables up to date.
LONGEST_SILENCE_SECONDS = 300.0


class ImpatientConnection(psycopg.Connection[Any]):
    """Is given up once the server has said nothing for so many seconds; None: never."""

    longest_silence: float | None = None

    def wait(self, gen: Generator[Any, Any, _T], *args: Any, **options: Any) -> _T:
        """Wait for the server's answer.

        Raises:
            psycopg.OperationalError: there was none; the connection is closed.
        """
        return super().wait(self._watch(gen), *args, **options)

    def _watch(self, gen: Generator[Any, Any, _T]) -> Generator[Any, Any, _T]:
        began: float | None = None
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                # Nothing has happened: the driver looks up from time to time.
                if ready:
                    began = None
                elif began is None:
                    began = time.monotonic()
                elif self.longest_silence is not None and time.monotonic() - began > self.longest_silence:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"it has not answered for {self.longest_silence:.0f} seconds")
                wanted = gen.send(ready)
        except StopIteration as ended:
            result: _T = ended.value
            return result


@contextmanager
def waiting_long(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Wait without end inside the with-block."""
    assert isinstance(connection, ImpatientConnection)
    longest, connection.longest_silence = connection.longest_silence, None
    try:
        yield
    finally:
        connection.longest_silence = longest
