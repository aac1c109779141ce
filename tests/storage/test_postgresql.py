"""What only a server can do to a store, or a store to a server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import psycopg
import pytest
from sqlalchemy import func, insert, select, text

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.storage import postgresql
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.postgresql import ImpatientConnection, find_driver, reach_server
from pytest_golden.storage.schema import HEAD, documents, signals
from pytest_golden.storage.shared_documents import keep_document
from pytest_golden.storage.statements import Prepared, Question
from pytest_golden.storage.store import Store
from tests.patience import wait_until, without_hanging
from tests.postgres import name_database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlalchemy import Connection

    from tests.postgres import PostgresServer


COUNT = Question(Prepared(select(func.count()).select_from(documents)), {})


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    with Store.open(postgres_url, busy_seconds=0.2) as store:
        yield store


@pytest.fixture
def empty_url(postgres: PostgresServer) -> Iterator[str]:
    url = postgres.make_empty_database()
    yield url
    postgres.drop(url)


def keep(store: Store, body: object) -> None:
    with store.write() as connection:
        keep_document(connection, body)


def ask_and_keep(store: Store, body: object) -> None:
    with store.write_asking(COUNT) as (connection, (found,)):
        assert list(found) == [(count(store),)]
        keep_document(connection, body)


def count(store: Store) -> int:
    with store.read() as connection:
        return connection.execute(select(func.count()).select_from(documents)).scalar_one()


def end_connection(postgres: PostgresServer, connection: Connection) -> None:
    process = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    postgres.execute(f"SELECT pg_terminate_backend({process}, 5000)")


def trouble_of_opening(url: str, message: str) -> StorageTrouble:
    with pytest.raises(StorageError, match=message) as caught:
        Store.open(url, busy_seconds=0.2)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)
    return caught.value.trouble


# Tables.


def test_tables_are_made_only_when_that_is_asked_for(postgres: PostgresServer, empty_url: str) -> None:
    told = "it has no tables yet; run `golden store upgrade --store URL`"
    assert trouble_of_opening(empty_url, told) is StorageTrouble.OLDER
    with pytest.raises(StorageError, match="no tables yet"):
        Store.look_at(empty_url)
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    assert postgres.execute(tables, name_database(empty_url)) == [(0,)]
    for _ in range(2):
        with Store.open(empty_url, upgrades=True) as store:
            keep(store, 1)
    Store.look_at(empty_url)


def test_older_and_newer_tables_are_refused(postgres: PostgresServer, postgres_url: str) -> None:
    for version, told, trouble in (
        ("0000", r"of an older version \(0000\); run `golden store upgrade", StorageTrouble.OLDER),
        ("9999", "newer pytest-golden-projects", StorageTrouble.NEWER),
    ):
        postgres.execute(f"UPDATE golden_version SET version_num = '{version}'", name_database(postgres_url))
        assert trouble_of_opening(postgres_url, told) is trouble


def test_older_tables_that_a_backup_brought_meanwhile_are_told_from_newer_ones(
    postgres: PostgresServer, store: Store, postgres_url: str
) -> None:
    for version, told, trouble in (
        (
            "0000",
            r"older version \(0000\); a backup of that time was restored: run `golden store",
            StorageTrouble.OLDER,
        ),
        ("9999", "brought up to version 9999", StorageTrouble.NEWER),
    ):
        postgres.execute(f"UPDATE golden_version SET version_num = '{version}'", name_database(postgres_url))
        for write in (keep, ask_and_keep):
            with pytest.raises(StorageError, match=told) as caught:
                write(store, 1)
            assert caught.value.trouble is trouble


def test_older_tables_that_lack_what_is_asked_for_are_told_as_older(
    postgres: PostgresServer, store: Store, postgres_url: str
) -> None:
    ask_and_keep(store, 1)
    older = "ALTER TABLE documents RENAME TO letters; UPDATE golden_version SET version_num = '0000'"
    postgres.execute(older, name_database(postgres_url))
    with pytest.raises(StorageError, match=r"older version \(0000\); a backup of that time was restored") as caught:
        ask_and_keep(store, 2)
    assert caught.value.trouble is StorageTrouble.OLDER
    postgres.execute(f"UPDATE golden_version SET version_num = '{HEAD}'", name_database(postgres_url))
    with pytest.raises(StorageError, match='relation "documents" does not exist'):
        ask_and_keep(store, 2)
    postgres.execute("ALTER TABLE letters RENAME TO documents", name_database(postgres_url))
    ask_and_keep(store, 2)
    assert count(store) == 2


def test_other_tables_may_stand_beside_ours_but_not_under_our_names(postgres: PostgresServer, empty_url: str) -> None:
    postgres.execute("CREATE TABLE customers (id int)", name_database(empty_url))
    Store.open(empty_url, upgrades=True).close()
    postgres.execute("DROP TABLE golden_version", name_database(empty_url))
    with pytest.raises(StorageError, match=r"tables of another program are there \(.*entries.*another database or sch"):
        Store.open(empty_url, upgrades=True)


def test_two_schemas_of_a_database_hold_two_stores_that_do_not_wait_for_each_other(
    postgres: PostgresServer, empty_url: str
) -> None:
    for name in ("one", '"Two; other"'):
        postgres.execute(f"CREATE SCHEMA {name}", name_database(empty_url))
    urls = [f"{empty_url}&options=-csearch_path%3D{name}" for name in ("one", "%22Two;%5C%20other%22")]
    first, second = (Store.open(url, upgrades=True, busy_seconds=0.2) for url in urls)
    with first, second, first.write() as connection:
        keep_document(connection, 1)
        keep(second, 2)
        keep(second, 3)
        assert count(second) == 2


def test_texts_sort_by_bytes_and_columns_are_what_they_are_on_sqlite(store: Store) -> None:
    with store.read() as connection:
        odd = connection.exec_driver_sql(
            "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public' "
            "AND (data_type = 'text' AND collation_name IS DISTINCT FROM 'C' OR data_type = 'jsonb')"
        )
        assert odd.all() == []


def test_database_of_another_encoding_is_refused(postgres: PostgresServer) -> None:
    postgres.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    trouble_of_opening(postgres.url("latin"), "made for LATIN1; give one with ENCODING 'UTF8'")


# Connections.


def test_server_that_is_away_or_refuses_is_said(postgres: PostgresServer, postgres_url: str) -> None:
    assert trouble_of_opening(postgres.url("nothing"), '"nothing" does not exist') is StorageTrouble.UNREACHABLE
    nobody = postgres.url("postgres", user="nobody").replace("nobody@", "nobody:hunter2@")
    assert trouble_of_opening(nobody, "nobody.* does not exist") is StorageTrouble.UNREACHABLE
    away = "postgresql://ada:hunter2@/golden?host=/nowhere-at-all"
    assert trouble_of_opening(away, "its server cannot be used") is StorageTrouble.UNREACHABLE
    trouble_of_opening(f"{postgres_url}&unknown_option=1", "an option that is none of libpq's")


def test_wrong_password_is_said_and_not_shown(postgres: PostgresServer) -> None:
    postgres.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'")
    rules = postgres.folder / "pg_hba.conf"
    before = rules.read_text()
    try:
        rules.write_text(f"local all guarded scram-sha-256\n{before}")
        postgres.execute("SELECT pg_reload_conf()")
        url = postgres.url("postgres", user="guarded").replace("guarded@", "guarded:hunter2@")
        assert trouble_of_opening(url, "password authentication failed") is StorageTrouble.UNREACHABLE
    finally:
        rules.write_text(before)
        postgres.execute("SELECT pg_reload_conf()")


def test_connection_lost_between_two_writes_is_made_anew(postgres: PostgresServer, store: Store) -> None:
    keep(store, 1)
    assert count(store) == 1
    postgres.stop()
    with pytest.raises(StorageError, match="its server cannot be used") as caught:
        keep(store, 2)
    assert caught.value.trouble is StorageTrouble.UNREACHABLE
    with pytest.raises(StorageError, match="its server cannot be used"):
        ask_and_keep(store, 2)
    postgres.start()
    keep(store, 2)
    assert count(store) == 2
    postgres.stop()
    postgres.start()
    assert count(store) == 2
    keep(store, 3)
    postgres.stop()
    postgres.start()
    ask_and_keep(store, 4)
    assert count(store) == 4


@contextmanager
def frozen(store: Store) -> Iterator[None]:
    """Let the server's process that a write of the store talks to answer nothing."""
    with store.write() as connection:
        process = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


