"""Copy a whole store to another place, on the same database or another: all or nothing, and verified."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import JSON, Text, cast, func, select, text

from pytest_golden.errors import SettingsError, StorageError
from pytest_golden.storage.engine import BUSY_SECONDS, explained
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.schema import describe_older, find_version, metadata, newest_version
from pytest_golden.storage.search import rebuild_index
from pytest_golden.storage.sqlite import find_file, made_whole
from pytest_golden.storage.store import Store
from pytest_golden.storage.upgrading import recount_tally, upgrade
from pytest_golden.values.shape import Shape, form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from sqlalchemy import Column, Connection, Table

    from pytest_golden.storage.location import Location


_ROWS_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class TableContent(Shape):
    """The number of rows of a table, and the SHA-256 of all rows in the order of their keys."""

    rows: int
    sha256: str


class ContentDigest:
    """Digest the rows of a table: each is a line, a JSON array of its values."""

    def __init__(self) -> None:
        self.rows = 0
        self._hash = hashlib.sha256()

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add the next rows."""
        self.rows += len(rows)
        self._hash.update("".join([f"{json.dumps(row, separators=(',', ':'))}\n" for row in rows]).encode("ascii"))

    def finish(self) -> TableContent:
        """Return the digest of all rows."""
        return TableContent(self.rows, self._hash.hexdigest())


def list_columns(table: Table) -> list[Column[Any]]:
    """Return the columns of a table in the order of `read_rows`, its key first."""
    (key,) = table.primary_key
    return [key, *(column for column in table.c if column is not key)]


def read_rows(connection: Connection, table: Table) -> Iterator[Sequence[tuple[Any, ...]]]:
    """Yield all rows by their key, some at a time; JSON is the text that is stored."""
    columns = list_columns(table)
    query = select(*[cast(column, Text) if isinstance(column.type, JSON) else column for column in columns])
    query = query.order_by(columns[0]).limit(_ROWS_AT_ONCE)
    rows = connection.execute(query).all()
    while rows:
        yield [tuple(row) for row in rows]
        rows = connection.execute(query.where(columns[0] > rows[-1][0])).all()


class Progress(NamedTuple):
    """How far the copying is: what is being done, and with how many rows out of how many."""

    doing: str
    rows: int
    total: int


@dataclass(frozen=True, slots=True)
class StoreCopy(Shape):
    """What was read from the source. If there are `problems`, the target received something else and was not kept."""

    source: str = field(metadata=form(key="store"))
    target: str = field(metadata=form(key="to"))
    tables: Mapping[str, TableContent]
    problems: tuple[str, ...] = ()


class _DifferingError(Exception):
    """The target received other rows than were read."""


def copy_store(
    source: str | Path, target: str | Path, *, report: Callable[[Progress], None] = lambda _: None
) -> StoreCopy:
    """Copy a store as it is at one moment, while writers go on; rows keep their numbers.

    The target is a file that does not exist, or a schema of a PostgreSQL database that has no rows of ours. It receives
    everything or nothing: the rows are read again and compared before they are kept.

    Raises:
        SettingsError: no store can be at such a place.
        StorageError: the source does not exist or cannot be read, or the target is not empty or cannot be written.
    """
    place, target_place = parse_location(source), parse_location(target)
    if place.url == target_place.url:
        raise SettingsError(f"the store {place.shown} cannot be copied to itself; give another place")
    if not place.is_on_server:
        find_file(source)
    run = _Run(_ServerTarget() if target_place.is_on_server else _FileTarget(), target_place, report)
    problems: tuple[str, ...] = ()
    try:
        run.copy(source)
    except _DifferingError as error:
        problems = (str(error),)
    return StoreCopy(place.shown, target_place.shown, run.sent, problems)


