"""Check whether a store is whole, repair what can be repaired, and return unused space to the disk."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa

from pytest_golden.errors import SettingsError, StorageError, StorageTrouble
from pytest_golden.storage.columns import storable, storable_json, to_ms
from pytest_golden.storage.engine import BUSY_SECONDS, explain, explained
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.schema import VERSION_TABLE, describe_foreign, entry_tally, metadata, newest_version
from pytest_golden.storage.search import find_index_fault, rebuild_index
from pytest_golden.storage.sqlite import backup_store, find_file, list_files, name_beside, open_to_read
from pytest_golden.storage.store import Store
from pytest_golden.storage.upgrading import find_tally_fault, recount_tally
from pytest_golden.values.shape import Shape, form

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from sqlalchemy import Column, ColumnElement, Connection, Table


_MOST_NAMED = 10
_ROWS_AT_ONCE = 1_000
_SURROGATES = re.compile("[\ud800-\udfff]")
_ESCAPES = ("\\ud", "\\uD", "\\u0000")
# An entry's counts, recounted. The rows give only an upper limit of the positive signals that count.
_WRONG_COUNTS = sa.text("""
SELECT entries.id FROM entries
LEFT JOIN (
    SELECT entry_id,
        count(*) FILTER (WHERE status = 'open') AS open, count(*) FILTER (WHERE status = 'met') AS met,
        count(*) FILTER (WHERE status = 'unmet') AS unmet, count(*) FILTER (WHERE status = 'expired') AS expired,
        count(*) FILTER (WHERE critical AND status IN ('unmet', 'expired')) AS critical_lost
    FROM expectations GROUP BY entry_id
) AS asked ON asked.entry_id = entries.id
LEFT JOIN (
    SELECT entry_id,
        count(*) FILTER (WHERE signal_type = 'positive') AS positive,
        count(*) FILTER (WHERE signal_type = 'negative') AS negative,
        count(*) FILTER (WHERE signal_type = 'correction') AS correction
    FROM signals WHERE NOT is_late GROUP BY entry_id
) AS heard ON heard.entry_id = entries.id
WHERE open_count <> coalesce(asked.open, 0) OR met_count <> coalesce(asked.met, 0)
    OR unmet_count <> coalesce(asked.unmet, 0) OR expired_count <> coalesce(asked.expired, 0)
    OR critical_lost_count <> coalesce(asked.critical_lost, 0) OR positive_count > coalesce(heard.positive, 0)
    OR negative_count <> coalesce(heard.negative, 0) OR correction_count <> coalesce(heard.correction, 0)
