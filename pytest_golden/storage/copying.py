"""Copies a whole store to another place, on the same database or another: all or nothing, and verified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.errors import SettingsError
from pytest_golden.storage import empty_file
from pytest_golden.storage.engine import explained
from pytest_golden.storage.files import find_file
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.row_copies import ContentDigest, count_rows, read_rows
from pytest_golden.storage.schema import metadata
from pytest_golden.storage.search import rebuild_index
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Any, Protocol

    from sqlalchemy import Connection, Table

    from pytest_golden.storage.location import Location
    from pytest_golden.storage.row_copies import TableContent

    class _Target(Protocol):
        def open_empty(self, place: Location, /) -> AbstractContextManager[Connection]: ...
        def load_rows(self, connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]], /) -> None: ...
        def finish(self, connection: Connection, /) -> None: ...


class Progress(NamedTuple):
    """How far the copying is: what is being done, and with how many rows out of how many."""

    doing: str
    rows: int
    total: int


@dataclass(frozen=True, slots=True)
class StoreCopy:
    """What was read. With `problems` something else was written, and so nothing was kept of it."""

    source: str
    target: str
    tables: Mapping[str, TableContent]
    problems: tuple[str, ...] = ()


class _DifferingError(Exception):
    """What was written is not what was read."""


def copy_store(
    source: str | Path, target: str | Path, *, report: Callable[[Progress], None] = lambda _: None
) -> StoreCopy:
    """Copy a store as it is at one moment, while writers go on; rows keep their numbers.

    The target is a file that is not there, or a schema of a PostgreSQL database that has no rows of ours. It gets
    everything or nothing: what was written is read again and compared before it is kept.

    Raises:
        SettingsError: no store can be at such a place.
        StorageError: there is no source, it cannot be read, or the target is not empty or cannot be written.
    """
    place, target_place = parse_location(source), parse_location(target)
    if place.url == target_place.url:
        raise SettingsError(f"the store {place.shown} cannot be copied to itself; give another place")
    if not place.is_on_server:
        find_file(source)
    run = _Run(_find_target(target_place), target_place, report)
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
        """Copy and compare, and let it be kept."""
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
            # Or the source would be blamed.
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


def _find_target(place: Location) -> _Target:
    if not place.is_on_server:
        return empty_file
    from pytest_golden.storage import empty_schema as target

    return target
