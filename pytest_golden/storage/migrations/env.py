"""The entry point of Alembic: run the migrations on a connection that is given, inside its transaction."""

from __future__ import annotations

from alembic import context

from pytest_golden.storage.schema import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
with context.begin_transaction():
    context.run_migrations()
