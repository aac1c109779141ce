"""A connection to a server that is not waited for without end. Loaded only for such a store.

A server that is frozen, or whose disk is, answers nothing, while its machine goes on to acknowledge what it gets: no
time limit of the network ends that, and none of the server's own.

Statements that go to a server together, so that it is waited for once and not after each. Loaded only for such a store.

What gives no rows waits until something is asked for, or for the end of its transaction: nobody needs its answer sooner.
Source: https://www.psycopg.org/psycopg3/docs/advanced/pipeline.html

PostgreSQL below a store: its engine, its transactions and its statements. Loaded only for such a store.

All writers of a store go one after another, by an advisory lock that each takes before it reads: what is proven of
SQLite, which locks a file, then holds here too.
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

import psycopg
from psycopg.types.string import StrDumperUnknown, TextLoader
from sqlalchemy import JSON, Insert, create_engine, event

from pytest_golden.errors import StorageError
from pytest_golden.storage.columns import storable
from pytest_golden.storage.engine import ClosingPool, dump_json, explained
from pytest_golden.storage.version import ASK_VERSION, Begun, Found, describe_older, find_version, newest_version

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Engine

    from pytest_golden.storage.location import Location


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
    """Return the error because of which a statement was left out, where that is what an error says."""
    before = error.__context__
    return before if isinstance(error, psycopg.errors.PipelineAborted) and isinstance(before, psycopg.Error) else error


# The rest of a key is the schema's number, so that stores in two schemas of a database do not wait for each other.
_LOCK_SPACE = 0x676F6C64
# Each statement after the lock sees what the writer before has left. A flush is never left out, whatever the server does.
# How long a lock is waited for is said here: a limit for statements would end it sooner, and half of a long write.
_BEGIN_WRITE = """
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = {busy_ms};
SET LOCAL statement_timeout = 0;
SELECT pg_advisory_xact_lock(
        ({space}::bigint << 32) + pg_catalog.quote_ident(current_schema()::text)::regnamespace::oid::bigint
    ),
    CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END
"""
# Of no importance to other writers, and so without their lock; neither other locks nor the disk are waited for.
_BEGIN_ASIDE = """
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = 50;
SET LOCAL statement_timeout = 2000;
SET LOCAL synchronous_commit = off
"""
_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL lock_timeout = {busy_ms}"
# After how often a statement is prepared on the server. A pooler that hands connections on knows nothing of that.
_PREPARE = "prepare_threshold"
_LONGEST_CONNECT_SECONDS = 10
_LONGEST_SILENCE_MS = 30_000
# What is asked for with a statement that may give very many rows: first so many, then each time more.
_FIRST_PAGE = 32
_PAGE_GROWTH = 8
# The same of a statement that is asked with others, of which most are not taken to the end.
_FIRST_OF_SOME = 4
_SECOND_OF_SOME = 96


class Compiled(NamedTuple):
    """A statement in PostgreSQL's words. `binders` turn values into parameters, `fixed` are those of its own."""

    sql: str
    fixed: Mapping[str, Any]
    binders: Mapping[str, Callable[[Any], Any] | None]
    has_json: bool


#: A question as the server gets it, and whether it is paged.
Asked: TypeAlias = "tuple[Compiled, Mapping[str, Any], bool]"


class Question(Protocol):
    """What is asked of a store."""

    def ask_on_server(self, connection: Connection) -> Asked:
        """Return what a server is asked."""
        ...


