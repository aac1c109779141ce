"""What a durable write of one row costs beside the same insert by bare SQLAlchemy Core with the same pragmas.

A memory is a row and its words in the search index, in one transaction: it is also compared with Core doing both.

Run: python benchmarks/store_writes.py [ROUNDS]
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from side_by_side import in_turns
from sqlalchemy import create_engine, event, insert

from pytest_golden.clock import new_id
from pytest_golden.journal.service import Journal
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.storage.schema import entries, memories
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from sqlalchemy import Engine, Insert

INSERT_ENTRY = insert(entries)
INSERT_MEMORY = insert(memories)
WORDS = "load the orders of one day extract load"
INDEX_MEMORY = "INSERT INTO memory_words (rowid, place, words) VALUES (?, ?, ?)"
VALUE = {"task_description": "load the orders of one day", "success": True, "execution_path": ["extract", "load"]}


def open_bare(path: Path) -> Engine:
    """Open a store of our tables with SQLAlchemy alone."""
    Store.open(path).close()
    engine = create_engine(f"sqlite:///{path}")

    def prepare(connection: sqlite3.Connection, _: object) -> None:
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")

    event.listen(engine, "connect", prepare)
    return engine


def entry_row() -> dict[str, object]:
    said = {"agent_id": "bench", "intent": "load the orders", "actions": [], "immediate_result": "unknown"}
    return {"id": new_id("entry"), **said, "assessment": "open", "created_at": 1, "updated_at": 1}


def memory_row(number: int) -> dict[str, object]:
    place = {"namespace": "bench/bare/", "key": f"key{number}", "version": 1, "is_newest": True}
    return {**place, "value": VALUE, "tags": [], "words": WORDS, "created_at": 1, "updated_at": 1}


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    numbers = itertools.count()
    with tempfile.TemporaryDirectory(dir=".") as folder, Store.open(Path(folder, "store.db")) as store:
        engine = open_bare(Path(folder, "bare.db"))
        journal, memory_store = Journal(store), MemoryStore(store)

        def bare(statement: Insert, row: Callable[[], dict[str, object]]) -> Callable[[], None]:
            def write() -> None:
                with engine.begin() as connection:
                    connection.execute(statement, row())

            return write

        def write_through_store() -> None:
            with store.write() as connection:
                connection.execute(INSERT_ENTRY, entry_row())

        def write_both() -> None:
            with engine.begin() as connection:
                row = memory_row(next(numbers))
                number = connection.execute(INSERT_MEMORY, row).lastrowid
                connection.exec_driver_sql(INDEX_MEMORY, (number, row["namespace"], f"{row['words']} {row['key']}"))

        def save_memory() -> None:
            memory_store.save_memory(("bench",), f"key{next(numbers)}", VALUE)

        bare_entry, bare_memory = bare(INSERT_ENTRY, entry_row), bare(INSERT_MEMORY, lambda: memory_row(next(numbers)))
        ours = {
            "Store.write, one insert": (bare_entry, write_through_store),
            "Journal.log_intent": (bare_entry, lambda: journal.log_intent("load the orders", agent_id="bench")),
            "MemoryStore.save_memory": (bare_memory, save_memory),
            "MemoryStore.save_memory, bare with its search row": (write_both, save_memory),
        }
        for name, (floor, action) in ours.items():
            floor()
            action()
            bare_seconds, our_seconds, ratio = in_turns(floor, action, rounds)
            print(
                f"{name}: {our_seconds * 1000:.3f} ms, bare {bare_seconds * 1000:.3f} ms, {1 / ratio:.0%} of its rate"
            )
        engine.dispose()


if __name__ == "__main__":
    main()