ORDER BY entries.number LIMIT :most
""")
_SIZE_ON_SERVER = sa.text("""
SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class
WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relname IN :names
""").bindparams(sa.bindparam("names", expanding=True))
_FIRST, _LAST = to_ms(datetime.min.replace(tzinfo=UTC)), to_ms(datetime.max.replace(tzinfo=UTC))
_NOT_TABLES = "SELECT name FROM sqlite_master WHERE type <> 'table' OR sql NOT LIKE 'CREATE TABLE %'"
_MOST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class StoreCheck(Shape):
    """What a check has found. `tables` is the number of rows of each; it is empty if the pages are too damaged to count."""

    where: str = field(metadata=form(key="store"))
    size_bytes: int
    version: str | None = None
    tables: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class OddText(NamedTuple):
    """A value that cannot be read. `mended` is what it becomes; None if it is not JSON and cannot be repaired."""

    table: Table
    column: Column[Any]
    key: int | str
    mended: str | None

    def __str__(self) -> str:
        what = "is not JSON" if self.mended is None else "holds text that cannot be read"
        return f"row {self.key} of {self.table.name}: {self.column.name} {what}"


@dataclass(frozen=True, slots=True)
class StoreMending(Shape):
    """What was repaired and what was not. `backup` is the copy made before; None on a server, or if not needed."""

    where: str = field(metadata=form(key="store"))
    mended: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    backup: Path | None = None


def check_store(location: str | Path) -> StoreCheck:
    """Check a store. On a file, writers wait while the search index is checked, and older tables are brought up to date.

    Raises:
        SettingsError: a store cannot be at such a location.
        StorageError: it does not exist, or cannot be opened for another reason than damage.
    """
    place = parse_location(location)
    path = None if place.is_on_server else find_file(location)
    size = 0 if path is None else sum(file.stat().st_size for file in list_files(path))
    try:
        if path is not None:
            with explained(str(path)):
                problems = _check_pages(path)
            if problems:
                return StoreCheck(str(path), size, problems=problems)
        with Store.open(location) as store:
            return _check_rows(store, size)
    except StorageError as error:
        if error.trouble is not StorageTrouble.CORRUPT:
            raise
        return StoreCheck(place.shown, size, problems=(str(error),))


def repair_store(store: Store) -> tuple[str, ...]:
    """Rebuild the search index and recount the tally if they are wrong; return what was wrong.

    If nothing is wrong, no writer on a server waits for this.
    """
    with store.read() as connection:
        is_tally_damaged = find_tally_fault(connection) is not None
    if not is_tally_damaged and _find_index_fault(store) is None:
        return ()
    with store.write() as connection:
        faults = {rebuild_index: find_index_fault(connection), recount_tally: find_tally_fault(connection)}
        for repair, fault in faults.items():
            if fault is not None:
                repair(connection)
    return tuple(fault for fault in faults.values() if fault is not None)


def mend_store(location: str | Path, timestamp: datetime) -> StoreMending:
    """Repair all text that cannot be read, in one transaction: unreadable characters become visible escapes.

    A file is first copied to a new file beside it, with the time in its name. Other writers wait meanwhile.

    Raises:
        SettingsError: a store cannot be at such a location.
        StorageError: it does not exist, cannot be opened or written, or there is no space for the copy.
    """
    path = None if parse_location(location).is_on_server else find_file(location)
    with Store.open(location) as store:
        with store.read() as connection:
            found = list(find_odd_texts(connection))
        backup = None
        if any(odd.mended is not None for odd in found):
            if path is not None:
                backup = name_beside(path, "before-mend", timestamp)
                backup_store(location, backup)
            with store.write() as connection:
                # Search again: another process may have changed the store meanwhile.
                found = list(find_odd_texts(connection))
                _write_mended(connection, [odd for odd in found if odd.mended is not None])
    mended = tuple(str(odd) for odd in found if odd.mended is not None)
    return StoreMending(store.where, mended, tuple(str(odd) for odd in found if odd.mended is None), backup)


def copy_source(location: str | Path, folder: Path, *, target: Path | None = None) -> Path:
    """Copy a store that is only to be read into a folder, as it is at one moment, and return the copy.

    The copy's tables are brought up to date, and it is checked completely, since anyone may have made the file: SQLite takes any
    value in any column, and allows a view where a table is expected. Only the form of values is checked. `target` is the store
    that will be written to.

    Raises:
        SettingsError: it is the target, or a store cannot be at such a location.
        StorageError: it does not exist, is not a store, is damaged, or is of a newer version.
    """
    path = find_file(location)
    if target is not None and target.exists() and path.samefile(target):
        raise SettingsError(f"the store {path} is the one that is merged into; name others")
    copy = folder / path.name
    try:
        _copy_files(path, copy)
    except (OSError, sqlite3.Error) as error:
        raise explain(str(path), error) from error
    try:
        _refuse_damaged(copy, str(path))
    except StorageError as error:
        # Name the store, not its copy.
        raise StorageError(str(error).replace(str(copy), str(path)), error.trouble) from None
    return copy


def give_back(store: Store) -> int | None:
    """Rewrite the file without the space of removed rows, and return by how many bytes it shrank.

    Writers wait meanwhile, and the disk needs as much free space again. Return None for a server, which does so by itself.

    Raises:
        StorageError: it cannot be written.
    """
    if store.path is None:
        return None
    before = _measure_file(store.path)
    with (
        explained(store.where),
        closing(sqlite3.connect(store.path, timeout=BUSY_SECONDS, isolation_level=None)) as connection,
    ):
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("VACUUM")
        # This shrinks the file itself; while others read, a later checkpoint does.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return before - _measure_file(store.path)


def _check_rows(store: Store, size: int) -> StoreCheck:
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    with store.read() as connection:
        if store.path is None:
            names = [*metadata.tables, entry_tally.name, "memory_words", VERSION_TABLE]
            size = int(connection.execute(_SIZE_ON_SERVER, {"names": names}).scalar_one())
            problems = _check_references(connection)
            notes = ("its pages were not checked: on a server pg_amcheck does that",)
        tables = {
            name: connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0
            for name, table in metadata.tables.items()
        }
        wrong = connection.scalars(_WRONG_COUNTS, {"most": _MOST_NAMED})
        problems += tuple(f"entry {entry}: its counts differ from its expectations and signals" for entry in wrong)
        problems += _check_texts(connection)
        fault = find_tally_fault(connection)
        if fault is not None:
            problems += (f"{fault}; `golden store upgrade` counts it again",)
    faults, more = _check_index(store)
    return StoreCheck(store.where, size, newest_version(), tables, (*problems, *faults), (*notes, *more))


def _check_pages(path: Path) -> tuple[str, ...]:
    with closing(open_to_read(path)) as connection:
        messages = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({_MOST_NAMED})")]
        if messages != ["ok"]:
            return tuple(line for message in messages for line in message.splitlines())
        broken = connection.execute("PRAGMA foreign_key_check").fetchmany(_MOST_NAMED)
    return tuple(
        f"row {row} of {table} refers to a row that does not exist, in {parent}" for table, row, parent, _ in broken
    )


def _check_references(connection: Connection) -> tuple[str, ...]:
    """Check references as SQLite's `foreign_key_check` does."""
    problems: list[str] = []
    for table in metadata.sorted_tables:
        for reference in table.foreign_keys:
            column, meant = reference.parent, reference.column
            there = sa.select(meant).where(meant == column).exists()
            broken = sa.select(table.c.number).where(column.is_not(None), ~there).order_by(table.c.number)
            problems += [
                f"row {number} of {table.name} refers to a row that does not exist, in {meant.table.name}"
                for number in connection.scalars(broken.limit(_MOST_NAMED))
            ]
    return tuple(problems[:_MOST_NAMED])


