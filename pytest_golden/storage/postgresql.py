"""PostgreSQL below a store: its engine, its transactions and its statements. Loaded only for a store on a server.

Writers of a store go one after another, by an advisory lock that each takes before it reads. So what is proven on SQLite,
which locks a file, holds here too.

Statements are sent in batches, so that a writer waits for the server once and not after each. A statement that returns
nothing is sent with the next question, or with the end of its transaction.
Source: https://www.psycopg.org/psycopg3/docs/advanced/pipeline.html

No connection waits for ever: a server that is frozen, or whose disk is, answers nothing while its machine still
acknowledges packets, so no time limit of the network or the server ends the wait.
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import psycopg
from psycopg.types.string import StrDumperUnknown, TextLoader
from sqlalchemy import create_engine, event

from pytest_golden.errors import StorageError
from pytest_golden.storage.columns import storable
from pytest_golden.storage.engine import ClosingPool, Sent, dump_json, explained
from pytest_golden.storage.schema import ASK_VERSION, describe_older, find_version, newest_version

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Engine

    from pytest_golden.storage.location import Location


_T = TypeVar("_T")
#: A `statements.Question`; that module imports this one.
Question: TypeAlias = Any

#: In addition to the time that a lock may take. Only statements that bring tables up to date take longer.
LONGEST_SILENCE_SECONDS = 300.0


class ImpatientConnection(psycopg.Connection[Any]):
    """A connection that gives up when the server is silent for `longest_silence` seconds; None means never."""

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
                # The driver returns here from time to time, even if nothing has arrived.
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
    """Wait without a limit inside the with-block."""
    assert isinstance(connection, ImpatientConnection)
    longest, connection.longest_silence = connection.longest_silence, None
    try:
        yield
    finally:
        connection.longest_silence = longest


# The key of the waiting statements in `Connection.info`, during a transaction.
_WAITING = "golden_waiting"


_COMMIT = Sent("COMMIT", {})


def leave(connection: Connection, statement: Sent) -> None:
    """Send a statement with the next ones, or at the end of the transaction."""
    connection.info.setdefault(_WAITING, []).append(statement)


def send(connection: Connection, *statements: Sent) -> list[psycopg.Cursor[Any]]:
    """Send the statements that wait and these, and return the cursors of these.

    Raises:
        psycopg.Error: the first error; the server has skipped all later statements.
    """
    waiting = connection.info.pop(_WAITING, ())
    together = (*waiting, *statements)
    driver = find_driver(connection)
    if len(together) > 1 and psycopg.Pipeline.is_supported():
        return _send_together(driver, together)[len(waiting) :]
    return [_execute(driver, statement) for statement in together][len(waiting) :]


def _send_together(driver: psycopg.Connection[Any], statements: Sequence[Sent]) -> list[psycopg.Cursor[Any]]:
    cursors: list[psycopg.Cursor[Any]] = []
    first: psycopg.Error | None = None
    try:
        with driver.pipeline():
            try:
                cursors += (_execute(driver, statement) for statement in statements)
            except psycopg.Error as error:
                # It arrived while the others were sent. Raised here, it would make the driver complain of those too.
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
    """Return the error that made the server skip a statement, if this error reports a skipped one."""
    before = error.__context__
    return before if isinstance(error, psycopg.errors.PipelineAborted) and isinstance(before, psycopg.Error) else error


# The rest of a key is the schema's number, so that stores in two schemas of a database do not wait for each other.
_LOCK_SPACE = 0x676F6C64
# READ COMMITTED: each statement after the lock sees what the previous writer has left. The commit is always flushed,
# whatever the server's setting. The server's limit for statements is off: it would end a wait for the lock, or a long write.
_BEGIN_WRITE = """
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = {busy_ms};
SET LOCAL statement_timeout = 0;
SELECT pg_advisory_xact_lock(
        ({space}::bigint << 32) + pg_catalog.quote_ident(current_schema()::text)::regnamespace::oid::bigint
    ),
    CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END