class _TextDumper(StrDumperUnknown):
    """Binds text in a form that the database accepts, in every kind of statement."""

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
    def writing(self, connection: Connection, questions: Sequence[Question] = ()) -> Iterator[Begun]:
        """Put it into a transaction that has locked the store for other writers, and ask in the same trip."""
        asked = [one.ask_on_server(connection) for one in questions]
        cursors = _begin_and_ask(connection, self._begin_write, asked) if asked else None
        if cursors is None:
            with _begun(connection, self._begin_write, asks=True) as found:
                yield Begun(found, [_ask_later(connection, one) for one in asked])
        else:
            version, *answers = cursors
            with _in_transaction(connection):
                yield Begun(Found(version.fetchone()), _read_answers(connection, asked, answers))

    def writing_aside(self, connection: Connection) -> AbstractContextManager[Found | None]:
        """Put it into a transaction that neither takes the store's lock nor waits for the disk."""
        return _begun(connection, _BEGIN_ASIDE, asks=True)

    def reading(self, connection: Connection) -> AbstractContextManager[Found | None]:
        """Put it into a transaction that sees the store as it is at the first look."""
        return _begun(connection, self._begin_read, asks=True)

    @contextmanager
    def preparing(self, connection: Connection) -> Iterator[None]:
        """Put it into a transaction like that of `writing`; there need be no tables yet, and a statement may take long."""
        with _begun(connection, self._begin_write), waiting_long(find_driver(connection)):
            yield

    def inspecting(self, connection: Connection) -> AbstractContextManager[Found | None]:
        """Put it into a transaction like that of `reading`; there need be no tables yet."""
        return _begun(connection, self._begin_read)