@pytest.mark.parametrize("write", [keep, ask_and_keep])
def test_server_that_answers_nothing_is_given_up(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, write: Callable[[Store, object], None]
) -> None:
    monkeypatch.setattr(postgresql, "LONGEST_SILENCE_SECONDS", 0.3)
    with Store.open(postgres_url, busy_seconds=0.2) as store:
        with frozen(store), without_hanging():
            # By a new connection: the server itself goes on.
            write(store, 1)
        assert count(store) == 1


def test_server_that_is_silent_at_the_end_of_a_write_is_given_up(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "LONGEST_SILENCE_SECONDS", 0.3)
    stopped: list[int] = []

    def write(store: Store) -> None:
        with store.write() as connection:
            process = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
            keep_document(connection, 1)
            os.kill(process, signal.SIGSTOP)
            stopped.append(process)

    with Store.open(postgres_url, busy_seconds=0.2) as store:
        with without_hanging(), pytest.raises(StorageError, match="it has not answered for") as caught:
            write(store)
        assert caught.value.trouble is StorageTrouble.UNREACHABLE
        os.kill(stopped[0], signal.SIGCONT)
        keep(store, 2)
        # The server may do what it was sent once it goes on: whoever records tells it again, which changes nothing then.
        assert count(store) in {1, 2}


