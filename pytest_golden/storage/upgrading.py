"""Make the tables of a new store, and bring those of an older store up to date; not loaded with an up-to-date store.

A new store is made from the schema and needs no migration. Only an older one loads Alembic, which takes a third of a
second to import.

The tally counts how many entries began on each day, for each agent and for all together. Triggers keep it, so that no read
counts. Its rows are by day (since the epoch, UTC), agent (`ALL_AGENTS` for all together), intent type ('' for none) and
assessment; a row stays when its amount falls to 0.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import MetaData, Text, text
from sqlalchemy.schema import CreateIndex, CreateTable

from pytest_golden.storage.schema import ALL_AGENTS, VERSION_TABLE, find_version, metadata, newest_version
from pytest_golden.storage.search import choose_index

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy import Connection


MIGRATIONS = Path(__file__).with_name("migrations")
# The form that Alembic gives it.
_MAKE_VERSION = (
    f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL, "
    f"CONSTRAINT {VERSION_TABLE}_pkc PRIMARY KEY (version_num))"
)


def upgrade(connection: Connection, where: str) -> None:
    """Make the tables of the store `where`, or run the migrations that it lacks, in the connection's transaction.

    Another process may have done so meanwhile; then nothing is left to do.

    Raises:
        StorageError: the store is of a newer version than this program knows, or it is another program's.
    """
    version = find_version(connection, where)
    if version is None:
        _make_tables(connection)
    elif version != newest_version():
        from alembic import command

        command.upgrade(make_config(connection), "head")


def make_config(connection: Connection | None = None) -> Config:
    """Return Alembic's configuration; `migrations/env.py` finds the connection in it."""
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    # To Alembic the configuration is an ini file: a percent sign in a path would begin a reference.
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config


def _make_tables(connection: Connection) -> None:
    tables = metadata if connection.dialect.name == "sqlite" else _copy_for_server()
    for table in tables.sorted_tables:
        connection.execute(CreateTable(table))
        # In a fixed order: of two indexes that serve a query equally well, SQLite takes the one that was made last.
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            connection.execute(CreateIndex(index))
    make_tally(connection)
    choose_index(connection).make(connection)
    connection.exec_driver_sql(_MAKE_VERSION)
    connection.exec_driver_sql(f"INSERT INTO {VERSION_TABLE} (version_num) VALUES ('{newest_version()}')")


def _copy_for_server() -> MetaData:
    """Return the tables for PostgreSQL: its text sorts by bytes, and its indexes leave out what SQLite's leave out.

    In the schema itself these options would load PostgreSQL's dialect at each start.
    """
    tables = MetaData(naming_convention=metadata.naming_convention)
    for table in metadata.sorted_tables:
        copy = table.to_metadata(tables)
        for column in copy.columns:
            if isinstance(column.type, Text):
                column.type = Text(collation="C")
        for index in copy.indexes:
            index.dialect_options["postgresql"]["where"] = index.dialect_options["sqlite"]["where"]
    return tables


_AGENTS = ("agent_id", f"'{ALL_AGENTS}'")
_COUNTED = " UNION ALL ".join(
    f"SELECT created_at / 86400000 AS day, {agent} AS agent_id, coalesce(intent_type, '') AS intent_type, assessment, "
    "count(*) AS amount FROM entries GROUP BY 1, 2, 3, 4"
    for agent in _AGENTS
)
_DIFFERING = text(
    f"SELECT count(*) FROM ({_COUNTED}) AS counted FULL JOIN entry_tally ON counted.day = entry_tally.day "
    "AND counted.agent_id = entry_tally.agent_id AND counted.intent_type = entry_tally.intent_type "
    "AND counted.assessment = entry_tally.assessment "
    "WHERE coalesce(counted.amount, 0) <> coalesce(entry_tally.amount, 0)"
)
_EMPTY = text("DELETE FROM entry_tally")
_FILL = text(f"INSERT INTO entry_tally (day, agent_id, intent_type, assessment, amount) {_COUNTED}")

_MAKE_TABLE = """
CREATE TABLE entry_tally (
    agent_id {text} NOT NULL, day BIGINT NOT NULL, intent_type {text} NOT NULL, assessment {text} NOT NULL,
    amount BIGINT NOT NULL,
    CONSTRAINT pk_entry_tally PRIMARY KEY (agent_id, day, intent_type, assessment)
) {options}
"""
_KEY = "agent_id, day, intent_type, assessment"
# Each trigger counts some rows of an entry up or down.
_TRIGGERS = {
    "insert": ("AFTER INSERT ON entries FOR EACH ROW", {"NEW": 1}),
    "delete": ("AFTER DELETE ON entries FOR EACH ROW", {"OLD": -1}),
    "update": (
        "AFTER UPDATE OF assessment ON entries FOR EACH ROW WHEN (OLD.assessment <> NEW.assessment)",
        {"OLD": -1, "NEW": 1},
    ),
}


def make_tally(connection: Connection) -> None:
    """Make the empty tally and its triggers."""
    is_file = connection.dialect.name == "sqlite"
    form = {"text": "TEXT", "options": "WITHOUT ROWID"} if is_file else {"text": 'TEXT COLLATE "C"', "options": ""}
    connection.exec_driver_sql(_MAKE_TABLE.format_map(form))
    for name, (when, amounts) in _TRIGGERS.items():
        if is_file:
            connection.exec_driver_sql(f"CREATE TRIGGER entry_tally_{name} {when} BEGIN {_write_count(amounts)}; END")
        else:
            connection.exec_driver_sql(
                f"CREATE FUNCTION entry_tally_{name}() RETURNS trigger LANGUAGE plpgsql "
                f"AS $$ BEGIN {_write_count(amounts)}; RETURN NULL; END $$"
            )
            connection.exec_driver_sql(
                f"CREATE TRIGGER entry_tally_{name} {when} EXECUTE FUNCTION entry_tally_{name}()"
            )


def find_tally_fault(connection: Connection) -> str | None:
    """Return what is wrong with the tally; None if it is right."""
    differing = connection.execute(_DIFFERING).scalar_one()
    return f"the tally of entries by day differs from the entries in {differing} rows" if differing else None


def recount_tally(connection: Connection) -> None:
    """Count the tally again from the entries."""
    connection.execute(_EMPTY)
    connection.execute(_FILL)


def _write_count(amounts: dict[str, int]) -> str:
    """Return the statement of a trigger."""
    rows = ", ".join(
        f"({agent}, {row}.created_at / 86400000, coalesce({row}.intent_type, ''), {row}.assessment, {amount})"
        for row, amount in amounts.items()
        for agent in (f"{row}.agent_id", f"'{ALL_AGENTS}'")
    )
    return (
        f"INSERT INTO entry_tally ({_KEY}, amount) VALUES {rows} "
        f"ON CONFLICT ({_KEY}) DO UPDATE SET amount = entry_tally.amount + excluded.amount"
    )
