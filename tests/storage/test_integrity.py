from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import insert, text

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.documents import keep_document
from pytest_golden.storage.integrity import check_store, repair_index
from pytest_golden.storage.schema import entries, expectations, memories, metadata, signals
from pytest_golden.storage.search import index_memory
from pytest_golden.storage.store import Store
from pytest_golden.storage.version import HEAD

if TYPE_CHECKING:
    from pathlib import Path

    from tests.storage.conftest import Elsewhere


def fill(store: Store) -> None:
    """Put in an entry with an expectation of each kind, and a signal of each kind."""
    entry = {
        "id": "entry_1",
        "agent_id": "golden",
        "intent": "check",
        "actions": [],
        "immediate_result": "unknown",
        "assessment": "failure",
        "created_at": 1,
        "updated_at": 1,
        "open_count": 1,
        "met_count": 1,
        "unmet_count": 1,
        "expired_count": 1,
        "critical_lost_count": 1,
        "positive_count": 1,
        "negative_count": 1,
        "correction_count": 1,
    }
    expectation = {"entry_id": "entry_1", "description": "x", "polarity": "positive", "created_at": 1}
    signal = {"entry_id": "entry_1", "source": "golden", "summary": "x", "routed_by": "entry", "created_at": 1}
    memory = {"namespace": "a/", "key": "b", "version": 1, "is_newest": True, "value": {}, "tags": [], "words": "load"}
    with store.write() as connection:
        connection.execute(insert(entries), entry)
        connection.execute(
            insert(expectations),
            [
                {**expectation, "id": status, "status": status, "critical": status == "unmet"}
                for status in ("open", "met", "unmet", "expired")
            ],
        )
        connection.execute(
            insert(signals),
            [
                {**signal, "id": f"{kind}{is_late}", "signal_type": kind, "is_late": is_late}
                for kind in ("positive", "negative", "correction", "neutral")
                for is_late in (False, True)
            ],
        )
        connection.execute(insert(memories), {**memory, "created_at": 1, "updated_at": 1})
        index_memory(connection, 1, "load")


def test_whole_store_is_counted(store: Store, path: Path) -> None:
    fill(store)
    found = check_store(path)
    assert (found.where, found.version, found.problems, found.notes) == (str(path), HEAD, (), ())
    assert set(found.tables) == set(metadata.tables)
    assert (found.tables["entries"], found.tables["signals"], found.tables["documents"]) == (1, 8, 0)
    assert found.size_bytes >= path.stat().st_size > 0


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET open_count = 2",
        "UPDATE entries SET met_count = 0",
        "UPDATE entries SET critical_lost_count = 0",
        "UPDATE entries SET positive_count = 2",
        "UPDATE entries SET negative_count = 0",
        "DELETE FROM expectations WHERE id = 'unmet'",
        "DELETE FROM expectations",
        "DELETE FROM signals",
        "UPDATE expectations SET status = 'met' WHERE id = 'open'",
    ],
)
def test_counts_that_differ_are_found(store: Store, path: Path, statement: str) -> None:
    fill(store)
    with store.write() as connection:
        connection.execute(text(statement))
    assert check_store(path).problems == ("entry entry_1: its counts differ from its expectations and signals",)


def test_reference_to_nothing_is_found(store: Store, path: Path) -> None:
    fill(store)
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM entries")
    problems = check_store(path).problems
    assert "row 1 of expectations refers to what is not there, in entries" in problems
    assert len(problems) == 10


def test_search_index_that_differs_is_found_and_built_again(store: Store, path: Path) -> None:
    fill(store)
    assert repair_index(store) is None
    with store.write() as connection:
        connection.execute(text("UPDATE memories SET words = NULL"))
    told = "the search index differs from the memories in 1 rows"
    assert check_store(path).problems == (f"{told}; `golden store upgrade` builds it again",)
    assert repair_index(store) == told
    assert check_store(path).problems == ()


@pytest.mark.parametrize("damage", ["page", "header", "short", "garbage"])
def test_damaged_file_is_found(path: Path, damage: str) -> None:
    with Store.open(path) as store, store.write() as connection:
        for number in range(300):
            keep_document(connection, [number, "x" * 500])
    size = path.stat().st_size
    if damage == "short":
        os.truncate(path, size // 2)
    else:
        with path.open("r+b") as file:
            file.seek(size // 2 // 4096 * 4096 if damage == "page" else 0)
            file.write(os.urandom({"page": 8192, "header": 100, "garbage": size}[damage]))
    before = path.read_bytes()
    found = check_store(path)
    assert found.problems
    assert found.version is None
    assert all("\n" not in problem for problem in found.problems)
    assert path.read_bytes() == before


def test_store_in_a_read_only_folder_is_checked_but_for_its_index(
    store: Store, path: Path, elsewhere: Elsewhere
) -> None:
    fill(store)
    store.close()
    code = """
        from pytest_golden.storage.integrity import check_store
        found = check_store(path)
        print(json.dumps([found.problems, found.notes, found.tables["entries"]]))
    """
    facts = elsewhere(("--ro-bind", str(path.parent), str(path.parent)), path, code)
    assert facts == [[], ["the search index was not checked: that wants to write"], 1]


def test_what_is_no_store_of_ours_is_not_checked(path: Path) -> None:
    with pytest.raises(StorageError, match="there is no such file"):
        check_store(path)
    with Store.open(path) as store, store.write() as connection:
        connection.execute(text("UPDATE golden_version SET version_num = '9999'"))
    with pytest.raises(StorageError) as caught:
        check_store(path)
    assert caught.value.trouble is StorageTrouble.NEWER
