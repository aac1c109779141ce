from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import StorageError
from pytest_golden.storage.shared_documents import keep_document, read_document
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="forks"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]


def keep(store: Store, body: object) -> str:
    with store.write() as connection:
        return keep_document(connection, body)


def is_kept(store: Store, body: object) -> bool:
    """Tell whether a document is there; to keep it again would give the same id."""
    key = keep(store, body)
    with store.read() as connection:
        return bool(read_document(connection, key) == body)


def fork(work: Callable[[], bool]) -> int:
    """Do it in a fork, and give the id of that process, which ends with 0 when it went well."""
    child = os.fork()
    if child == 0:  # pragma: no cover - the child ends here
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return child


def ends_well(child: int) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if (ended := os.waitpid(child, os.WNOHANG))[0]:
            return ended[1] == 0
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


def test_fork_and_parent_both_go_on(store: Store) -> None:
    keep(store, "of both")
    children = [fork(lambda number=number: is_kept(store, f"of fork {number}")) for number in range(3)]  # type: ignore[misc]
    assert is_kept(store, "of the parent")
    assert [ends_well(child) for child in children] == [True] * 3


def test_fork_beside_a_thread_that_writes_goes_on(store: Store) -> None:
    is_over = threading.Event()

    def write() -> None:
        number = 0
        while not is_over.is_set():
            keep(store, f"thread {number}")
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert [ends_well(fork(lambda: is_kept(store, "of the fork"))) for _ in range(5)] == [True] * 5
    finally:
        is_over.set()
        writer.join()


def test_what_a_fork_writes_after_the_parent_has_closed_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "golden.db"
    reader, writer = os.pipe()
    with Store.open(path) as store:
        keep(store, "of both")

        def work() -> bool:
            keep(store, "before")
            os.read(reader, 1)
            keep(store, "after")
            return True

        child = fork(work)
    os.write(writer, b".")
    assert ends_well(child)
    os.close(reader)
    os.close(writer)
    with Store.open(path) as again, again.read() as connection:
        kept = connection.exec_driver_sql("SELECT count(*) FROM documents").scalar_one()
    assert kept == 3


def test_store_in_memory_is_copied() -> None:
    with Store.open(":memory:") as store:
        keep(store, "of both")
        assert ends_well(fork(lambda: is_kept(store, "of the fork")))
        assert is_kept(store, "of the parent")


def test_fork_in_the_middle_of_a_write_is_refused_the_store(tmp_path: Path) -> None:
    def work() -> bool:
        with pytest.raises(StorageError, match="was in use when this process was forked"):
            keep(store, "of the fork")
        return True

    with Store.open(tmp_path / "golden.db") as store:
        with store.write() as connection:
            child = fork(work)
            keep_document(connection, "of the parent")
        assert ends_well(child)
        assert is_kept(store, "more")
