"""Statements that go to a server together, so that it is waited for once and not after each. Loaded only for such a store.

What gives no rows waits until something is asked for, or for the end of its transaction: nobody needs its answer sooner.
Source: https://www.psycopg.org/psycopg3/docs/advanced/pipeline.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg.types.string import TextLoader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection

# Kept with the driver's connection, as long as a transaction lasts.
_WAITING = "golden_waiting"


class Sent(NamedTuple):
    """SQL with parameters by name; where there is JSON among the columns it comes as text, as it does on SQLite."""

    sql: str
    parameters: Mapping[str, Any]
    has_json: bool = False


_COMMIT = Sent("COMMIT", {})


def leave(connection: Connection, statement: Sent) -> None:
    """Have a statement sent with the next ones, or at the end."""
    connection.info.setdefault(_WAITING, []).append(statement)


def forget(connection: Connection) -> None:
    """Send nothing of what waits."""
    if not connection.invalidated:
        connection.info.pop(_WAITING, None)


def send(connection: Connection, *statements: Sent) -> list[psycopg.Cursor[Any]]:
    """Send what waits and these statements, and give the cursors of these.

    Raises:
        psycopg.Error: the first that went wrong; the server has left out all that follow it.
    """
    waiting = connection.info.pop(_WAITING, ())
    together = (*waiting, *statements)
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    if len(together) > 1 and psycopg.Pipeline.is_supported():
        return _send_together(driver, together)[len(waiting) :]
    return [_execute(driver, statement) for statement in together][len(waiting) :]


def commit(connection: Connection) -> None:
    """End the transaction with what waits, if anything does; else it is left to the driver.

    Raises:
        psycopg.Error: the first that went wrong; then nothing of the transaction is kept.
    """
    if connection.info.get(_WAITING):
        send(connection, _COMMIT)


def _send_together(driver: psycopg.Connection[Any], statements: Sequence[Sent]) -> list[psycopg.Cursor[Any]]:
    cursors: list[psycopg.Cursor[Any]] = []
    first: psycopg.Error | None = None
    try:
        with driver.pipeline():
            try:
                cursors += (_execute(driver, statement) for statement in statements)
            except psycopg.Error as error:
                # Answered while the others were sent. Raised in here, the driver would complain of those too.
                first = error
    except psycopg.Error as error:
        raise first or _find_first(error) from None
    if first is not None:
        raise first
    return cursors


def _execute(driver: psycopg.Connection[Any], statement: Sent) -> psycopg.Cursor[Any]:
    cursor = driver.cursor()
    if statement.has_json:
        cursor.adapters.register_loader("json", TextLoader)
    return cursor.execute(statement.sql.encode(), statement.parameters)


def _find_first(error: psycopg.Error) -> psycopg.Error:
    """Give the error because of which a statement was left out, where that is what an error says."""
    before = error.__context__
    return before if isinstance(error, psycopg.errors.PipelineAborted) and isinstance(before, psycopg.Error) else error