class _Run:
    """One copying; `sent` is what was read of each table so far."""

    def __init__(
        self, target: _FileTarget | _ServerTarget, place: Location, report: Callable[[Progress], None]
    ) -> None:
        self.sent: dict[str, TableContent] = {}
        self._target = target
        self._place = place
        self._report = report

    def copy(self, source: str | Path) -> None:
        """Copy and compare; the target is kept when this returns."""
        with self._target.open_empty(self._place) as writing:
            with Store.open(source) as store, store.read() as reading:
                for table in metadata.sorted_tables:
                    self._copy_table(reading, writing, table)
            self._report(Progress("search index of memories", 0, self.sent["memories"].rows))
            rebuild_index(writing)
            for table in metadata.sorted_tables:
                self._compare(writing, table)
            self._target.finish(writing)

    def _copy_table(self, reading: Connection, writing: Connection, table: Table) -> None:
        digest, size = ContentDigest(), reading.execute(select(func.count()).select_from(table)).scalar_one()
        self._report(Progress(table.name, 0, size))
        for rows in read_rows(reading, table):
            # Without this the error would name the source.
            with explained(self._place.shown):
                self._target.load_rows(writing, table, rows)
            digest.add(rows)
            self._report(Progress(table.name, digest.rows, size))
        self.sent[table.name] = digest.finish()

    def _compare(self, writing: Connection, table: Table) -> None:
        sent, digest = self.sent[table.name], ContentDigest()
        for rows in read_rows(writing, table):
            digest.add(rows)
            self._report(Progress(f"comparing {table.name}", digest.rows, sent.rows))
        arrived = digest.finish()
        if arrived != sent:
            what = f"{arrived.rows} rows instead of {sent.rows}" if arrived.rows != sent.rows else "other rows"
            raise _DifferingError(f"{table.name}: {what} arrived; nothing was kept")


class _FileTarget:
    """A SQLite file, which gets its name when everything is in it. Rows have their values in the order of `list_columns`."""

    @contextmanager
    def open_empty(self, place: Location) -> Iterator[Connection]:
        if place.path is None:
            raise SettingsError(f"the store {place.shown} exists only in memory; give a file")
        with made_whole(place.path) as draft:
            try:
                with Store.open(draft) as store, store.write() as connection:
                    yield connection
            except StorageError as error:
                raise StorageError(str(error).replace(str(draft), place.shown), error.trouble) from error

    def load_rows(self, connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        marks = ", ".join("?" * len(table.c))
        connection.exec_driver_sql(
            f"INSERT INTO {table.name} ({_write_names(connection, table)}) VALUES ({marks})", list(rows)
        )

    def finish(self, connection: Connection) -> None:
        connection.exec_driver_sql("ANALYZE")


class _ServerTarget:
    """The same for a PostgreSQL schema, filled in one transaction. Its tables are made in it too if they do not exist."""

    @contextmanager
    def open_empty(self, place: Location) -> Iterator[Connection]:
        from pytest_golden.storage.postgresql import reach_server, refuse_encoding

        database = reach_server(place, BUSY_SECONDS)
        try:
            with explained(place.shown), database.engine.connect() as connection, database.preparing(connection):
                refuse_encoding(connection, place.shown)
                _make_empty(connection, place.shown)
                # The triggers would write one row of the tally once for each entry, and read all its versions each time.
                connection.exec_driver_sql("ALTER TABLE entries DISABLE TRIGGER USER")
                yield connection
        finally:
            database.engine.dispose()

    def load_rows(self, connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        from pytest_golden.storage.postgresql import find_driver

        statement = f"COPY {table.name} ({_write_names(connection, table)}) FROM STDIN"
        with find_driver(connection).cursor() as cursor, cursor.copy(statement.encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def finish(self, connection: Connection) -> None:
        recount_tally(connection)
        connection.exec_driver_sql("ALTER TABLE entries ENABLE TRIGGER USER")
        for name, table in metadata.tables.items():
            connection.exec_driver_sql(f"ANALYZE {name}")
            if "number" in table.c:
                # The last step, since no rollback undoes it.
                connection.exec_driver_sql(
                    f"SELECT setval(pg_get_serial_sequence('{name}', 'number'), max(number)) "
                    f"FROM {name} HAVING count(*) > 0"
                )
        connection.exec_driver_sql("ANALYZE memory_words")


def _write_names(connection: Connection, table: Table) -> str:
    quote = connection.dialect.identifier_preparer.quote
    return ", ".join(quote(column.name) for column in list_columns(table))


def _make_empty(connection: Connection, where: str) -> None:
    version = find_version(connection, where)
    if version is None:
        upgrade(connection, where)
    elif version != newest_version():
        raise describe_older(where, version, "run `golden store upgrade` for it")
    filled = [
        name
        for name in metadata.tables
        if connection.execute(text(f"SELECT EXISTS (SELECT 1 FROM {name})")).scalar_one()
    ]
    if filled:
        raise StorageError(f"the store {where}: there are rows in it ({', '.join(filled)}); give an empty one")