def reach_server(place: Location, busy_seconds: float) -> PostgresqlDatabase:
    """Return a database of a server, whatever its tables are. Opens nothing yet.

    Raises:
        StorageError: its URL has an option that there is not.
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


def compile_statement(statement: Any, columns: list[str] | None, connection: Connection) -> Compiled:
    """Put a Core statement into SQL, with parameters by name."""
    if isinstance(statement, Insert) and not statement.exported_columns:
        # Or the key would come back with each row.
        statement = statement.inline()
    dialect = connection.dialect
    compiled = statement.compile(dialect=dialect, column_keys=columns)
    binders = {name: bind.type.dialect_impl(dialect).bind_processor(dialect) for name, bind in compiled.binds.items()}
    fixed = {name: bind.value for name, bind in compiled.binds.items() if not bind.required}
    has_json = any(isinstance(column.type, JSON) for column in statement.exported_columns)
    sql = str(compiled)
    # Numbers of its own, as limits are, are written out: with a limit that it is told, a server plans each time anew.
    for name in [name for name, value in fixed.items() if type(value) is int]:
        sql = sql.replace(f"%({name})s", str(fixed.pop(name)))
        del binders[name]
    return Compiled(sql, fixed, binders, has_json)


def run_compiled(connection: Connection, compiled: Compiled, parameters: Mapping[str, Any]) -> psycopg.Cursor[Any]:
    """Run it by the driver; JSON comes as text, as it does on SQLite."""
    (cursor,) = send(connection, Sent(compiled.sql, parameters, compiled.has_json))
    return cursor


def leave_compiled(connection: Connection, compiled: Compiled, parameters: Mapping[str, Any]) -> None:
    """Have what gives no rows run before the next statement, or before the transaction ends."""
    leave(connection, Sent(compiled.sql, parameters))


def page_compiled(connection: Connection, compiled: Compiled, parameters: Mapping[str, Any]) -> Iterator[Any]:
    """Return the rows of a SELECT without a limit, asked for by and by: the driver would take all of them at once."""
    return _page(connection, compiled, parameters, 0, _FIRST_PAGE)


def ask_compiled(connection: Connection, questions: Sequence[Asked]) -> list[Iterator[Any]]:
    """Run some SELECTs in one trip, and give the rows of each; of one that is paged, the first ones come with it."""
    return _read_answers(connection, questions, send(connection, *_make_asked(questions)))


def _make_asked(questions: Sequence[Asked]) -> Iterator[Sent]:
    for compiled, parameters, is_paged in questions:
        if is_paged:
            yield _make_page(compiled, parameters, 0, _FIRST_OF_SOME)
        else:
            yield Sent(compiled.sql, parameters, compiled.has_json)


def _read_answers(
    connection: Connection, questions: Sequence[Asked], cursors: Sequence[psycopg.Cursor[Any]]
) -> list[Iterator[Any]]:
    return [
        _go_on(connection, question, cursor) if question[2] and cursor.rowcount == _FIRST_OF_SOME else iter(cursor)
        for question, cursor in zip(questions, cursors, strict=True)
    ]


def _ask_later(connection: Connection, question: Asked) -> Iterator[Any]:
    (rows,) = ask_compiled(connection, [question])
    yield from rows


def _go_on(connection: Connection, question: Asked, rows: Iterable[Any]) -> Iterator[Any]:
    yield from rows
    compiled, parameters, _ = question
    yield from _page(connection, compiled, parameters, _FIRST_OF_SOME, _SECOND_OF_SOME)


def _page(
    connection: Connection, compiled: Compiled, parameters: Mapping[str, Any], start: int, size: int
) -> Iterator[Any]:
    while True:
        (cursor,) = send(connection, _make_page(compiled, parameters, start, size))
        rows = cursor.fetchall()
        yield from rows
        if len(rows) < size:
            return
        start, size = start + size, size * _PAGE_GROWTH


def _make_page(compiled: Compiled, parameters: Mapping[str, Any], start: int, size: int) -> Sent:
    # Written out: with limits that it is told each time, a server plans each time anew. There are few different ones.
    return Sent(f"{compiled.sql} LIMIT {size} OFFSET {start}", parameters, compiled.has_json)


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
        # Transactions are begun by us, with what each of them is to be.
        connection.autocommit = True
        connection.adapters.register_dumper(str, _TextDumper)
        connection.longest_silence = busy_seconds + LONGEST_SILENCE_SECONDS

    def send_before(connection: Connection, *_: object) -> None:
        # What waits comes first, whoever asks.
        send(connection)

    event.listen(engine, "do_connect", connect)
    event.listen(engine, "connect", prepare)
    event.listen(engine, "before_cursor_execute", send_before)
    return engine


def _read_options(place: Location) -> dict[str, Any]:
    """Read what is the driver's in the query of a URL, and refuse what is neither that nor the server's."""
    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    if place.url.query.keys() - known - {_PREPARE}:
        # It is not named: it may be a part of a password.
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
def _begun(connection: Connection, statements: str, *, asks: bool = False) -> Iterator[Found | None]:
    """Put it into a transaction; with `asks` the version of the tables is found, and given, in the same trip."""
    begun = _begin(connection, f"{statements}; {ASK_VERSION}".encode() if asks else statements.encode())
    with _in_transaction(connection):
        yield _read_last(begun) if asks else None


@contextmanager
def _in_transaction(connection: Connection) -> Iterator[None]:
    """End what has been begun: with all that waits, or with nothing of it."""
    with connection.begin():
        try:
            yield
            commit(connection)
        except BaseException:
            forget(connection)
            _drop_if_lost(connection)
            raise


def _begin(connection: Connection, statements: bytes) -> psycopg.Cursor[Any]:
    """Begin; a connection that was lost since its last use is made anew, and so are all others that wait for one."""
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
    connection: Connection, statements: str, questions: Sequence[Asked]
) -> list[psycopg.Cursor[Any]] | None:
    """Begin and ask in one trip, and give what tells the version, and the answers.

    Gives None where that is to be done one after another: the connection was lost, or the tables are not what they were.
    """
    driver = find_driver(connection)
    # One by one, as whatever goes together with others must; none of them has a semicolon within.
    begin = [Sent(statement, {}) for statement in (*statements.split(";"), ASK_VERSION)]
    try:
        return send(connection, *begin, *_make_asked(questions))[len(begin) - 1 :]
    except psycopg.ProgrammingError:
        driver.rollback()
    except psycopg.OperationalError:
        if not driver.closed:
            raise
    return None


def _read_last(begun: psycopg.Cursor[Any]) -> Found:
    while begun.nextset():
        pass
    return Found(begun.fetchone())


def _drop_if_lost(connection: Connection) -> None:
    # Else it would be told to roll back, and complain.
    if not connection.invalidated and find_driver(connection).closed:
        connection.invalidate()


def refuse_encoding(connection: Connection, where: str) -> None:
    """Refuse a database that cannot keep every text."""
    encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
    if encoding != "UTF8":
        raise StorageError(f"the store {where}: its database is made for {encoding}; give one with ENCODING 'UTF8'")