def _check_texts(connection: Connection) -> tuple[str, ...]:
    found = list(islice(find_odd_texts(connection), _MOST_NAMED + 1))
    lines = [f"{odd}; `golden store mend` repairs it" if odd.mended is not None else str(odd) for odd in found]
    return (*lines[:_MOST_NAMED], *(["more rows have such texts"] if len(lines) > _MOST_NAMED else []))


def _find_index_fault(store: Store) -> str | None:
    """Check the search index: on a server beside all writers; on SQLite this is a write, so writers wait."""
    with store.read() as connection:
        if connection.dialect.name != "sqlite":
            return find_index_fault(connection)
    with store.write() as connection:
        return find_index_fault(connection)


def _check_index(store: Store) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the problems of the search index, and notes."""
    try:
        fault = _find_index_fault(store)
    except StorageError as error:
        if error.trouble is not StorageTrouble.READ_ONLY:
            raise
        return (), ("the search index was not checked: that would write",)
    return () if fault is None else (f"{fault}; `golden store upgrade` builds it again",), ()


def find_odd_texts(connection: Connection) -> Iterator[OddText]:
    """Find text that is not UTF-8 or holds NUL, and JSON that is invalid or escapes a lone surrogate or NUL."""
    is_on_file = connection.dialect.name == "sqlite"
    for table in metadata.sorted_tables:
        # A server itself refuses such text, but not such escapes.
        kinds = sa.Text | sa.JSON if is_on_file else sa.JSON
        columns = [column for column in table.c if isinstance(column.type, kinds) and not column.primary_key]
        if columns:
            query = _select_from_file(table, columns) if is_on_file else _select_on_server(table, columns)
            yield from _find_in_rows(connection, query, columns)


def _select_from_file(table: Table, columns: Sequence[Column[Any]]) -> Any:
    """Select the key, the bytes of the columns, and for each JSON column whether it is valid JSON."""
    kept = [sa.cast(column, sa.LargeBinary) for column in columns]
    return sa.select(*table.primary_key, *kept, *(sa.func.json_valid(column) for column in columns if _is_json(column)))


def _select_on_server(table: Table, columns: Sequence[Column[Any]]) -> Any:
    """Select the key and the text of the columns, in rows with an escape that may need repair."""
    kept = [sa.cast(column, sa.Text) for column in columns]
    has_escape = sa.or_(*(text.contains(escape, autoescape=True) for text in kept for escape in _ESCAPES))
    return sa.select(*table.primary_key, *kept).where(has_escape)


def _find_in_rows(connection: Connection, query: Any, columns: Sequence[Column[Any]]) -> Iterator[OddText]:
    (key,) = columns[0].table.primary_key
    query = query.order_by(key).limit(_ROWS_AT_ONCE)
    json_columns = [column for column in columns if _is_json(column)]
    rows = connection.execute(query).all()
    while rows:
        for row in rows:
            found = dict(zip(columns, row[1:], strict=False))
            are_json = row[1 + len(columns) :] or repeat(1)
            broken = {column for column, is_json in zip(json_columns, are_json, strict=False) if is_json == 0}
            for column, kept in found.items():
                if kept is None:
                    continue
                if column in broken:
                    yield OddText(column.table, column, row[0], None)
                elif (mended := _mend_text(kept, column)) is not None:
                    yield OddText(column.table, column, row[0], mended)
        rows = connection.execute(query.where(key > rows[-1][0])).all()


def _mend_text(kept: bytes | str, column: Column[Any]) -> str | None:
    """Return the repaired text; None if it can be read as it is."""
    text = _decode(kept)
    mended = storable_json(_SURROGATES.sub(_escape, text)) if _is_json(column) else storable(text)
    return None if mended == text else mended


def _decode(kept: bytes | str) -> str:
    """Decode bytes that may not be UTF-8: invalid ones become lone surrogates."""
    if isinstance(kept, str):
        return kept
    try:
        return kept.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return kept.decode("utf-8", "surrogateescape")


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _write_mended(connection: Connection, found: Sequence[OddText]) -> None:
    is_on_file = connection.dialect.name == "sqlite"
    if is_on_file:
        # A foreign key may hold the odd text too: until both tables are repaired, it points to nothing.
        connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
    for odd in found:
        (key,) = odd.table.primary_key
        value: ColumnElement[Any] = sa.literal(odd.mended, sa.Text)
        if not is_on_file and _is_json(odd.column):
            value = sa.cast(value, sa.JSON)
        connection.execute(
            sa.update(odd.table).where(key == odd.key).values({odd.column.name: sa.type_coerce(value, sa.Text)})
        )
    if any(odd.table.name == "memories" for odd in found):
        rebuild_index(connection)


def _is_json(column: Column[Any]) -> bool:
    return isinstance(column.type, sa.JSON)


def _copy_files(path: Path, copy: Path) -> None:
    if path.with_name(f"{path.name}-shm").exists():
        # Another process may be writing. A reader leaves the database and its log as they are.
        with (
            closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)) as source,
            closing(sqlite3.connect(copy)) as made,
        ):
            source.execute("BEGIN")
            source.execute("SELECT 1 FROM sqlite_master").fetchone()
            source.backup(made)
        return
    for file in list_files(path):
        shutil.copyfile(file, copy.with_name(copy.name + file.name.removeprefix(path.name)))


def _refuse_damaged(copy: Path, shown: str) -> None:
    with explained(shown), closing(sqlite3.connect(copy)) as connection:
        try:
            names = {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master")}
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorname", "") != "SQLITE_NOTADB":
                raise
            raise StorageError(f"{shown} is not a golden store; give another file") from None
        # Reading a view or a virtual table might never end.
        others = {str(row[0]) for row in connection.execute(_NOT_TABLES)}
        false_table = min(others & set(metadata.tables), default=None)
    if VERSION_TABLE not in names:
        raise describe_foreign(shown)
    if false_table is not None:
        raise StorageError(f"the store {shown}: its {false_table} are not tables; give another file")
    problems = check_store(copy).problems
    if problems:
        reason = "; ".join(problem.removeprefix(f"the store {copy}: ") for problem in problems[:_MOST_SHOWN])
        raise StorageError(f"the store {shown}: it is damaged ({reason})", StorageTrouble.CORRUPT)
    with explained(shown), closing(sqlite3.connect(copy)) as connection:
        misfit = _find_misfit(connection)
    if misfit is not None:
        reason = f"a row of {misfit} holds what no store keeps there"
        raise StorageError(f"the store {shown}: it is damaged ({reason})", StorageTrouble.CORRUPT)


def _find_misfit(connection: sqlite3.Connection) -> str | None:
    """Return the name of a table with a value that no store writes there."""
    for table in metadata.sorted_tables:
        fits = " AND ".join(_write_condition(column) for column in table.c)
        if connection.execute(f'SELECT 1 FROM "{table.name}" WHERE ({fits}) IS NOT 1 LIMIT 1').fetchone():
            return table.name
    return None


def _write_condition(column: Column[object]) -> str:
    name = f'"{column.name}"'
    fits = _write_kind(column, name)
    return f"({name} IS NULL OR {fits})" if column.nullable else f"({fits})"


def _write_kind(column: Column[object], name: str) -> str:
    if isinstance(column.type, sa.JSON):
        # JSON that is only a number is stored as a number.
        return f"typeof({name}) <> 'blob' AND json_valid({name})"
    if isinstance(column.type, sa.Boolean):
        return f"typeof({name}) = 'integer' AND {name} IN (0, 1)"
    if isinstance(column.type, sa.Float):
        return f"typeof({name}) IN ('real', 'integer')"
    if isinstance(column.type, sa.Integer):
        is_moment = isinstance(column.type, sa.BigInteger) and column.name.endswith("_at")
        more = f" AND {name} BETWEEN {_FIRST} AND {_LAST}" if is_moment else ""
        return f"typeof({name}) = 'integer'{more}"
    return f"typeof({name}) = 'text'"


def _measure_file(path: Path) -> int:
    """Return the bytes of the file and of its log, which may still hold much of the content."""
    return sum(part.stat().st_size for part in (path, path.with_name(f"{path.name}-wal")) if part.exists())
