from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import func, insert, select, text

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.schema import documents, signals
from pytest_golden.storage.shared_documents import keep_document, read_document
from pytest_golden.storage.store import Store
from tests.gate.record_place import locked
from tests.patience import without_hanging
from tests.requirement import lack, require
from tests.storage.conftest import command, end, hear, say, start
from tests.storage.test_sqlite import write_mounts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Connection


def count(store: Store) -> int:
    with store.read() as connection:
        return connection.execute(select(func.count()).select_from(documents)).scalar_one()


def keep(store: Store, body: object) -> str:
    with store.write() as connection:
        return keep_document(connection, body)


def trouble_of_opening(path: Path, busy_seconds: float = 0.1) -> StorageTrouble:
    with pytest.raises(StorageError) as caught:
        Store.open(path, busy_seconds=busy_seconds)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    return caught.value.trouble


def test_store_makes_its_folder_and_what_was_written_is_there_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "golden.db"
    with Store.open(path) as store:
        digest = keep(store, {"rows": 3})
        assert (store.where, store.path) == (str(path), path)
    with Store.open(f"sqlite:///{path}") as store, store.read() as connection:
        assert read_document(connection, digest) == {"rows": 3}
    assert [file.name for file in path.parent.iterdir()] == ["golden.db"]


def test_what_an_exception_interrupts_leaves_nothing(store: Store) -> None:
    def interrupt() -> None:
        with store.write() as connection:
            keep_document(connection, 1)
            raise KeyboardInterrupt

    def write_twice() -> None:
        with store.write() as connection:
            keep_document(connection, 1)
            connection.execute(insert(documents), [{"digest": "same", "body": 1}, {"digest": "same", "body": 2}])

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    with pytest.raises(StorageError, match=r"UNIQUE constraint failed|violates unique constraint"):
        write_twice()
    assert count(store) == 0
    keep(store, 1)
    assert count(store) == 1


def test_reader_sees_one_moment_while_others_write(store: Store) -> None:
    keep(store, 1)
    with store.read() as connection:
        number = select(func.count()).select_from(documents)
        assert connection.execute(number).scalar_one() == 1
        keep(store, 2)
        assert connection.execute(number).scalar_one() == 1
    assert count(store) == 2


@pytest.mark.parametrize("location", ["file", ":memory:"])
def test_threads_write_one_after_another(location: str, path: Path) -> None:
    with Store.open(path if location == "file" else location) as store:
        keep(store, 0)

        def add_one(_: int) -> None:
            with store.write() as connection:
                now = connection.scalar(select(func.max(documents.c.body)).where(documents.c.digest == "sum")) or "0"
                connection.execute(text("DELETE FROM documents WHERE digest = 'sum'"))
                connection.execute(insert(documents), {"digest": "sum", "body": int(now) + 1})

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(add_one, range(80)))
        with store.read() as connection:
            assert read_document(connection, "sum") == 80


def test_thread_that_waits_too_long_for_another_is_told(path: Path) -> None:
    with Store.open(path, busy_seconds=0.1) as store:
        is_held, is_done = threading.Event(), threading.Event()

        def hold() -> None:
            with store.write():
                is_held.set()
                is_done.wait(60)

        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(hold)
            is_held.wait(60)
            with pytest.raises(StorageError, match="another thread") as caught, store.write():
                pass
            is_done.set()
            held.result()
        assert caught.value.trouble is StorageTrouble.LOCKED
        keep(store, 1)


def test_more_readers_at_once_than_there_are_connections_are_told(store: Store) -> None:
    with Store.open(":memory:", busy_seconds=0.1) as memory, memory.read() as connection:
        connection.execute(select(documents.c.digest)).all()
        with pytest.raises(StorageError, match="too many threads") as caught, memory.read():
            pass
    assert caught.value.trouble is StorageTrouble.LOCKED


def test_closed_store_says_so(path: Path) -> None:
    store = Store.open(path)
    store.close()
    store.close()
    with pytest.raises(StorageError, match="is closed"), store.write():
        pass
    with pytest.raises(StorageError, match="is closed"), store.read():
        pass


def test_store_closed_during_a_write_keeps_what_is_written_and_holds_no_file_open(path: Path) -> None:
    store = Store.open(path)
    with store.write() as connection:
        keep_document(connection, "first")
    with store.write() as connection:
        store.close()
        keep_document(connection, "second")
    store.close()
    with Store.open(path) as again:
        assert count(again) == 2
    assert not path.with_name("golden.db-wal").exists()