def test_upgrade_is_waited_for_however_long_it_takes(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "LONGEST_SILENCE_SECONDS", 0.1)
    with Store.open(empty_url, upgrades=True) as store, store.write() as connection:
        driver = find_driver(connection)
        assert isinstance(driver, ImpatientConnection)
        assert driver.longest_silence == pytest.approx(30.1)
    database = reach_server(parse_location(empty_url), 0.1)
    with database.engine.connect() as connection, database.preparing(connection):
        connection.exec_driver_sql("SELECT pg_sleep(0.8)")
    database.engine.dispose()


def count_others(postgres: PostgresServer, url: str) -> int:
    asked = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND application_name = 'pytest-golden'"
    with psycopg.connect(postgres.url()) as connection:
        row = connection.execute(asked, [name_database(url)]).fetchone()
    assert row is not None
    return int(row[0])


def test_reader_that_outlives_a_lost_connection_leaves_none_open(
    postgres: PostgresServer, store: Store, postgres_url: str
) -> None:
    keep(store, 1)
    with store.read() as reading:
        with store.write() as connection:
            process = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        postgres.execute(f"SELECT pg_terminate_backend({process}, 5000)")
        keep(store, 2)
        assert reading.execute(select(func.count()).select_from(documents)).scalar_one() == 1
    store.close()
    wait_until(lambda: count_others(postgres, postgres_url) == 0)


def test_reader_that_outlives_its_store_leaves_no_connection_open(
    postgres: PostgresServer, store: Store, postgres_url: str
) -> None:
    with store.read():
        store.close()
        assert count_others(postgres, postgres_url) == 1
    wait_until(lambda: count_others(postgres, postgres_url) == 0)


