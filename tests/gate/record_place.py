"""A store and a spool in a folder, runs told to them, and what can be done to a store meanwhile."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from pytest_golden.gate.events import Spool
from pytest_golden.gate.run_record import RunRecord
from pytest_golden.history.past_store import list_results
from pytest_golden.journal.model import Assessment, JournalEntry
from pytest_golden.journal.store import get_entry
from pytest_golden.storage.integrity import check_store
from pytest_golden.storage.schema import gate_results, metadata
from pytest_golden.storage.store import Store
from tests.gate.gate_events import end, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_golden.gate.events import GateEvent, RunBegun

PATIENCE = 0.2
HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


class Place:
    """A folder with a store and a spool, and what the records that are opened on it say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "golden.db"
        self.spool = Spool(folder / "spool")
        self.said: list[str] = []
        self.warned: list[str] = []

    def open(self, **more: Any) -> RunRecord:
        options: dict[str, Any] = {"is_own_store": True, "patience_seconds": PATIENCE, **more}
        return RunRecord(
            options.pop("location", self.path),
            options.pop("spool", self.spool),
            clock=lambda: datetime(2026, 3, 1, 9, tzinfo=UTC),
            say=self.said.append,
            warn=self.warned.append,
            **options,
        )

    def run(self, begun: RunBegun, **more: Any) -> None:
        """Record a whole run in which every project passes."""
        tell(self.open(**more), *whole(begun))

    def entry(self, entry_id: str) -> JournalEntry:
        with Store.open(self.path) as store, store.read() as connection:
            return get_entry(connection, entry_id)

    def count(self, table: str) -> int:
        with Store.open(self.path) as store, store.read() as connection:
            return connection.scalar(select(func.count()).select_from(metadata.tables[table])) or 0

    def streak(self, project: str) -> list[int]:
        with Store.open(self.path) as store, store.read() as connection:
            return [one.pass_streak for one in list_results(connection, project, 20)]

    def known(self, entry_id: str) -> Any:
        """Return what is kept with a result of what was known of its failure."""
        with Store.open(self.path) as store, store.read() as connection:
            of_entry = gate_results.c.entry_id == entry_id
            return connection.execute(select(gate_results.c.result).where(of_entry)).scalar_one().get("known")

    def aside(self) -> list[Path]:
        return sorted(self.folder.glob("golden.db.damaged-*"))

    def assert_whole(self, begun: RunBegun) -> None:
        """Find a run with all its results once, and a store without a fault."""
        entry = self.entry(begun.run_id)
        assert entry.assessment is Assessment.SUCCESS
        assert len(entry.signals) == len(entry.expectations) == len(begun.expectations)
        assert self.count("gate_results") == self.count("entries") - self.count("gate_runs")
        assert check_store(self.path).problems == ()


def whole(begun: RunBegun) -> tuple[GateEvent, ...]:
    return (begun, *(judge(begun, name) for name in begun.expectations), end(begun))


def tell(record: RunRecord, *events: GateEvent) -> None:
    first, *middle, last = events
    record.begin(first)  # type: ignore[arg-type]
    for event in middle:
        record.record(event)  # type: ignore[arg-type]
    record.end(last)  # type: ignore[arg-type]
    record.close()


@contextmanager
def locked(path: Path) -> Iterator[Callable[[], None]]:
    """Hold a store locked in another process; what is given lets it go."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"

    def let_go() -> None:
        holder.communicate()

    try:
        yield let_go
    finally:
        if holder.poll() is None:
            holder.communicate()


def damage(path: Path) -> bytes:
    """Overwrite all pages behind the first, log and all, and give the bytes as they are then."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))
    return path.read_bytes()


def fold_log(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
