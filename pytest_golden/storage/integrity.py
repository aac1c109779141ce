"""Whether a store is whole: pages, references, counts and search index. Repairs, when asked, what can be made again."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, select, text

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.engine import explained
from pytest_golden.storage.files import backup_store, find_file, list_files, open_to_read, put_aside
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.row_copies import count_rows
from pytest_golden.storage.schema import entry_tally, metadata
from pytest_golden.storage.search import find_index_fault, rebuild_index
from pytest_golden.storage.store import Store
from pytest_golden.storage.tally import find_tally_fault, recount_tally
from pytest_golden.storage.version import HEAD, VERSION_TABLE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sqlalchemy import Connection

__all__ = ["StoreCheck", "backup_store", "check_store", "put_aside", "repair_store"]

_MOST_NAMED = 10
# An entry's counts, recounted. How many positive signals count cannot be told from the rows, only how many at most.
_WRONG_COUNTS = text("""
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
_SIZE_ON_SERVER = text("""
SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class
WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relname IN :names
""").bindparams(bindparam("names", expanding=True))


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """What a look at a store has found. `tables` counts rows; without it the pages are too damaged to count."""

    where: str
    size_bytes: int
    version: str | None = None
    tables: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def check_store(location: str | Path) -> StoreCheck:
    """Check a store. Writers wait while the search index is looked at; nothing is changed but old tables of a file.

    Raises:
        SettingsError: no store can be at such a place.
        StorageError: it is not there, or cannot be opened for another reason than damage.
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
    """Build the search index, and count the tally, again when something is wrong with it; what was is given.

    As long as nothing is, nobody on a server waits for this.
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


def _check_rows(store: Store, size: int) -> StoreCheck:
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    with store.read() as connection:
        if store.path is None:
            size = _size_on_server(connection)
            problems = _check_references(connection)
            notes = ("its pages were not checked: on a server pg_amcheck does that",)
        tables = {name: count_rows(connection, table) for name, table in metadata.tables.items()}
        problems += _check_counts(connection)
        fault = find_tally_fault(connection)
        if fault is not None:
            problems += (f"{fault}; `golden store upgrade` counts it again",)
    faults, more = _check_index(store)
    return StoreCheck(store.where, size, HEAD, tables, (*problems, *faults), (*notes, *more))


def _check_pages(path: Path) -> tuple[str, ...]:
    with closing(open_to_read(path)) as connection:
        told = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({_MOST_NAMED})")]
        if told != ["ok"]:
            return tuple(line for text in told for line in text.splitlines())
        broken = connection.execute("PRAGMA foreign_key_check").fetchmany(_MOST_NAMED)
    return tuple(f"row {row} of {table} refers to what is not there, in {parent}" for table, row, parent, _ in broken)


def _check_references(connection: Connection) -> tuple[str, ...]:
    """Do what SQLite's `foreign_key_check` does."""
    problems: list[str] = []
    for table in metadata.sorted_tables:
        for reference in table.foreign_keys:
            column, meant = reference.parent, reference.column
            there = select(meant).where(meant == column).exists()
            broken = select(table.c.number).where(column.is_not(None), ~there).order_by(table.c.number)
            problems += [
                f"row {number} of {table.name} refers to what is not there, in {meant.table.name}"
                for number in connection.scalars(broken.limit(_MOST_NAMED))
            ]
    return tuple(problems[:_MOST_NAMED])


def _size_on_server(connection: Connection) -> int:
    names = [*metadata.tables, entry_tally.name, "memory_words", VERSION_TABLE]
    return int(connection.execute(_SIZE_ON_SERVER, {"names": names}).scalar_one())


def _check_counts(connection: Connection) -> tuple[str, ...]:
    wrong = connection.scalars(_WRONG_COUNTS, {"most": _MOST_NAMED})
    return tuple(f"entry {entry}: its counts differ from its expectations and signals" for entry in wrong)


def _find_index_fault(store: Store) -> str | None:
    """Look at the search index: on a server beside all writers, which wait meanwhile on SQLite, where the look is a write."""
    with store.read() as connection:
        if connection.dialect.name != "sqlite":
            return find_index_fault(connection)
    with store.write() as connection:
        return find_index_fault(connection)


def _check_index(store: Store) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give problems and notes."""
    try:
        fault = _find_index_fault(store)
    except StorageError as error:
        if error.trouble is not StorageTrouble.READ_ONLY:
            raise
        return (), ("the search index was not checked: that wants to write",)
    return () if fault is None else (f"{fault}; `golden store upgrade` builds it again",), ()
