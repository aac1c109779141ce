"""Whether a store is whole: pages, references, counts and search index. Repairs nothing but the index, when asked."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.engine import explained
from pytest_golden.storage.files import backup_store, find_file, list_files, open_to_read, put_aside
from pytest_golden.storage.schema import metadata
from pytest_golden.storage.search import find_index_fault, rebuild_index
from pytest_golden.storage.store import Store
from pytest_golden.storage.version import HEAD

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sqlalchemy import Connection

__all__ = ["StoreCheck", "backup_store", "check_store", "put_aside", "repair_index"]

_MOST_NAMED = 10
# An entry's counts, recounted. How many positive signals count cannot be told from the rows, only how many at most.
_WRONG_COUNTS = """
SELECT entries.id FROM entries
LEFT JOIN (
    SELECT entry_id,
        sum(status = 'open') AS open, sum(status = 'met') AS met, sum(status = 'unmet') AS unmet,
        sum(status = 'expired') AS expired, sum(critical AND status IN ('unmet', 'expired')) AS critical_lost
    FROM expectations GROUP BY entry_id
) AS asked ON asked.entry_id = entries.id
LEFT JOIN (
    SELECT entry_id,
        sum(signal_type = 'positive') AS positive, sum(signal_type = 'negative') AS negative,
        sum(signal_type = 'correction') AS correction
    FROM signals WHERE NOT is_late GROUP BY entry_id
) AS heard ON heard.entry_id = entries.id
WHERE open_count <> coalesce(asked.open, 0) OR met_count <> coalesce(asked.met, 0)
    OR unmet_count <> coalesce(asked.unmet, 0) OR expired_count <> coalesce(asked.expired, 0)
    OR critical_lost_count <> coalesce(asked.critical_lost, 0) OR positive_count > coalesce(heard.positive, 0)
    OR negative_count <> coalesce(heard.negative, 0) OR correction_count <> coalesce(heard.correction, 0)
ORDER BY entries.number LIMIT ?
"""


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
    """Check a store. Writers wait while the search index is looked at; nothing is changed but old tables, as ever.

    Raises:
        SettingsError: no store can be at such a place.
        StorageError: it is not there, or cannot be opened for another reason than damage.
    """
    path = find_file(location)
    size = sum(file.stat().st_size for file in list_files(path))
    try:
        with explained(str(path)):
            problems = _check_pages(path)
        if problems:
            return StoreCheck(str(path), size, problems=problems)
        with Store.open(path) as store:
            with store.read() as connection:
                tables = _count_rows(connection)
                problems = _check_counts(connection)
            faults, notes = _check_index(store)
    except StorageError as error:
        if error.trouble is not StorageTrouble.CORRUPT:
            raise
        return StoreCheck(str(path), size, problems=(str(error),))
    return StoreCheck(str(path), size, HEAD, tables, (*problems, *faults), notes)


def repair_index(store: Store) -> str | None:
    """Build the search index again when something is wrong with it; what was is given."""
    with store.write() as connection:
        fault = find_index_fault(connection)
        if fault is not None:
            rebuild_index(connection)
    return fault


def _check_pages(path: Path) -> tuple[str, ...]:
    with closing(open_to_read(path)) as connection:
        told = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({_MOST_NAMED})")]
        if told != ["ok"]:
            return tuple(line for text in told for line in text.splitlines())
        broken = connection.execute("PRAGMA foreign_key_check").fetchmany(_MOST_NAMED)
    return tuple(f"row {row} of {table} refers to what is not there, in {parent}" for table, row, parent, _ in broken)


def _count_rows(connection: Connection) -> dict[str, int]:
    return {
        name: connection.execute(select(func.count()).select_from(table)).scalar_one()
        for name, table in metadata.tables.items()
    }


def _check_counts(connection: Connection) -> tuple[str, ...]:
    wrong = connection.exec_driver_sql(_WRONG_COUNTS, (_MOST_NAMED,)).scalars()
    return tuple(f"entry {entry}: its counts differ from its expectations and signals" for entry in wrong)


def _check_index(store: Store) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give problems and notes."""
    try:
        with store.write() as connection:
            fault = find_index_fault(connection)
    except StorageError as error:
        if error.trouble is not StorageTrouble.READ_ONLY:
            raise
        return (), ("the search index was not checked: that wants to write",)
    return () if fault is None else (f"{fault}; `golden store upgrade` builds it again",), ()
