from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import delete, insert, select, text

from pytest_golden.errors import SettingsError, StorageError, StorageTrouble
from pytest_golden.storage.copying import Progress, copy_store
from pytest_golden.storage.integrity import check_store
from pytest_golden.storage.schema import entries, expectations, memories, metadata, trajectories
from pytest_golden.storage.shared_documents import keep_document, read_document
from pytest_golden.storage.store import Store
from tests.postgres import name_database
from tests.storage.filled import fill
from tests.storage.remembered import find, remember

if TYPE_CHECKING:
    from tests.postgres import PostgresServer

Place = str | Path
STRANGE = "Ünïcode \U0001f600 \t\r\n \\ \\N \"quoted\" 'x' \x7f \u2028 % %s :x {}"


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place for a copy, on each database in turn, where there is nothing yet."""
    if request.param == "sqlite":
        return tmp_path / "copy.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.make_empty_database()


def fill_all(store: Store) -> str:
    """Put in a row of most kinds, with the values that databases are strange about; gives a document's digest."""
    fill(store)
    remember(store, "load failed", "数据管道")
    entry = {"agent_id": "a", "intent": STRANGE, "immediate_result": "unknown", "assessment": "open"}
    with store.write() as connection:
        connection.execute(
            insert(entries),
            {**entry, "number": 1_000, "id": "entry_2", "met_count": 1, "actions": [1.5, -0.0, 1e300, 2**70, "\0\udc80", None],
             "created_at": -5, "updated_at": 2**62},
        )  # fmt: skip
        connection.execute(
            insert(expectations),
            {"id": "x", "entry_id": "entry_2", "description": "", "polarity": "negative", "critical": True,
             "status": "met", "match_hint": {"b": 1, "a": [STRANGE]}, "created_at": 0},
        )  # fmt: skip
        connection.execute(
            insert(trajectories),
            {"id": "t", "started_at": 0, "duration_ms": 0.1 + 0.2, "steps_total": 0, "body": {"é": 1.0, "n": None}},
        )
        return keep_document(connection, {"z": 1, "a": STRANGE})


def read_all(location: Place) -> dict[str, list[tuple[Any, ...]]]:
    with Store.open(location) as store, store.read() as connection:
        return {
            name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key))]
            for name, table in metadata.tables.items()
        }


def insert_entry(store: Store) -> int:
    with store.write() as connection:
        row = {"id": "entry_new", "agent_id": "a", "intent": "x", "actions": [], "immediate_result": "unknown"}
        values = {**row, "assessment": "open", "created_at": 1, "updated_at": 1}
        return int(connection.execute(insert(entries).returning(entries.c.number), values).scalar_one())


def test_copy_holds_the_same_and_goes_on(store: Store, location: Place, target: Place) -> None:
    digest = fill_all(store)
    copy = copy_store(location, target)
    assert (copy.source, copy.problems) == (store.where, ())
    assert set(copy.tables) == set(metadata.tables)
    assert {name: table.rows for name, table in copy.tables.items()} == dict(check_store(location).tables)
    assert read_all(target) == read_all(location)
    assert check_store(target).problems == ()
    with Store.open(target) as copied:
        assert find(copied, "管道") == find(store, "管道") != []
        assert insert_entry(copied) == 1_001
        assert remember(copied, "load")
        with copied.read() as connection:
            assert read_document(connection, digest) == {"z": 1, "a": STRANGE}
            assert connection.execute(text("SELECT sum(amount) FROM entry_tally WHERE agent_id = 'a'")).scalar() == 2
    assert check_store(target).problems == ()


def test_there_and_back_again_is_the_same(
    file_store: Store, path: Path, tmp_path: Path, postgres: PostgresServer
) -> None:
    fill_all(file_store)
    url = postgres.make_empty_database()
    there = copy_store(path, url)
    back = copy_store(url, tmp_path / "back.db")
    assert there.tables == back.tables
    with closing(sqlite3.connect(path)) as first, closing(sqlite3.connect(tmp_path / "back.db")) as second:
        for name in metadata.tables:
            # As the driver gives them: JSON is the same to the byte.
            assert (
                first.execute(f"SELECT * FROM {name}").fetchall() == second.execute(f"SELECT * FROM {name}").fetchall()
            )
        counts = "SELECT * FROM entry_tally WHERE amount <> 0"
        assert first.execute(counts).fetchall() == second.execute(counts).fetchall()


def test_empty_store_is_copied(store: Store, location: Place, target: Place) -> None:
    copy = copy_store(location, target)
    assert {table.rows for table in copy.tables.values()} == {0}
    with Store.open(target) as copied:
        assert insert_entry(copied) == 1


def test_store_whose_tables_were_just_made_takes_a_copy(file_store: Store, path: Path, postgres_url: str) -> None:
    fill_all(file_store)
    assert copy_store(path, postgres_url).problems == ()
    assert check_store(postgres_url).tables["entries"] == 2


def test_progress_is_told_of_each_table(store: Store, location: Place, target: Place) -> None:
    remember(store, *["load"] * 4_500)
    told: list[Progress] = []
    copy_store(location, target, report=told.append)
    assert [step.rows for step in told if step.doing == "memories"] == [0, 2_000, 4_000, 4_500]
    assert {step.total for step in told if step.doing == "comparing memories"} == {4_500}
    assert "search index of memories" in {step.doing for step in told}


