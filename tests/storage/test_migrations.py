from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text

from pytest_golden.storage.schema import metadata
from pytest_golden.storage.store import Store
from pytest_golden.storage.version import HEAD, VERSION_TABLE, VERSIONS, make_config

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection

MADE_BY_MIGRATIONS_ALONE = ("memory_words", "entry_tally")


def describe(connection: Connection) -> dict[str, list[str]]:
    """Return what SQLite says that its tables and indexes are, the lines of each in a fixed order."""
    statements = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE sql NOT NULL"))
    return {
        # A column that was added later stands on the line of the one before it.
        name: sorted(line.strip() for line in re.split(r",\s|\n", sql) if line.strip())
        for name, sql in statements
        if name != VERSION_TABLE and not name.startswith(MADE_BY_MIGRATIONS_ALONE)
    }


def compare(connection: Connection) -> list[Any]:
    """Return how the tables differ from the schema."""

    def is_compared(name: str | None, kind: str, _: Any) -> bool:
        return kind != "table" or not (name or "").startswith(MADE_BY_MIGRATIONS_ALONE)

    options = {"version_table": VERSION_TABLE, "include_name": is_compared, "compare_server_default": True}
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))


def test_migrated_database_is_what_the_schema_says(store: Store) -> None:
    with store.read() as connection:
        assert compare(connection) == []


def test_migrated_file_is_to_the_letter_what_the_schema_says(file_store: Store) -> None:
    with file_store.read() as connection:
        migrated = describe(connection)
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        metadata.create_all(connection)
        assert describe(connection) == migrated
    engine.dispose()


def test_known_versions_are_those_of_the_migrations_in_order() -> None:
    scripts = ScriptDirectory.from_config(make_config())
    revisions = [script.revision for script in scripts.walk_revisions()]
    assert tuple(reversed(revisions)) == VERSIONS
    assert scripts.get_current_head() == HEAD
    assert all(
        script.doc and script.path.rpartition("v")[2].startswith(script.revision) for script in scripts.walk_revisions()
    )


def test_store_of_the_newest_version_is_opened_without_alembic(path: Path) -> None:
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
    assert [line.strip() for line in opened] == ["True", "False"]


def test_tables_are_made_in_one_transaction_with_their_version(path: Path) -> None:
    with Store.open(path) as store, store.read() as connection:
        assert connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalars().all() == [HEAD]


def test_program_in_a_folder_with_a_percent_sign_finds_its_migrations(path: Path) -> None:
    assert "%%" not in str(make_config().get_main_option("script_location"))