def test_write_after_one_that_failed_is_kept(store: Store) -> None:
    for body in ("first", "second"):
        with pytest.raises(ValueError, match="JSON"):
            keep(store, float("nan"))
        keep(store, body)
    assert count(store) == 2


def test_foreign_keys_hold(store: Store) -> None:
    with pytest.raises(StorageError, match=r"FOREIGN KEY|violates foreign key"), store.write() as connection:
        connection.execute(
            text("INSERT INTO entry_history (entry_id, changed_at, what, who) VALUES ('none', 1, 'x', 'y')")
        )


def test_wrong_statement_is_a_storage_error_too(store: Store) -> None:
    with pytest.raises(StorageError, match="Unconsumed column names: unknown"), store.write() as connection:
        connection.execute(insert(documents).values(digest="a", body=1, unknown=1))


def test_a_commit_is_one_flush_of_the_log(path: Path, tmp_path: Path) -> None:
    require(shutil.which("strace"), "strace")
    code = """
        with Store.open(path) as store:
            keep(store, 0)
            os.path.exists("/begin-here")
            for number in range(1, 11):
                keep(store, number)
            os.path.exists("/end-here")
    """
    log = tmp_path / "trace"
    traced = ["strace", "-f", "-e", "trace=fsync,fdatasync,stat,newfstatat", "-o", str(log), *command(code), str(path)]
    if subprocess.run(traced, capture_output=True, check=False).returncode:
        lack("strace may not trace here")
    lines = log.read_text().splitlines()
    begin, finish = (next(n for n, line in enumerate(lines) if mark in line) for mark in ("/begin-here", "/end-here"))
    assert sum("sync(" in line for line in lines[begin:finish]) == 10


def test_network_file_system_gets_no_log(path: Path) -> None:
    def mode() -> str:
        with closing(sqlite3.connect(path)) as connection:
            return str(connection.execute("PRAGMA journal_mode").fetchone()[0])

    network = write_mounts(path.parent, path.parent, "nfs4")
    with Store.open(path, mounts=network) as store:
        keep(store, 1)
        assert mode() == "delete"
        assert not path.with_name("golden.db-wal").exists()
    with Store.open(path) as store:
        assert mode() == "wal"
        assert count(store) == 1
    with Store.open(path, mounts=network) as store:
        assert mode() == "delete"
        assert count(store) == 1


def test_log_that_somebody_uses_on_a_network_file_system_cannot_be_left(path: Path) -> None:
    network = write_mounts(path.parent, path.parent, "nfs4")
    with Store.open(path) as store:
        keep(store, 1)
        with pytest.raises(StorageError) as caught:
            Store.open(path, mounts=network, busy_seconds=0.1)
    assert caught.value.trouble is StorageTrouble.LOCKED


def test_rollback_journal_of_a_store_in_use_is_left_as_it_is(path: Path) -> None:
    network = write_mounts(path.parent, path.parent, "nfs4")
    with Store.open(path, mounts=network) as store, store.read() as connection:
        connection.execute(select(documents.c.digest)).all()
        with Store.open(path, busy_seconds=0.1) as other:
            assert count(other) == 0


# Bad luck.


def test_store_that_another_process_locks_for_long_is_said_and_still_read(path: Path) -> None:
    with Store.open(path, busy_seconds=0.2) as store:
        keep(store, 1)
        holder = start(
            "import sqlite3\nc = sqlite3.connect(path)\nc.execute('BEGIN IMMEDIATE')\nprint(1)\ninput()", path
        )
        assert hear(holder) == "1"
        with pytest.raises(StorageError, match="another process has locked it") as caught:
            keep(store, 2)
        assert caught.value.trouble is StorageTrouble.LOCKED
        assert count(store) == 1
        with Store.open(path, busy_seconds=0.2) as other:
            assert count(other) == 1
        say(holder, "go")
        assert end(holder) == 0
        keep(store, 2)
        assert count(store) == 2


