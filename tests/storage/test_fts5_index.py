from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.search import find_index_fault, rebuild_index, unindex_memory
from tests.storage.remembered import find, remember

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.storage.store import Store


def test_damaged_index_is_found_and_built_again(file_store: Store) -> None:
    one, other = remember(file_store, "load", "数据管道")
    with file_store.write() as connection:
        unindex_memory(connection, one, "something else")
        connection.execute(text("UPDATE memory_words_data SET block = x'00' WHERE id > 10"))
    with pytest.raises(StorageError, match="golden store upgrade") as caught:
        find(file_store, "管道")
    assert caught.value.trouble is StorageTrouble.UNREACHABLE
    with file_store.write() as connection:
        fault = find_index_fault(connection)
        rebuild_index(connection)
        assert find_index_fault(connection) is None
    assert fault == "the search index is damaged"
    assert (find(file_store, "load"), find(file_store, "管道")) == ([one], [other])


def test_look_at_the_index_that_cannot_be_had_is_an_error(file_store: Store) -> None:
    with file_store.write() as connection:
        connection.execute(text("DROP TABLE memory_words"))
    with pytest.raises(StorageError) as caught, file_store.write() as connection:
        find_index_fault(connection)
    assert caught.value.trouble is StorageTrouble.UNREACHABLE


def test_index_keeps_no_second_copy_of_the_text(file_store: Store, path: Path) -> None:
    mark = "marked words that stand nowhere else"
    remember(file_store, mark)
    file_store.close()
    assert path.read_bytes().count(mark.encode()) == 1
