"""Copy a whole store to another place, on the same database or another: all or nothing, and verified."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sqlalchemy import text

from pytest_golden.errors import SettingsError, StorageError, StorageTrouble
from pytest_golden.storage.engine import BUSY_SECONDS, explained
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.row_copies import ContentDigest, count_rows, list_columns, read_rows
from pytest_golden.storage.schema import metadata
from pytest_golden.storage.search import rebuild_index
from pytest_golden.storage.sqlite import find_file, made_whole
from pytest_golden.storage.store import Store
from pytest_golden.storage.tally import recount_tally
from pytest_golden.storage.upgrading import upgrade
from pytest_golden.storage.version import find_version, newest_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Any

    from sqlalchemy import Connection, Table

    from pytest_golden.storage.location import Location
    from pytest_golden.storage.row_copies import TableContent


class Progress(NamedTuple):
    """How far the copying is: what is being done, and with how many rows out of how many."""

    doing: str
    rows: int
    total: int


@dataclass(frozen=True, slots=True)
class StoreCopy:
    """What was read from the source. If there are `problems`, the target received something else and was not kept."""

    source: str
    target: str
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

    def __init__(self, target: _Target, place: Location, report: Callable[[Progress], None]) -> None:
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
        digest, size = ContentDigest(), count_rows(reading, table)
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
            told = f"{arrived.rows} rows instead of {sent.rows}" if arrived.rows != sent.rows else "other rows"
            raise _DifferingError(f"{table.name}: {told} arrived; nothing was kept")


class _Target(Protocol):
    """An empty store that receives rows, whose values are in the order of `list_columns`."""

    def open_empty(self, place: Location, /) -> AbstractContextManager[Connection]: ...
    def load_rows(self, connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]], /) -> None: ...
    def finish(self, connection: Connection, /) -> None: ...


class _FileTarget:
    """A SQLite file, which gets its name when everything is in it."""

    @contextmanager
    def open_empty(self, place: Location) -> Iterator[Connection]:
        if place.path is None:
            raise SettingsError(f"the store {place.shown} would be gone at once; give a file")
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
    """A PostgreSQL schema, filled in one transaction. Its tables are made in it too if they do not exist."""

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
        message = (
            f"the store {where}: its tables are of an older version ({version}); run `golden store upgrade` for it"
        )
        raise StorageError(message, StorageTrouble.OLDER)
    filled = [
        name
        for name in metadata.tables
        if connection.execute(text(f"SELECT EXISTS (SELECT 1 FROM {name})")).scalar_one()
    ]
    if filled:
        raise StorageError(f"the store {where}: there are rows in it ({', '.join(filled)}); give an empty one")
