from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.integrity import check_store, repair_store
from pytest_golden.storage.schema import metadata
from pytest_golden.storage.shared_documents import keep_document
from pytest_golden.storage.store import Store
from pytest_golden.storage.version import HEAD
from tests.storage.filled import fill

if TYPE_CHECKING:
    from pathlib import Path

    from tests.storage.conftest import Elsewhere


def test_whole_store_is_counted(store: Store, location: str | Path) -> None:
    fill(store)
    found = check_store(location)
    assert (found.where, found.version, found.problems) == (store.where, HEAD, ())
    assert set(found.tables) == set(metadata.tables)
    assert (found.tables["entries"], found.tables["signals"], found.tables["documents"]) == (1, 8, 0)
    assert found.size_bytes >= (100_000 if store.path is None else store.path.stat().st_size)
    assert len(found.notes) == (store.path is None)


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
def test_counts_that_differ_are_found(store: Store, location: str | Path, statement: str) -> None:
    fill(store)
    with store.write() as connection:
        connection.execute(text(statement))
    assert check_store(location).problems == ("entry entry_1: its counts differ from its expectations and signals",)


def test_reference_to_nothing_is_found_in_a_file(file_store: Store, path: Path) -> None:
    fill(file_store)
    file_store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM entries")
    problems = check_store(path).problems
    assert "row 1 of expectations refers to what is not there, in entries" in problems
    assert len(problems) == 10


def test_reference_to_nothing_is_found_on_a_server(postgres_url: str) -> None:
    with Store.open(postgres_url) as store:
        fill(store)
        with store.write() as connection:
            connection.execute(text("SET LOCAL session_replication_role = replica"))
            connection.execute(text("DELETE FROM entries"))
    problems = check_store(postgres_url).problems
    assert "row 1 of expectations refers to what is not there, in entries" in problems
    assert (
        "the tally of entries by day differs from the entries in 2 rows; `golden store upgrade` counts it again"
        in problems
    )
    assert len(problems) == 11


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry_tally SET amount = 7 WHERE agent_id <> '' AND amount = 1",
        "DELETE FROM entry_tally WHERE agent_id = '' AND amount = 1",
        "INSERT INTO entry_tally (day, agent_id, intent_type, assessment, amount) VALUES (7, 'a', '', 'open', 1)",
    ],
)
def test_tally_that_differs_is_found_and_counted_again(store: Store, location: str | Path, statement: str) -> None:
    fill(store)
    with store.write() as connection:
        connection.execute(text("UPDATE entries SET assessment = 'success'"))
    assert repair_store(store) == ()
    with store.write() as connection:
        connection.execute(text(statement))
    told = "the tally of entries by day differs from the entries in 1 rows"
    assert check_store(location).problems == (f"{told}; `golden store upgrade` counts it again",)
    assert repair_store(store) == (told,)
    assert check_store(location).problems == ()


def test_search_index_that_differs_is_found_and_built_again(store: Store, location: str | Path) -> None:
    fill(store)
    assert repair_store(store) == ()
    with store.write() as connection:
        connection.execute(text("UPDATE memories SET words = NULL"))
    told = "the search index differs from the memories in 1 rows"
    assert check_store(location).problems == (f"{told}; `golden store upgrade` builds it again",)
    assert repair_store(store) == (told,)
    assert check_store(location).problems == ()


def test_writer_and_look_at_what_is_whole_do_not_wait_for_each_other_on_a_server(postgres_url: str) -> None:
    with Store.open(postgres_url) as store:
        fill(store)
        with Store.open(postgres_url, busy_seconds=0.2) as impatient, store.write():
            assert repair_store(impatient) == ()
            assert check_store(postgres_url).problems == ()


def test_lost_table_of_a_server_is_damage(postgres_url: str) -> None:
    with Store.open(postgres_url) as store, store.write() as connection:
        connection.execute(text("DROP TABLE signals"))
    found = check_store(postgres_url)
    assert (found.version, len(found.problems)) == (None, 1)
    assert "signals" in found.problems[0]


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
    file_store: Store, path: Path, elsewhere: Elsewhere
) -> None:
    fill(file_store)
    file_store.close()
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