def test_what_is_written_meanwhile_is_not_in_the_copy(store: Store, location: Place, target: Place) -> None:
    fill_all(store)
    written: list[int] = []

    def write(_: Progress) -> None:
        if not written:
            thread = threading.Thread(target=lambda: written.append(insert_entry(store)))
            thread.start()
            thread.join(60)

    copy = copy_store(location, target, report=write)
    assert len(written) == 1
    assert (copy.problems, copy.tables["entries"].rows) == ((), 2)
    assert check_store(location).tables["entries"] == 3


def test_target_that_holds_something_is_refused_and_left(
    store: Store, location: Place, tmp_path: Path, postgres: PostgresServer
) -> None:
    fill_all(store)
    file = tmp_path / "there.db"
    file.write_bytes(b"mine")
    with pytest.raises(StorageError, match="already exists; give the name of a new file"):
        copy_store(location, file)
    assert file.read_bytes() == b"mine"
    url = postgres.make_database()
    with Store.open(url) as other, other.write() as connection:
        keep_document(connection, 1)
    with pytest.raises(StorageError, match=r"there are rows in it \(documents\); give an empty one"):
        copy_store(location, url)
    with pytest.raises(StorageError, match="is not a folder"):
        copy_store(location, tmp_path / "none" / "copy.db")
    with pytest.raises(SettingsError, match="exists only in memory"):
        copy_store(location, ":memory:")
    with pytest.raises(SettingsError, match="cannot be copied to itself"):
        copy_store(location, location)


def test_source_that_is_not_there_is_refused(tmp_path: Path, postgres: PostgresServer) -> None:
    with pytest.raises(StorageError, match="there is no such file"):
        copy_store(tmp_path / "none.db", tmp_path / "copy.db")
    url = postgres.make_empty_database()
    with pytest.raises(StorageError) as caught:
        copy_store(url, tmp_path / "copy.db")
    assert caught.value.trouble is StorageTrouble.OLDER
    assert list(tmp_path.iterdir()) == []
    assert postgres.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public'", name_database(url)) == []


def test_tables_of_an_older_version_and_of_another_program_are_refused(
    file_store: Store, path: Path, postgres: PostgresServer, postgres_url: str
) -> None:
    postgres.execute("UPDATE golden_version SET version_num = '0000'", name_database(postgres_url))
    with pytest.raises(StorageError, match="golden store upgrade"):
        copy_store(path, postgres_url)
    url = postgres.make_empty_database()
    postgres.execute("CREATE TABLE entries (theirs TEXT)", name_database(url))
    with pytest.raises(StorageError, match="tables of another program"):
        copy_store(path, url)


def test_copy_that_fails_leaves_the_target_as_it_was(store: Store, location: Place, target: Place) -> None:
    fill_all(store)

    def interrupt(progress: Progress) -> None:
        if progress.doing == "search index of memories":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_store(location, target, report=interrupt)
    if isinstance(target, Path):
        assert [file.name for file in target.parent.iterdir() if "copy" in file.name] == []
    else:
        with pytest.raises(StorageError, match="it has no tables yet"):
            Store.open(target)
    assert copy_store(location, target).problems == ()


def test_broken_reference_is_refused_by_the_target(file_store: Store, path: Path, target: Place) -> None:
    fill_all(file_store)
    file_store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM entries WHERE id = 'entry_1'")
    with pytest.raises(StorageError, match=r"(?i)foreign key") as caught:
        copy_store(path, target)
    assert "\n" not in str(caught.value)
    shown = str(target) if isinstance(target, Path) else "postgresql://"
    assert str(caught.value).startswith(f"the store {shown}")


def test_damaged_source_is_told_of_the_source(file_store: Store, path: Path, target: Place) -> None:
    with file_store.write() as connection:
        connection.execute(text("DROP TABLE signals"))
    with pytest.raises(StorageError, match="no such table: signals") as caught:
        copy_store(path, target)
    assert caught.value.trouble is StorageTrouble.CORRUPT
    assert str(caught.value).startswith(f"the store {path}")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("NEW.body := '7'; RETURN NEW;", "documents: other rows arrived"),
        ("RETURN NULL;", "documents: 0 rows instead of 1 arrived"),
    ],
)
def test_copy_that_differs_is_not_kept(
    file_store: Store, path: Path, postgres: PostgresServer, postgres_url: str, change: str, told: str
) -> None:
    fill_all(file_store)
    name = name_database(postgres_url)
    postgres.execute(f"CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {change} END $$", name)
    postgres.execute("CREATE TRIGGER spoil BEFORE INSERT ON documents FOR EACH ROW EXECUTE FUNCTION spoil()", name)
    copy = copy_store(path, postgres_url)
    (problem,) = copy.problems
    assert problem == f"{told}; nothing was kept"
    assert set(check_store(postgres_url).tables.values()) == {0}


def test_digest_tells_which_table_differs(file_store: Store, path: Path, tmp_path: Path) -> None:
    fill_all(file_store)
    first = copy_store(path, tmp_path / "one.db").tables
    with file_store.write() as connection:
        connection.execute(delete(memories).where(memories.c.number == 1))
    second = copy_store(path, tmp_path / "two.db").tables
    assert {name for name in first if first[name] != second[name]} == {"memories"}
