from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import delete, insert, inspect, text, update

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.schema import ALL_AGENTS, HEAD, VERSION_TABLE, entries, entry_tally, metadata
from pytest_golden.storage.store import Store
from pytest_golden.storage.upgrading import make_config, upgrade
from tests.postgres import name_database
from tests.second_version import add_second_version
from tests.storage.filled import ENTRY

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from tests.postgres import PostgresServer


MADE_ELSEWHERE = ("memory_words", "entry_tally")


@pytest.fixture
def introduce_second_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], None]:
    return lambda: add_second_version(monkeypatch, tmp_path / "migrations 100%")


def read_context(connection: Connection) -> MigrationContext:
    def is_compared(name: str | None, kind: str, _: Any) -> bool:
        return kind != "table" or not (name or "").startswith(MADE_ELSEWHERE)

    options = {"version_table": VERSION_TABLE, "include_name": is_compared, "compare_server_default": True}
    return MigrationContext.configure(connection, opts=options)


def read_letters(store: Store) -> list[int]:
    with store.read() as connection:
        return list(connection.scalars(text("SELECT number FROM letters")))


# A new store.


def test_new_store_has_the_tables_of_the_schema_and_the_version_that_alembic_calls_newest(store: Store) -> None:
    scripts = ScriptDirectory.from_config(make_config())
    with store.read() as connection:
        context = read_context(connection)
        assert list(compare_metadata(context, metadata)) == []
        assert context.get_current_revision() == scripts.get_current_head() == HEAD


def test_new_store_on_a_server_sorts_by_bytes_and_has_the_indexes_that_leave_rows_out(
    postgres: PostgresServer, postgres_url: str
) -> None:
    database = name_database(postgres_url)
    collations = "SELECT DISTINCT collation_name FROM information_schema.columns WHERE table_schema = 'public' AND "
    texts = f"{collations} data_type = 'text'"
    assert postgres.execute(texts, database) == [("C",)]
    on_sqlite = {
        str(index.name)
        for table in metadata.tables.values()
        for index in table.indexes
        if index.dialect_options["sqlite"]["where"] is not None
    }
    partial = "SELECT indexname FROM pg_indexes WHERE schemaname = 'public' AND indexdef LIKE '% WHERE %'"
    assert {name for (name,) in postgres.execute(partial, database)} == on_sqlite
    options = "SELECT reloptions FROM pg_class WHERE relname = 'ix_memory_words_words'"
    assert postgres.execute(options, database) == [(["fastupdate=off"],)]


def test_store_of_the_newest_version_is_made_and_opened_without_alembic(path: Path) -> None:
    code = (
        "import sys; from pytest_golden.storage.store import Store; Store.open(sys.argv[1]).close(); "
        "print('alembic' in sys.modules)"
    )
    opened = [
        subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, encoding="utf-8", check=True
        ).stdout
        for _ in range(2)
    ]
    assert [line.strip() for line in opened] == ["False", "False"]


# An older store.


def test_every_migration_has_a_number_and_says_what_it_does() -> None:
    scripts = list(ScriptDirectory.from_config(make_config()).walk_revisions())
    names = [Path(script.path).name for script in scripts]
    assert all(name.startswith(f"v{script.revision}_") for name, script in zip(names, scripts, strict=True))
    assert all(script.doc for script in scripts)


def test_older_store_is_brought_up_to_date_and_keeps_its_rows(
    location: str | Path, introduce_second_version: Callable[[], None]
) -> None:
    with Store.open(location) as older:
        with older.write() as connection:
            connection.execute(insert(entries), ENTRY)
        introduce_second_version()
        with Store.open(location, upgrades=True) as store:
            assert read_letters(store) == [1]
            with store.read() as connection:
                assert read_context(connection).get_current_revision() == "0002"
                assert connection.scalars(entries.select().with_only_columns(entries.c.id)).all() == [ENTRY["id"]]
    with Store.open(location) as store:
        assert read_letters(store) == [1]


def test_older_store_on_a_server_is_brought_up_to_date_only_when_that_is_asked_for(
    postgres_url: str, introduce_second_version: Callable[[], None]
) -> None:
    introduce_second_version()
    with pytest.raises(StorageError, match=r"of an older version \(0001\); run `golden store upgrade") as caught:
        Store.open(postgres_url)
    assert caught.value.trouble is StorageTrouble.OLDER


def test_store_that_was_made_meanwhile_is_left_as_it_is(path: Path) -> None:
    with Store.open(path) as store, store.write() as connection:
        upgrade(connection, "x")
        assert inspect(connection).has_table("entries")


def test_program_in_a_folder_with_a_percent_sign_finds_its_migrations() -> None:
    assert "%%" not in str(make_config().get_main_option("script_location"))


DAY_MS = 86_400_000


def make_entry(name: str, agent: str, kind: str | None, assessment: str, day: int = 0) -> dict[str, Any]:
    made = {
        "id": name,
        "agent_id": agent,
        "intent_type": kind,
        "assessment": assessment,
        "created_at": day * DAY_MS + 1,
    }
    return {**ENTRY, **made}


def read_sums(store: Store, agent: str) -> dict[tuple[int, str, str], int]:
    with store.read() as connection:
        rows = connection.execute(entry_tally.select().where(entry_tally.c.agent_id == agent)).all()
    return {(row.day, row.intent_type, row.assessment): row.amount for row in rows if row.amount}


def test_entries_are_counted_for_each_agent_and_for_all_with_each_write(store: Store) -> None:
    with store.write() as connection:
        first = make_entry("e1", "a", "deploy", "open"), make_entry("e2", "b", "deploy", "open")
        connection.execute(insert(entries), [*first, make_entry("e3", "b", None, "success", day=1)])
    assert read_sums(store, ALL_AGENTS) == {(0, "deploy", "open"): 2, (1, "", "success"): 1}
    with store.write() as connection:
        connection.execute(update(entries).where(entries.c.id == "e1").values(assessment="failure"))
        connection.execute(delete(entries).where(entries.c.id == "e2"))
    assert read_sums(store, "a") == {(0, "deploy", "failure"): 1}
    assert read_sums(store, "b") == {(1, "", "success"): 1}
    assert read_sums(store, ALL_AGENTS) == {(0, "deploy", "failure"): 1, (1, "", "success"): 1}