@pytest.mark.parametrize("lock", ["IMMEDIATE", "EXCLUSIVE"])
def test_new_file_that_another_process_locks_is_said(path: Path, lock: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute(f"BEGIN {lock}")
        assert trouble_of_opening(path) is StorageTrouble.LOCKED
        holder.execute("ROLLBACK")
        Store.open(path, busy_seconds=0.1).close()


@pytest.mark.parametrize("way", ["removed", "replaced", "folder removed", "moved"])
def test_file_that_vanishes_while_open_is_said_before_anything_is_lost(path: Path, way: str) -> None:
    path = path.parent / "state" / "golden.db"
    with Store.open(path) as store:
        keep(store, 1)
        if way == "folder removed":
            shutil.rmtree(path.parent)
        elif way == "moved":
            path.rename(path.with_name("other.db"))
        else:
            path.unlink()
        if way == "replaced":
            Store.open(path).close()
        with pytest.raises(StorageError, match="moved, removed or replaced") as caught:
            keep(store, 2)
        assert caught.value.trouble is StorageTrouble.GONE


def test_garbage_is_not_a_store_and_stays_as_it_is(path: Path) -> None:
    garbage = b"# A page of text\n" * 500
    path.write_bytes(garbage)
    assert trouble_of_opening(path) is StorageTrouble.CORRUPT
    assert path.read_bytes() == garbage
    assert [file.name for file in path.parent.iterdir()] == ["golden.db"]


def test_damaged_page_is_said_when_it_is_read(path: Path) -> None:
    with Store.open(path) as store, store.write() as connection:
        for number in range(2000):
            keep_document(connection, [number, "x" * 500])
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        # More than the index can have side by side.
        file.write(os.urandom(4096 * 12))
    store = Store.open(path)
    with pytest.raises(StorageError, match="it is damaged") as caught, store.read() as connection:
        connection.execute(select(documents.c.body)).all()
    store.close()
    assert caught.value.trouble is StorageTrouble.CORRUPT


def test_store_cut_short_is_damaged(path: Path) -> None:
    Store.open(path).close()
    os.truncate(path, path.stat().st_size // 3)
    assert trouble_of_opening(path) is StorageTrouble.CORRUPT


def test_newer_store_is_refused_and_stays_as_it_is(path: Path) -> None:
    with Store.open(path) as store, store.write() as connection:
        connection.execute(text("UPDATE golden_version SET version_num = '9999'"))
    before = path.read_bytes()
    with pytest.raises(StorageError, match=r"newer pytest-golden-projects \(version 9999.*upgrade") as caught:
        Store.open(path)
    assert caught.value.trouble is StorageTrouble.NEWER
    assert path.read_bytes() == before


@pytest.mark.parametrize("mode", ["wal", "delete"])
@pytest.mark.parametrize("table", ["alembic_version", "customers"])
def test_database_of_another_program_is_refused_and_never_touched(path: Path, mode: str, table: str) -> None:
    with closing(sqlite3.connect(path)) as theirs:
        theirs.execute(f"PRAGMA journal_mode = {mode}")
        theirs.execute(f"CREATE TABLE {table} (version_num TEXT)")
        theirs.execute(f"INSERT INTO {table} VALUES ('0001')")
        theirs.commit()
    before = path.read_bytes()
    with pytest.raises(StorageError, match="of another program"):
        Store.open(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["golden.db"]


def test_a_look_at_a_store_changes_nothing(path: Path) -> None:
    Store.open(path).close()
    before = path.read_bytes()
    Store.look_at(path)
    assert path.read_bytes() == before
    path.write_bytes(b"garbage " * 1000)
    with pytest.raises(StorageError, match="is damaged"):
        Store.look_at(path)


def test_place_that_is_no_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="that is not a file"):
        Store.open(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="file is not a folder"):
        Store.open(tmp_path / "file" / "golden.db")
    with pytest.raises(StorageError, match="File name too long"):
        Store.open(tmp_path / ("x" * 300) / "golden.db")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_folder_that_cannot_be_made_is_said() -> None:
    with pytest.raises(StorageError) as caught:
        Store.open("/proc/golden/golden.db")
    assert "/proc/golden" in str(caught.value)


@pytest.mark.parametrize("loss", ["DROP TABLE signals", "DELETE FROM golden_version"])
def test_store_that_has_lost_a_table_is_damaged(path: Path, loss: str) -> None:
    Store.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(loss)
        connection.commit()
    with pytest.raises(StorageError) as caught, Store.open(path) as store, store.read() as connection:
        connection.execute(select(signals)).all()
    assert caught.value.trouble is StorageTrouble.CORRUPT


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


pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="forks"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]


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
        while not is_over.wait(0.001):
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
