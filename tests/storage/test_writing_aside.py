"""Small writes that nobody waits for, beside those that must be kept."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.shared_documents import keep_document, read_document
from pytest_golden.storage.store import Store
from tests.gate.record_place import locked
from tests.patience import without_hanging
from tests.storage.test_file_system import write_mounts

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection

_NORMAL, _FULL = 1, 2


def keep_aside(store: Store, body: object) -> str:
    with store.write_aside() as connection:
        return keep_document(connection, body)


def trouble_of(store: Store) -> StorageTrouble:
    with pytest.raises(StorageError) as caught:
        keep_aside(store, "refused")
    return caught.value.trouble


def settings(connection: Connection) -> list[object]:
    names = ("synchronous", "busy_timeout")
    return [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names]


def test_what_is_written_aside_is_seen_by_others(store: Store, location: str | Path) -> None:
    digest = keep_aside(store, {"rows": 3})
    with Store.open(location) as other, other.read() as connection:
        assert read_document(connection, digest) == {"rows": 3}


def test_write_in_this_process_comes_first(file_store: Store) -> None:
    with file_store.write():
        assert trouble_of(file_store) is StorageTrouble.LOCKED
    keep_aside(file_store, "afterwards")


def test_write_of_another_process_is_not_waited_for(path: Path) -> None:
    with Store.open(path, busy_seconds=3600) as store:
        with locked(path), without_hanging():
            assert trouble_of(store) is StorageTrouble.LOCKED
        keep_aside(store, "afterwards")


def test_writes_on_a_server_wait_for_no_write_that_is_under_way(postgres_url: str) -> None:
    with Store.open(postgres_url) as store, store.write() as connection:
        keep_document(connection, "kept")
        digest = keep_aside(store, "aside")
        with store.read() as reading:
            assert read_document(reading, digest) == "aside"


@pytest.mark.parametrize("body", ["kept", object()], ids=["well", "badly"])
def test_what_is_written_next_is_as_durable_as_ever(path: Path, body: object) -> None:
    with Store.open(path, busy_seconds=7) as store:
        with suppress(TypeError), store.write_aside() as connection:
            assert settings(connection) == [_NORMAL, 0]
            driver = connection.connection.driver_connection
            keep_document(connection, body)
        with store.write() as connection:
            assert connection.connection.driver_connection is driver
            assert settings(connection) == [_FULL, 7000]


def test_file_without_a_log_is_flushed_as_ever(tmp_path: Path) -> None:
    mounts = write_mounts(tmp_path, tmp_path, "nfs4")
    with Store.open(tmp_path / "golden.db", mounts=mounts) as store, store.write_aside() as connection:
        assert settings(connection)[0] == _FULL


def test_store_in_memory_takes_nothing_aside() -> None:
    with Store.open("sqlite:///:memory:") as store:
        assert trouble_of(store) is StorageTrouble.LOCKED


def test_store_that_is_gone_is_not_written_to(path: Path) -> None:
    with Store.open(path) as store:
        path.rename(path.with_name("moved.db"))
        assert trouble_of(store) is StorageTrouble.GONE
        path.write_bytes(b"")
        assert trouble_of(store) is StorageTrouble.GONE
    with pytest.raises(StorageError, match="is closed"):
        keep_aside(store, "late")
