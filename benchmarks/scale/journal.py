"""What the number of entries costs: a write, a page of the journal, a filtered look, a signal's place; on both databases."""

from __future__ import annotations

import sys
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from journal_scale import QUIET, Writes, list_routings, read_through
from journal_store import Size, fill_journal
from side_by_side import seconds
from sqlalchemy import insert
from store_writes import entry_row, open_bare

from pytest_golden.journal.service import Journal
from pytest_golden.storage.schema import entries
from pytest_golden.storage.store import Store
from scale.model import Floor, Point, Study, make_point, measure

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.postgres import run_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

SIZES = (1_000, 10_000, 100_000, 1_000_000)
_ROUNDS = 60
_BARE_PAGE = "SELECT * FROM entries ORDER BY number DESC LIMIT 51"
_FLOORS = {
    "log_intent": Floor("a bare durable insert of one row", 0),
    "add_signal by hint": Floor("a bare durable insert of one row", 0),
    "review, newest page": Floor("the bare SELECT of the newest 51 rows", 0),
    "review, failed refunds of a quiet agent": Floor("the bare SELECT of the newest 51 rows", 0),
    "find a signal's place": Floor("the bare SELECT of the newest 51 rows", 0),
}


class Journals:
    """A store that grows, and what is asked of it at each size."""

    def __init__(self, store: Store, bare_insert: Callable[[], object], filled: int = 0) -> None:
        self._store = store
        self._bare_insert = bare_insert
        self._filled = filled

    def measure(self, size: int) -> Mapping[str, Point]:
        """Fill the store up to this size, and measure there."""
        more = size - self._filled
        if more > 0:
            fill_journal(self._store, Size(more, more * 2, more // 10, more // 50), first=self._filled, seed=size)
            self._filled = size
        if self._store.path is None:
            # A server does so by itself, within minutes.
            with self._store.write() as connection:
                connection.exec_driver_sql("ANALYZE")
        return {**self._measure_writes(size), **self._measure_looks(size)}

    def _measure_writes(self, size: int) -> Mapping[str, Point]:
        made = Writes(self._store, seed=size).make()
        named = {"log_intent": "log_intent", "add_signal by hint": "add_signal by hint, of an agent"}
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in named}
        for _ in range(_ROUNDS):
            for name, there in named.items():
                call = made[there]()
                found[name].append((seconds(self._bare_insert), seconds(call)))
        return {name: make_point(size, pairs[5:]) for name, pairs in found.items()}

    def _measure_looks(self, size: int) -> Mapping[str, Point]:
        journal = Journal(self._store)
        looks: dict[str, Callable[[], object]] = {
            "review, newest page": journal.review_journal,
            "review, failed refunds of a quiet agent": lambda: journal.review_journal(
                "failure", "refund", agent_id=QUIET
            ),
            "find a signal's place": list_routings(self._store)["route by hint, of an agent"],
        }
        for look in (self._bare_page, *looks.values()):
            look()
        return {name: measure(size, _ROUNDS, self._bare_page, look) for name, look in looks.items()}

    def _bare_page(self) -> None:
        with self._store.read() as connection:
            connection.exec_driver_sql(_BARE_PAGE).all()


@contextmanager
def _on_sqlite(folder: Path, largest: Path | None) -> Iterator[Callable[[int], Mapping[str, Point]]]:
    """Fill a store; with `largest` the last size is a store that `journal_store.py` has filled, and that is written to."""
    engine = open_bare(folder / "bare.db")

    def bare_insert() -> None:
        with engine.begin() as connection:
            connection.execute(insert(entries), entry_row())

    def measure_size(size: int) -> Mapping[str, Point]:
        if size < SIZES[-1] or largest is None:
            return growing.measure(size)
        with Store.open(largest) as large:
            read_through(large)
            return Journals(large, bare_insert, size).measure(size)

    with Store.open(folder / "journal.db") as store:
        growing = Journals(store, bare_insert)
        yield measure_size
    engine.dispose()


@contextmanager
def _on_postgresql(_folder: Path) -> Iterator[Callable[[int], Mapping[str, Point]]]:
    import psycopg

    with closing(run_server()) as servers:
        server = next(servers)
        for setting in ("fsync = on", "full_page_writes = on", "shared_buffers = '256MB'"):
            server.execute(f"ALTER SYSTEM SET {setting}")
        server.stop()
        server.start()
        url = server.make_database()
        server.execute("CREATE TABLE bare (said text)", url.rpartition("/")[2].partition("?")[0])
        with psycopg.connect(url, autocommit=True) as connection, Store.open(url) as store:
            bare: Callable[[], Any] = partial(connection.execute, "INSERT INTO bare VALUES (repeat('-', 400))")
            yield Journals(store, bare).measure


def list_studies(largest: Path | None) -> list[Study]:
    """Return the studies of this module; with `largest` the store of the last size on SQLite is there already."""
    return [
        Study("journal on SQLite", "entries", SIZES, _FLOORS, partial(_on_sqlite, largest=largest)),
        Study("journal on PostgreSQL", "entries", SIZES, _FLOORS, _on_postgresql),
    ]