@pytest.mark.parametrize("way", ["by the driver", "by SQLAlchemy"])
def test_connection_lost_within_a_write_leaves_nothing_of_it(
    postgres: PostgresServer, store: Store, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    keep(store, 1)

    def write() -> None:
        with store.write() as connection:
            keep_document(connection, 2)
            end_connection(postgres, connection)
            if way == "by the driver":
                keep_document(connection, 3)
            else:
                connection.execute(select(documents)).all()

    with pytest.raises(StorageError, match="its server cannot be used"):
        write()
    assert count(store) == 1
    keep(store, 2)
    assert count(store) == 2
    assert caplog.records == []


def test_connection_lost_before_the_end_of_a_write_is_said(postgres: PostgresServer, store: Store) -> None:
    def write() -> None:
        with store.write() as connection:
            keep_document(connection, 2)
            end_connection(postgres, connection)

    with pytest.raises(StorageError, match="its server cannot be used"):
        write()
    keep(store, 3)
    assert count(store) == 1


def test_statement_that_failed_fails_the_whole_write(store: Store) -> None:
    def write() -> None:
        with store.write() as connection:
            keep_document(connection, 1)
            with suppress(psycopg.Error):
                Prepared(insert(signals), "id").run(connection, {"id": "s"})
            keep_document(connection, 2)

    with pytest.raises(StorageError, match="current transaction is aborted"):
        write()
    assert count(store) == 0
    keep(store, 1)


# Rights and locks.


def test_role_that_may_only_read_is_told_so(postgres: PostgresServer, postgres_url: str) -> None:
    database = name_database(postgres_url)
    with Store.open(postgres_url) as store:
        keep(store, 1)
    postgres.execute(f"CREATE ROLE reader_of_{database} LOGIN")
    reader = postgres.url(database, user=f"reader_of_{database}")
    assert trouble_of_opening(reader, "permission denied for table golden_version") is StorageTrouble.READ_ONLY
    postgres.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader_of_{database}", database)
    with Store.open(reader) as store:
        assert count(store) == 1
        with pytest.raises(StorageError, match="let this role read and write its tables") as caught:
            keep(store, 2)
        assert caught.value.trouble is StorageTrouble.READ_ONLY
    postgres.execute(f"DROP OWNED BY reader_of_{database}", database)


def test_server_that_may_only_be_read_is_told_so(postgres: PostgresServer, postgres_url: str) -> None:
    postgres.execute(f"ALTER DATABASE {name_database(postgres_url)} SET default_transaction_read_only = on")
    with Store.open(postgres_url) as store:
        assert count(store) == 0
        with pytest.raises(StorageError, match="it cannot be written") as caught:
            keep(store, 1)
    assert caught.value.trouble is StorageTrouble.READ_ONLY


def test_writer_that_waits_too_long_for_another_is_told_and_reads_go_on(store: Store, postgres_url: str) -> None:
    with Store.open(postgres_url) as other:
        with other.write() as connection:
            keep_document(connection, 1)
            for write in (keep, ask_and_keep):
                with pytest.raises(StorageError, match="another process has locked it") as caught:
                    write(store, 2)
                assert caught.value.trouble is StorageTrouble.LOCKED
            assert count(store) == 0
        ask_and_keep(store, 2)
        assert count(other) == 2


def test_reader_that_waits_too_long_for_a_table_is_told(
    postgres: PostgresServer, store: Store, postgres_url: str
) -> None:
    with psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE documents IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StorageError, match="another process has locked it") as caught:
            count(store)
    assert caught.value.trouble is StorageTrouble.LOCKED
    assert count(store) == 0


def test_limit_for_statements_ends_no_write(postgres: PostgresServer, postgres_url: str) -> None:
    postgres.execute(f"ALTER DATABASE {name_database(postgres_url)} SET statement_timeout = 1500")
    with Store.open(postgres_url, busy_seconds=1) as store, Store.open(postgres_url) as other:
        with store.write() as connection:
            connection.exec_driver_sql("SELECT pg_sleep(2)")
            keep_document(connection, 1)
        with other.write(), pytest.raises(StorageError) as caught:
            keep(store, 2)
        assert caught.value.trouble is StorageTrouble.LOCKED
        assert count(store) == 1


def test_functions_of_others_that_fit_better_are_not_called(
    postgres: PostgresServer, store: Store, postgres_url: str
) -> None:
    for made in ("quote_ident(name) RETURNS text", "convert_to(text, text) RETURNS bytea"):
        postgres.execute(
            f"CREATE FUNCTION public.{made} LANGUAGE plpgsql AS $$ BEGIN RAISE 'called'; END $$",
            name_database(postgres_url),
        )
    memories = MemoryStore(store)
    memories.save_memory(("plans", "etl"), "k", {"text": "word"})
    assert [hit.memory.key for hit in memories.search_memories(("plans",), "word")] == ["k"]