"""
# A small write that may be lost: it takes no lock of the store, and waits for no other lock and not for the disk.
_BEGIN_ASIDE = """
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = 50;
SET LOCAL statement_timeout = 2000;
SET LOCAL synchronous_commit = off
"""
_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL lock_timeout = {busy_ms}"
# After how many uses a statement is prepared on the server. A pooler that reassigns connections does not support that.
_PREPARE = "prepare_threshold"
_LONGEST_CONNECT_SECONDS = 10
_LONGEST_SILENCE_MS = 30_000
# How many rows of a paged statement are fetched first, and by what factor each later page is larger.
_FIRST_PAGE = 32
_PAGE_GROWTH = 8
# The same for a statement that is sent with others: most of these are not read to the end.
_FIRST_OF_SOME = 4
_SECOND_OF_SOME = 96


class _TextDumper(StrDumperUnknown):
    """Bind text in a form that the database accepts, in every kind of statement."""

    def dump(self, obj: str) -> bytes:
        return storable(obj).encode()


class PostgresqlDatabase:
    """An open database of a server."""

    def __init__(self, engine: Engine, busy_seconds: float) -> None:
        self.engine = engine
        busy_ms = max(int(busy_seconds * 1000), 1)
        self._begin_write = _BEGIN_WRITE.format(busy_ms=busy_ms, space=_LOCK_SPACE)
        self._begin_read = _BEGIN_READ.format(busy_ms=busy_ms)

    @contextmanager
    def writing(
        self, connection: Connection, questions: Sequence[Question] = ()
    ) -> Iterator[tuple[Any, list[Iterator[Any]]]]:
        """Put the connection into a transaction that locks out other writers, and ask the questions in the same trip."""
        asked = _bind(connection, questions)
        cursors = _begin_and_ask(connection, self._begin_write, questions, asked) if asked else None
        if cursors is None:
            with _begun(connection, self._begin_write, asks=True) as found:
                yield found, [_ask_later(connection, one) for one in questions]
        else:
            version, *answers = cursors
            with _in_transaction(connection):
                yield version.fetchone(), _read_answers(connection, questions, asked, answers)

    def writing_aside(self, connection: Connection) -> AbstractContextManager[Any]:
        """Put the connection into a transaction that takes no lock of the store and does not wait for the disk."""
        return _begun(connection, _BEGIN_ASIDE, asks=True)

    def reading(self, connection: Connection) -> AbstractContextManager[Any]:
        """Put the connection into a transaction that sees the store as it is at the first read."""
        return _begun(connection, self._begin_read, asks=True)

    @contextmanager
    def preparing(self, connection: Connection) -> Iterator[None]:
        """Do the same as `writing` for a store that may have no tables yet; a statement may take long."""
        with _begun(connection, self._begin_write), waiting_long(find_driver(connection)):
            yield

    def inspecting(self, connection: Connection) -> AbstractContextManager[Any]:
        """Do the same as `reading` for a store that may have no tables yet."""
        return _begun(connection, self._begin_read)


def reach_server(place: Location, busy_seconds: float) -> PostgresqlDatabase:
    """Return a database of a server, whatever its tables are. This opens nothing yet.

    Raises:
        StorageError: its URL has an unknown option.
    """
    return PostgresqlDatabase(_make_engine(place, busy_seconds), busy_seconds)


def open_on_server(place: Location, busy_seconds: float, *, upgrades: bool) -> PostgresqlDatabase:
    """Open a store on a server; with `upgrades`, its tables are made or brought up to date.

    Raises:
        StorageError: it cannot be opened, or its tables are another program's, newer, or older without `upgrades`.
    """
    database = reach_server(place, busy_seconds)
    try:
        with explained(place.shown):
            _bring_up_to_date(database, place.shown, upgrades=upgrades)
    except BaseException:
        database.engine.dispose()
        raise
    return database


def ask_server(connection: Connection, questions: Sequence[Question]) -> list[Iterator[Any]]:
    """Run some SELECTs in one trip and return the rows of each; of a paged one, the first page comes with them."""
    asked = _bind(connection, questions)
    return _read_answers(connection, questions, asked, send(connection, *_begin_pages(questions, asked)))


def _bind(connection: Connection, questions: Sequence[Question]) -> list[Sent]:
    return [one.statement.bind(connection, one.values) for one in questions]


def _begin_pages(questions: Sequence[Question], asked: Sequence[Sent]) -> Iterator[Sent]:
    for question, one in zip(questions, asked, strict=True):
        yield _cut_page(one, 0, _FIRST_OF_SOME) if question.is_paged else one


def _read_answers(
    connection: Connection, questions: Sequence[Question], asked: Sequence[Sent], cursors: Sequence[psycopg.Cursor[Any]]
) -> list[Iterator[Any]]:
    return [
        chain(cursor, page(connection, one, _FIRST_OF_SOME, _SECOND_OF_SOME))
        if question.is_paged and cursor.rowcount == _FIRST_OF_SOME
        else iter(cursor)
        for question, one, cursor in zip(questions, asked, cursors, strict=True)
    ]


def _ask_later(connection: Connection, question: Question) -> Iterator[Any]:
    (rows,) = ask_server(connection, [question])
    yield from rows


def page(connection: Connection, statement: Sent, start: int = 0, size: int = _FIRST_PAGE) -> Iterator[Any]:
    """Yield the rows of a SELECT without a limit, page by page: the driver would fetch all of them at once."""
    while True:
        (cursor,) = send(connection, _cut_page(statement, start, size))
        rows = cursor.fetchall()
        yield from rows
        if len(rows) < size:
            return
        start, size = start + size, size * _PAGE_GROWTH


def _cut_page(statement: Sent, start: int, size: int) -> Sent:
    # The limits are part of the SQL: as parameters, they would make a server plan each time. There are few different ones.
    return statement._replace(sql=f"{statement.sql} LIMIT {size} OFFSET {start}")


def find_driver(connection: Connection) -> psycopg.Connection[Any]:
    """Return the driver's own connection, in the transaction that this one is in."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver


def _make_engine(place: Location, busy_seconds: float) -> Engine:
    options: dict[str, Any] = {
        "connect_timeout": min(max(math.ceil(busy_seconds), 2), _LONGEST_CONNECT_SECONDS),
        "tcp_user_timeout": _LONGEST_SILENCE_MS,
        "application_name": "pytest-golden",
    }
    said = {name: value for name, value in options.items() if name not in place.url.query}
    engine = create_engine(
        place.url.difference_update_query([_PREPARE]),
        connect_args={**said, **_read_options(place), "client_encoding": "utf8"},
        json_serializer=dump_json,
        poolclass=ClosingPool,
        pool_timeout=busy_seconds,
        use_native_hstore=False,
    )

    def connect(_: object, __: object, arguments: Sequence[Any], named: dict[str, Any]) -> ImpatientConnection:
        return ImpatientConnection.connect(*arguments, **named)

    def prepare(connection: ImpatientConnection, _: object) -> None:
        # We begin transactions ourselves, with their isolation and limits.
        connection.autocommit = True
        connection.adapters.register_dumper(str, _TextDumper)
        connection.longest_silence = busy_seconds + LONGEST_SILENCE_SECONDS

    def send_before(connection: Connection, *_: object) -> None:
        # Statements that wait come before any other statement.
        send(connection)

    event.listen(engine, "do_connect", connect)
    event.listen(engine, "connect", prepare)
    event.listen(engine, "before_cursor_execute", send_before)
    return engine


def _read_options(place: Location) -> dict[str, Any]:
    """Return the driver's own options in a URL's query, and refuse options that neither driver nor server knows."""
    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    if place.url.query.keys() - known - {_PREPARE}:
        # The message does not name it: it may be a part of a password.
        raise StorageError(f"the store {place.shown}: its URL has an option that is none of libpq's, nor {_PREPARE}")
    threshold = place.url.query.get(_PREPARE)
    if threshold is None:
        return {}
    if threshold != "none" and not (isinstance(threshold, str) and threshold.isascii() and threshold.isdigit()):
        raise StorageError(f"the store {place.shown}: {_PREPARE} must be a whole number, or none behind a pooler")
    return {_PREPARE: None if threshold == "none" else min(int(threshold[:9]), 1_000_000)}


def _bring_up_to_date(database: PostgresqlDatabase, where: str, *, upgrades: bool) -> None:
    with database.engine.connect() as connection, database.inspecting(connection):
        refuse_encoding(connection, where)
        version = find_version(connection, where)
    if version == newest_version():
        return
    if not upgrades:
        raise describe_older(where, version, "run `golden store upgrade --store URL`")
    from pytest_golden.storage.upgrading import upgrade

    with database.engine.connect() as connection, database.preparing(connection):
        upgrade(connection, where)


@contextmanager
def _begun(connection: Connection, statements: str, *, asks: bool = False) -> Iterator[Any]:
    """Put the connection into a transaction; with `asks`, read the version of the tables in the same trip."""
    begun = _begin(connection, f"{statements}; {ASK_VERSION}".encode() if asks else statements.encode())
    with _in_transaction(connection):
        # The answer to the last statement.
        while asks and begun.nextset():
            pass
        yield begun.fetchone() if asks else None


@contextmanager
def _in_transaction(connection: Connection) -> Iterator[None]:
    """Commit with all statements that wait, or roll back without them."""
    with connection.begin():
        try:
            yield
            # If no statements wait, the commit is left to the driver.
            if connection.info.get(_WAITING):
                send(connection, _COMMIT)
        except BaseException:
            if not connection.invalidated:
                connection.info.pop(_WAITING, None)
                if find_driver(connection).closed:
                    # Otherwise a rollback would be sent to it and fail.
                    connection.invalidate()
            raise


def _begin(connection: Connection, statements: bytes) -> psycopg.Cursor[Any]:
    """Begin a transaction. If the connection was lost since its last use, replace it and all idle ones."""
    driver = find_driver(connection)
    try:
        return driver.execute(statements, prepare=False)
    except psycopg.OperationalError:
        if not driver.closed:
            raise
        connection.invalidate()
        connection.engine.dispose()
        return find_driver(connection).execute(statements, prepare=False)


def _begin_and_ask(
    connection: Connection, statements: str, questions: Sequence[Question], asked: Sequence[Sent]
) -> list[psycopg.Cursor[Any]] | None:
    """Begin and ask in one trip, and return the cursors of the version and of the answers.

    Return None if it must be done in two steps: the connection was lost, or the tables have changed.
    """
    driver = find_driver(connection)
    # A batch takes single statements; none of these contains a semicolon.
    begin = [Sent(statement, {}) for statement in (*statements.split(";"), ASK_VERSION)]
    try:
        return send(connection, *begin, *_begin_pages(questions, asked))[len(begin) - 1 :]
    except psycopg.ProgrammingError:
        driver.rollback()
    except psycopg.OperationalError:
        if not driver.closed:
            raise
    return None


def refuse_encoding(connection: Connection, where: str) -> None:
    """Refuse a database whose encoding cannot store every text."""
    encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
    if encoding != "UTF8":
        raise StorageError(f"the store {where}: its database is made for {encoding}; give one with ENCODING 'UTF8'")