@pytest.mark.parametrize(("said", "is_prepared"), [("", True), ("&prepare_threshold=none", False)])
def test_nothing_is_prepared_on_a_pooler_that_wants_it_so(postgres_url: str, said: str, is_prepared: bool) -> None:
    with Store.open(f"{postgres_url}{said}") as store:
        for number in range(10):
            keep(store, number)
        with store.write() as connection:
            prepared = connection.exec_driver_sql("SELECT count(*) FROM pg_prepared_statements").scalar_one()
    assert bool(prepared) is is_prepared


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("prepare_threshold=soon", "prepare_threshold must be a whole number, or none behind a pooler"),
        ("row_factory=hunter22", "an option that is none of libpq's"),
        ("hunter22=x", "an option that is none of libpq's"),
    ],
)
def test_option_that_there_is_not_is_refused_and_not_shown(postgres_url: str, said: str, told: str) -> None:
    with pytest.raises(StorageError, match=told) as caught:
        Store.open(f"{postgres_url}&{said}")
    assert "hunter22" not in str(caught.value)


def test_read_sees_one_moment_and_writes_nothing(store: Store) -> None:
    with store.read() as connection:
        assert connection.execute(select(func.count()).select_from(documents)).scalar_one() == 0
        keep(store, 1)
        assert connection.execute(select(func.count()).select_from(documents)).scalar_one() == 0
    with pytest.raises(StorageError, match="read-only transaction"), store.read() as connection:
        keep_document(connection, 2)


def test_write_is_flushed_on_a_server_that_would_not_wait_for_it(postgres: PostgresServer, postgres_url: str) -> None:
    postgres.execute(f"ALTER DATABASE {name_database(postgres_url)} SET synchronous_commit = off")
    with Store.open(postgres_url) as store, store.write() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    postgres.execute(f"ALTER DATABASE {name_database(postgres_url)} SET synchronous_commit = local")
    with Store.open(postgres_url) as store, store.write() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "local"
        assert connection.exec_driver_sql("SHOW application_name").scalar() == "pytest-golden"


def test_lost_table_and_full_disk_are_what_they_are(postgres: PostgresServer, store: Store, postgres_url: str) -> None:
    postgres.execute("DROP TABLE documents", name_database(postgres_url))
    with pytest.raises(StorageError, match="it is damaged") as caught:
        count(store)
    assert caught.value.trouble is StorageTrouble.CORRUPT
    # The server says so itself: no disk is filled for a test.
    full = text("DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$")
    with (
        pytest.raises(StorageError, match=r"the disk of its server is full; free some space \(could not") as caught,
        store.write() as connection,
    ):
        connection.execute(full)
    assert caught.value.trouble is StorageTrouble.FULL


# Statements.


@pytest.mark.parametrize("number", [0, 31, 32, 33, 500])
def test_very_many_rows_are_fetched_as_they_are_asked_for(store: Store, number: int) -> None:
    every = Prepared(select(documents.c.digest, documents.c.body).order_by(documents.c.digest))
    with store.write() as connection:
        if number:
            rows = [{"digest": f"{n:04}", "body": {"n": n, "text": "\0\udc80"}} for n in range(number)]
            connection.execute(insert(documents), rows)
        found = list(every.stream(connection, {}))
        assert [digest for digest, _ in found] == [f"{n:04}" for n in range(number)]
        assert all(body == f'{{"n":{n},"text":"\\\\x00\\\\udc80"}}' for n, (_, body) in enumerate(found))


def test_store_of_a_file_loads_nothing_of_a_server(tmp_path: Path) -> None:
    code = (
        "import sys; from pytest_golden.journal.service import Journal; j = Journal.open(sys.argv[1] + '/x.db'); "
        "j.add_signal('ci', 'positive', 'x', data={'pr': 1}); j.close(); "
        "print([name for name in sys.modules if 'psycopg' in name or 'dialects.postgresql' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_version_is_kept_with_the_tables(store: Store) -> None:
    with store.read() as connection:
        assert connection.exec_driver_sql("SELECT version_num FROM golden_version").scalars().all() == [HEAD]
